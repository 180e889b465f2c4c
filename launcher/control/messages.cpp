#include "launcher/control/messages.h"

namespace drun::control {

namespace {

using Environment = std::map<std::string, std::string>;

void put(ByteWriter& out, const Environment& environment) {
  out.u32(static_cast<std::uint32_t>(environment.size()));
  for (const auto& [name, value] : environment) {
    out.str(name);
    out.str(value);
  }
}

Environment get_environment(ByteReader& in) {
  Environment out;
  const std::size_t n = in.count(8);
  for (std::size_t i = 0; i < n; ++i) {
    std::string name = in.str();
    out[std::move(name)] = in.str();
  }
  return out;
}

void read(ByteReader& in, Hello& m) {
  m.version = in.u16();
  m.host_name = in.str();
  m.machine = in.str();
  m.boot_id = in.str();
  m.net_namespace = in.str();
  m.pid_namespace = in.str();
  m.mnt_namespace = in.str();
  m.uid = in.u32();
  m.pid = in.i32();
  m.path = in.str();
  m.interfaces = netdetect::decode_interfaces(in);
}
void read(ByteReader& in, Configure& m) {
  m.job_id = in.str();
  m.heartbeat_ms = in.u32();
  m.heartbeat_timeout_ms = in.u32();
  m.grace_ms = in.u32();
}
void read(ByteReader& in, ProbeListen& m) { m.token = in.str(); }
void read(ByteReader& in, Port& m) {
  m.address = in.str();
  m.port = in.u16();
  m.error = in.str();
}
void read(ByteReader& in, ProbeRun& m) {
  m.targets = netdetect::decode_targets(in);
  m.token = in.str();
  m.timeout_ms = in.u32();
  m.parallel = in.u32();
}
void read(ByteReader& in, ProbeResults& m) { m.results = netdetect::decode_results(in); }
void read(ByteReader& in, Prepare& m) {
  m.argv = in.strs();
  m.working_directory = in.str();
  m.environment = get_environment(in);
  m.master_address = in.str();
}
void read(ByteReader& in, Prepared& m) {
  const std::size_t n = in.count(9);
  for (std::size_t i = 0; i < n; ++i) {
    Problem p;
    p.kind = static_cast<ProblemKind>(in.u8());
    p.cause = in.str();
    p.hint = in.str();
    m.problems.push_back(std::move(p));
  }
  m.master_port = in.u16();
}
void read(ByteReader& in, Spawn& m) {
  const std::size_t n = in.count(13);
  for (std::size_t i = 0; i < n; ++i) {
    WorkerSpec w;
    w.rank = in.u32();
    w.local_rank = in.u32();
    w.wants_stdin = in.boolean();
    w.environment = get_environment(in);
    m.workers.push_back(std::move(w));
  }
  m.pty = in.boolean();
  m.handout = in.str();
  m.output_credit = in.u32();
}
void read(ByteReader& in, Started& m) {
  m.rank = in.u32();
  m.pid = in.i32();
  m.error = in.i32();
  m.what = in.str();
}
void read(ByteReader& in, Output& m) {
  m.rank = in.u32();
  m.stream = static_cast<Stream>(in.u8());
  m.time_ns = in.u64();
  m.bytes = std::string(in.raw(in.left()));
}
void read(ByteReader& in, Input& m) {
  m.rank = in.u32();
  m.bytes = std::string(in.raw(in.left()));
}
void read(ByteReader& in, Credit& m) {
  m.rank = in.u32();
  m.stream = static_cast<Stream>(in.u8());
  m.n_bytes = in.u32();
}
void read(ByteReader& in, Exited& m) {
  m.rank = in.u32();
  m.pid = in.i32();
  m.wait_status = in.i32();
  m.ended_by_drun = in.boolean();
  m.time_ns = in.u64();
  m.out_of_memory = in.str();
  m.error_file = in.str();
}
void read(ByteReader& in, Stop& m) {
  m.delay_ms = in.u32();
  m.grace_ms = in.u32();
  const std::size_t n = in.count(4);
  for (std::size_t i = 0; i < n; ++i) m.delayed.push_back(in.u32());
}
void read(ByteReader& in, Ping& m) { m.sent_ns = in.u64(); }
void read(ByteReader& in, Pong& m) {
  m.sent_ns = in.u64();
  m.host_ns = in.u64();
}
void read(ByteReader& in, Finished& m) { m.leftovers = in.u32(); }
void read(ByteReader& in, Signal& m) { m.number = in.i32(); }
void read(ByteReader& in, Relay& m) {
  m.connection = in.u32();
  m.bytes = std::string(in.raw(in.left()));
}
void read(ByteReader& in, Clean& m) {
  m.job_id = in.str();
  m.end = in.boolean();
  m.all_users = in.boolean();
  m.grace_ms = in.u32();
}
void read(ByteReader& in, Cleaned& m) {
  const std::size_t n_processes = in.count(33);
  for (std::size_t i = 0; i < n_processes; ++i) {
    LeftProcess p;
    p.state = static_cast<LeftState>(in.u8());
    p.job_id = in.str();
    p.rank = in.i32();
    p.pid = in.i32();
    p.uid = in.u32();
    p.user = in.str();
    p.age_s = in.u64();
    p.command = in.str();
    m.processes.push_back(std::move(p));
  }
  const std::size_t n_directories = in.count(9);
  for (std::size_t i = 0; i < n_directories; ++i) {
    LeftDirectory d;
    d.state = static_cast<LeftState>(in.u8());
    d.job_id = in.str();
    d.path = in.str();
    m.directories.push_back(std::move(d));
  }
  m.error = in.str();
}
void read(ByteReader& in, Describe& m) { m.stacks_ms = in.u32(); }
void read(ByteReader& in, Described& m) {
  m.rank = in.u32();
  m.pid = in.i32();
  m.running = in.boolean();
  m.wait_status = in.i32();
  const std::size_t n = in.count(29);
  for (std::size_t i = 0; i < n; ++i) {
    ProcessState p;
    p.pid = in.i32();
    p.name = in.str();
    p.state = static_cast<char>(in.u8());
    p.cpu_ms = in.u64();
    p.waits_in = in.str();
    p.stack = in.str();
    p.problem = in.str();
    m.processes.push_back(std::move(p));
  }
}
void read(ByteReader& in, Text& m) { m.text = in.str(); }

}  // namespace

template <typename Message>
Result<Message> decode(std::string_view body) {
  ByteReader in(body);
  Message message;
  read(in, message);
  if (!in.done()) return fail(Errc::kProtocol, "malformed control message");
  return message;
}

template Result<Hello> decode<Hello>(std::string_view);
template Result<Configure> decode<Configure>(std::string_view);
template Result<ProbeListen> decode<ProbeListen>(std::string_view);
template Result<Port> decode<Port>(std::string_view);
template Result<ProbeRun> decode<ProbeRun>(std::string_view);
template Result<ProbeResults> decode<ProbeResults>(std::string_view);
template Result<Prepare> decode<Prepare>(std::string_view);
template Result<Prepared> decode<Prepared>(std::string_view);
template Result<Spawn> decode<Spawn>(std::string_view);
template Result<Started> decode<Started>(std::string_view);
template Result<Output> decode<Output>(std::string_view);
template Result<Input> decode<Input>(std::string_view);
template Result<Credit> decode<Credit>(std::string_view);
template Result<Exited> decode<Exited>(std::string_view);
template Result<Stop> decode<Stop>(std::string_view);
template Result<Ping> decode<Ping>(std::string_view);
template Result<Pong> decode<Pong>(std::string_view);
template Result<Finished> decode<Finished>(std::string_view);
template Result<Signal> decode<Signal>(std::string_view);
template Result<Relay> decode<Relay>(std::string_view);
template Result<Clean> decode<Clean>(std::string_view);
template Result<Cleaned> decode<Cleaned>(std::string_view);
template Result<Describe> decode<Describe>(std::string_view);
template Result<Described> decode<Described>(std::string_view);
template Result<Text> decode<Text>(std::string_view);

std::string encode(const Hello& m) {
  ByteWriter out;
  out.u16(m.version);
  out.str(m.host_name);
  out.str(m.machine);
  out.str(m.boot_id);
  out.str(m.net_namespace);
  out.str(m.pid_namespace);
  out.str(m.mnt_namespace);
  out.u32(m.uid);
  out.i32(m.pid);
  out.str(m.path);
  netdetect::encode(out, m.interfaces);
  return out.take();
}
std::string encode(const Configure& m) {
  ByteWriter out;
  out.str(m.job_id);
  out.u32(m.heartbeat_ms);
  out.u32(m.heartbeat_timeout_ms);
  out.u32(m.grace_ms);
  return out.take();
}
std::string encode(const ProbeListen& m) {
  ByteWriter out;
  out.str(m.token);
  return out.take();
}
std::string encode(const Port& m) {
  ByteWriter out;
  out.str(m.address);
  out.u16(m.port);
  out.str(m.error);
  return out.take();
}
std::string encode(const ProbeRun& m) {
  ByteWriter out;
  netdetect::encode(out, m.targets);
  out.str(m.token);
  out.u32(m.timeout_ms);
  out.u32(m.parallel);
  return out.take();
}
std::string encode(const ProbeResults& m) {
  ByteWriter out;
  netdetect::encode(out, m.results);
  return out.take();
}
std::string encode(const Prepare& m) {
  ByteWriter out;
  out.strs(m.argv);
  out.str(m.working_directory);
  put(out, m.environment);
  out.str(m.master_address);
  return out.take();
}
std::string encode(const Prepared& m) {
  ByteWriter out;
  out.u32(static_cast<std::uint32_t>(m.problems.size()));
  for (const auto& p : m.problems) {
    out.u8(static_cast<std::uint8_t>(p.kind));
    out.str(p.cause);
    out.str(p.hint);
  }
  out.u16(m.master_port);
  return out.take();
}
std::string encode(const Spawn& m) {
  ByteWriter out;
  out.u32(static_cast<std::uint32_t>(m.workers.size()));
  for (const auto& w : m.workers) {
    out.u32(w.rank);
    out.u32(w.local_rank);
    out.boolean(w.wants_stdin);
    put(out, w.environment);
  }
  out.boolean(m.pty);
  out.str(m.handout);
  out.u32(m.output_credit);
  return out.take();
}
std::string encode(const Started& m) {
  ByteWriter out;
  out.u32(m.rank);
  out.i32(m.pid);
  out.i32(m.error);
  out.str(m.what);
  return out.take();
}
std::string encode(const Output& m) {
  ByteWriter out;
  out.u32(m.rank);
  out.u8(static_cast<std::uint8_t>(m.stream));
  out.u64(m.time_ns);
  out.raw(m.bytes);
  return out.take();
}
std::string encode(const Input& m) {
  ByteWriter out;
  out.u32(m.rank);
  out.raw(m.bytes);
  return out.take();
}
std::string encode(const Credit& m) {
  ByteWriter out;
  out.u32(m.rank);
  out.u8(static_cast<std::uint8_t>(m.stream));
  out.u32(m.n_bytes);
  return out.take();
}
std::string encode(const Exited& m) {
  ByteWriter out;
  out.u32(m.rank);
  out.i32(m.pid);
  out.i32(m.wait_status);
  out.boolean(m.ended_by_drun);
  out.u64(m.time_ns);
  out.str(m.out_of_memory);
  out.str(m.error_file);
  return out.take();
}
std::string encode(const Stop& m) {
  ByteWriter out;
  out.u32(m.delay_ms);
  out.u32(m.grace_ms);
  out.u32(static_cast<std::uint32_t>(m.delayed.size()));
  for (const auto rank : m.delayed) out.u32(rank);
  return out.take();
}
std::string encode(const Ping& m) {
  ByteWriter out;
  out.u64(m.sent_ns);
  return out.take();
}
std::string encode(const Pong& m) {
  ByteWriter out;
  out.u64(m.sent_ns);
  out.u64(m.host_ns);
  return out.take();
}
std::string encode(const Finished& m) {
  ByteWriter out;
  out.u32(m.leftovers);
  return out.take();
}
std::string encode(const Signal& m) {
  ByteWriter out;
  out.i32(m.number);
  return out.take();
}
std::string encode(const Relay& m) {
  ByteWriter out;
  out.u32(m.connection);
  out.raw(m.bytes);
  return out.take();
}
std::string encode(const Clean& m) {
  ByteWriter out;
  out.str(m.job_id);
  out.boolean(m.end);
  out.boolean(m.all_users);
  out.u32(m.grace_ms);
  return out.take();
}
std::string encode(const Cleaned& m) {
  ByteWriter out;
  out.u32(static_cast<std::uint32_t>(m.processes.size()));
  for (const auto& p : m.processes) {
    out.u8(static_cast<std::uint8_t>(p.state));
    out.str(p.job_id);
    out.i32(p.rank);
    out.i32(p.pid);
    out.u32(p.uid);
    out.str(p.user);
    out.u64(p.age_s);
    out.str(p.command);
  }
  out.u32(static_cast<std::uint32_t>(m.directories.size()));
  for (const auto& d : m.directories) {
    out.u8(static_cast<std::uint8_t>(d.state));
    out.str(d.job_id);
    out.str(d.path);
  }
  out.str(m.error);
  return out.take();
}
std::string encode(const Describe& m) {
  ByteWriter out;
  out.u32(m.stacks_ms);
  return out.take();
}
std::string encode(const Described& m) {
  ByteWriter out;
  out.u32(m.rank);
  out.i32(m.pid);
  out.boolean(m.running);
  out.i32(m.wait_status);
  out.u32(static_cast<std::uint32_t>(m.processes.size()));
  for (const auto& p : m.processes) {
    out.i32(p.pid);
    out.str(p.name);
    out.u8(static_cast<std::uint8_t>(p.state));
    out.u64(p.cpu_ms);
    out.str(p.waits_in);
    out.str(p.stack);
    out.str(p.problem);
  }
  return out.take();
}
std::string encode(const Text& m) {
  ByteWriter out;
  out.str(m.text);
  return out.take();
}

}  // namespace drun::control
