#include "agent/facts.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "agent/facts_text.h"
#include "agent/own_name.h"
#include "base/text.h"

extern char** environ;

namespace drun::agent {

namespace {

// The throttle reasons have a new and an old name; older drivers know neither.
constexpr const char* kThrottleFields[] = {",clocks_event_reasons.active", ",clocks_throttle_reasons.active", ""};
constexpr std::size_t kMaxText = 64u << 10;  // of a program's output
constexpr auto kShortest = std::chrono::milliseconds(100);
constexpr auto kLongest = std::chrono::seconds(60);
// The working directory has at least this: without it no job starts, so a busy machine, or a file system that is just
// being mounted, must not look like a dead file server.
constexpr auto kForDirectory = std::chrono::milliseconds(7500);

// The directories in sys.path have installed packages as NAME-VERSION.dist-info. Avoids importlib.metadata, whose
// import takes longer than all of this, and never imports the packages themselves: torch takes seconds.
constexpr const char* kPythonScript =
    "import os, sys\n"
    "print('python', sys.version.split()[0])\n"
    "names = ('torch', 'jax', 'jaxlib', 'tensorflow', 'numpy')\n"
    "seen = set()\n"
    "for folder in sys.path:\n"
    "    try:\n"
    "        files = os.listdir(folder or '.')\n"
    "    except OSError:\n"
    "        continue\n"
    "    for file in files:\n"
    "        if not file.endswith(('.dist-info', '.egg-info')):\n"
    "            continue\n"
    "        parts = file.rsplit('.', 1)[0].split('-')\n"
    "        name = parts[0].lower()\n"
    "        if name.startswith('nvidia_nccl'):\n"
    "            name = 'nccl-of-python'\n"
    "        elif name not in names:\n"
    "            continue\n"
    "        if len(parts) > 1 and name not in seen:\n"
    "            seen.add(name)\n"
    "            print(name, parts[1])\n";

std::map<std::string, std::string> own_environment() {
  std::map<std::string, std::string> out;
  for (char** e = environ; *e != nullptr; ++e) {
    const std::string_view entry(*e);
    const auto equals = entry.find('=');
    if (equals != std::string_view::npos) out.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return out;
}

std::string not_in_time(const ToolOutput& output) {
  const auto tenths = output.took.count() / 100;
  return "it did not answer within " + std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

constexpr std::array<const char*, 7> kPythonFacts = {"python",     "torch", "jax",           "jaxlib",
                                                     "tensorflow", "numpy", "nccl-of-python"};

void set_unknown(control::HostFacts& facts, const std::vector<std::string>& names, const std::string& why) {
  for (const auto& name : names) {
    if (!why.empty()) facts.unknown[name] = why;
  }
}

std::string first_line(const std::string& text) {
  for (const auto line : split(text, '\n')) {
    if (const auto words = trim(line); !words.empty()) return std::string(words.substr(0, 300));
  }
  return "it printed nothing";
}

}  // namespace

struct FactsGatherer::Question {
  control::AskFacts asked;
  std::map<std::string, std::string> environment;  // of the programs
  Deadline deadline;
  control::HostFacts facts;
};

// The path of the first that is there, or "". `facts`: what it would tell, which is unknown if the search failed.
Task<std::string> FactsGatherer::find_tool(Question& q, std::vector<std::string> names,
                                           std::vector<std::string> facts) {
  FoundTool found = co_await tools_.find(std::move(names), q.deadline);
  set_unknown(q.facts, facts, found.problem);
  co_return found.path;
}

Task<void> FactsGatherer::ask_glibc(Question& q) {
  std::vector<std::string> names = {"getconf", "ldd"};
  std::vector<std::string> facts = {"glibc"};
  const std::string tool = co_await find_tool(q, std::move(names), std::move(facts));
  if (tool.empty()) co_return;
  const std::vector<std::string> argv = {tool, tool.ends_with("/ldd") ? "--version" : "GNU_LIBC_VERSION"};
  const ToolOutput output = co_await tools_.run(argv, q.environment, q.deadline, kMaxText);
  if (output.late) {
    q.facts.unknown["glibc"] = argv[0] + ": " + not_in_time(output);
    co_return;
  }
  // The first line of ldd's output ends in the version; the distribution's words before it may contain one too.
  const std::string line = first_line(output.text);
  const std::string version = first_version(std::string_view(line).substr(line.rfind(' ') + 1));
  if (!version.empty()) q.facts.versions["glibc"] = version;
}

Task<void> FactsGatherer::ask_python(Question& q) {
  std::vector<std::string> names = {"python3"};
  std::vector<std::string> facts = {kPythonFacts.begin(), kPythonFacts.end()};
  const std::string python = co_await find_tool(q, std::move(names), facts);
  if (python.empty()) co_return;
  const std::vector<std::string> argv = {python, "-c", kPythonScript};
  const ToolOutput output = co_await tools_.run(argv, q.environment, q.deadline, kMaxText);
  if (output.late) {
    set_unknown(q.facts, facts, python + ": " + not_in_time(output));
    co_return;
  }
  for (auto& [name, version] : parse_versions(output.text)) q.facts.versions[name] = version;
}

Task<void> FactsGatherer::ask_ofed(Question& q) {
  std::vector<std::string> names = {"ofed_info"};
  std::vector<std::string> facts = {"ofed"};
  const std::string ofed_info = co_await find_tool(q, std::move(names), std::move(facts));
  if (ofed_info.empty()) co_return;
  const std::vector<std::string> argv = {ofed_info, "-s"};
  const ToolOutput output = co_await tools_.run(argv, q.environment, q.deadline, kMaxText);
  if (output.late) {
    q.facts.unknown["ofed"] = ofed_info + ": " + not_in_time(output);
    co_return;
  }
  std::string version = first_line(output.text);
  if (version.ends_with(':')) version.pop_back();
  q.facts.versions["ofed"] = version;
}

Task<void> FactsGatherer::ask_own_name(Question& q) {
  const ToolOutput output = co_await agent::ask_own_name(tools_, q.facts.host_name, q.environment, q.deadline);
  if (output.late) {
    q.facts.unknown["own name"] = output.problem.empty() ? "getent: " + not_in_time(output) : output.problem;
    co_return;
  }
  q.facts.own_addresses = parse_ahosts(output.text);
}

Task<void> FactsGatherer::ask_gpus(Question& q) {
  auto& facts = q.facts;
  std::vector<std::string> names = {"nvidia-smi"};
  const FoundTool found = co_await tools_.find(std::move(names), q.deadline);
  const std::string& smi = found.path;
  if (!found.problem.empty()) {
    facts.nvidia_smi_problem = found.problem;
    facts.nvidia_smi_late = true;
  }
  if (smi.empty()) co_return;
  facts.has_nvidia_smi = true;
  const std::string fields = kGpuFields;
  const std::string format = "--format=csv,noheader,nounits";
  std::string said;
  std::optional<std::vector<control::GpuFacts>> gpus;
  for (const char* throttle : kThrottleFields) {
    const std::vector<std::string> argv = {smi, "--query-gpu=" + fields + throttle, format};
    const ToolOutput output = co_await tools_.run(argv, q.environment, q.deadline, kMaxText);
    if (facts.nvidia_smi_ms < 0) facts.nvidia_smi_ms = output.took.count();
    if (output.late || !output.problem.empty()) {
      facts.nvidia_smi_late = output.late;
      facts.nvidia_smi_problem = output.late ? not_in_time(output) : output.problem;
      co_return;
    }
    gpus = parse_gpus(output.text);
    said = output.text;
    // An older driver, or a newer one that has dropped the old name, does not know the field.
    const bool field_unknown = said.find("not a valid field") != std::string::npos;
    if (gpus || !field_unknown) break;
  }
  if (!gpus) {
    facts.nvidia_smi_problem = first_line(said);
    co_return;
  }
  facts.gpus = std::move(*gpus);
  if (facts.gpus.empty()) co_return;
  const std::vector<std::string> apps = {smi, std::string("--query-compute-apps=") + kAppFields, format};
  const ToolOutput processes = co_await tools_.run(apps, q.environment, q.deadline, kMaxText);
  if (!processes.late) add_gpu_processes(processes.text, facts.gpus);
  const std::vector<std::string> rows = {smi, std::string("--query-remapped-rows=") + kRemapFields, format};
  const ToolOutput remaps = co_await tools_.run(rows, q.environment, q.deadline, kMaxText);
  if (!remaps.late) add_row_remaps(remaps.text, facts.gpus);
}

// Accessing a file on a dead network file system never returns, so a child accesses the working directory first.
Task<void> FactsGatherer::read_files(Question& q) {
  const std::string directory = q.asked.working_directory.empty() ? "." : q.asked.working_directory;
  const std::string script = "stat -f -c '%S %b %a' \"$1\" && test -w \"$1\" && echo writable";
  const std::vector<std::string> argv = {"/bin/sh", "-c", script, "sh", directory};
  const Deadline deadline = std::max(q.deadline, Clock::now() + kForDirectory);
  const ToolOutput output = co_await tools_.run(argv, q.environment, deadline, kMaxText);
  if (output.late) {
    q.facts.unknown["working directory"] = directory + ": " + not_in_time(output);
    if (!q.asked.argv.empty()) set_unknown(q.facts, {"command", "script"}, "the working directory does not respond");
    co_return;
  }
  q.facts.disks.insert(q.facts.disks.begin(), parse_file_system(directory, output.text));
  co_await hash_files(q, deadline);
}

// For files that may be on a dead network file system, too. `facts`: what they would tell; `what` they are.
Task<void> FactsGatherer::read_shared(Question& q, ReadFacts read, std::vector<std::string> facts, std::string what) {
  const ForkedFunction read_in_child = [this, read](const ReportStep&) {
    control::Facts answer;
    read(root_, answer.facts);
    return control::encode(answer);
  };
  const ForkedResult result = co_await files_.call(read_in_child, q.deadline);
  auto answer = control::decode<control::Facts>(result.value.value_or(""));
  if (!answer) {
    set_unknown(q.facts, facts, result.late ? what + " could not be read in time" : result.problem);
    co_return;
  }
  q.facts.versions.merge(answer->facts.versions);
  q.facts.nccl_conf.merge(answer->facts.nccl_conf);
}

Task<void> FactsGatherer::hash_files(Question& q, Deadline deadline) {
  if (q.asked.argv.empty()) co_return;
  const ForkedFunction hash = [&q](const ReportStep& step) {
    control::Facts answer;
    hash_command(q.asked, q.environment, step, answer.facts);
    return control::encode(answer);
  };
  const ForkedResult result = co_await files_.call(hash, deadline);
  auto answer = control::decode<control::Facts>(result.value.value_or(""));
  if (!answer) {
    set_unknown(q.facts, {"command", "script"},
                result.late ? result.step + " could not be read to its end in time" : result.problem);
    co_return;
  }
  q.facts.command = std::move(answer->facts.command);
  q.facts.command_problem = std::move(answer->facts.command_problem);
  q.facts.versions.merge(answer->facts.versions);
  q.facts.unknown.merge(answer->facts.unknown);
}

Task<control::HostFacts> FactsGatherer::gather(control::AskFacts question) {
  Question q;
  q.environment = own_environment();
  for (const auto& [name, value] : question.environment) q.environment[name] = value;
  q.environment["LC_ALL"] = "C";
  const auto allowed = std::chrono::milliseconds(question.tool_ms);
  q.deadline = Clock::now() + std::clamp<std::chrono::milliseconds>(allowed, kShortest, kLongest);
  q.asked = std::move(question);
  read_variables(q.asked.variables, q.facts);
  read_machine(root_, q.facts);
  TaskGroup group(io_.get_executor());
  group.spawn(ask_gpus(q));
  group.spawn(ask_glibc(q));
  group.spawn(ask_python(q));
  group.spawn(ask_ofed(q));
  group.spawn(ask_own_name(q));
  group.spawn(read_files(q));
  group.spawn(read_shared(q, read_library_versions, {"cuda", "nccl", "libdrun"}, "the libraries in /usr"));
  group.spawn(read_shared(q, read_nccl_conf, {"nccl.conf"}, "those of /etc, the home and NCCL_CONF_FILE"));
  // These run while the programs run.
  read_versions(root_, q.facts);
  read_limits(q.facts);
  read_kernel_log(root_, q.facts);
  read_network(root_, q.facts);
  co_await group.join();
  read_clocks(q.facts);
  co_return std::move(q.facts);
}

}  // namespace drun::agent
