#include "control/messages.h"

#include <concepts>
#include <tuple>
#include <type_traits>

#include "base/clean_text.h"

namespace drun::control {

namespace {

template <typename T, typename Message>
concept Is = std::same_as<std::remove_const_t<T>, Message>;

// A last field without a length: the rest of the body.
template <typename String>
struct Rest {
  String& bytes;
};
template <typename String>
Rest(String&) -> Rest<String>;  // for compilers before C++20 deduced aggregates, clang 14 among them

// A text of one line from an agent, which users see: cleaned when it is decoded.
template <typename String>
struct Line {
  String& text;
};
template <typename String>
Line(String&) -> Line<String>;

// The same of several lines.
template <typename String>
struct Lines {
  String& text;
};
template <typename String>
Lines(String&) -> Lines<String>;

// Texts of one line by name.
template <typename Map>
struct Table {
  Map& texts;
};
template <typename Map>
Table(Map&) -> Table<Map>;

template <typename... Field>
std::tuple<Field...> all(Field&&... field) {
  return {std::forward<Field>(field)...};
}

// ---- the fields of each message, in wire order

auto fields(Is<Hello> auto& m) {
  return all(m.version, Line{m.host_name}, Line{m.machine}, m.boot_id, m.net_namespace, m.pid_namespace,
             m.mnt_namespace, m.uid, m.pid, Line{m.path}, m.n_cpus, m.n_gpus, m.interfaces);
}
auto fields(Is<Configure> auto& m) { return all(m.job_id, m.heartbeat_ms, m.heartbeat_timeout_ms, m.grace_ms); }
auto fields(Is<ProbeListen> auto& m) { return all(m.token); }
auto fields(Is<Port> auto& m) { return all(Line{m.address}, m.port, Line{m.error}); }
auto fields(Is<ProbeRun> auto& m) { return all(m.targets, m.token, m.timeout_ms, m.parallel); }
auto fields(Is<ProbeResults> auto& m) { return all(m.results); }
auto fields(Is<LinkListen> auto& m) { return all(m.token); }
auto fields(Is<LinkRun> auto& m) { return all(m.targets, m.token); }
auto fields(Is<LinkResults> auto& m) { return all(m.results); }
auto fields(Is<Prepare> auto& m) {
  return all(m.argv, m.working_directory, m.environment, m.master_address, m.refuses_mpi, m.compat_folder, m.bind_to,
             m.shares_cores, m.gpus, m.time_ms);
}
auto fields(Is<Problem> auto& m) { return all(m.kind, Line{m.cause}, Line{m.hint}); }
auto fields(Is<Binding> auto& m) { return all(Line{m.cpus}, Line{m.place}, m.threads); }
auto fields(Is<Prepared> auto& m) { return all(m.problems, m.master_port, m.bindings); }
auto fields(Is<WindowSize> auto& m) { return all(m.columns, m.rows); }
auto fields(Is<WorkerSpec> auto& m) { return all(m.rank, m.local_rank, m.wants_stdin, m.environment); }
auto fields(Is<Spawn> auto& m) {
  return all(m.workers, m.pty, m.handout, m.output_credit, m.umask, m.window, m.start_ms);
}
auto fields(Is<Started> auto& m) { return all(m.rank, m.pid, m.error, Line{m.what}); }
auto fields(Is<Output> auto& m) { return all(m.rank, m.stream, m.time_ns, Rest{m.bytes}); }
auto fields(Is<Input> auto& m) { return all(m.rank, Rest{m.bytes}); }
auto fields(Is<Credit> auto& m) { return all(m.rank, m.stream, m.n_bytes); }
auto fields(Is<Exited> auto& m) {
  return all(m.rank, m.pid, m.wait_status, m.ended_by_drun, m.time_ns, Line{m.out_of_memory}, m.error_file);
}
auto fields(Is<Stop> auto& m) { return all(m.delay_ms, m.grace_ms, m.delayed); }
auto fields(Is<Ping> auto& m) { return all(m.sent_ns); }
auto fields(Is<Pong> auto& m) { return all(m.sent_ns, m.host_ns); }
auto fields(Is<Finished> auto& m) { return all(m.leftovers, Line{m.leftover_name}, m.stuck); }
auto fields(Is<Signal> auto& m) { return all(m.number); }
auto fields(Is<RelayListen> auto& m) { return all(m.for_horovod); }
auto fields(Is<Relay> auto& m) { return all(m.connection, Rest{m.bytes}); }
auto fields(Is<Clean> auto& m) { return all(m.job_id, m.end, m.all_users, m.grace_ms); }
auto fields(Is<LeftProcess> auto& m) {
  return all(m.state, Line{m.job_id}, m.rank, m.pid, m.uid, Line{m.user}, m.age_s, Line{m.command});
}
auto fields(Is<LeftDirectory> auto& m) { return all(m.state, Line{m.job_id}, Line{m.path}); }
auto fields(Is<Cleaned> auto& m) { return all(m.processes, m.directories, Line{m.error}); }
auto fields(Is<Describe> auto& m) { return all(m.stacks_ms); }
auto fields(Is<ProcessState> auto& m) {
  return all(m.pid, Line{m.name}, m.state, m.cpu_ms, Line{m.waits_in}, Lines{m.stack}, Line{m.problem});
}
auto fields(Is<Described> auto& m) { return all(m.rank, m.pid, m.running, m.wait_status, m.processes); }
auto fields(Is<Record> auto& m) { return all(m.n_entries, m.timeline_ms); }
auto fields(Is<RecordedCall> auto& m) {
  return all(m.comm, m.group, m.seq, m.kind, m.dtype, m.op, m.status, m.root, m.count, m.queued_us, m.started_ns,
             m.ended_ns, Line{m.name});
}
auto fields(Is<RankActivity> auto& m) { return all(m.rank, m.n_begun, m.world_seq, m.time_ns, m.open, m.last); }
auto fields(Is<Activity> auto& m) { return all(m.ranks); }
auto fields(Is<Timeline> auto& m) { return all(m.rank, m.n_lost, m.calls); }
auto fields(Is<AskFacts> auto& m) { return all(m.argv, m.working_directory, m.environment, m.variables, m.tool_ms); }
auto fields(Is<GpuProcess> auto& m) { return all(m.pid, Line{m.name}, m.used_mib); }
auto fields(Is<GpuFacts> auto& m) {
  return all(m.index, Line{m.name}, Line{m.uuid}, m.memory_total_mib, m.memory_used_mib, m.ecc_uncorrected,
             m.remap_pending, m.remap_failed, m.throttle_reasons, m.pcie_width, m.pcie_width_max, m.processes);
}
auto fields(Is<XidFacts> auto& m) { return all(m.number, Line{m.device}, m.age_s, Line{m.text}); }
auto fields(Is<RdmaPort> auto& m) {
  return all(Line{m.device}, m.port, Line{m.state}, m.rate_mbps, Line{m.link_layer}, Line{m.interface}, m.gid_rocev2);
}
auto fields(Is<NicFacts> auto& m) {
  return all(Line{m.name}, m.up, m.speed_mbps, Line{m.duplex}, m.rp_filter, m.networks);
}
auto fields(Is<BondSlave> auto& m) { return all(Line{m.name}, m.up, m.speed_mbps); }
auto fields(Is<BondFacts> auto& m) { return all(Line{m.name}, Line{m.mode}, m.slaves); }
auto fields(Is<DiskFacts> auto& m) { return all(Line{m.path}, m.size_mib, m.free_mib, m.writable); }
auto fields(Is<HostFacts> auto& m) {
  return all(Table{m.versions}, Table{m.unknown}, Line{m.command}, Line{m.command_problem}, m.monotonic_ns,
             m.realtime_ns, Line{m.cpu}, m.n_cpus, m.memory_total_mib, m.memory_available_mib, m.disks, m.memlock_bytes,
             m.open_files, m.processes, m.has_nvidia_smi, m.nvidia_smi_ms, m.nvidia_smi_late,
             Line{m.nvidia_smi_problem}, m.gpus, m.kernel_log_readable, m.xids, m.rdma, m.nics, m.bonds,
             m.n_routing_rules, m.nccl_conf, Table{m.variables}, Line{m.path}, Line{m.host_name}, m.own_addresses);
}
auto fields(Is<Facts> auto& m) { return all(m.facts); }
auto fields(Is<Text> auto& m) { return all(Lines{m.text}); }

// ---- encoding of fields

using Environment = std::map<std::string, std::string>;

template <typename T>
concept OneByte = std::is_enum_v<T> || std::same_as<T, char> || std::same_as<T, std::uint8_t>;
template <typename T>
concept Number = std::integral<T> && sizeof(T) > 1;
template <typename T>
concept Group = requires(T& m) {
  fields(m);
};

template <typename T>
constexpr std::size_t least_bytes();
template <typename... Field>
constexpr std::size_t least_bytes_of(std::type_identity<std::tuple<Field...>>) {
  return (least_bytes<std::remove_cvref_t<Field>>() + ...);
}
// A text or a list has a count of 4 bytes.
template <typename T>
constexpr std::size_t least_bytes() {
  if constexpr (Group<T>) {
    return least_bytes_of(std::type_identity<decltype(fields(std::declval<T&>()))>());
  } else {
    return std::is_scalar_v<T> ? sizeof(T) : 4;
  }
}

void put(ByteWriter& out, bool value) { out.boolean(value); }
void put(ByteWriter& out, OneByte auto value) { out.u8(static_cast<std::uint8_t>(value)); }
void put(ByteWriter& out, Number auto value) {
  if constexpr (sizeof value == 2) {
    out.u16(static_cast<std::uint16_t>(value));
  } else if constexpr (sizeof value == 4) {
    out.u32(static_cast<std::uint32_t>(value));
  } else {
    out.u64(static_cast<std::uint64_t>(value));
  }
}
void put(ByteWriter& out, const std::string& text) { out.str(text); }
void put(ByteWriter& out, const Rest<const std::string>& rest) { out.raw(rest.bytes); }
void put(ByteWriter& out, const Line<const std::string>& line) { out.str(line.text); }
void put(ByteWriter& out, const Lines<const std::string>& lines) { out.str(lines.text); }
void put(ByteWriter& out, const std::vector<netdetect::Interface>& list) { netdetect::encode(out, list); }
void put(ByteWriter& out, const std::vector<netdetect::ProbeTarget>& list) { netdetect::encode(out, list); }
void put(ByteWriter& out, const std::vector<netdetect::ProbeResult>& list) { netdetect::encode(out, list); }
void put(ByteWriter& out, const std::vector<netdetect::LinkTarget>& list) { netdetect::encode(out, list); }
void put(ByteWriter& out, const std::vector<netdetect::LinkResult>& list) { netdetect::encode(out, list); }
void put(ByteWriter& out, const Environment& environment) {
  out.u32(static_cast<std::uint32_t>(environment.size()));
  for (const auto& [name, value] : environment) {
    out.str(name);
    out.str(value);
  }
}
using Lists = std::map<std::string, std::vector<std::string>>;
void put(ByteWriter& out, const Lists& lists) {
  out.u32(static_cast<std::uint32_t>(lists.size()));
  for (const auto& [name, list] : lists) {
    out.str(name);
    out.strs(list);
  }
}
void put(ByteWriter& out, const Table<const Environment>& table) { put(out, table.texts); }
void put(ByteWriter& out, const Group auto& group);
template <typename T>
void put(ByteWriter& out, const std::vector<T>& list) {
  out.u32(static_cast<std::uint32_t>(list.size()));
  for (const auto& item : list) put(out, item);
}
void put(ByteWriter& out, const Group auto& group) {
  std::apply([&](const auto&... field) { (put(out, field), ...); }, fields(group));
}

void get(ByteReader& in, bool& value) { value = in.boolean(); }
template <OneByte T>
void get(ByteReader& in, T& value) {
  value = static_cast<T>(in.u8());
}
template <Number T>
void get(ByteReader& in, T& value) {
  if constexpr (sizeof value == 2) {
    value = static_cast<T>(in.u16());
  } else if constexpr (sizeof value == 4) {
    value = static_cast<T>(in.u32());
  } else {
    value = static_cast<T>(in.u64());
  }
}
void get(ByteReader& in, std::string& text) { text = in.str(); }
void get(ByteReader& in, const Rest<std::string>& rest) { rest.bytes = std::string(in.raw(in.left())); }
void get(ByteReader& in, const Line<std::string>& line) { line.text = clean_line(in.str()); }
void get(ByteReader& in, const Lines<std::string>& lines) { lines.text = clean_text(in.str()); }
void get(ByteReader& in, std::vector<netdetect::Interface>& list) { list = netdetect::decode_interfaces(in); }
void get(ByteReader& in, std::vector<netdetect::ProbeTarget>& list) { list = netdetect::decode_targets(in); }
void get(ByteReader& in, std::vector<netdetect::ProbeResult>& list) { list = netdetect::decode_results(in); }
void get(ByteReader& in, std::vector<netdetect::LinkTarget>& list) { list = netdetect::decode_link_targets(in); }
void get(ByteReader& in, std::vector<netdetect::LinkResult>& list) { list = netdetect::decode_link_results(in); }
void get(ByteReader& in, Environment& environment) {
  const std::size_t n = in.count(8);
  for (std::size_t i = 0; i < n; ++i) {
    std::string name = in.str();
    environment[std::move(name)] = in.str();
  }
}
void get(ByteReader& in, const Table<Environment>& table) {
  Environment texts;
  get(in, texts);
  for (const auto& [name, text] : texts) table.texts[clean_line(name)] = clean_line(text);
}
// Lines of files on the host, which users see.
void get(ByteReader& in, Lists& lists) {
  const std::size_t n = in.count(8);
  for (std::size_t i = 0; i < n; ++i) {
    auto& list = lists[clean_line(in.str())];
    list = in.strs();
    for (auto& line : list) line = clean_line(line);
  }
}
void get(ByteReader& in, Group auto& group);
template <typename T>
void get(ByteReader& in, std::vector<T>& list) {
  const std::size_t n = in.count(least_bytes<T>());
  for (std::size_t i = 0; i < n; ++i) get(in, list.emplace_back());
}
void get(ByteReader& in, Group auto& group) {
  std::apply([&](auto&&... field) { (get(in, field), ...); }, fields(group));
}

}  // namespace

template <typename Message>
std::string encode(const Message& message) {
  ByteWriter out;
  put(out, message);
  return out.take();
}

template <typename Message>
Result<Message> decode(std::string_view body) {
  ByteReader in(body);
  Message message;
  get(in, message);
  if (!in.done()) return fail(Errc::kProtocol, "malformed control message");
  return message;
}

#define DRUN_MESSAGE(M)                  \
  template std::string encode(const M&); \
  template Result<M> decode(std::string_view);
DRUN_MESSAGE(Hello)
DRUN_MESSAGE(Configure)
DRUN_MESSAGE(ProbeListen)
DRUN_MESSAGE(Port)
DRUN_MESSAGE(ProbeRun)
DRUN_MESSAGE(ProbeResults)
DRUN_MESSAGE(LinkListen)
DRUN_MESSAGE(LinkRun)
DRUN_MESSAGE(LinkResults)
DRUN_MESSAGE(Prepare)
DRUN_MESSAGE(Prepared)
DRUN_MESSAGE(Spawn)
DRUN_MESSAGE(Started)
DRUN_MESSAGE(Output)
DRUN_MESSAGE(Input)
DRUN_MESSAGE(Credit)
DRUN_MESSAGE(Exited)
DRUN_MESSAGE(Stop)
DRUN_MESSAGE(Ping)
DRUN_MESSAGE(Pong)
DRUN_MESSAGE(Finished)
DRUN_MESSAGE(Signal)
DRUN_MESSAGE(WindowSize)
DRUN_MESSAGE(RelayListen)
DRUN_MESSAGE(Relay)
DRUN_MESSAGE(Clean)
DRUN_MESSAGE(Cleaned)
DRUN_MESSAGE(Describe)
DRUN_MESSAGE(Described)
DRUN_MESSAGE(Record)
DRUN_MESSAGE(Activity)
DRUN_MESSAGE(Timeline)
DRUN_MESSAGE(AskFacts)
DRUN_MESSAGE(Facts)
DRUN_MESSAGE(Text)
#undef DRUN_MESSAGE

}  // namespace drun::control
