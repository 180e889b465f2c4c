// The floor of a start: logs in to all hosts at once by libssh, runs COMMAND on each, prints what it writes, and ends.
// Nothing else: no agent, no tags, no input, no care for what is left over. A thread per host, because libssh then
// waits by itself. perf/start compiles it: c++ -std=c++17 -O2 floor.cpp -lssh -pthread
//
//   floor USER@ADDRESS:PORT,... COMMAND
//
// Keys and known hosts are those in ~/.ssh; its config is not read. Exit status: 0 if all hosts gave status 0.
#include <libssh/callbacks.h>
#include <libssh/libssh.h>
#include <sys/resource.h>

#include <atomic>
#include <cstdio>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace {

std::atomic<int> n_failed{0};

bool run(ssh_session session, const std::string& host, const char* command) {
  // As drun's: twice as fast as libssh's default wherever the processor knows AES.
  constexpr const char* kCiphers = "aes128-gcm@openssh.com,aes256-gcm@openssh.com,chacha20-poly1305@openssh.com";
  const auto colon = host.rfind(':');
  if (colon == std::string::npos) return false;
  if (ssh_options_set(session, SSH_OPTIONS_HOST, host.substr(0, colon).c_str()) != SSH_OK) return false;
  if (ssh_options_set(session, SSH_OPTIONS_PORT_STR, host.substr(colon + 1).c_str()) != SSH_OK) return false;
  const long patience_s = 120;  // a thousand hosts on two processors are slow to answer
  if (ssh_options_set(session, SSH_OPTIONS_TIMEOUT, &patience_s) != SSH_OK) return false;
  const int no_delay = 1;  // as drun's: without it each login waits for delayed acknowledgements
  if (ssh_options_set(session, SSH_OPTIONS_NODELAY, &no_delay) != SSH_OK) return false;
  if (ssh_options_set(session, SSH_OPTIONS_CIPHERS_C_S, kCiphers) != SSH_OK) return false;
  if (ssh_options_set(session, SSH_OPTIONS_CIPHERS_S_C, kCiphers) != SSH_OK) return false;
  if (ssh_connect(session) != SSH_OK) return false;
  if (ssh_session_is_known_server(session) == SSH_KNOWN_HOSTS_CHANGED) return false;
  if (ssh_userauth_publickey_auto(session, nullptr, nullptr) != SSH_AUTH_SUCCESS) return false;
  const ssh_channel channel = ssh_channel_new(session);
  if (channel == nullptr) return false;
  bool good = ssh_channel_open_session(channel) == SSH_OK && ssh_channel_request_exec(channel, command) == SSH_OK;
  char bytes[4096];
  for (int n = 0; good && (n = ssh_channel_read(channel, bytes, sizeof bytes, 0)) > 0;) {
    std::fwrite(bytes, 1, static_cast<std::size_t>(n), stdout);
  }
  good = good && ssh_channel_get_exit_status(channel) == 0;
  ssh_channel_free(channel);
  return good;
}

void serve(const std::string& host, const char* command) {
  const ssh_session session = ssh_new();
  if (session == nullptr || !run(session, host, command)) {
    std::fprintf(stderr, "floor: %s: %s\n", host.c_str(), session == nullptr ? "no memory" : ssh_get_error(session));
    ++n_failed;
  }
  if (session == nullptr) return;
  ssh_disconnect(session);
  ssh_free(session);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: floor USER@ADDRESS:PORT,... COMMAND\n", stderr);
    return 2;
  }
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;  // a connection for each host
  setrlimit(RLIMIT_NOFILE, &files);
  std::vector<std::thread> threads;
  std::stringstream hosts(argv[1]);
  for (std::string host; std::getline(hosts, host, ',');) {
    threads.emplace_back([host, command = argv[2]] { serve(host, command); });
  }
  for (std::thread& one : threads) one.join();
  return n_failed == 0 ? 0 : 1;
}
