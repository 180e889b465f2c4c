// The remote command of bootstrap.h in a real shell: in which form it asks for the agent, and what it checks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sodium.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "base/text.h"
#include "launcher/connect/bootstrap.h"
#include "tests/temp_folder.h"
#include "transport/child_channel.h"

namespace drun::launcher {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

class BootstrapScript : public ::testing::Test {
 protected:
  BootstrapScript() {
    folder_.write("hello", std::string(control::kMagic) + control::encode_frame(control::Type::kHello, hello()));
    // Large enough that what a failed unpacker leaves does not fit into the pipes.
    folder_.write("agent", "#!/bin/sh\nexec /bin/cat " + folder_.path("hello") + "\n#" + noise(400'000));
    agent_.path = folder_.path("agent");
    agent_.machine = "$m";  // any
    EXPECT_TRUE(load_agent_binary(agent_));
    EXPECT_EQ(agent_.gzip + agent_.zstd, "") << "nothing is packed yet";
    pack("gzip -c", ".gz");
    pack("zstd -qc", ".zst");
    EXPECT_TRUE(load_agent_binary(agent_));
    for (const std::string tool :
         {"cat", "chmod", "head", "id", "ln", "mkdir", "mv", "rm", "sha256sum", "uname", "wc"}) {
      give(tool);
    }
    ::setenv("PATH", folder_.path("bin").c_str(), 1);
    ::setenv("HOME", folder_.path().c_str(), 1);
    ::unsetenv("XDG_CACHE_HOME");
  }
  ~BootstrapScript() override { ::setenv("PATH", path_.c_str(), 1); }

  static std::string hello() {
    control::Hello m;
    m.version = control::kVersion;
    m.pid = 42;
    return control::encode(m);
  }
  // Printable, and no repetition that a compressor could use.
  static std::string noise(std::size_t n_bytes) {
    std::string bytes(n_bytes / 2, '\0');
    const std::array<unsigned char, randombytes_SEEDBYTES> seed{1};
    randombytes_buf_deterministic(bytes.data(), bytes.size(), seed.data());
    return hex(bytes);
  }
  // Under the name that cmake/PackAgent.cmake gives it.
  void pack(const std::string& compressor, const std::string& suffix) const {
    const std::string out = agent_.path + "." + agent_.sha256.substr(0, 16) + suffix;
    const std::string command = compressor + " <" + agent_.path + " >" + out;
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
  }
  // Puts a program of this machine into the host's PATH, which has no other.
  void give(const std::string& tool) const {
    std::istringstream directories(path_);
    for (std::string directory; std::getline(directories, directory, ':');) {
      const std::string program = directory + "/" + tool;
      if (::access(program.c_str(), X_OK) != 0) continue;
      std::filesystem::create_directories(folder_.path("bin"));
      std::filesystem::create_symlink(program, folder_.path("bin/" + tool));
      return;
    }
    ADD_FAILURE() << tool << " is not installed";
  }

  // Returns the agent's pid, or the error.
  std::string start() {
    asio::io_context io{1};
    std::string result;
    asio::co_spawn(io, start(io, result), [](std::exception_ptr e) { EXPECT_FALSE(e); });
    io.run_for(std::chrono::seconds(30));
    return result;
  }
  Task<void> start(asio::io_context& io, std::string& result) {
    const std::string command = bootstrap_command(agent_, "abc123", "");
    auto channel = transport::spawn_child_channel(io, {"/bin/sh", "-c", command});
    EXPECT_TRUE(channel);
    control::FrameParser parser;
    std::string nonce = "abc123", host = "node1", login;
    const OnCached on_cached = [this](std::string path) { cached_ = std::move(path); };
    const auto hello =
        co_await bring_agent(**channel, agent_, std::move(nonce), std::move(host), std::move(login), parser, on_cached);
    result = hello ? std::to_string(hello->pid) : hello.error().cause + "\n" + hello.error().context;
    (*channel)->close();
    co_await (*channel)->join();
  }
  std::vector<std::string> delivered() const {
    std::vector<std::string> names;
    const std::string cache = folder_.path(".cache/drun");
    if (!std::filesystem::exists(cache)) return names;
    for (const auto& entry : std::filesystem::directory_iterator(cache)) {
      names.push_back(entry.path().filename());
      EXPECT_EQ(read_file(entry.path().string()).value_or(""), agent_.bytes);
    }
    return names;
  }
  void expect_delivered() {
    EXPECT_EQ(start(), "42");
    EXPECT_THAT(delivered(), ::testing::ElementsAre("agent-" + agent_.sha256.substr(0, 16)));
    EXPECT_EQ(cached_, "");
  }

  const std::string path_ = std::getenv("PATH");
  testing::TempFolder folder_;
  AgentBinary agent_;
  std::string cached_;
};

TEST_F(BootstrapScript, ZstdIsPreferred) {
  give("gzip");
  give("zstd");
  agent_.gzip = "not this";
  expect_delivered();
  EXPECT_EQ(start(), "42");
  EXPECT_THAT(cached_, EndsWith("/.cache/drun/agent-" + agent_.sha256.substr(0, 16)));
}

TEST_F(BootstrapScript, GzipIsUsedWhereThereIsNoZstd) {
  give("gzip");
  agent_.zstd = "not this";
  expect_delivered();
}

TEST_F(BootstrapScript, GzipIsUsedWhereThisDrunHasNoOther) {
  give("gzip");
  give("zstd");
  agent_.zstd.clear();
  expect_delivered();
}

TEST_F(BootstrapScript, TheBytesThemselvesComeWhereThereIsNeither) {
  agent_.gzip = agent_.zstd = "not this";
  expect_delivered();
}

TEST_F(BootstrapScript, DamageOnTheWayIsFound) {
  give("gzip");
  give("zstd");
  const AgentBinary good = agent_;
  const auto damage = [](std::string& bytes) { bytes[bytes.size() / 2] = static_cast<char>(~bytes[bytes.size() / 2]); };
  damage(agent_.zstd);
  EXPECT_THAT(start(), AllOf(HasSubstr("agent: delivery failed in " + folder_.path(".cache/drun") + ": "),
                             HasSubstr("it said: ")));
  EXPECT_THAT(delivered(), ::testing::IsEmpty());
  agent_.zstd.clear();
  damage(agent_.gzip);
  EXPECT_THAT(start(), HasSubstr("it said: gzip: "));
  EXPECT_THAT(delivered(), ::testing::IsEmpty());
  agent_.gzip.clear();
  damage(agent_.bytes);
  EXPECT_THAT(start(), HasSubstr("the checksum differs"));
  EXPECT_THAT(delivered(), ::testing::IsEmpty());
  agent_ = good;
  expect_delivered();
}

TEST_F(BootstrapScript, AnotherProcessorIsNamed) {
  agent_.machine = "vax";
  EXPECT_THAT(start(), HasSubstr("this drun brings an agent for vax"));
}

}  // namespace
}  // namespace drun::launcher
