// The codes of errors, "[host-key]" at the end of a message. docs/troubleshooting.md has a section for each, with cause
// and cure; scripts/check-docs compares the two.
#pragma once

#include <string_view>

namespace drun::error_id {

// Before anything starts
inline constexpr std::string_view kUsage = "usage";
inline constexpr std::string_view kHostList = "host-list";
inline constexpr std::string_view kSlots = "slots";
inline constexpr std::string_view kConfigFile = "config-file";
inline constexpr std::string_view kBatchJob = "batch-job";
// Reaching a host, in this order
inline constexpr std::string_view kResolve = "resolve";
inline constexpr std::string_view kConnect = "connect";
inline constexpr std::string_view kHandshake = "handshake";
inline constexpr std::string_view kSshConfig = "ssh-config";
inline constexpr std::string_view kHostKey = "host-key";
inline constexpr std::string_view kLogin = "login";
inline constexpr std::string_view kExec = "exec";
inline constexpr std::string_view kSsh = "ssh";
inline constexpr std::string_view kAgent = "agent";
inline constexpr std::string_view kAgentPlace = "agent-place";
inline constexpr std::string_view kAgentMachine = "agent-machine";
inline constexpr std::string_view kUnreachable = "unreachable";
// The network between hosts
inline constexpr std::string_view kNoNetwork = "no-network";
inline constexpr std::string_view kNotReady = "not-ready";
// Needs of the workers
inline constexpr std::string_view kWorkingDirectory = "working-directory";
inline constexpr std::string_view kNotFound = "not-found";
inline constexpr std::string_view kNotExecutable = "not-executable";
inline constexpr std::string_view kMpiProgram = "mpi-program";
inline constexpr std::string_view kBinding = "binding";
inline constexpr std::string_view kGpus = "gpus";
inline constexpr std::string_view kCompat = "compat";
// The job
inline constexpr std::string_view kWorkerExit = "worker-exit";
inline constexpr std::string_view kWorkerSignal = "worker-signal";
inline constexpr std::string_view kOutOfMemory = "out-of-memory";
inline constexpr std::string_view kHostLost = "host-lost";
inline constexpr std::string_view kPeerFailed = "peer-failed";
inline constexpr std::string_view kStdin = "stdin";
inline constexpr std::string_view kJobTimeout = "job-timeout";
inline constexpr std::string_view kDeadline = "deadline";
inline constexpr std::string_view kInterrupted = "interrupted";
// drun itself
inline constexpr std::string_view kIo = "io";
inline constexpr std::string_view kProtocol = "protocol";
inline constexpr std::string_view kWrongKey = "wrong-key";
inline constexpr std::string_view kInternal = "internal";
// Calls of libdrun in a worker, one for each drun_status, with kInternal
inline constexpr std::string_view kArgument = "argument";
inline constexpr std::string_view kState = "state";
inline constexpr std::string_view kUnsupported = "unsupported";
inline constexpr std::string_view kCallTimeout = "call-timeout";
inline constexpr std::string_view kPeer = "peer";
inline constexpr std::string_view kMismatch = "mismatch";
inline constexpr std::string_view kAborted = "aborted";
inline constexpr std::string_view kNotJoined = "not-joined";
inline constexpr std::string_view kTruncated = "truncated";
inline constexpr std::string_view kSystem = "system";

}  // namespace drun::error_id
