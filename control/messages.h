// The bodies of the control channel's frames. Decoding checks every length; a body with bytes missing or left over is
// Errc::kProtocol.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "control/host_facts.h"
#include "netdetect/interface.h"
#include "netdetect/link_target.h"
#include "netdetect/probe_target.h"

namespace drun::control {

// Who the agent is and where it runs. The first frame after the magic.
struct Hello {
  std::uint16_t version = 0;
  std::string host_name;  // uname -n
  std::string machine;    // uname -m
  std::string boot_id;
  std::string net_namespace, pid_namespace, mnt_namespace;  // "net:[4026531840]"; equal ones are the same namespace
  std::uint32_t uid = 0;
  std::int32_t pid = 0;
  std::string path;          // the agent's own executable
  std::uint32_t n_cpus = 0;  // that its workers may use at a time
  std::vector<netdetect::Interface> interfaces;

  // Equal: the same machine as far as a job can tell.
  std::string identity() const { return boot_id + "|" + net_namespace + "|" + pid_namespace + "|" + mnt_namespace; }
};

struct Configure {
  std::string job_id;
  std::uint32_t heartbeat_ms = 0;          // how often each side says that it lives
  std::uint32_t heartbeat_timeout_ms = 0;  // silence after which the other side counts as dead
  std::uint32_t grace_ms = 0;              // between TERM and KILL if drun goes away
};

struct ProbeListen {
  std::string token;
};
struct Port {  // ProbeListening, RelayListening, LinkListening
  std::string address;
  std::uint16_t port = 0;
  std::string error;  // "" = it listens
};
struct ProbeRun {
  std::vector<netdetect::ProbeTarget> targets;
  std::string token;
  std::uint32_t timeout_ms = 0;
  std::uint32_t parallel = 0;
};
struct ProbeResults {
  std::vector<netdetect::ProbeResult> results;
};
struct LinkListen {
  std::string token;
};
struct LinkRun {
  std::vector<netdetect::LinkTarget> targets;  // all at once
  std::string token;
};
struct LinkResults {
  std::vector<netdetect::LinkResult> results;
};

// --bind-to: docs/binding.md.
enum class BindTo : std::uint8_t { kNone = 0, kCore = 1, kNuma = 2 };

// Everything that the workers of this host share.
struct Prepare {
  std::vector<std::string> argv;
  std::string working_directory;
  std::map<std::string, std::string> environment;
  std::string master_address;  // not empty: reserve a port on it for MASTER_PORT
  bool refuses_mpi = false;    // a program of MPI is a problem
  BindTo bind_to = BindTo::kNone;
  bool shares_cores = false;      // more workers than cores is no problem
  std::vector<std::string> gpus;  // by local rank, one for each worker of this host: as Host::gpus; "" = not named
};
enum class ProblemKind : std::uint8_t { kWorkingDirectory, kNotFound, kNotExecutable, kOther, kMpi, kBinding };
struct Problem {
  ProblemKind kind = ProblemKind::kOther;
  std::string cause;
  std::string hint;
};
// The CPUs of one worker.
struct Binding {
  std::string cpus;           // "0-3,16-19"
  std::string place;          // for people: "cores 0-3", "NUMA node 1"
  std::uint32_t threads = 0;  // as many as compute there at full speed
};
struct Prepared {
  std::vector<Problem> problems;  // empty = ready
  std::uint16_t master_port = 0;
  std::vector<Binding> bindings;  // by local rank; empty without --bind-to
};

// Of the workers' terminals, with --pty.
struct WindowSize {  // kResize
  std::uint16_t columns = 80;
  std::uint16_t rows = 24;
  bool operator==(const WindowSize& other) const { return columns == other.columns && rows == other.rows; }
};
struct WorkerSpec {
  std::uint32_t rank = 0;
  std::uint32_t local_rank = 0;
  bool wants_stdin = false;                        // else /dev/null
  std::map<std::string, std::string> environment;  // over the shared one
};
struct Spawn {
  std::vector<WorkerSpec> workers;
  bool pty = false;
  std::string handout;              // rendezvous::encode_handout
  std::uint32_t output_credit = 0;  // bytes per rank and stream before the first kCredit
  std::uint32_t umask = 022;        // of the workers: drun's own
  WindowSize window;                // of their terminals, if `pty`
};
struct Started {
  std::uint32_t rank = 0;
  std::int32_t pid = 0;
  std::int32_t error = 0;  // errno of a failed start; then pid is 0
  std::string what;        // the step that failed
};

enum class Stream : std::uint8_t { kStdin = 0, kStdout = 1, kStderr = 2 };
struct Output {  // kOutput; kOutputEnd without bytes
  std::uint32_t rank = 0;
  Stream stream = Stream::kStdout;
  std::uint64_t time_ns = 0;  // the agent's CLOCK_REALTIME when it read them
  std::string bytes;
};
struct Input {  // kStdin; kStdinEnd without bytes
  std::uint32_t rank = 0;
  std::string bytes;
};
struct Credit {                                          // kCredit, kStdinCredit
  static constexpr std::uint32_t kNoMore = 0xffffffffu;  // in kStdinCredit: it has closed its input
  std::uint32_t rank = 0;
  Stream stream = Stream::kStdout;
  std::uint32_t n_bytes = 0;
};
struct Exited {
  std::uint32_t rank = 0;
  std::int32_t pid = 0;
  std::int32_t wait_status = 0;  // as from waitpid
  bool ended_by_drun = false;    // after drun's TERM or KILL
  std::uint64_t time_ns = 0;     // the host's CLOCK_MONOTONIC when that was seen
  std::string out_of_memory;     // what the kernel says of it; "" = nothing
  std::string error_file;        // what torch's @record wrote to $TORCHELASTIC_ERROR_FILE, at most 64 KiB
};
struct Stop {
  std::uint32_t delay_ms = 0;          // before TERM, for the ranks in `delayed`; the others get it at once
  std::uint32_t grace_ms = 0;          // from TERM to KILL; 0 = KILL at once
  std::vector<std::uint32_t> delayed;  // they hear ABORT first
};
struct Ping {
  std::uint64_t sent_ns = 0;  // drun's CLOCK_MONOTONIC
};
struct Pong {
  std::uint64_t sent_ns = 0;  // of the Ping
  std::uint64_t host_ns = 0;  // the host's CLOCK_MONOTONIC
};
struct Finished {
  std::uint32_t leftovers = 0;  // descendants that had to be killed when the workers were over
  std::string leftover_name;    // of the first of them; "" = not known
};
struct Signal {
  std::int32_t number = 0;
};
struct Relay {  // kRelayOpen, kRelayData, kRelayClose, both directions
  std::uint32_t connection = 0;
  std::string bytes;
};
// `drun clean`: what earlier jobs left on the host. Without `end` it is only looked at.
struct Clean {
  std::string job_id;  // only this one, also if it is running; "" = all that are not running
  bool end = false;
  bool all_users = false;
  std::uint32_t grace_ms = 0;
};
enum class LeftState : std::uint8_t {
  kLeft = 0,     // nobody watches over it any more
  kRunning = 1,  // its job has an agent here
  kEnded = 2,
  kSurvived = 3,  // it could not be ended
};
struct LeftProcess {
  LeftState state = LeftState::kLeft;
  std::string job_id;
  std::int32_t rank = -1;  // -1 = unknown
  std::int32_t pid = 0;
  std::uint32_t uid = 0;
  std::string user;
  std::uint64_t age_s = 0;
  std::string command;
};
// An empty cgroup or a socket's directory. A living job's are not listed.
struct LeftDirectory {
  LeftState state = LeftState::kLeft;
  std::string job_id;
  std::string path;
};
struct Cleaned {
  std::vector<LeftProcess> processes;
  std::vector<LeftDirectory> directories;
  std::string error;  // not empty: the host could not be looked through
};

// What do the workers of this host do? One Described per rank, each as soon as it is known.
struct Describe {
  std::uint32_t stacks_ms = 0;  // how long reading stacks may take, over all ranks of the host; 0 = no stacks
};
struct ProcessState {
  std::int32_t pid = 0;
  std::string name;  // as the kernel has it
  char state = '?';  // the letter of /proc/PID/stat
  std::uint64_t cpu_ms = 0;
  std::string waits_in;  // kernel function or system call; may be empty
  std::string stack;     // as the tool prints it, bounded; empty: not asked for, or `problem` says why
  std::string problem;
};
struct Described {
  std::uint32_t rank = 0;
  std::int32_t pid = 0;  // 0: it was never started
  bool running = false;
  std::int32_t wait_status = 0;         // of one that runs no more
  std::vector<ProcessState> processes;  // the worker and its descendants, the worker first; bounded
};
// How the flight recorders of this host are kept: docs/recorder.md. Before kSpawn; without it there are those of
// recorder::kEntries.
struct Record {
  std::uint32_t n_entries = 0;
  std::uint32_t timeline_ms = 0;  // how often kTimeline tells what is new; 0: never
};
// One call of a rank. Times are the host's CLOCK_MONOTONIC. It comes from a worker's memory: any number may be in it.
struct RecordedCall {
  std::uint32_t comm = 0;
  std::uint32_t group = 0;  // its first rank
  std::uint64_t seq = 0;
  std::uint8_t kind = 0, dtype = 0, op = 0;  // recorder/words.h
  std::int32_t status = 0;                   // drun_status
  std::int32_t root = 0;
  std::uint64_t count = 0;
  std::uint32_t queued_us = 0;
  std::uint64_t started_ns = 0;
  std::uint64_t ended_ns = 0;  // 0: it has not
  std::string name;
};
// Where a rank stands. On kAskActivity, and before kExited.
struct RankActivity {
  std::uint32_t rank = 0;
  std::uint64_t n_begun = 0;
  std::uint64_t world_seq = 0;     // of its latest call of all ranks
  std::uint64_t time_ns = 0;       // when this was so
  std::vector<RecordedCall> open;  // at most one: the oldest that goes on
  std::vector<RecordedCall> last;  // at most one: the latest that has ended
};
struct Activity {
  std::vector<RankActivity> ranks;  // those that have a recorder
};
struct Timeline {
  static constexpr std::uint32_t kEnd = 0xffffffffu;  // as a rank: nothing more comes from this host
  std::uint32_t rank = 0;
  std::uint64_t n_lost = 0;  // calls between the last ones and these
  std::vector<RecordedCall> calls;
};
// What is this host like? For `drun check`.
struct AskFacts {
  std::vector<std::string> argv;  // of the job, if there is one: its files are looked up and hashed
  std::string working_directory;
  std::map<std::string, std::string> environment;  // of the job; PATH is for finding programs
  std::vector<std::string> variables;              // which of the login's to tell: names or patterns with *
  std::uint32_t tool_ms = 0;                       // how long a program of the host's may take
};
struct Facts {
  HostFacts facts;
};
struct Text {  // kNotice, kRas
  std::string text;
};

// encode(hello), decode<Hello>(body), and so on for each of the above.
template <typename Message>
std::string encode(const Message& message);
template <typename Message>
Result<Message> decode(std::string_view body);

}  // namespace drun::control
