#include "check/host_facts_json.h"

#include <string>

namespace drun::check {

namespace {

using Json = nlohmann::json;

void set_known(Json& out, const char* name, std::int64_t value) {
  if (value >= 0) out[name] = value;
}

void set_limit(Json& out, const char* name, std::int64_t value) {
  if (value == control::HostFacts::kUnlimited) {
    out[name] = "unlimited";
  } else {
    set_known(out, name, value);
  }
}

void set_text(Json& out, const char* name, const std::string& value) {
  if (!value.empty()) out[name] = value;
}

Json gpu_json(const control::GpuFacts& gpu) {
  Json out = {{"index", gpu.index},
              {"name", gpu.name},
              {"uuid", gpu.uuid},
              {"row_remap_pending", gpu.remap_pending},
              {"row_remap_failed", gpu.remap_failed},
              {"throttle_reasons_bits", gpu.throttle_reasons}};
  set_known(out, "memory_total_mib", gpu.memory_total_mib);
  set_known(out, "memory_used_mib", gpu.memory_used_mib);
  set_known(out, "ecc_uncorrected", gpu.ecc_uncorrected);
  set_known(out, "pcie_lanes", gpu.pcie_width);
  set_known(out, "pcie_lanes_max", gpu.pcie_width_max);
  out["processes"] = Json::array();
  for (const auto& p : gpu.processes) {
    Json process = {{"pid", p.pid}, {"name", p.name}};
    set_known(process, "memory_used_mib", p.used_mib);
    out["processes"].push_back(std::move(process));
  }
  return out;
}

Json rdma_json(const control::RdmaPort& port) {
  Json out = {{"device", port.device}, {"port", port.port}, {"state", port.state}, {"link_layer", port.link_layer}};
  set_known(out, "rate_mbps", port.rate_mbps);
  set_text(out, "interface", port.interface);
  set_known(out, "rocev2_gid_index", port.gid_rocev2);
  return out;
}

Json nic_json(const control::NicFacts& nic) {
  Json out = {{"name", nic.name}, {"up", nic.up}, {"rp_filter", nic.rp_filter}, {"ipv4_networks", nic.networks}};
  if (nic.speed_mbps > 0) out["speed_mbps"] = nic.speed_mbps;
  set_text(out, "duplex", nic.duplex);
  return out;
}

Json bond_json(const control::BondFacts& bond) {
  Json out = {{"name", bond.name}, {"mode", bond.mode}, {"slaves", Json::array()}};
  for (const auto& s : bond.slaves) {
    Json slave = {{"name", s.name}, {"up", s.up}};
    if (s.speed_mbps > 0) slave["speed_mbps"] = s.speed_mbps;
    out["slaves"].push_back(std::move(slave));
  }
  return out;
}

}  // namespace

nlohmann::json to_json(const control::HostFacts& facts) {
  Json out = {
      {"versions", facts.versions}, {"host_name", facts.host_name}, {"own_name_resolves_to", facts.own_addresses}};
  if (!facts.unknown.empty()) out["unknown"] = facts.unknown;
  set_text(out, "command", facts.command);
  set_text(out, "command_problem", facts.command_problem);
  set_text(out, "login_path", facts.path);
  out["login_variables"] = facts.variables;
  out["nccl_conf"] = facts.nccl_conf;

  set_text(out, "cpu", facts.cpu);
  set_known(out, "cpu_cores", facts.n_cpus);
  set_known(out, "memory_total_mib", facts.memory_total_mib);
  set_known(out, "memory_available_mib", facts.memory_available_mib);
  out["disks"] = Json::array();
  for (const auto& d : facts.disks) {
    Json disk = {{"path", d.path}, {"writable", d.writable}};
    set_known(disk, "size_mib", d.size_mib);
    set_known(disk, "free_mib", d.free_mib);
    out["disks"].push_back(std::move(disk));
  }
  Json limits = Json::object();
  set_limit(limits, "memlock_bytes", facts.memlock_bytes);
  set_limit(limits, "open_files", facts.open_files);
  set_limit(limits, "processes", facts.processes);
  out["limits"] = std::move(limits);

  Json smi = {{"found", facts.has_nvidia_smi}};
  set_known(smi, "took_ms", facts.nvidia_smi_ms);
  set_text(smi, "problem", facts.nvidia_smi_problem);
  out["nvidia_smi"] = std::move(smi);
  out["gpus"] = Json::array();
  for (const auto& gpu : facts.gpus) out["gpus"].push_back(gpu_json(gpu));
  out["kernel_log_readable"] = facts.kernel_log_readable;
  out["xids"] = Json::array();
  for (const auto& x : facts.xids) {
    out["xids"].push_back({{"number", x.number}, {"device", x.device}, {"age_s", x.age_s}, {"text", x.text}});
  }
  for (const char* list : {"rdma", "nics", "bonds"}) out[list] = Json::array();
  for (const auto& port : facts.rdma) out["rdma"].push_back(rdma_json(port));
  for (const auto& nic : facts.nics) out["nics"].push_back(nic_json(nic));
  for (const auto& bond : facts.bonds) out["bonds"].push_back(bond_json(bond));
  set_known(out, "ipv4_routing_rules", facts.n_routing_rules);
  return out;
}

}  // namespace drun::check
