#include "agent/own_name.h"

#include <utility>
#include <vector>

#include "agent/facts_text.h"
#include "netdetect/network.h"

namespace drun::agent {

namespace {

constexpr std::size_t kMaxText = 64u << 10;

}  // namespace

Task<ToolOutput> ask_own_name(Tools& tools, std::string name, std::map<std::string, std::string> environment,
                              Deadline deadline) {
  std::vector<std::string> programs = {"getent"};
  const FoundTool getent = co_await tools.find(std::move(programs), deadline);
  if (getent.path.empty() || name.empty()) {
    ToolOutput none;
    none.problem = getent.problem;
    none.late = !none.problem.empty();
    co_return none;
  }
  std::vector<std::string> argv = {getent.path, "ahosts", std::move(name)};
  co_return co_await tools.run(std::move(argv), std::move(environment), deadline, kMaxText);
}

bool gives_out_own_name(const std::map<std::string, std::string>& environment) {
  const auto n_hosts = environment.find("HOROVOD_CROSS_SIZE");
  return environment.count("HOROVOD_HOSTNAME") > 0 && n_hosts != environment.end() && n_hosts->second != "1";
}

std::string own_name_warning(const std::string& ahosts) {
  const std::string loopback = netdetect::only_loopback(parse_ahosts(ahosts));
  if (loopback.empty()) return "";
  return "its own name stands for " + loopback +
         " alone, and from 0.23 on Horovod waits for its peers at that address, where no other host reaches it; map "
         "the name to the host's address in /etc/hosts (`drun check` lists such hosts: host-name-loopback)";
}

}  // namespace drun::agent
