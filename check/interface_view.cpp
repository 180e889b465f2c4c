#include "check/interface_view.h"

#include <algorithm>

#include "base/text.h"
#include "netdetect/wording.h"

namespace drun::check {

bool is_tunnel(const netdetect::Interface& nic) { return nic.kind == "tun" || nic.kind == "wireguard"; }

bool is_hardware(const netdetect::Interface& nic) {
  return nic.kind == "physical" || nic.kind == "bond" || nic.kind == "vlan";
}

InterfaceView::InterfaceView(const std::vector<netdetect::HostInterfaces>& hosts,
                             const netdetect::Candidates& candidates, const netdetect::ReachabilityVotes& tally,
                             const netdetect::PartialChoice& most, const std::vector<netdetect::SharedAddress>& shared,
                             const std::vector<int>& gone)
    : hosts_(hosts),
      candidates_(candidates),
      tally_(tally),
      most_(most),
      shared_(shared),
      gone_(gone.begin(), gone.end()) {
  for (std::size_t c = 0; c < candidates.tried.size(); ++c) {
    of_[{candidates.tried[c].host, candidates.tried[c].interface}].push_back(c);
  }
}

std::string InterfaceView::names(const std::vector<int>& hosts) const {
  std::vector<std::string> out;
  for (const int host : hosts) out.push_back(name(host));
  return list_some(out, netdetect::kHostsShown);
}

const netdetect::Interface* InterfaceView::chosen_nic(int host) const {
  for (const auto& nic : nics(host)) {
    if (has_choice(host) && nic.name == choice(host).interface) return &nic;
  }
  return nullptr;
}

int InterfaceView::speed(int host, const netdetect::Interface& nic) const {
  int measured = 0;
  for (const std::size_t c : candidates_of(host, static_cast<int>(&nic - nics(host).data()))) {
    measured = std::max(measured, candidates_.tried[c].measured_mbps);
  }
  return measured > 0 ? measured : nic.speed_mbps;
}

const std::vector<std::size_t>& InterfaceView::candidates_of(int host, int nic) const {
  static const std::vector<std::size_t> none;
  const auto found = of_.find({host, nic});
  return found == of_.end() ? none : found->second;
}

bool InterfaceView::any_reached(int host, int nic) const {
  const auto& list = candidates_of(host, nic);
  return std::any_of(list.begin(), list.end(), [&](std::size_t c) {
    return std::any_of(attempts(c).begin(), attempts(c).end(), [](const auto* a) { return netdetect::reached(*a); });
  });
}

bool InterfaceView::any_good(int host, int nic) const {
  const auto& list = candidates_of(host, nic);
  return std::any_of(list.begin(), list.end(), [&](std::size_t c) { return tally_.candidates[c].good; });
}

bool InterfaceView::is_reached_somewhere(int host) const {
  for (std::size_t i = 0; i < nics(host).size(); ++i) {
    if (any_reached(host, static_cast<int>(i))) return true;
  }
  return false;
}

}  // namespace drun::check
