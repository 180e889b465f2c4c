#include "launcher/connect/bootstrap.h"

#include <sodium.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <vector>

#include "base/error_id.h"
#include "base/fd.h"
#include "base/program_folder.h"
#include "base/text.h"
#include "launcher/connect/bootstrap_answer.h"
#include "launcher/connect/host_words.h"
#include "transport/backoff.h"

namespace drun::launcher {

namespace {

constexpr std::size_t kNoiseLimit = 1u << 20;       // bytes that rc files may print before the hello
constexpr std::size_t kMaxAgentBytes = 256u << 20;  // large with sanitizers; a release build has a few MB
constexpr std::size_t kNameDigits = 16;             // of the hash, in names of files
constexpr int kMaxDeliveries = 4;                   // one for each directory that the remote command tries
constexpr int kSshFailed = 255;                     // exit status of OpenSSH's client if the connection failed

std::string sha256_hex(const std::string& bytes) {
  std::array<unsigned char, crypto_hash_sha256_BYTES> hash{};
  crypto_hash_sha256(hash.data(), reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  return hex(std::string_view(reinterpret_cast<const char*>(hash.data()), hash.size()));
}

// The last line of stderr is the cause; the lines before it and the output of rc files are context.
Error no_hello(const std::string& host, const std::string& login, const transport::Channel& channel,
               const std::string& noise) {
  auto words = last_lines_of_host(channel.stderr_text());
  const int status = channel.exit_status();
  const bool from_ssh = status == kSshFailed && !words.empty();
  std::string cause = from_ssh ? "ssh" : "agent: no hello";
  if (!from_ssh && status >= 0) cause += " (the remote command ended with status " + std::to_string(status) + ")";
  if (!words.empty()) {
    cause += ": " + words.back();
    words.pop_back();
  }
  Error error(Errc::kUnreachable, host, cause);
  error.id = from_ssh ? error_id::kSsh : error_id::kAgent;
  // Behind words of drun's own: a line of the host's alone could look like one of a box of drun's.
  for (const auto& line : words) error = std::move(error).with_context((from_ssh ? "ssh: " : "it said: ") + line);
  for (const auto& line : lines_of_host(noise)) error = std::move(error).with_context("the host printed: " + line);
  if (login.empty()) return error;
  return std::move(error).with_hint(from_ssh ? login + " true"
                                             : "does the login allow commands? " + login + " uname -m");
}

Result<control::Hello> hello_of(const control::Frame& frame, const std::string& host) {
  auto hello = control::decode<control::Hello>(frame.body);
  if (frame.type != control::Type::kHello || !hello) {
    return fail(Error(Errc::kProtocol, host, "agent: its first message is no hello").with_id(error_id::kAgent));
  }
  if (hello->version != control::kVersion) {
    return fail(Error(Errc::kUnreachable, host,
                      "agent: it speaks version " + std::to_string(hello->version) + ", this drun " +
                          std::to_string(control::kVersion))
                    .with_hint("leave out --agent-path, and drun brings the right one")
                    .with_id(error_id::kAgent));
  }
  return std::move(*hello);
}

// The error for a host that can't take the agent: kMachine, kNoPlace, kFull or kBroken.
Error not_delivered(const std::string& host, const BootstrapAnswer& answer, const AgentBinary& agent) {
  const auto error = [&host](const std::string& cause, std::string hint, std::string_view id) {
    return Error(Errc::kUnreachable, host, "agent: " + cause).with_hint(std::move(hint)).with_id(id);
  };
  const std::string installed = "install drun there and use --agent-path /path/to/drun-agent";
  switch (answer.kind) {
    case BootstrapAnswer::kMachine:
      return error("the processor type is " + answer.detail + ", this drun brings an agent for " + agent.machine,
                   "build drun-agent on that host and name it with --agent-path", error_id::kAgentMachine);
    case BootstrapAnswer::kNoPlace:
      return error("no place to put it that can be written and executed from (tried " + answer.detail + ")",
                   "make one of them writable without noexec, or " + installed, error_id::kAgentPlace);
    case BootstrapAnswer::kFull:
      return error("the disk is full: no room for its " + std::to_string((agent.bytes.size() >> 20) + 1) + " MiB in " +
                       answer.detail.substr(0, answer.detail.find_last_not_of(',') + 1),
                   "make room in one of them, or " + installed, error_id::kAgentPlace);
    default:
      return error("delivery failed in " + answer.detail, "", error_id::kAgentPlace);
  }
}

constexpr const char* kMorePlaces = "/var/tmp/drun-$i /dev/shm/drun-$i /tmp/drun-$i";  // i: the user's number

// The part of the remote command for a host that has no agent: requests it, stores and executes it. Every program that
// it calls costs the host about a millisecond, and a head that starts many hosts on few processors waits for all of
// them.
std::string delivery(const AgentBinary& agent, const std::string& nonce, const std::string& say) {
  const std::string size = std::to_string(agent.bytes.size());
  // An unpacker that fails, on a full disk or with damaged bytes, leaves the rest of them to q.
  const auto unpacked = [](const std::string& bytes, const char* unpacker) {
    return "head -c " + std::to_string(bytes.size()) + "|{ " + unpacker + " >$t||q;};;";
  };
  std::string choose_packed, unpack_packed;  // z: the form in which it is to come
  if (!agent.gzip.empty()) {
    choose_packed = "command -v gzip >/dev/null&&z=GZ;";
    unpack_packed = "GZ) " + unpacked(agent.gzip, "gzip -dc");
  }
  if (!agent.zstd.empty()) {
    choose_packed += "command -v zstd >/dev/null&&z=ZST;";
    unpack_packed += "ZST) " + unpacked(agent.zstd, "zstd -dcq");
  }
  return "o=$(umask);umask 077;z=;" + choose_packed +
         "h=;read h 2>/dev/null </proc/sys/kernel/hostname||h=$(uname -n);q(){ cat >/dev/null;return 1;};"
         // k: an executable file of the right size. v: and of the right contents, as gzip and zstd check by themselves.
         "k(){ [ -f $1 ]&&[ -x $1 ]||return 1;s=$(wc -c <$1);[ ${s##* } -eq " +
         size +
         " ];};"
         "v(){ k $1||return 1;command -v sha256sum >/dev/null||return 0;x=$(sha256sum <$1);case $x in " +
         agent.sha256 +
         "*);;*) return 1;;esac;};"
         "f=;for d in $c " +
         kMorePlaces +
         ";do "
         // A home directory that does not exist is not created.
         "a=;[ -d $d ]&&a=1||{ { [ -d ${d%/*} ]||[ -d ${d%/*/*}/ ];}&&mkdir -p $d 2>/dev/null;};l $d||continue;"
         "case $a in 1) chmod 700 . 2>/dev/null;;esac;"
         "t=./.$n.$h.$$." +
         nonce +
         ";"
         "{ true >$t;} 2>/dev/null||continue;chmod 700 $t;[ -x $t ]||{ rm -f $t;continue;};" +
         say + "NEED$z;if case $z in " + unpack_packed + "*) " + unpacked(agent.bytes, "cat") +
         "esac&&case $z in ?*);;*) v $t;;esac;then "
         // Several hosts with one home use the file of the first one; ln replaces nothing.
         "if ln $t ./$n 2>/dev/null;then :;elif v ./$n;then :;else mv -f $t ./$n;fi;rm -f $t;"
         "umask $o;exec ./$n;fi;"
         // Without room it comes again for the next directory. (No "!", because of csh.)
         "k $t&&b=1||b=${s##* };head -c " +
         size + " /dev/zero >$t 2>/dev/null;k $t||{ rm -f $t;f=$d,$f;continue;};rm -f $t;case $b in 1) " + say +
         "BROKEN $d: the checksum differs;;*) " + say + "BROKEN $d: $b of " + size +
         " bytes arrived;;esac;exit 98;done;"
         "case $f in ?*) " +
         say + "FULL $f;exit 98;;esac;" + say + "NOPLACE $c /var/tmp /dev/shm /tmp;exit 98";
}

// The form in which the host asks for the agent.
const std::string& form_of(BootstrapAnswer::Kind need, const AgentBinary& agent) {
  if (need == BootstrapAnswer::kNeedZstd) return agent.zstd;
  return need == BootstrapAnswer::kNeedGzip ? agent.gzip : agent.bytes;
}

}  // namespace

Result<AgentBinary> find_agent_binary(const std::string& program) {
  const std::string here = program_folder();
  AgentBinary agent;
  for (const auto& path : {here + "/" + program, here + "/../libexec/drun/" + program}) {
    if (::access(path.c_str(), X_OK) != 0) continue;
    agent.path = path;
    utsname names{};
    ::uname(&names);
    agent.machine = names.machine;
    return agent;
  }
  return fail(Error(Errc::kInternal, program, "not found beside drun in " + here)
                  .with_hint("install drun with its libexec folder, or build the target " + program));
}

Result<void> load_agent_binary(AgentBinary& agent) {
  auto bytes = read_file(agent.path, kMaxAgentBytes);
  if (!bytes) return fail(std::move(bytes.error()));
  agent.bytes = std::move(*bytes);
  agent.sha256 = sha256_hex(agent.bytes);
  // Their names have the hash of what they hold, so those of another build are not found.
  const std::string packed = agent.path + "." + agent.sha256.substr(0, kNameDigits);
  agent.gzip = read_file(packed + ".gz", kMaxAgentBytes).value_or("");
  agent.zstd = read_file(packed + ".zst", kMaxAgentBytes).value_or("");
  return {};
}

std::string bootstrap_command(const AgentBinary& agent, const std::string& nonce, const std::string& agent_path,
                              bool delivers_anew) {
  if (!agent_path.empty()) return "exec /bin/sh -c 'IFS=;exec " + agent_path + "'";
  const std::string name = "agent-" + agent.sha256.substr(0, kNameDigits);
  const std::string say = "echo DRUN-" + nonce + "-";
  // With an empty IFS and no globbing nothing is split or expanded, so nothing needs quotes. A host that has the agent
  // executes it without any other program, not even a subshell (before Linux 6.1 with uname). One that is damaged gives
  // no hello; then this command comes again with `delivers_anew`.
  std::string out =
      "exec /bin/sh -c 'IFS=;set -f;c=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/drun;n=" + name +
      ";"
      "m=;read m 2>/dev/null </proc/sys/kernel/arch||m=$(uname -m);case $m in " +
      agent.machine + ");;*) " + say +
      "MACHINE $m;exit 97;;esac;"
      // l: enters the directory, if it is ours and no link. From then on the names in it are relative, because another
      // user may put another directory in its place.
      "l(){ cd -P ${1%/*} 2>/dev/null&&p=${PWD%/}&&cd -P ./${1##*/} 2>/dev/null&&[ $PWD = $p/${1##*/} ]&&[ -O . ];};";
  if (!delivers_anew) {
    // w: executes the agent of that name in that directory, if it is there and ours.
    out += "w(){ l $1&&[ -f ./$2 ]&&[ -x ./$2 ]&&[ -O ./$2 ]&&{ " + say + "CACHED $PWD/$2;exec ./$2;};};w $c $n.2;" +
           "for d in /usr/local/libexec/drun /usr/libexec/drun;do [ -f $d/$n ]&&[ -x $d/$n ]&&{ " + say +
           "CACHED $d/$n;exec $d/$n;};done;w $c $n;";
  }
  out += "i=$(id -u);";
  if (delivers_anew) {
    // Never in the place of a file that another host executes: with a home on NFS, that would kill its agent.
    out += "n=$n.2;";
  } else {
    out += "for d in " + std::string(kMorePlaces) + ";do w $d $n.2;w $d $n;done;";
  }
  return out + delivery(agent, nonce, say) + "'";
}

Task<Result<control::Hello>> bring_agent(transport::Channel& channel, const AgentBinary& agent, std::string nonce,
                                         std::string host, std::string login, control::FrameParser& parser,
                                         const OnCached& on_cached, const transport::OnPhase* on_phase) {
  std::string text;
  std::string chunk(4u << 10, '\0');
  int n_deliveries = 0;
  for (;;) {
    const BootstrapAnswer answer = find_bootstrap_answer(text, nonce);
    switch (answer.kind) {
      case BootstrapAnswer::kNone:
        break;
      case BootstrapAnswer::kMagic: {
        parser.push(std::string_view(text).substr(answer.end));
        for (;;) {
          auto frame = parser.next();
          if (!frame) co_return fail(std::move(frame.error()).with_subject(host));
          if (*frame) co_return hello_of(**frame, host);
          const auto buffer = asio::buffer(chunk);
          const auto n = co_await channel.read_some(buffer);
          if (!n || *n == 0) co_return fail(no_hello(host, login, channel, {}));
          parser.push(std::string_view(chunk).substr(0, *n));
        }
      }
      case BootstrapAnswer::kCached:
        on_cached(answer.detail);
        text.erase(0, answer.end);
        continue;
      case BootstrapAnswer::kNeed:
      case BootstrapAnswer::kNeedGzip:
      case BootstrapAnswer::kNeedZstd: {
        if (++n_deliveries > kMaxDeliveries) {
          co_return fail(Error(Errc::kProtocol, host, "agent: asked for too often").with_id(error_id::kAgent));
        }
        text.erase(0, answer.end);
        transport::notify_phase(on_phase, transport::Phase::kDelivery);
        const auto buffer = asio::buffer(form_of(answer.kind, agent));
        const auto written = co_await channel.write(buffer);
        if (!written) co_return fail(no_hello(host, login, channel, text));
        transport::notify_phase(on_phase, transport::Phase::kAgent);
        continue;
      }
      case BootstrapAnswer::kMachine:
      case BootstrapAnswer::kNoPlace:
      case BootstrapAnswer::kFull:
        co_return fail(not_delivered(host, answer, agent));
      case BootstrapAnswer::kBroken: {
        Error error = not_delivered(host, answer, agent);
        for (const auto& line : last_lines_of_host(channel.stderr_text())) {
          error = std::move(error).with_context("it said: " + line);
        }
        co_return fail(std::move(error));
      }
    }
    const auto buffer = asio::buffer(chunk);
    const auto n = co_await channel.read_some(buffer);
    if (!n || *n == 0) co_return fail(no_hello(host, login, channel, text));
    if (text.empty() && n_deliveries == 0) transport::notify_phase(on_phase, transport::Phase::kAgent);
    text.append(chunk, 0, *n);
    if (text.size() > kNoiseLimit) co_return fail(no_hello(host, login, channel, text));
  }
}

bool was_dropped(const transport::Channel& channel) {
  return channel.exit_status() == kSshFailed && transport::says_dropped(channel.stderr_text());
}

}  // namespace drun::launcher
