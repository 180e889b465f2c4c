#include "launcher/plan/allocation_file.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/error_id.h"
#include "base/text.h"
#include "launcher/plan/allocation_words.h"
#include "launcher/plan/hostlist.h"

namespace drun::launcher {
namespace {

constexpr std::uint64_t kMaxSlotsOfHost = 1u << 20;

Error error_of(const std::string& job, std::string cause) {
  return Error(Errc::kUsage, job, std::move(cause)).with_hint(list_hint("")).with_id(error_id::kBatchJob);
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> out;
  for (std::size_t at = 0;;) {
    at = line.find_first_not_of(" \t\r\n", at);
    if (at == std::string_view::npos) return out;
    const std::size_t end = std::min(line.find_first_of(" \t\r\n", at), line.size());
    out.push_back(line.substr(at, end - at));
    at = end;
  }
}

// Collects the hosts of a job. A host that is named again gets more slots.
class Gathering {
 public:
  explicit Gathering(std::string job) : job_(std::move(job)) {}

  // `where`: "/var/spool/pbs/aux/12.head:3", or the name of a variable.
  Result<void> add(std::string_view name, std::uint64_t slots, const std::string& where) {
    auto parsed = parse_host_item(name, where);
    if (!parsed || parsed->size() != 1 || parsed->front().slots_given || !parsed->front().user.empty()) {
      return fail(error_of(job_, where + ": '" + std::string(name) + "' is not a host"));
    }
    Host& host = parsed->front();
    host.slots = static_cast<int>(slots);
    host.job = job_;
    hosts_.push_back(std::move(host));
    return {};
  }

  // "HOST SLOTS" pairs.
  Result<void> add_counted(std::string_view name, std::string_view slots, const std::string& where) {
    const auto count = parse_number(slots);
    if (!count || *count > kMaxSlotsOfHost) {
      return fail(error_of(job_, where + ": '" + std::string(slots) + "' is not a number of slots"));
    }
    if (*count == 0) return {};
    return add(name, *count, where);
  }

  // `source`: the file or variable that should have named the hosts.
  Result<std::optional<Allocation>> finish(const std::string& source) {
    if (hosts_.empty()) return fail(error_of(job_, source + " names no host"));
    return Allocation{job_, add_slots(std::move(hosts_))};
  }

  void drop_first_host() {
    const std::string name = hosts_.front().name;
    hosts_.erase(std::remove_if(hosts_.begin(), hosts_.end(), [&name](const Host& host) { return host.name == name; }),
                 hosts_.end());
  }
  bool has_several_hosts() const {
    return std::any_of(hosts_.begin(), hosts_.end(),
                       [this](const Host& host) { return host.name != hosts_.front().name; });
  }

 private:
  std::string job_;
  std::vector<Host> hosts_;
};

// A line per slot, or "HOST SLOTS ..." lines.
enum class Lines { kSlots, kCounts };

Result<void> add_file(Gathering& hosts, const std::string& text, const std::string& path, Lines kind) {
  std::size_t number = 0;
  for (const std::string_view line : split(text, '\n')) {
    const std::string where = path + ":" + std::to_string(++number);
    const auto words = words_of(line);
    if (words.empty()) continue;
    auto ok = kind == Lines::kSlots ? hosts.add(words[0], 1, where)
                                    : hosts.add_counted(words[0], words.size() > 1 ? words[1] : "", where);
    if (!ok) return ok;
  }
  return {};
}

std::string without_path(const Error& error, const std::string& path) {
  return starts_with(error.cause, path + ": ") ? error.cause.substr(path.size() + 2) : error.cause;
}

Result<std::optional<Allocation>> read_job(const std::string& job, const std::string& name, const std::string& path,
                                           const ReadFile& read, Lines kind) {
  if (path.empty()) return fail(error_of(job, name + " is not set: its hosts are not known"));
  const auto text = read(path);
  if (!text) return fail(error_of(job, name + "=" + path + " can't be read: " + without_path(text.error(), path)));
  Gathering hosts(job);
  if (auto ok = add_file(hosts, *text, path, kind); !ok) return fail(std::move(ok.error()));
  return hosts.finish(name + "=" + path);
}

}  // namespace

Result<std::optional<Allocation>> lsf_allocation(const Environment& env, const ReadFile& read) {
  const std::string id = value_of(env, "LSB_JOBID");
  if (id.empty()) return std::nullopt;
  const std::string job = "LSF job " + id;
  const std::string path = value_of(env, "LSB_DJOB_HOSTFILE");
  const auto text = path.empty() ? Result<std::string>(fail(Errc::kIo, "no path")) : read(path);
  Gathering hosts(job);
  std::string source = "LSB_DJOB_HOSTFILE=" + path;
  if (text) {
    if (auto ok = add_file(hosts, *text, path, Lines::kSlots); !ok) return fail(std::move(ok.error()));
  } else if (const std::string counts = value_of(env, "LSB_MCPU_HOSTS"); !counts.empty()) {
    source = "LSB_MCPU_HOSTS";
    const auto words = words_of(counts);
    for (std::size_t i = 0; i < words.size(); i += 2) {
      const std::string_view slots = i + 1 < words.size() ? words[i + 1] : std::string_view();
      if (auto ok = hosts.add_counted(words[i], slots, source); !ok) return fail(std::move(ok.error()));
    }
  } else if (!path.empty()) {
    return fail(error_of(job, source + " can't be read: " + without_path(text.error(), path)));
  } else {
    return fail(error_of(job, "neither LSB_DJOB_HOSTFILE nor LSB_MCPU_HOSTS is set: its hosts are not known"));
  }
  // On clusters with IBM's CSM the first host is a launch node that runs the script; it is not for computing.
  if (env.count("CSM_ALLOCATION_ID") > 0 && hosts.has_several_hosts()) hosts.drop_first_host();
  return hosts.finish(source);
}

Result<std::optional<Allocation>> pbs_allocation(const Environment& env, const ReadFile& read) {
  const std::string id = value_of(env, "PBS_JOBID");
  if (id.empty()) return std::nullopt;
  return read_job("PBS job " + id, "PBS_NODEFILE", value_of(env, "PBS_NODEFILE"), read, Lines::kSlots);
}

Result<std::optional<Allocation>> grid_engine_allocation(const Environment& env, const ReadFile& read) {
  // JOB_ID alone may belong to another program; every Grid Engine job has a task id, even if only "undefined".
  const std::string id = value_of(env, "JOB_ID");
  if (id.empty() || value_of(env, "SGE_TASK_ID").empty()) return std::nullopt;
  const std::string job = "Grid Engine job " + id;
  const std::string path = value_of(env, "PE_HOSTFILE");
  if (!path.empty()) return read_job(job, "PE_HOSTFILE", path, read, Lines::kCounts);
  // No parallel environment: a job on this host.
  const std::string slots = value_of(env, "NSLOTS");
  Gathering hosts(job);
  auto ok = hosts.add_counted("localhost", slots.empty() ? "1" : slots, "NSLOTS");
  if (!ok) return fail(std::move(ok.error()));
  return hosts.finish("NSLOTS=" + slots);
}

Result<std::optional<Allocation>> oar_allocation(const Environment& env, const ReadFile& read) {
  const std::string id = first_of(env, {"OAR_JOB_ID", "OAR_JOBID"});
  if (id.empty()) return std::nullopt;
  return read_job("OAR job " + id, "OAR_NODEFILE", first_of(env, {"OAR_NODEFILE", "OAR_NODE_FILE"}), read,
                  Lines::kSlots);
}

}  // namespace drun::launcher
