#include "netdetect/candidates.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/text.h"
#include "netdetect/network.h"
#include "netdetect/wording.h"

namespace drun::netdetect {
namespace {

constexpr const char* kOption = "--network-interfaces";
constexpr std::size_t kNamesShown = 24;

// An item of --network-interfaces: a name or glob, or a network.
struct Word {
  std::string text;
  std::optional<Address> network;

  bool fits_name(const std::string& name) const { return !network && glob_match(text, name); }
  bool fits_address(const Address& address) const { return network && in_network(*network, address); }
  bool fits(const Interface& nic) const {
    if (fits_name(nic.name)) return true;
    return std::any_of(nic.addresses.begin(), nic.addresses.end(),
                       [this](const Address& address) { return fits_address(address); });
  }
};

Result<std::vector<Word>> parse_words(const std::vector<std::string>& wanted) {
  std::vector<Word> words;
  for (const auto& item : wanted) {
    Word word{std::string(trim(item)), std::nullopt};
    if (word.text.empty()) return fail(Errc::kUsage, kOption, "an empty name in the list");
    if (word.text[0] == '^' || word.text[0] == '=') {
      return fail(Error(Errc::kUsage, kOption, "'" + word.text + "': names are always whole, and can't be excluded")
                      .with_hint(std::string(kOption) + " " + word.text.substr(1)));
    }
    word.network = parse_network(word.text);
    if (!word.network && word.text.find('/') != std::string::npos) {
      return fail(Error(Errc::kUsage, kOption, "'" + word.text + "' is neither a network nor a name")
                      .with_hint(std::string(kOption) + " 10.0.0.0/24"));
    }
    words.push_back(std::move(word));
  }
  return words;
}

Error fits_nothing(const Word& word, const std::vector<HostInterfaces>& hosts) {
  std::set<std::string> names;
  std::set<std::string> networks;
  for (const auto& host : hosts) {
    for (const auto& nic : host.interfaces) {
      names.insert(nic.name);
      for (const auto& address : nic.addresses) {
        if (!nic.loopback && !address.link_local) networks.insert(network_text(address));
      }
    }
  }
  Error error(Errc::kUsage, kOption, "'" + word.text + "' fits no interface of any host");
  const std::vector<std::string> all_names(names.begin(), names.end());
  if (word.network) {
    const std::vector<std::string> all(networks.begin(), networks.end());
    return std::move(error).with_context("networks: " + list_some(all, kNamesShown));
  }
  error = std::move(error).with_context("interfaces: " + list_some(all_names, kNamesShown));
  const auto meant = nearest(word.text, all_names);
  return meant ? std::move(error).with_hint(std::string(kOption) + " " + *meant) : error;
}

Result<void> check_words(const std::vector<Word>& words, const std::vector<HostInterfaces>& hosts) {
  for (const auto& word : words) {
    const bool found = std::any_of(hosts.begin(), hosts.end(), [&](const HostInterfaces& host) {
      return std::any_of(host.interfaces.begin(), host.interfaces.end(),
                         [&](const Interface& nic) { return word.fits(nic); });
    });
    if (!found) return fail(fits_nothing(word, hosts));
  }
  return {};
}

// By the bytes of an address: the hosts that have it on an interface that is up.
using Owners = std::map<std::string, std::vector<int>>;

Owners find_owners(const std::vector<HostInterfaces>& hosts) {
  Owners owners;
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    for (const auto& nic : hosts[h].interfaces) {
      for (const auto& address : nic.addresses) {
        auto& list = owners[address.bytes];
        if (nic.up && (list.empty() || list.back() != static_cast<int>(h))) list.push_back(static_cast<int>(h));
      }
    }
  }
  return owners;
}

class Finder {
 public:
  Finder(const std::vector<HostInterfaces>& hosts, std::vector<Word> words)
      : hosts_(hosts), words_(std::move(words)), owners_(find_owners(hosts)) {
    out_.namespaces = number_namespaces(hosts);
  }

  Candidates run() {
    for (std::size_t h = 0; h < hosts_.size(); ++h) {
      for (std::size_t i = 0; i < hosts_[h].interfaces.size(); ++i) look_at(static_cast<int>(h), static_cast<int>(i));
    }
    return std::move(out_);
  }

 private:
  void look_at(int host, int index) {
    const Interface& nic = hosts_[static_cast<std::size_t>(host)].interfaces[static_cast<std::size_t>(index)];
    const std::string reason = why_not(nic);
    if (!reason.empty()) {
      out_.rejected.push_back({host, nic.name, "", reason});
      return;
    }
    for (const auto& address : nic.addresses) {
      const std::string against = why_not(host, nic, address);
      if (against.empty()) {
        out_.tried.push_back({host, index, address});
      } else {
        out_.rejected.push_back({host, nic.name, address.text(), address.text() + " " + against});
      }
    }
  }

  std::string why_not(const Interface& nic) const {
    const bool wanted =
        words_.empty() || std::any_of(words_.begin(), words_.end(), [&](const Word& word) { return word.fits(nic); });
    if (!wanted) return std::string("not in ") + kOption;
    if (nic.loopback) return "loopback";
    if (!nic.up) return "down";
    if (!nic.running) return "no carrier";
    if (nic.addresses.empty()) return nic.master.empty() ? "no address" : "no address, part of " + nic.master;
    return "";
  }

  std::string why_not(int host, const Interface& nic, const Address& address) const {
    const bool wanted = words_.empty() || std::any_of(words_.begin(), words_.end(), [&](const Word& word) {
                          return word.fits_name(nic.name) || word.fits_address(address);
                        });
    if (!wanted) return std::string("is not in ") + kOption;
    if (is_loopback(address)) return "is a loopback address";
    if (address.link_local) return "is link-local";
    if (address.temporary) return "is temporary";
    if (address.deprecated) return "is deprecated or not ready";
    const auto others = other_owners(host, address);
    return others.empty() ? "" : "is also on " + list_some(others, kHostsShown);
  }

  std::vector<std::string> other_owners(int host, const Address& address) const {
    std::vector<std::string> names;
    const auto namespace_of = [this](int h) { return out_.namespaces[static_cast<std::size_t>(h)]; };
    for (const int other : owners_.at(address.bytes)) {
      if (namespace_of(other) != namespace_of(host)) names.push_back(hosts_[static_cast<std::size_t>(other)].host);
    }
    return names;
  }

  const std::vector<HostInterfaces>& hosts_;
  std::vector<Word> words_;
  Owners owners_;
  Candidates out_;
};

}  // namespace

std::vector<int> number_namespaces(const std::vector<HostInterfaces>& hosts) {
  std::vector<int> numbers;
  std::map<std::string, int> known;
  int next = 0;
  for (const auto& host : hosts) {
    const auto found = known.find(host.net_namespace);
    if (!host.net_namespace.empty() && found != known.end()) {
      numbers.push_back(found->second);
      continue;
    }
    if (!host.net_namespace.empty()) known.emplace(host.net_namespace, next);
    numbers.push_back(next++);
  }
  return numbers;
}

Result<Candidates> find_candidates(const std::vector<HostInterfaces>& hosts, const std::vector<std::string>& wanted) {
  auto words = parse_words(wanted);
  if (!words) return fail(words.error());
  if (const auto checked = check_words(*words, hosts); !checked) return fail(checked.error());
  return Finder(hosts, std::move(*words)).run();
}

}  // namespace drun::netdetect
