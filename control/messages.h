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

// Identity of the agent and its host. The first frame after the magic.
struct Hello {
  std::uint16_t version = 0;
  std::string host_name;  // uname -n
  std::string machine;    // uname -m
  std::string boot_id;
  std::string net_namespace, pid_namespace, mnt_namespace;  // "net:[4026531840]"; equal ones are the same namespace
  std::uint32_t uid = 0;
  std::int32_t pid = 0;
  std::string path;          // the agent's own executable
  std::uint32_t n_cpus = 0;  // that its workers may use at the same time
  std::uint32_t n_gpus = 0;  // NVIDIA's
  std::vector<netdetect::Interface> interfaces;

  // Hosts with the same identity are the same machine, as far as a job can tell.
  std::string identity() const { return boot_id + "|" + net_namespace + "|" + pid_namespace + "|" + mnt_namespace; }
};

struct Configure {
  std::string job_id;
  std::uint32_t heartbeat_ms = 0;          // interval of each side's heartbeats
  std::uint32_t heartbeat_timeout_ms = 0;  // silence after which the other side counts as dead
  std::uint32_t grace_ms = 0;              // between TERM and KILL if drun is gone
};

struct ProbeListen {
  std::string token;
};
struct Port {  // ProbeListening, RelayListening, LinkListening
  std::string address;
  std::uint16_t port = 0;
  std::string error;  // "" = listening
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

// Variables of the login on each host. They are never sent: the agent adds its own to Prepare::environment, unless the
// job sets them.
inline constexpr const char* kLoginVariables[] = {"HOME",   "USER",     "LOGNAME",         "SHELL", "MAIL",
                                                  "TMPDIR", "HOSTNAME", "XDG_RUNTIME_DIR", "PATH"};

// Settings shared by all workers of this host.
struct Prepare {
  std::vector<std::string> argv;
  std::string working_directory;
  std::map<std::string, std::string> environment;
  std::string master_address;  // not empty: reserve a port on it for MASTER_PORT
  bool refuses_mpi = false;    // an MPI program is a problem
  std::string compat_folder;   // of --compat, must be there; "" = none
  BindTo bind_to = BindTo::kNone;
  bool shares_cores = false;      // more workers than cores are not a problem
  std::vector<std::string> gpus;  // by local rank, one for each worker of this host, as Host::gpus; "" = not set
  std::uint32_t time_ms = 0;      // for the reply: a file system that does not answer is a problem by then
};
enum class ProblemKind : std::uint8_t {
  kWorkingDirectory,
  kNotFound,
  kNotExecutable,
  kOther,
  kMpi,
  kBinding,
  kNoAnswer,  // of a file system
  kGpus,      // the host list names a GPU that is not there
  kCompat,    // drun's Python package of --compat is not there
};
struct Problem {
  ProblemKind kind = ProblemKind::kOther;
  std::string cause;
  std::string hint;
};
// The CPUs of one worker.
struct Binding {
  std::string cpus;           // "0-3,16-19"
  std::string place;          // for people: "cores 0-3", "NUMA node 1"
  std::uint32_t threads = 0;  // number that can compute there at full speed
};
struct Prepared {
  std::vector<Problem> problems;  // empty = ready
  std::uint16_t master_port = 0;
  std::vector<Binding> bindings;  // by local rank; empty without --bind-to
};

// Size of the workers' terminals, with --pty.
struct WindowSize {  // kResize
  std::uint16_t columns = 80;
  std::uint16_t rows = 24;
  bool operator==(const WindowSize& other) const { return columns == other.columns && rows == other.rows; }
};
struct WorkerSpec {
  std::uint32_t rank = 0;
  std::uint32_t local_rank = 0;
  bool wants_stdin = false;                        // else /dev/null
  std::map<std::string, std::string> environment;  // overrides the shared one
};
struct Spawn {
  std::vector<WorkerSpec> workers;
  bool pty = false;
  std::string handout;              // rendezvous::encode_handout
  std::uint32_t output_credit = 0;  // bytes per rank and stream before the first kCredit
  std::uint32_t umask = 022;        // the workers' umask, copied from drun
  WindowSize window;                // size of their terminals, if `pty`
  std::uint32_t start_ms = 0;       // for each worker to execute its program
};
struct Started {
  std::uint32_t rank = 0;
  std::int32_t pid = 0;
  std::int32_t error = 0;  // errno of a failed start, ETIMEDOUT if it hangs; then pid is 0
  std::string what;        // the step that failed
};

enum class Stream : std::uint8_t { kStdin = 0, kStdout = 1, kStderr = 2 };
struct Output {  // kOutput; kOutputEnd without bytes
  std::uint32_t rank = 0;
  Stream stream = Stream::kStdout;
  std::uint64_t time_ns = 0;  // the agent's CLOCK_REALTIME when it read the bytes
  std::string bytes;
};
struct Input {  // kStdin; kStdinEnd without bytes
  std::uint32_t rank = 0;
  std::string bytes;
};
struct Credit {                                          // kCredit, kStdinCredit
  static constexpr std::uint32_t kNoMore = 0xffffffffu;  // in kStdinCredit: the worker has closed its stdin
  std::uint32_t rank = 0;
  Stream stream = Stream::kStdout;
  std::uint32_t n_bytes = 0;
};
struct Exited {
  std::uint32_t rank = 0;
  std::int32_t pid = 0;
  std::int32_t wait_status = 0;  // as from waitpid
  bool ended_by_drun = false;    // after drun's TERM or KILL
  std::uint64_t time_ns = 0;     // the host's CLOCK_MONOTONIC when the agent saw the exit
  std::string out_of_memory;     // the kernel's report of it; "" = none
  std::string error_file;        // contents of $TORCHELASTIC_ERROR_FILE, by torch's @record; at most 64 KiB
};
struct Stop {
  std::uint32_t delay_ms = 0;          // before TERM, for the ranks in `delayed`; the others get it at once
  std::uint32_t grace_ms = 0;          // from TERM to KILL; 0 = KILL at once
  std::vector<std::uint32_t> delayed;  // ranks that get ABORT first
};
struct Ping {
  std::uint64_t sent_ns = 0;  // drun's CLOCK_MONOTONIC
};
struct Pong {
  std::uint64_t sent_ns = 0;  // of the Ping
  std::uint64_t host_ns = 0;  // the host's CLOCK_MONOTONIC
};
struct Finished {
  std::uint32_t leftovers = 0;     // descendants that were killed after the workers had ended
  std::string leftover_name;       // name of the first one; "" = not known
  std::vector<std::string> stuck;  // "pid 12 (train)": got KILL and can't die yet, as they sleep in the kernel
};
struct Signal {
  std::int32_t number = 0;
};
struct RelayListen {
  bool for_horovod = false;  // its connections have numbers from rendezvous::kFirstHorovodRelay on
};
struct Relay {  // kRelayOpen, kRelayData, kRelayClose, both directions
  std::uint32_t connection = 0;
  std::string bytes;
};
// `drun clean`: finds leftovers of earlier jobs on the host. Ends them if `end`, else only lists them.
struct Clean {
  std::string job_id;  // only this job, even if it is running; "" = all that are not running
  bool end = false;
  bool all_users = false;
  std::uint32_t grace_ms = 0;
};
enum class LeftState : std::uint8_t {
  kLeft = 0,     // no agent watches it
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
// An empty cgroup or a socket's directory. Those of a running job are not listed.
struct LeftDirectory {
  LeftState state = LeftState::kLeft;
  std::string job_id;
  std::string path;
};
struct Cleaned {
  std::vector<LeftProcess> processes;
  std::vector<LeftDirectory> directories;
  std::string error;  // not empty: the host could not be searched
};

// Asks what the workers of this host are doing. The reply is one Described per rank, sent as soon as it is known.
struct Describe {
  std::uint32_t stacks_ms = 0;  // time limit for reading the stacks of all ranks of the host; 0 = no stacks
};
struct ProcessState {
  std::int32_t pid = 0;
  std::string name;  // as the kernel reports it
  char state = '?';  // the letter of /proc/PID/stat
  std::uint64_t cpu_ms = 0;
  std::string waits_in;  // kernel function or system call; may be empty
  std::string stack;     // as the tool prints it, bounded; empty: not requested, or `problem` says why
  std::string problem;
};
struct Described {
  std::uint32_t rank = 0;
  std::int32_t pid = 0;  // 0: it was never started
  bool running = false;
  std::int32_t wait_status = 0;         // if it has ended
  std::vector<ProcessState> processes;  // the worker and its descendants, the worker first; bounded
};
// Settings of this host's flight recorders (docs/recorder.md). Sent before kSpawn; without it a recorder has
// recorder::kEntries entries.
struct Record {
  std::uint32_t n_entries = 0;
  std::uint32_t timeline_ms = 0;  // interval of kTimeline; 0: not sent
};
// One call of a rank. Times are the host's CLOCK_MONOTONIC. Copied from a worker's memory: a field may have any value.
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
  std::uint64_t ended_ns = 0;  // 0: not ended
  std::string name;
};
// Progress of a rank. Sent in reply to kAskActivity and before kExited.
struct RankActivity {
  std::uint32_t rank = 0;
  std::uint64_t n_begun = 0;
  std::uint64_t world_seq = 0;     // of its latest call of all ranks
  std::uint64_t time_ns = 0;       // time of this snapshot
  std::vector<RecordedCall> open;  // at most one: the oldest that has not ended
  std::vector<RecordedCall> last;  // at most one: the latest that has ended
};
struct Activity {
  std::vector<RankActivity> ranks;  // those that have a recorder
};
struct Timeline {
  static constexpr std::uint32_t kEnd = 0xffffffffu;  // as a rank: this host sends no more
  std::uint32_t rank = 0;
  std::uint64_t n_lost = 0;  // calls lost between the previous message and this one
  std::vector<RecordedCall> calls;
};
// Asks for facts about this host, for `drun check`.
struct AskFacts {
  std::vector<std::string> argv;  // the job's, if any: its files are looked up and hashed
  std::string working_directory;
  std::map<std::string, std::string> environment;  // the job's; its PATH is used to find programs
  std::vector<std::string> variables;              // variables of the login to report: names or patterns with *
  std::uint32_t tool_ms = 0;                       // time limit for each program that the agent runs
};
struct Facts {
  HostFacts facts;
};
struct Text {  // kNotice, kRas
  std::string text;
};

// encode(hello), decode<Hello>(body), and so on for each message above.
template <typename Message>
std::string encode(const Message& message);
template <typename Message>
Result<Message> decode(std::string_view body);

}  // namespace drun::control
