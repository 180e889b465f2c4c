#include "launcher/connect/locality.h"

#include <pwd.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>

#include "base/text.h"
#include "netdetect/interface.h"

namespace drun::launcher {

OwnIdentity own_identity() {
  OwnIdentity own;
  utsname names{};
  ::uname(&names);
  own.host_name = names.nodename;
  if (const passwd* entry = ::getpwuid(::getuid())) own.user = entry->pw_name;
  if (const auto interfaces = netdetect::list_interfaces()) {
    for (const auto& i : *interfaces) {
      for (const auto& a : i.addresses) own.addresses.push_back(a.text());
    }
  }
  return own;
}

bool is_local(const Host& host, const transport::SshTarget& target, const OwnIdentity& own) {
  const bool same_user = host.user.empty() || host.user == own.user;
  const std::string name = lower(host.name);
  const auto short_name = [](const std::string& n) { return lower(n.substr(0, n.find('.'))); };
  if (same_user) {
    if (name == "localhost") return true;
    const auto address = netdetect::parse_address(name);
    if (address.family == 4 && !address.bytes.empty() && address.bytes[0] == 127) return true;
    if (address.bytes == std::string(15, '\0') + '\1') return true;
    // Our own name, unless ssh config maps it to another name.
    bool own_name = name == lower(own.host_name) || name == short_name(own.host_name);
    // Schedulers write names with or without the domain, regardless of what the host calls itself.
    if (!host.job.empty() && address.bytes.empty())
      own_name = own_name || short_name(name) == short_name(own.host_name);
    if (own_name && target.host_name == host.name) return true;
  }
  if (target.user_or_port_set) return false;
  const auto address = netdetect::parse_address(target.host_name);
  return !address.bytes.empty() &&
         std::find(own.addresses.begin(), own.addresses.end(), address.text()) != own.addresses.end();
}

}  // namespace drun::launcher
