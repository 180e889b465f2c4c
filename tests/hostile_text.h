// A text that another program may hand to drun's messages: it tries to command the terminal and to forge a line.
#pragma once

#include <string>

namespace drun::testing {

// Sets the title, clears the screen, CSI as U+009B and as a byte, DEL, a byte that is not UTF-8, and a line of the box.
inline const std::string kHostile =
    "why \033]0;EVIL\007\033[2J \xc2\x9b"
    "31m \x9b"
    "32m \x7f \xff\r\n  | forged";

// The same as drun shows it in one line.
inline const std::string kHostileInOneLine = "why ?]0;EVIL??[2J ?31m ?32m ? ?   | forged";

}  // namespace drun::testing
