#include "tests/integration/transport/sshd_fixture.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/fd.h"
#include "base/text.h"

namespace drun::transport::testing {

Daemon::Daemon(const std::vector<std::string>& argv, const std::string& log_file) {
  std::vector<char*> words;
  for (const auto& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ != 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  const int log = ::open(log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  const int null = ::open("/dev/null", O_RDONLY);
  ::dup2(null, 0);
  ::dup2(log, 1);
  ::dup2(log, 2);
  ::execv(words[0], words.data());
  ::_exit(127);
}

Daemon::~Daemon() { kill_now(); }

void Daemon::kill_now() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

std::string output_of(const std::string& shell_command) {
  FILE* pipe = ::popen(shell_command.c_str(), "r");
  std::string out;
  char buffer[4096];
  while (const std::size_t n = std::fread(buffer, 1, sizeof buffer, pipe)) out.append(buffer, n);
  EXPECT_EQ(::pclose(pipe), 0) << shell_command;
  return out;
}

int free_port() {
  Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t n = sizeof address;
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), n) != 0) std::abort();
  ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &n);
  return ntohs(address.sin_port);
}

namespace {

bool answers(int port) {
  Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return ::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

std::string first_two_words(const std::string& line) {
  std::istringstream in(line);
  std::string type, key;
  in >> type >> key;
  return type + " " + key;
}

// Returns all descendants of `pid`; parents first.
std::vector<pid_t> descendants(pid_t pid) {
  std::vector<pid_t> out;
  std::istringstream in(
      read_file("/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid) + "/children").value_or(""));
  for (pid_t child; in >> child;) {
    out.push_back(child);
    for (const pid_t p : descendants(child)) out.push_back(p);
  }
  return out;
}

}  // namespace

Sshd::Sshd(const std::string& extra) : extra_(extra) {
  if (::getuid() == 0) ::mkdir("/run/sshd", 0755);
  output_of("ssh-keygen -q -t ed25519 -N '' -f " + folder_.path("host_key"));
  output_of("ssh-keygen -q -t ed25519 -N '' -f " + key());
  folder_.write("authorized_keys", folder_.read("user_key.pub"));
  start();
}

void Sshd::start() {
  for (int tries = 0; tries < 5; ++tries) {
    if (port_ == 0) port_ = free_port();
    folder_.write("sshd_config",
                  extra_ + "\nPort " + std::to_string(port_) + "\nListenAddress 127.0.0.1\nHostKey " +
                      folder_.path("host_key") +
                      "\nPidFile none\nUsePAM no\nStrictModes no\nPasswordAuthentication no\n"
                      "KbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\nLogLevel VERBOSE\n"
                      "SetEnv HOME=" +  // startup files of the real home may take time
                      folder_.path() +
                      "\nAuthorizedKeysFile " + folder_.path("authorized_keys") + "\n");
    daemon_ = std::make_unique<Daemon>(
        std::vector<std::string>{"/usr/sbin/sshd", "-D", "-e", "-f", folder_.path("sshd_config")},
        folder_.path("sshd.log"));
    for (int i = 0; i < 500; ++i) {
      if (answers(port_)) return;
      int status = 0;
      if (::waitpid(daemon_->pid(), &status, WNOHANG) == daemon_->pid()) break;  // the port was taken
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    daemon_.reset();
    port_ = 0;
  }
  ADD_FAILURE() << "sshd does not start:\n" << log();
}

std::string Sshd::host_key_line() const { return first_two_words(folder_.read("host_key.pub")); }

void Sshd::restart_with_new_host_key(const std::string& type) {
  daemon_.reset();
  std::filesystem::remove(folder_.path("host_key"));
  std::filesystem::remove(folder_.path("host_key.pub"));
  output_of("ssh-keygen -q -t " + type + " -N '' -f " + folder_.path("host_key"));
  start();
}

void Sshd::kill_everything() {
  const auto all = descendants(daemon_->pid());
  daemon_->kill_now();
  for (const pid_t pid : all) ::kill(pid, SIGKILL);
}

std::string Sshd::config(const std::string& lines) const {
  const std::string name = "config" + std::to_string(std::hash<std::string>{}(lines));
  folder_.write(name, lines + "\nHost box box2\n  HostName 127.0.0.1\n  Port " + std::to_string(port_) +
                          "\n  IdentityFile " + key() + "\n  IdentityAgent none\n  UserKnownHostsFile " +
                          known_hosts() + "\n  GlobalKnownHostsFile /dev/null\n  StrictHostKeyChecking accept-new\n");
  return folder_.path(name);
}

SshTarget Sshd::target(const std::string& lines, const std::string& alias) const {
  SshOptions options;
  options.config_file = config(lines);
  Host host;
  host.name = alias;
  auto target = resolve_ssh_target(host, options);
  EXPECT_TRUE(target) << target.error().message();
  return target.value_or(SshTarget{});
}

std::string Sshd::proxy_command(const std::string& first) const {
  folder_.write("relay.py", "import os, socket, sys, threading, time\n" + first +
                                "s = socket.create_connection((sys.argv[1], int(sys.argv[2])))\n"
                                "def up():\n"
                                "    while b := os.read(0, 65536): s.sendall(b)\n"
                                "    s.shutdown(socket.SHUT_WR)\n"
                                "threading.Thread(target=up, daemon=True).start()\n"
                                "while b := s.recv(65536): os.write(1, b)\n");
  return "ProxyCommand python3 " + folder_.path("relay.py") + " %h %p";
}

std::unique_ptr<Transport> Loop::libssh() {
  return make_libssh_transport(
      io, helper, [this](const std::string& text) { notices.push_back(text); }, std::chrono::seconds(30));
}

std::unique_ptr<Transport> Loop::openssh() { return make_openssh_transport(io, {}, ""); }

Result<std::unique_ptr<Channel>> Loop::open(Transport& transport, const SshTarget& target, const std::string& command,
                                            std::chrono::milliseconds limit) {
  return run(transport.open(target, command, Clock::now() + limit));
}

namespace {

Task<void> feed(Channel& channel, std::string input, std::string& error) {
  const auto written = co_await channel.write(asio::buffer(input));
  if (!written) error = written.error().message();
  channel.close_write();
}

}  // namespace

Task<Outcome> converse(asio::io_context& io, std::unique_ptr<Channel> channel, std::string input) {
  Outcome out;
  TaskGroup group(io.get_executor());
  group.spawn(feed(*channel, std::move(input), out.error));
  std::vector<char> buffer(65536);
  for (;;) {
    const auto n = co_await channel->read_some(asio::buffer(buffer));
    if (!n) out.error = n.error().message();
    if (!n || *n == 0) break;
    out.out.append(buffer.data(), *n);
  }
  out.exit_status = channel->exit_status();
  out.err = channel->stderr_text();
  channel->close();
  co_await group.join();
  co_await channel->join();
  co_return out;
}

}  // namespace drun::transport::testing
