#include "launcher/plan/worker_env.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>

#include "base/text.h"
#include "launcher/plan/env_names.h"

namespace drun::launcher {
namespace {

constexpr const char* kThreads = "OMP_NUM_THREADS";

// One -x word, parsed.
struct Export {
  std::string name;                  // or the glob
  std::optional<std::string> value;  // of NAME=V
  bool is_glob = false;

  // True if this word passes on `other`, a variable of drun's own environment.
  bool picks(const std::string& other) const {
    if (value) return false;
    if (!is_glob) return name == other;
    if (!glob_match(name, other)) return false;
    switch (classify(other)) {
      case EnvClass::kAssigned:
      case EnvClass::kLaunch:
        return false;  // an outer job's rank must not come back by accident
      case EnvClass::kHostOwned:
      case EnvClass::kDevice:
        return name.find_first_not_of("*?") != std::string::npos;  // `-x '*'` means all variables that may be forwarded
      case EnvClass::kOrdinary:
        break;
    }
    return true;
  }
};

Export parse_export(const std::string& word) {
  Export out;
  const auto equals = word.find('=');
  out.name = word.substr(0, equals);
  if (equals != std::string::npos) out.value = word.substr(equals + 1);
  out.is_glob = !out.value && out.name.find_first_of("*?") != std::string::npos;
  return out;
}

bool travels(const std::string& name, bool other_host) {
  switch (classify(name)) {
    case EnvClass::kOrdinary:
      return true;
    case EnvClass::kDevice:
      return !other_host;
    case EnvClass::kAssigned:
    case EnvClass::kLaunch:
    case EnvClass::kHostOwned:
      break;
  }
  return false;
}

// The address of NCCL's RAS service, which reports on all ranks of a job. NCCL's default is one port for all jobs of a
// host, and only the first job gets it. This port lies below the kernel's ephemeral ports and most likely differs from
// job to job.
std::string ras_address(const std::string& job_id) {
  std::uint32_t hash = 2166136261u;  // FNV-1a
  for (const char c : job_id) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return "localhost:" + std::to_string(20000 + hash % 8000);
}

tl::unexpected<Error> bad_export(const std::string& word, std::string cause, std::string hint) {
  return fail(Error(Errc::kUsage, "-x " + shell_quote(word), std::move(cause)).with_hint(std::move(hint)));
}

}  // namespace

Result<void> check_exports(const EnvRequest& request, const Environment& own) {
  for (const auto& word : request.exports) {
    const Export e = parse_export(word);
    if (e.name.empty()) return bad_export(word, "the name of a variable is missing", "-x NAME or -x NAME=VALUE");
    if (std::any_of(e.name.begin(), e.name.end(), [](char c) { return c == ' ' || c == '\t' || c == '\n'; })) {
      return bad_export(word, "a space in the name of a variable", "one -x for each: -x A -x B=2");
    }
    if (e.value && e.name.find_first_of("*?") != std::string::npos) {
      return bad_export(word, "a pattern can't be given a value", "-x NAME=VALUE or -x 'PATTERN*'");
    }
    if (e.name == "DRUN_KEY") {
      if (e.value) return bad_export("DRUN_KEY", "the key of a job is made by drun", "-x DRUN_KEY");
      continue;
    }
    if (e.value || e.is_glob || own.count(e.name) > 0 || request.file.count(e.name) > 0) continue;
    if (e.name.find(',') != std::string::npos) {
      return bad_export(word, "commas in the name of a variable", "one -x for each: -x A -x B=2");
    }
    std::vector<std::string> names;
    for (const auto& [name, value] : own) names.push_back(name);
    const auto meant = nearest(e.name, names);
    return bad_export(word, "not set in the environment of drun",
                      "-x " + e.name + "=VALUE" + (meant ? ", or -x " + *meant : ""));
  }
  return {};
}

Environment base_environment(const Environment& own, const EnvRequest& request, bool other_host) {
  Environment out;
  if (request.inherit) {
    for (const auto& [name, value] : own) {
      if (travels(name, other_host)) out.emplace_hint(out.end(), name, value);
    }
  }
  for (const auto& [name, value] : request.file) out[name] = value;
  for (const auto& word : request.exports) {
    const Export e = parse_export(word);
    if (e.value) {
      out[e.name] = *e.value;
    } else if (!e.is_glob) {
      const auto found = own.find(e.name);
      if (found != own.end()) out[e.name] = found->second;
    } else {
      for (const auto& [name, value] : own) {
        if (e.picks(name)) out[name] = value;
      }
    }
  }
  for (auto it = out.begin(); it != out.end();) {
    it = classify(it->first) == EnvClass::kAssigned ? out.erase(it) : std::next(it);
  }
  out.try_emplace("PYTHONUNBUFFERED", "1");
  if (!request.compat_folder.empty()) {
    std::string& path = out["PYTHONPATH"];
    path = request.compat_folder + (path.empty() ? "" : ":" + path);
  }
  return out;
}

void forget_terminal_size(Environment& environment, const Environment& own, const EnvRequest& request) {
  for (const char* name : {"COLUMNS", "LINES"}) {
    if (!set_by_user(request, own, name)) environment.erase(name);
  }
}

const std::string* export_of(const EnvRequest& request, const Environment& own, const std::string& name) {
  const auto found = std::find_if(request.exports.rbegin(), request.exports.rend(), [&](const std::string& word) {
    const Export e = parse_export(word);
    return e.value ? e.name == name : own.count(name) > 0 && e.picks(name);
  });
  return found == request.exports.rend() ? nullptr : &*found;
}

bool set_by_user(const EnvRequest& request, const Environment& own, const std::string& name) {
  return request.file.count(name) > 0 || export_of(request, own, name) != nullptr;
}

int threads_of_worker(int n_cpus, int local_size, const EnvRequest& request, const Environment& own, int bound) {
  if (n_cpus <= 0 || local_size <= 1) return 0;
  const bool is_inherited = request.inherit && own.count(kThreads) > 0;
  if (is_inherited || set_by_user(request, own, kThreads)) return 0;
  return bound > 0 ? bound : std::max(1, n_cpus / local_size);
}

std::string threads_in_short(const std::vector<ThreadsOfHost>& hosts) {
  std::vector<ThreadsOfHost> set;
  std::copy_if(hosts.begin(), hosts.end(), std::back_inserter(set), [](const auto& host) { return host.threads > 0; });
  if (set.empty()) return "";
  const auto fewer = [](const ThreadsOfHost& a, const ThreadsOfHost& b) { return a.threads < b.threads; };
  const auto [least, most] = std::minmax_element(set.begin(), set.end(), fewer);
  const std::string value =
      std::to_string(least->threads) + (least->threads < most->threads ? " to " + std::to_string(most->threads) : "");
  const std::string text = std::string(kThreads) + "=" + value + ": ";
  if (set[0].is_bound) return text + "the cores that a worker has by --bind-to";
  if (set.size() > 1) return text + "the workers of a host share its processors";
  return text + std::to_string(set[0].n_workers) + " workers share the " +
         plural(static_cast<std::size_t>(set[0].n_cpus), "processor") + " of " + set[0].host;
}

Environment rank_environment(const RankEnvInput& in, const EnvRequest& request, const Environment& own) {
  const RankPlace& p = in.place;
  const auto text = [](int v) { return std::to_string(v); };
  Environment out;
  // torch.distributed and what torchrun adds to it
  out["RANK"] = text(p.rank);
  out["LOCAL_RANK"] = text(p.local_rank);
  out["WORLD_SIZE"] = text(in.size);
  out["LOCAL_WORLD_SIZE"] = text(p.local_size);
  out["NODE_RANK"] = text(p.host);
  out["GROUP_RANK"] = text(p.host);
  out["GROUP_WORLD_SIZE"] = text(in.n_hosts);
  out["ROLE_NAME"] = "default";
  out["ROLE_RANK"] = text(p.rank);
  out["ROLE_WORLD_SIZE"] = text(in.size);
  // DeepSpeed
  out["LOCAL_SIZE"] = text(p.local_size);
  out["CROSS_RANK"] = text(p.cross_rank);
  out["CROSS_SIZE"] = text(p.cross_size);
  // libdrun
  out["DRUN_RANK"] = text(p.rank);
  out["DRUN_SIZE"] = text(in.size);
  out["DRUN_LOCAL_RANK"] = text(p.local_rank);
  out["DRUN_LOCAL_SIZE"] = text(p.local_size);
  out["DRUN_CROSS_RANK"] = text(p.cross_rank);
  out["DRUN_CROSS_SIZE"] = text(p.cross_size);
  if (!request.compat_folder.empty() || request.real_horovod) {
    for (const char* name : {"RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE", "CROSS_RANK", "CROSS_SIZE"}) {
      out["HOROVOD_" + std::string(name)] = out["DRUN_" + std::string(name)];
    }
  }
  if (!p.gpu.empty()) {
    out["CUDA_VISIBLE_DEVICES"] = p.gpu;
    out["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";  // the numbers of nvidia-smi; CUDA's own count the fastest GPU first
  }
  out["DRUN_JOB_ID"] = in.job_id;
  out["DRUN_RENDEZVOUS"] = in.rendezvous;

  const auto set_unless_user = [&](const std::string& name, const std::string& value) {
    if (!value.empty() && !set_by_user(request, own, name)) out[name] = value;
  };
  set_unless_user("MASTER_ADDR", in.master_addr);
  set_unless_user("MASTER_PORT", in.master_port > 0 ? text(in.master_port) : "");
  // The '=' makes NCCL match the names exactly: without it "eth1" would match eth10 too.
  set_unless_user("NCCL_SOCKET_IFNAME", in.nccl_interfaces.empty() ? "" : "=" + join(in.nccl_interfaces, ","));
  set_unless_user("GLOO_SOCKET_IFNAME", in.ip_interface);
  set_unless_user("TP_SOCKET_IFNAME", in.ip_interface);
  if (request.real_horovod) {
    out["HOROVOD_HOSTNAME"] = in.horovod.host_name;
    set_unless_user("HOROVOD_CONTROLLER", "gloo");
    set_unless_user("HOROVOD_CPU_OPERATIONS", "gloo");
    set_unless_user("HOROVOD_GLOO_IFACE", in.ip_interface);
    set_unless_user("HOROVOD_GLOO_RENDEZVOUS_ADDR", in.horovod.address);
    set_unless_user("HOROVOD_GLOO_RENDEZVOUS_PORT", text(in.horovod.port));
  }
  set_unless_user("NCCL_RAS_ADDR", ras_address(in.job_id));
  if (const int n = threads_of_worker(in.n_cpus, p.local_size, request, own, in.bound_threads); n > 0)
    out[kThreads] = text(n);
  // Variables of torchrun: Lightning, transformers and others detect by them that a launcher started the job.
  set_unless_user("TORCHELASTIC_RUN_ID", in.job_id);
  set_unless_user("TORCHELASTIC_RESTART_COUNT", "0");
  set_unless_user("TORCHELASTIC_MAX_RESTARTS", "0");
  const bool has_master = !in.master_addr.empty() && in.master_port > 0;
  set_unless_user("JAX_COORDINATOR_ADDRESS", has_master ? host_port(in.master_addr, in.master_port) : "");
  return out;
}

}  // namespace drun::launcher
