#include "launcher/agent/command_check.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/fd.h"
#include "base/text.h"

namespace drun::agent {

namespace {

bool is_file(const std::string& path) {
  struct stat s {};
  return ::stat(path.c_str(), &s) == 0 && S_ISREG(s.st_mode);
}

// A binary for another processor type passes access(X_OK) and fails at exec only: look at its ELF header.
std::string foreign_machine(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  Elf64_Ehdr header{};
  if (!fd || ::read(fd.get(), &header, sizeof header) != static_cast<ssize_t>(sizeof header)) return {};
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return {};
#if defined(__x86_64__)
  constexpr unsigned own = EM_X86_64, own32 = EM_386;
#elif defined(__aarch64__)
  constexpr unsigned own = EM_AARCH64, own32 = EM_ARM;
#else
  return {};
#endif
  if (header.e_machine == own || header.e_machine == own32) return {};
  switch (header.e_machine) {
    case EM_X86_64:
      return "x86_64";
    case EM_AARCH64:
      return "aarch64";
    case EM_PPC64:
      return "ppc64";
    case EM_RISCV:
      return "riscv";
    default:
      return "ELF machine " + std::to_string(header.e_machine);
  }
}

}  // namespace

Result<std::string> find_command(const std::string& argv0, const std::map<std::string, std::string>& environment,
                                 const std::string& directory) {
  if (argv0.find('/') != std::string::npos) {
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
    if (!is_file(candidate)) continue;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
    not_executable = candidate;
  }
  if (!not_executable.empty()) return fail(Errc::kNotExecutable, "'" + not_executable + "' is not executable");
  return fail(Errc::kNotFound, "no '" + argv0 + "' in PATH=" + dirs);
}

std::vector<control::Problem> check_command(const control::Prepare& job) {
  using control::ProblemKind;
  std::vector<control::Problem> problems;
  const auto add = [&](ProblemKind kind, std::string cause, std::string hint) {
    control::Problem p;
    p.kind = kind;
    p.cause = std::move(cause);
    p.hint = std::move(hint);
    problems.push_back(std::move(p));
  };
  if (::chdir(job.working_directory.c_str()) != 0) {
    const int err = errno;
    add(ProblemKind::kWorkingDirectory,
        "working directory '" + job.working_directory + "': " + errno_error(err, "chdir").cause.substr(7),
        "create it there, or choose one that every host has with --wdir DIR");
    return problems;
  }
  if (job.argv.empty()) {
    add(ProblemKind::kOther, "no command", "");
    return problems;
  }
  const auto command = find_command(job.argv[0], job.environment, job.working_directory);
  if (!command) {
    const bool missing = command.error().code == Errc::kNotFound;
    const bool by_path = job.argv[0].find('/') != std::string::npos;
    add(missing ? ProblemKind::kNotFound : ProblemKind::kNotExecutable, command.error().cause,
        missing ? (by_path ? "copy it there, or name a directory that every host has with --wdir DIR"
                           : "give the full path, or set PATH for the workers with -x PATH=...")
                : "chmod +x it on that host; on a noexec file system put it elsewhere");
    return problems;
  }
  if (const std::string machine = foreign_machine(*command); !machine.empty()) {
    add(ProblemKind::kNotExecutable, "'" + *command + "' is built for " + machine + ", another processor type",
        "build it for this host's processor");
  }
  return problems;
}

}  // namespace drun::agent
