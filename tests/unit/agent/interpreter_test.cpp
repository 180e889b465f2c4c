#include "agent/interpreter.h"

#include <gtest/gtest.h>

#include "tests/temp_folder.h"

namespace drun::agent {
namespace {

TEST(Interpreter, IsTheFirstWordBehindTheMark) {
  EXPECT_EQ(interpreter_in("#!/bin/sh\necho\n"), "/bin/sh");
  EXPECT_EQ(interpreter_in("#! \t/usr/bin/env  python3\n"), "/usr/bin/env");
  EXPECT_EQ(interpreter_in("#!/bin/sh"), "/bin/sh");
  EXPECT_EQ(interpreter_in("#!/bin/sh\t-e\n"), "/bin/sh");
}

TEST(Interpreter, KeepsTheCarriageReturnOfDos) {
  EXPECT_EQ(interpreter_in("#!/bin/sh\r\necho\r\n"), "/bin/sh\r");
  EXPECT_EQ(interpreter_in("#!/usr/bin/env python3\r\n"), "/usr/bin/env");
}

TEST(Interpreter, IsNoneOfWhatIsNoScript) {
  for (const char* text : {"", "#", "#!", "#!  ", "#!\n", " #!/bin/sh", "\177ELF", "echo #!/bin/sh"}) {
    EXPECT_EQ(interpreter_in(text), "") << text;
  }
}

TEST(Interpreter, IsReadFromTheFile) {
  const drun::testing::TempFolder folder;
  folder.write("script", "#!/bin/sh\n" + std::string(1000, 'x'));
  EXPECT_EQ(interpreter_of(folder.path("script")), "/bin/sh");
  EXPECT_EQ(interpreter_of(folder.path("none")), "");
}

}  // namespace
}  // namespace drun::agent
