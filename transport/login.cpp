#include "transport/login.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "base/error_id.h"
#include "base/text.h"
#include "transport/sha1.h"

namespace drun::transport {
namespace {

std::string agent_socket(const SshTarget& target) {
  if (target.identity_agent == "none") return "";
  if (!target.identity_agent.empty()) return target.identity_agent;
  const char* path = ::getenv("SSH_AUTH_SOCK");
  return path != nullptr ? path : "";
}

// A server hangs up at the sixth failure (MaxAuthTries), which would hide the reason.
constexpr std::size_t kFewKeys = 4;

std::string method_words(unsigned methods) {
  std::vector<std::string> words;
  if (methods & SSH_AUTH_METHOD_PUBLICKEY) words.push_back("publickey");
  if (methods & SSH_AUTH_METHOD_PASSWORD) words.push_back("password");
  if (methods & SSH_AUTH_METHOD_INTERACTIVE) words.push_back("keyboard-interactive");
  if (methods & SSH_AUTH_METHOD_HOSTBASED) words.push_back("hostbased");
  if (methods & SSH_AUTH_METHOD_GSSAPI_MIC) words.push_back("gssapi");
  return join(words, ", ");
}

// Why libssh denied the last key without a question to the server: an option of ssh config, or its own least. "": it
// asked.
std::string why_excluded(const LibsshSession& session, const SshTarget& target) {
  const std::string words = session.error_text();
  const auto by = [](bool is_given, const char* option) {
    return is_given ? std::string("excluded by ") + option : std::string("of a kind that is not used by default");
  };
  if (words.find("PUBLICKEY_ACCEPTED_TYPES") != std::string::npos) {
    return by(!target.key_algorithms.empty(), "PubkeyAcceptedAlgorithms");
  }
  if (words.find("RSA_MIN_SIZE") != std::string::npos) return by(target.min_rsa_bits > 0, "RequiredRSASize");
  return "";
}

}  // namespace

// One host's login: what has been tried, for the error.
struct Login::Attempt {
  Attempt(LibsshSession& s, const SshTarget& t, Deadline d) : session(s), target(t), deadline(d) {}
  LibsshSession& session;
  const SshTarget& target;
  Deadline deadline;
  std::string socket_path;
  std::size_t n_agent_keys = 0;
  std::vector<std::string> tried;
  std::vector<std::string> skipped;
  bool partial = false;

  Error denied() const {
    Error error(Errc::kUnreachable, target.alias, "");
    error.id = error_id::kLogin;
    if (!session.alive()) {
      error.cause = "login: " + session.error_text();
      if (n_agent_keys > 4) {
        // Newer versions of libssh lose the server's message if the server hangs up right after it.
        if (error.cause.find("Too many") == std::string::npos) {
          error.cause = "login: the server hung up after " + plural(n_agent_keys, "key") +
                        " of ssh-agent, which usually means: Too many authentication failures";
        }
        error.hint = "set IdentitiesOnly yes and an IdentityFile for " + target.alias + " in ~/.ssh/config";
        return error;
      }
    } else if (partial) {
      error.cause = "login: the key was good, but the server wants more than a key for " + target.user;
    } else {
      error.cause = "login: permission denied as " + target.user;
    }
    std::vector<std::string> words = tried;
    if (n_agent_keys > 0) words.push_back("ssh-agent: " + plural(n_agent_keys, "key"));
    error.cause += words.empty() ? " (no key to try)" : " (tried " + join(words, ", ") + ")";
    if (!skipped.empty()) error.cause += "; skipped " + join(skipped, ", ");
    const std::string methods = method_words(static_cast<unsigned>(ssh_userauth_list(session.raw(), nullptr)));
    if (!methods.empty()) error.context = "the server offers: " + methods;
    return error;
  }
};

Task<int> Login::try_file(Attempt& attempt, const Identity& identity) {
  const auto raw = attempt.session.raw();
  const auto key = identity.key;
  const char* const user = attempt.target.user.c_str();
  auto step = [raw, user, key] { return ssh_userauth_publickey(raw, user, key.get()); };
  auto answer = co_await attempt.session.until_done(std::move(step), SSH_AUTH_AGAIN);
  const int result = answer ? *answer : SSH_AUTH_ERROR;
  const std::string why = result == SSH_AUTH_DENIED ? why_excluded(attempt.session, attempt.target) : "";
  if (why.empty()) {
    attempt.tried.push_back(identity.path);
  } else {
    attempt.skipped.push_back(identity.path + " (" + why + ")");
  }
  co_return result;
}

// libssh makes blocking calls to ssh-agent, so its steps run on the signer thread. This coroutine waits for them, so
// the session still has one user at a time.
Task<int> Login::try_agent(Attempt& attempt, std::vector<SshAgentKey> keys) {
  if (!signer_) signer_ = std::make_unique<asio::thread_pool>(1);
  attempt.n_agent_keys += keys.size();
  const auto raw = attempt.session.raw();
  const char* const user = attempt.target.user.c_str();
  SshAgentFilter filter(io_, attempt.socket_path, std::move(keys));
  auto end = filter.start(attempt.deadline);
  if (!end) co_return SSH_AUTH_DENIED;
  ssh_set_agent_socket(raw, end->release());
  int answer = SSH_AUTH_ERROR;
  for (std::size_t n_refused = 0;;) {
    auto step = [raw, user] { return ssh_userauth_agent(raw, user); };
    answer = co_await run_blocking(*signer_, std::move(step));
    if (!attempt.session.alive() || !attempt.session.watched().is_open()) break;
    if (answer == SSH_AUTH_AGAIN) {
      co_await attempt.session.wait_for_socket();
    } else if (answer == SSH_AUTH_ERROR && filter.refused().size() > n_refused) {
      n_refused = filter.refused().size();
    } else {
      break;
    }
  }
  for (const auto& key : filter.refused()) attempt.skipped.push_back(key + " (ssh-agent refused to sign)");
  filter.stop();
  co_await filter.join();
  co_return answer;
}

Task<Result<void>> Login::run(LibsshSession& session, const SshTarget& target, Deadline deadline) {
  Attempt attempt(session, target, deadline);
  std::vector<SshAgentKey> agent_keys;
  attempt.socket_path = agent_socket(target);
  if (!attempt.socket_path.empty()) agent_keys = co_await agents_.keys(attempt.socket_path);

  // Order as in OpenSSH: ssh-agent's keys named by an IdentityFile, in that order; ssh-agent's other keys; then files.
  // The file of -i comes before ssh-agent's other keys, so that these can't use up the server's limit of attempts.
  std::vector<SshAgentKey> named;
  std::vector<const Identity*> files;
  for (const auto& path : target.identity_files) {
    const Identity& identity = identities_.get(path);
    const auto in_agent = std::find_if(agent_keys.begin(), agent_keys.end(), [&identity](const SshAgentKey& k) {
      return !identity.public_base64.empty() && base64(k.blob) == identity.public_base64;
    });
    if (in_agent != agent_keys.end()) {
      named.push_back(std::move(*in_agent));
      agent_keys.erase(in_agent);
    } else if (identity.key) {
      files.push_back(&identity);
    } else if (identity.problem != "missing") {
      attempt.skipped.push_back(path + " (" + identity.problem + ")");
    }
  }
  if (target.identities_only) agent_keys.clear();
  if (!target.identity_by_option) {
    named.insert(named.end(), std::make_move_iterator(agent_keys.begin()), std::make_move_iterator(agent_keys.end()));
    agent_keys.clear();
  }

  int answer = SSH_AUTH_DENIED;
  const auto go_on = [&] {
    if (answer == SSH_AUTH_PARTIAL) attempt.partial = true;
    return answer != SSH_AUTH_SUCCESS && session.alive() && session.watched().is_open();
  };
  if (!named.empty()) answer = co_await try_agent(attempt, std::move(named));
  for (const Identity* identity : files) {
    if (!go_on()) break;
    answer = co_await try_file(attempt, *identity);
  }
  if (go_on() && !agent_keys.empty()) answer = co_await try_agent(attempt, std::move(agent_keys));
  if (go_on() && attempt.tried.size() + attempt.n_agent_keys <= kFewKeys) {
    // Asks which methods the server accepts. Some servers let a user in without a key, whatever keys are offered.
    const auto raw = session.raw();
    const char* const user = target.user.c_str();
    auto step = [raw, user] { return ssh_userauth_none(raw, user); };
    auto none = co_await session.until_done(std::move(step), SSH_AUTH_AGAIN);
    if (none && *none == SSH_AUTH_SUCCESS) answer = SSH_AUTH_SUCCESS;
  }
  if (answer == SSH_AUTH_SUCCESS) co_return Result<void>{};
  co_return fail(attempt.denied());
}

}  // namespace drun::transport
