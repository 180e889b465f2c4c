#include "base/json_text.h"
#include "cli/check_report/report.h"

#include <nlohmann/json.hpp>

#include "check/host_facts_json.h"
#include "cli/check_report/figures.h"
#include "cli/check_report/view.h"
#include "launcher/report/events.h"

namespace drun::cli {

namespace {

using Json = nlohmann::ordered_json;

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

// The result holds 0 for what was not measured.
template <typename T>
Json measured(T value) {
  return value > 0 ? Json(value) : Json(nullptr);
}

const char* depth_name(check::CheckDepth depth) {
  return depth == check::CheckDepth::kQuick ? "quick" : depth == check::CheckDepth::kFull ? "full" : "default";
}

// "ready", "ready_with_warnings", "not_ready": for programs.
std::string verdict_name(check::Verdict verdict) {
  std::string out = verdict_text(verdict);
  for (char& c : out) {
    if (c == ' ') c = '_';
  }
  return out;
}

Json host_list(const check::CheckResult& result, const std::vector<int>& indices) {
  Json out = Json::array();
  for (const int index : indices) {
    if (index >= 0 && static_cast<std::size_t>(index) < result.hosts.size()) {
      out.push_back(result.hosts[static_cast<std::size_t>(index)].name);
    }
  }
  return out;
}

Json host_name(const check::CheckResult& result, int index) {
  const Json names = host_list(result, {index});
  return names.empty() ? Json(nullptr) : names.front();
}

Json error_json(const Error& error) {
  Json out;
  out["cause"] = error.cause;
  out["context"] = text_or_null(error.context);
  out["hint"] = text_or_null(error.hint);
  return out;
}

Json interface_json(const netdetect::Interface& interface) {
  Json out;
  out["name"] = interface.name;
  out["kind"] = text_or_null(interface.kind);
  out["up"] = interface.up;
  out["carrier"] = interface.running;
  out["master"] = text_or_null(interface.master);
  out["rdma"] = interface.rdma;
  out["mtu_bytes"] = measured(interface.mtu);
  out["line_bits_per_second"] =
      interface.speed_mbps > 0 ? Json(static_cast<std::int64_t>(interface.speed_mbps) * 1000000) : Json(nullptr);
  out["addresses"] = Json::array();
  for (const auto& address : interface.addresses) {
    out["addresses"].push_back(address.text() + "/" + std::to_string(address.prefix_length));
  }
  return out;
}

Json host_json(const check::CheckedHost& host, const HostRates& rates) {
  Json out;
  out["name"] = host.name;
  out["host_name"] = text_or_null(host.host_name);
  out["slots"] = host.slots;
  out["verdict"] = verdict_name(host.verdict);
  out["error"] = host.error ? error_json(*host.error) : Json(nullptr);
  out["interface"] = host.choice ? Json(host.choice->interface) : Json(nullptr);
  out["address"] = host.choice ? Json(host.choice->address.text()) : Json(nullptr);
  out["nccl_interfaces"] = host.choice ? Json(host.choice->interfaces) : Json::array();
  out["reached_by_all"] = host.choice ? Json(host.choice->reached_by_all) : Json(nullptr);
  out["connect_seconds"] = measured(host.connect_seconds);
  out["sends_bits_per_second"] = measured(rates.sent);
  out["receives_bits_per_second"] = measured(rates.received);
  out["round_trip_microseconds"] = measured(rates.round_trip * 1e6);
  out["interfaces"] = Json::array();
  for (const auto& interface : host.interfaces) out["interfaces"].push_back(interface_json(interface));
  out["rejected"] = Json::array();
  for (const auto& rejection : host.rejected) {
    Json entry;
    entry["interface"] = rejection.interface;
    entry["address"] = text_or_null(rejection.address);
    entry["reason"] = rejection.reason;
    out["rejected"].push_back(entry);
  }
  out["facts"] = host.facts ? Json(check::to_json(*host.facts)) : Json(nullptr);
  return out;
}

Json direction_json(const netdetect::Direction& direction) {
  Json out;
  out["rates"] = Json::array();
  std::vector<netdetect::Rate> rates = direction.rates;
  const bool has_paced = direction.paced.n_segments > 0;
  if (has_paced) rates.push_back(direction.paced);
  for (const auto& rate : rates) {
    Json entry;
    entry["streams"] = rate.n_streams;
    entry["bits_per_second"] = measured(rate.bits_per_second);
    entry["seconds"] = rate.seconds;
    entry["segments"] = rate.n_segments > 0 ? Json(rate.n_segments) : Json(nullptr);
    entry["paced"] = has_paced && &rate == &rates.back();
    entry["retransmits"] = rate.n_segments > 0 ? Json(rate.n_retransmits) : Json(nullptr);
    out["rates"].push_back(entry);
  }
  out["path_mtu_bytes"] = measured(direction.path_mtu);
  out["error"] = text_or_null(direction.error);
  return out;
}

Json link_json(const check::CheckResult& result, const netdetect::Link& link, int pass) {
  Json out;
  out["a"] = host_name(result, link.a);
  out["b"] = host_name(result, link.b);
  out["pass"] = pass;
  out["a_to_b"] = direction_json(link.forward);
  out["b_to_a"] = direction_json(link.backward);
  const bool known = link.n_round_trips > 0;
  out["round_trips"] = link.n_round_trips;
  out["round_trip_median_microseconds"] = known ? Json(link.rtt_median_us) : Json(nullptr);
  out["round_trip_p99_microseconds"] = known ? Json(link.rtt_p99_us) : Json(nullptr);
  out["round_trip_min_microseconds"] = known ? Json(link.rtt_min_us) : Json(nullptr);
  return out;
}

Json ring_json(const check::CheckResult& result) {
  const auto& ring = result.links.ring;
  if (ring.order.empty()) return nullptr;
  Json out;
  out["order"] = host_list(result, ring.order);
  out["bits_per_second"] = Json::array();
  for (const double rate : ring.bits_per_second) out["bits_per_second"].push_back(measured(rate));
  out["seconds"] = ring.seconds;
  return out;
}

Json reach_json(const check::CheckResult& result) {
  if (result.reach.empty()) return nullptr;
  Json out = Json::array();
  for (const auto& row : result.reach) {
    Json entries = Json::array();
    for (const int reached : row) entries.push_back(reached < 0 ? Json(nullptr) : Json(reached == 1));
    out.push_back(entries);
  }
  return out;
}

Json finding_json(const check::CheckResult& result, const check::Finding& finding) {
  Json out;
  out["severity"] = severity_text(finding.severity);
  out["code"] = finding.code;
  out["hosts"] = host_list(result, finding.hosts);
  out["subject"] = text_or_null(finding.subject);
  out["text"] = finding.text;
  out["details"] = finding.details;
  out["comparison"] = finding.comparison;
  out["command"] = text_or_null(finding.command);
  return out;
}

Json prediction_json(const check::CheckResult& result, const Figures& figures) {
  if (!result.predicted) return nullptr;
  const auto& p = *result.predicted;
  Json out;
  out["gradient_bytes"] = p.n_bytes;
  out["allreduce_seconds"] = p.seconds;
  out["slowest_from"] = host_name(result, p.slowest_from);
  out["slowest_to"] = host_name(result, p.slowest_to);
  out["slowest_bits_per_second"] = measured(p.slowest_bits_per_second);
  const bool named = p.slowest_from >= 0 && p.slowest_to >= 0;
  out["slowest_measured_bits_per_second"] =
      named ? measured(figures.bandwidth.at(p.slowest_from, p.slowest_to).value) : Json(nullptr);
  out["without"] = host_list(result, p.without);
  out["allreduce_seconds_without"] = p.without.empty() ? Json(nullptr) : Json(p.seconds_without);
  out["step_seconds"] = measured(p.step_seconds);
  out["efficiency"] = p.step_seconds > 0 ? Json(p.efficiency) : Json(nullptr);
  out["efficiency_overlapped"] = p.step_seconds > 0 ? Json(p.efficiency_overlapped) : Json(nullptr);
  out["curve"] = Json::array();
  for (const auto& point : p.curve) {
    Json entry;
    entry["bytes"] = point.n_bytes;
    entry["seconds"] = measured(point.seconds);
    entry["ring_seconds"] = measured(point.ring_seconds);
    entry["tree_seconds"] = measured(point.tree_seconds);
    out["curve"].push_back(entry);
  }
  return out;
}

}  // namespace

std::string check_json(const check::CheckResult& result) {
  Json out;
  out["drun_check"] = 1;
  out["version"] = text_or_null(result.version);
  out["begin"] = launcher::rfc3339(result.begin);
  out["seconds"] = result.seconds;
  out["depth"] = depth_name(result.depth);
  out["verdict"] = verdict_name(result.verdict);
  out["findings"] = Json::array();
  for (const auto& finding : result.findings) out["findings"].push_back(finding_json(result, finding));
  out["hosts"] = Json::array();
  const Figures figures(result);
  for (std::size_t i = 0; i < result.hosts.size(); ++i) {
    const HostRates rates = host_rates(figures.bandwidth, figures.latency, static_cast<int>(i));
    out["hosts"].push_back(host_json(result.hosts[i], rates));
  }
  out["network_error"] = result.network_error ? error_json(*result.network_error) : Json(nullptr);
  out["reached"] = reach_json(result);
  out["links"] = Json::array();
  for (const auto& link : result.links.links) out["links"].push_back(link_json(result, link, 1));
  for (const auto& link : result.links.second_pass) out["links"].push_back(link_json(result, link, 2));
  out["bandwidth_median_bits_per_second"] = measured(figures.bandwidth.median_counts() ? figures.bandwidth.median : 0);
  out["round_trip_median_microseconds"] = measured(figures.latency.median_counts() ? figures.latency.median * 1e6 : 0);
  out["ring"] = ring_json(result);
  out["prediction"] = prediction_json(result, figures);
  out["notes"] = result.notes;
  // Text from a host may not be UTF-8.
  return json_text(out, 2) + "\n";
}

}  // namespace drun::cli
