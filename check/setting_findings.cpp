#include <algorithm>

#include "check/host_findings.h"
#include "check/vote.h"
#include "netdetect/interface.h"
#include "netdetect/network.h"

namespace drun::check {

namespace {

constexpr const char* kProxies[] = {"http_proxy", "https_proxy", "all_proxy", "grpc_proxy",
                                    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "GRPC_PROXY"};

bool in_network(const std::string& network, const std::string& address) {
  const auto slash = network.find('/');
  if (slash == std::string::npos) return false;
  const auto prefix = parse_number(network.substr(slash + 1));
  const auto base = netdetect::parse_address(network.substr(0, slash));
  const auto own = netdetect::parse_address(address);
  if (!prefix || base.bytes.empty() || base.bytes.size() != own.bytes.size()) return false;
  if (*prefix > base.bytes.size() * 8) return false;
  for (std::size_t bit = 0; bit < *prefix; ++bit) {
    const auto mask = static_cast<unsigned char>(0x80u >> (bit % 8));
    if (((static_cast<unsigned char>(base.bytes[bit / 8]) ^ static_cast<unsigned char>(own.bytes[bit / 8])) & mask) !=
        0) {
      return false;
    }
  }
  return true;
}

// "http_proxy=http://proxy:3128" if a proxy is set and some peer is not excepted from it; else "".
std::string proxy_in_the_way(const std::map<std::string, std::string>& variables,
                             const std::vector<ExaminedHost>& hosts) {
  std::string excepted;
  for (const char* name : {"no_proxy", "NO_PROXY"}) {
    const auto found = variables.find(name);
    if (found != variables.end()) excepted += found->second + ",";
  }
  const bool all = std::all_of(hosts.begin(), hosts.end(),
                               [&](const ExaminedHost& h) { return no_proxy_covers(excepted, h.name, h.address); });
  if (all) return "";
  for (const char* name : kProxies) {
    const auto found = variables.find(name);
    if (found == variables.end() || found->second.empty()) continue;
    // Keeps possible passwords out of reports.
    const auto at = found->second.rfind('@');
    const auto scheme = found->second.find("://");
    const bool secret = at != std::string::npos && scheme != std::string::npos && scheme < at;
    return std::string(name) + "=" +
           (secret ? found->second.substr(0, scheme + 3) + "..." + found->second.substr(at) : found->second);
  }
  return "";
}

// True if a value of NCCL_SOCKET_IFNAME and the like names an interface of this host. "^name" excludes, "=name" is
// exact, anything else is the beginning of a name.
bool names_interface(std::string value, const control::HostFacts& facts) {
  if (value.empty() || value[0] == '^') return true;
  const bool exact = value[0] == '=';
  if (exact) value.erase(0, 1);
  for (const auto word : split(value, ',')) {
    std::string name(trim(word));
    name = name.substr(0, name.find(':'));
    for (const auto& nic : facts.nics) {
      if (exact ? nic.name == name : starts_with(nic.name, name)) return true;
    }
  }
  return false;
}

struct Setting {
  std::string name, value, where;
};

std::vector<Setting> settings_of(const control::HostFacts& facts) {
  std::vector<Setting> out;
  const auto is_one = [](std::string_view name) {
    if (name == "NCCL_VERSION") return false;  // of NVIDIA's container images, which NCCL does not read
    return starts_with(name, "NCCL_") || starts_with(name, "GLOO_") || starts_with(name, "TP_");
  };
  for (const auto& [name, value] : facts.variables) {
    if (is_one(name)) out.push_back({name, value, "the environment of a login"});
  }
  for (const auto& [file, lines] : facts.nccl_conf) {
    for (const auto& line : lines) {
      const auto equals = line.find('=');
      if (equals == std::string::npos) continue;
      out.push_back({std::string(trim(std::string_view(line).substr(0, equals))),
                     std::string(trim(std::string_view(line).substr(equals + 1))), file});
    }
  }
  return out;
}

// Settings of NCCL and the like: those that name no interface of the host, and the others.
void find_nccl_settings(const control::HostFacts& f, const std::string& host_name, int host, FindingList& out) {
  std::vector<std::string> harmless;
  for (const auto& s : settings_of(f)) {
    const std::string line = s.name + "=" + s.value + " (" + s.where + ")";
    if (s.name.ends_with("_SOCKET_IFNAME") && !names_interface(s.value, f)) {
      out.add(Severity::kWarning, "nccl-settings", host,
              line +
                  " names no interface over which it reaches others; drun's own choice goes first, other launchers "
                  "take this",
              s.where[0] == '/' ? "grep -n IFNAME " + s.where : "unset " + s.name);
    } else {
      harmless.push_back(line);
    }
  }
  if (!harmless.empty()) {
    out.add(Severity::kNote, "nccl-settings", host, "settings of NCCL, Gloo or TensorPipe were found",
            "cat /etc/nccl.conf ~/.nccl.conf; env | grep -E '^(NCCL|GLOO|TP)_'  # on " + host_name, harmless);
  }
}

// The content of a host's nccl.conf files, in an order that does not depend on that of their lines.
std::string nccl_conf_of(const control::HostFacts& f) {
  std::string all;
  for (const auto& [file, lines] : f.nccl_conf) {
    std::vector<std::string> sorted = lines;
    std::sort(sorted.begin(), sorted.end());
    all += (all.empty() ? "" : " ") + join(sorted, " ");
  }
  return all.empty() ? "empty" : all;
}

void find_loopback_name(const control::HostFacts& f, int host, FindingList& out) {
  const std::string loopback = netdetect::only_loopback(f.own_addresses);
  if (loopback.empty()) return;
  // Not a warning: Debian's installer does this everywhere, and drun names addresses and interfaces itself.
  out.add(Severity::kNote, "host-name-loopback", host,
          "its own name stands for " + loopback + ": Gloo and torch without drun offer that to their peers",
          "grep -n 127.0 /etc/hosts");
}

void find_conf_difference(const std::vector<Ballot>& confs, FindingList& out) {
  const Vote vote = count_votes(confs);
  if (vote.unanimous()) return;
  Finding f;
  f.severity = Severity::kWarning;
  f.code = "nccl-conf-differs";
  for (std::size_t g = vote.tie ? 0 : 1; g < vote.groups.size(); ++g) {
    f.hosts.insert(f.hosts.end(), vote.groups[g].hosts.begin(), vote.groups[g].hosts.end());
  }
  std::sort(f.hosts.begin(), f.hosts.end());
  for (const auto& group : vote.groups) f.details.push_back(group.value + ": " + out.hosts_text(group.hosts));
  f.text = vote.tie ? "the nccl.conf files differ"
                    : "its nccl.conf is not that of " + plural(vote.groups[0].hosts.size(), "other host");
  f.command = "cat /etc/nccl.conf ~/.nccl.conf";
  out.add_shared(std::move(f));
}

}  // namespace

bool no_proxy_covers(const std::string& no_proxy, const std::string& name, const std::string& address) {
  const std::string host = name.substr(name.rfind('@') == std::string::npos ? 0 : name.rfind('@') + 1);
  bool by_name = false, by_address = address.empty();
  for (const auto part : split(no_proxy, ',')) {
    const std::string word(trim(part));
    if (word.empty()) continue;
    if (word == "*") return true;
    by_name = by_name || word == host || host.ends_with(word[0] == '.' ? word : "." + word);
    by_address = by_address || word == address || in_network(word, address);
  }
  // Workers get the address; without one only the name is known.
  return address.empty() ? by_name : by_address;
}

void find_settings(const std::vector<ExaminedHost>& hosts, const HostQuestion& question, FindingList& out) {
  const std::string mend = "export no_proxy=ADDRESSES-OF-THE-HOSTS, or unset the proxy";
  const std::string own_proxy = proxy_in_the_way(question.environment, hosts);
  if (!own_proxy.empty()) {
    Finding f;
    f.severity = Severity::kWarning;
    f.code = "proxy";
    f.subject = "drun's environment";
    f.text = own_proxy +
             " goes to the workers, and no_proxy does not except the hosts: JAX and what else speaks gRPC "
             "or HTTP to a peer waits for the proxy";
    f.command = mend;
    out.add_shared(std::move(f));
  }
  std::vector<Ballot> confs;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (hosts[i].facts == nullptr) continue;
    const control::HostFacts& f = *hosts[i].facts;
    const int host = static_cast<int>(i);
    if (const std::string proxy = proxy_in_the_way(f.variables, hosts); !proxy.empty() && proxy != own_proxy) {
      out.add(Severity::kNote, "proxy", host,
              proxy + " is set in the environment of a login: drun's workers do not take it, what others start does",
              mend);
    }
    find_nccl_settings(f, hosts[i].name, host, out);
    if (f.unknown.count("nccl.conf") == 0) confs.push_back({host, nccl_conf_of(f)});
    find_loopback_name(f, host, out);
  }
  find_conf_difference(confs, out);
}

}  // namespace drun::check
