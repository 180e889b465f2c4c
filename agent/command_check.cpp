#include "agent/command_check.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "agent/elf_file.h"
#include "agent/interpreter.h"
#include "agent/shell_word.h"
#include "base/bytes.h"
#include "base/fd.h"
#include "base/text.h"

namespace drun::agent {

namespace {

bool is_file(const std::string& path) {
  struct stat s {};
  return ::stat(path.c_str(), &s) == 0 && S_ISREG(s.st_mode);
}

// Shortens a PATH to as many directories as fit on a line.
std::string shortened(const std::string& path) {
  constexpr std::size_t kMax = 100;
  if (path.size() <= kMax) return path;
  const auto end = path.rfind(':', kMax);
  return path.substr(0, end == std::string::npos ? kMax : end + 1) + "... (" + std::to_string(split(path, ':').size()) +
         " directories)";
}

bool is_python(const std::string& file) { return file.size() > 3 && file.substr(file.size() - 3) == ".py"; }

// The hint for a command without a file.
std::string hint_for_missing(const control::Prepare& job) {
  const std::string& word = job.argv[0];
  const auto is_here = [&](const std::string& name) {
    return find_command(name, job.environment, job.working_directory, [](const std::string&) {}).has_value();
  };
  const std::string for_shell = hint_for_shell_word(job.argv, is_here(first_word(word)));
  if (!for_shell.empty()) return for_shell;
  if (word.find('/') != std::string::npos)
    return "copy it there, or name a directory that every host has with --wdir DIR";
  // A word that is in no directory of PATH may be a file in the working directory, as Python's own launchers take it.
  if (is_file(word) && is_python(word)) return "python3 " + word;
  if (is_file(word)) return "./" + word;
  if (word == "python" && is_here("python3")) return "python3";
  return "give the full path, or set PATH for the workers with -x PATH=...";
}

std::string hint_for_no_program(const std::string& file) {
  if (!is_file(file) && file.find('/') != std::string::npos) return "give the program's file";
  if (is_python(file)) return "python3 " + file;
  return "chmod +x it on that host; on a noexec file system put it elsewhere";
}

}  // namespace

Result<std::string> find_command(const std::string& argv0, const std::map<std::string, std::string>& environment,
                                 const std::string& directory, const ReportStep& report) {
  if (argv0.find('/') != std::string::npos) {
    report(argv0[0] == '/' ? argv0 : directory + "/" + argv0);
    if (::access(argv0.c_str(), F_OK) != 0) {
      return fail(Errc::kNotFound, "'" + argv0 + "' does not exist (in " + directory + ")");
    }
    if (!is_file(argv0)) return fail(Errc::kNotExecutable, "'" + argv0 + "' is not a file");
    if (::access(argv0.c_str(), X_OK) != 0) return fail(Errc::kNotExecutable, "'" + argv0 + "' is not executable");
    return argv0;
  }
  const auto path = environment.find("PATH");
  const std::string dirs = path != environment.end() ? path->second : "/usr/local/bin:/usr/bin:/bin";
  std::string not_executable;
  for (const auto dir : split(dirs, ':')) {
    const std::string candidate = (dir.empty() ? std::string(".") : std::string(dir)) + "/" + argv0;
    report(candidate);
    if (!is_file(candidate)) continue;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
    not_executable = candidate;
  }
  if (!not_executable.empty()) return fail(Errc::kNotExecutable, "'" + not_executable + "' is not executable");
  return fail(Errc::kNotFound, "no '" + argv0 + "' in PATH=" + shortened(dirs));
}

CommandCheck check_command(const control::Prepare& job, const ReportStep& report) {
  using control::ProblemKind;
  CommandCheck check;
  std::vector<control::Problem>& problems = check.problems;
  const auto add = [&](ProblemKind kind, std::string cause, std::string hint) {
    control::Problem p;
    p.kind = kind;
    p.cause = std::move(cause);
    p.hint = std::move(hint);
    problems.push_back(std::move(p));
  };
  report(job.working_directory);
  if (::chdir(job.working_directory.c_str()) != 0) {
    const int err = errno;
    add(ProblemKind::kWorkingDirectory,
        "working directory '" + job.working_directory + "': " + errno_error(err, "chdir").cause.substr(7),
        "create it there, or choose one that every host has with --wdir DIR");
    return check;
  }
  if (job.argv.empty()) {
    add(ProblemKind::kOther, "no command", "");
    return check;
  }
  const auto command = find_command(job.argv[0], job.environment, job.working_directory, report);
  if (!command) {
    const bool missing = command.error().code == Errc::kNotFound;
    add(missing ? ProblemKind::kNotFound : ProblemKind::kNotExecutable, command.error().cause,
        missing ? hint_for_missing(job) : hint_for_no_program(job.argv[0]));
    return check;
  }
  report(*command);
  if (const std::string interpreter = interpreter_of(*command);
      !interpreter.empty() && ::access(interpreter.c_str(), X_OK) != 0) {
    const bool has_cr = interpreter.back() == '\r';
    add(ProblemKind::kNotExecutable,
        "'" + *command + "' is a script for " +
            (has_cr ? "an interpreter with a carriage return in its name" : interpreter) + ", which is not there",
        has_cr ? "the file has line ends of DOS: sed -i 's/\\r$//' " + shell_quote(*command)
               : "change its first line, or name the interpreter before the script");
    return check;
  }
  if (const std::string machine = foreign_machine(*command); !machine.empty()) {
    add(ProblemKind::kNotExecutable, "'" + *command + "' is built for " + machine + ", another processor type",
        "build it for this host's processor");
  }
  if (!job.compat_folder.empty()) {
    const std::string package = job.compat_folder + "/horovod/__init__.py";
    report(package);
    if (::access(package.c_str(), R_OK) != 0) {
      add(ProblemKind::kCompat, "--compat: no '" + package + "'",
          "install drun's Python package at the same path as here, and let the workers read it");
    }
  }
  const std::string mpi = job.refuses_mpi ? mpi_library(needed_libraries(*command)) : "";
  if (!mpi.empty()) {
    add(ProblemKind::kMpi,
        "'" + job.argv[0] + "' needs " + mpi +
            ": MPI is not served, so that each worker would be a world of its own, of one rank",
        "start it with mpirun; drun --mpi none starts it all the same");
  }
  if (problems.empty()) check.command = *command;
  return check;
}

std::string encode(const CommandCheck& check) {
  ByteWriter out;
  control::Prepared problems;
  problems.problems = check.problems;
  out.str(check.command);
  out.str(control::encode(problems));
  return out.take();
}

Result<CommandCheck> decode_command_check(std::string_view bytes) {
  ByteReader in(bytes);
  CommandCheck check;
  check.command = in.str();
  const std::string problems = in.str();
  if (!in.done()) return fail(Errc::kProtocol, "command check", "malformed");
  auto decoded = control::decode<control::Prepared>(problems);
  if (!decoded) return fail(std::move(decoded.error()));
  check.problems = std::move(decoded->problems);
  return check;
}

}  // namespace drun::agent
