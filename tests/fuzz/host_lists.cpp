// Host lists, hostfiles, rank lists, env files, and the variables of batch schedulers.
#include <climits>

#include "launcher/plan/allocation.h"
#include "launcher/plan/allocation_slurm.h"
#include "launcher/plan/hostfile.h"
#include "launcher/plan/hostlist.h"
#include "launcher/plan/placement.h"
#include "launcher/plan/rank_list.h"
#include "launcher/plan/worker_env.h"
#include "tests/fuzz/fuzz.h"

namespace drun::fuzz {
namespace {

using namespace launcher;

// A scheduler may give any number of slots.
void check(const Result<std::vector<Host>>& hosts, int max_slots = 1024) {
  if (!hosts) {
    expect(hosts.error().code == Errc::kUsage && !hosts.error().cause.empty(), "an error says what is wrong");
    return;
  }
  expect(!hosts->empty(), "a list has hosts");
  for (const Host& host : *hosts) {
    expect(!host.name.empty() && host.name.front() != '-', "a name is no option");
    expect(host.name.size() <= 255 && host.slots >= 1 && host.slots <= max_slots, "a host is within the limits");
    for (const char c : host.name + host.user) {
      expect(
          static_cast<unsigned char>(c) > ' ' && std::string_view("'\"`$;&|<>()*?!#~{}").find(c) == std::string::npos,
          "no name means anything to a shell");
    }
    expect(host.user.empty() || host.user.front() != '-', "a user is no option");
  }
  if (hosts->size() > 64) return;
  const auto merged = add_slots(*hosts);
  for (const Host& host : merged) {
    if (host.slots > 1024) continue;
    const auto again = parse_hostlist(to_item(host, host.slots));
    expect(again && again->size() == 1 && again->front().name == host.name && again->front().user == host.user &&
               again->front().slots == host.slots,
           "a host as an item is the same host");
  }
  (void)place(merged, 0);
}

void run(std::string_view bytes) {
  Input in(bytes);
  const std::size_t kind = in.below(6);
  if (kind == 0) {
    const std::string_view list = in.rest();
    check(parse_hostlist(list));
    (void)looks_like_host_item(list);
  } else if (kind == 1) {
    check(parse_hostfile(in.rest(), "hosts.txt"));
  } else if (kind == 2) {
    const std::string list(in.rest());
    const auto ranks = parse_rank_list(list, 16, "--stdin");
    expect(!ranks || ranks->size() == 16, "a rank list has every rank");
  } else if (kind == 3) {
    const auto environment = parse_env_file(in.rest(), "env.txt");
    if (!environment) return;
    for (const auto& [name, value] : *environment) {
      expect(!name.empty() && name.find('=') == std::string::npos && (name + value).find('\0') == std::string::npos,
             "a variable can be set");
    }
  } else if (kind == 4) {
    if (const auto counts = parse_slurm_counts(in.rest())) {
      for (const int count : *counts) expect(count >= 0, "a count is no debt");
    }
  } else {
    Environment environment;
    for (const char* name : {"SLURM_JOB_ID", "SLURM_JOB_NODELIST", "SLURM_TASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE",
                             "LSB_JOBID", "LSB_HOSTS", "LSB_MCPU_HOSTS", "PBS_JOBID", "PBS_NODEFILE", "PE_HOSTFILE",
                             "JOB_ID", "OAR_NODEFILE", "OAR_JOB_ID", "SLURM_PROCID", "SLURM_NTASKS"}) {
      const std::string_view value = in.text();
      if (!value.empty()) environment[name] = value;
    }
    const std::string file(in.rest());
    const auto allocation = find_allocation(environment, [&](const std::string&) { return Result<std::string>(file); });
    if (allocation && *allocation) check((*allocation)->hosts, INT_MAX);
    (void)one_of_several_tasks(environment);
  }
}

std::vector<std::string> seeds() {
  const auto scheduler = [](std::vector<std::string> values, std::string_view file) {
    values.resize(15);
    Script script;
    script.byte(5);
    for (const auto& value : values) script.text(value);
    return std::string(script.raw(file));
  };
  return {
      Script().byte(0).raw("localhost:2,root@node[01-04,7]:8,[fd00::2]:4,10.0.0.1,b:gpus=0,2"),
      Script().byte(0).raw("a[1-2]b[3-4].example.org:2:gpus=GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"),
      Script().byte(0).raw("a:2 b:2"),
      Script().byte(1).raw(
          "# hosts\nnode1 slots=4 max_slots=8\nroot@node[2-3]:2 port=2222\n\nnode4 user=me gpus=0,1\r\n"),
      Script().byte(2).raw("0,8-15"),
      Script().byte(3).raw("# env\nexport A=1\nB='two words'\nC=\n"),
      Script().byte(4).raw("2(x3),1"),
      scheduler({"4", "n[1-2],n5", "2(x2),1"}, ""),
      scheduler({"", "", "", "", "7", "n1 n1 n2"}, ""),
      scheduler({"", "", "", "", "7", "", "n1 2 n2 4"}, ""),
      scheduler({"", "", "", "", "", "", "", "9", "/nodes"}, "n1\nn1\nn2\n"),
      scheduler({"", "", "", "", "", "", "", "", "", "/pe", "3"}, "n1 2 all.q@n1 UNDEFINED\n"),
      scheduler({"", "", "", "", "", "", "", "", "", "", "", "/oar", "5"}, "n1\nn2\n"),
  };
}

const Target kTarget("host_lists", run, seeds);

}  // namespace
}  // namespace drun::fuzz
