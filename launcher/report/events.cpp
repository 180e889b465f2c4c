#include "launcher/report/events.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/terminal.h"

namespace drun::launcher {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kSchema = 1;
constexpr const char* kTooSlow = "its reader is too slow";

double rounded(std::chrono::duration<double> time) { return std::round(time.count() * 1e6) / 1e6; }

Json phases_json(const Progress::Times& phases) {
  Json out = Json::object();
  for (const auto& [phase, time] : phases) out[transport::phase_name(phase)] = rounded(time);
  return out;
}

Json or_null(bool known, Json value) { return known ? std::move(value) : Json(nullptr); }

// `file` without what an earlier job wrote. If it is also drun's stdout or stderr ("--events /dev/stderr 2> job.err"),
// that descriptor: with an offset of its own each would write over the other.
Fd shared_or_empty(Fd file) {
  struct stat info {};
  if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return file;
  for (const int fd : {STDERR_FILENO, STDOUT_FILENO}) {
    if (is_same_file(file.get(), fd)) return Fd(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
  }
  [[maybe_unused]] const int emptied = ::ftruncate(file.get(), 0);
  return file;
}

}  // namespace

struct Events::Line {
  explicit Line(const char* event) : name(event) {}
  std::string name;
  Json fields = Json::object();
};

std::string rfc3339(std::chrono::system_clock::time_point time) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
  const std::time_t seconds = static_cast<std::time_t>(ms / 1000);
  tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[40];
  const std::size_t n = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text + n, sizeof text - n, ".%03dZ", static_cast<int>(ms % 1000));
  return text;
}

// Non-blocking: a named pipe without a reader is an error.
Result<void> Events::open(const std::string& path) {
  Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_CLOEXEC, 0666));
  if (file) file = shared_or_empty(std::move(file));
  if (!file) {
    const bool no_reader = errno == ENXIO;
    Error error = Error(Errc::kUsage, "--events", errno_error(errno, path).cause);
    if (no_reader) error = std::move(error).with_hint("start the reader of the pipe first");
    return fail(std::move(error));
  }
  path_ = path;
  file_ = std::make_unique<BackgroundWriter>(std::move(file), max_waiting_);
  began_ = std::chrono::steady_clock::now();
  return {};
}

Events::~Events() {
  if (file_) file_->leave();
}

void Events::close(std::chrono::milliseconds limit) {
  if (!file_) return;
  const auto closed = file_->close(limit);
  file_.reset();
  if (!closed) warn(closed.error().cause);
}

void Events::give_up(const std::string& why) {
  file_->leave();
  file_.reset();
  warn(why);
}

void Events::warn(const std::string& why) {
  reporter_.warning("--events: " + path_ + ": " + why + "; no more events are written");
}

void Events::write(const Line& line) {
  if (!file_) return;
  if (const auto error = file_->error()) return give_up(error->cause);
  Json out = Json::object();
  if (std::exchange(first_, false)) out["schema"] = kSchema;
  out["event"] = line.name;
  out["time"] = rfc3339(std::chrono::system_clock::now());
  out["elapsed"] = rounded(std::chrono::steady_clock::now() - began_);
  out.update(line.fields);
  if (!file_->push(json_text(out) + "\n")) give_up(kTooSlow);
}

void Events::job_begun(const std::string& job_id, const std::vector<std::string>& command, int np,
                       const std::vector<JobHost>& hosts) {
  Line line("job_begun");
  line.fields["job"] = job_id;
  line.fields["command"] = command;
  line.fields["np"] = np;
  line.fields["hosts"] = Json::array();
  for (const auto& host : hosts) {
    Json entry = Json::object();
    entry["name"] = host.name;
    entry["workers"] = host.n_workers;
    line.fields["hosts"].push_back(std::move(entry));
  }
  write(line);
}

void Events::host_connected(const std::string& host, const Progress::Times& phases) {
  Line line("host_connected");
  line.fields["host"] = host;
  line.fields["phases"] = phases_json(phases);
  write(line);
}

void Events::agent_ready(const std::string& host, const control::Hello& hello, const Progress::Times& phases) {
  Line line("agent_ready");
  line.fields["host"] = host;
  line.fields["host_name"] = hello.host_name;
  line.fields["machine"] = hello.machine;
  line.fields["agent_pid"] = hello.pid;
  line.fields["agent_path"] = hello.path;
  line.fields["phases"] = phases_json(phases);
  write(line);
}

void Events::host_failed(const std::string& host, const Error& error) {
  Line line("host_failed");
  line.fields["host"] = host;
  line.fields["error"] = error.cause;
  write(line);
}

void Events::interface_chosen(const std::string& host, const std::string& interface, const std::string& address,
                              const std::vector<std::string>& all, bool cached) {
  Line line("interface_chosen");
  line.fields["host"] = host;
  line.fields["interface"] = interface;
  line.fields["address"] = address;
  line.fields["interfaces"] = all;
  line.fields["cached"] = cached;
  write(line);
}

void Events::worker_started(int rank, const std::string& host, int pid) {
  Line line("worker_started");
  line.fields["rank"] = rank;
  line.fields["host"] = host;
  line.fields["pid"] = pid;
  write(line);
}

void Events::worker_exited(int rank, const std::string& host, const control::Exited& message) {
  const int status = message.wait_status;
  Line line("worker_exited");
  line.fields["rank"] = rank;
  line.fields["host"] = host;
  line.fields["pid"] = message.pid;
  line.fields["status"] = or_null(WIFEXITED(status), WEXITSTATUS(status));
  line.fields["signal"] = or_null(WIFSIGNALED(status), WTERMSIG(status));
  line.fields["core_dumped"] = WIFSIGNALED(status) && WCOREDUMP(status);
  line.fields["ended_by_drun"] = message.ended_by_drun;
  write(line);
}

void Events::first_failure(int rank, const std::string& host, int pid, const std::string& why, int status) {
  Line line("first_failure");
  line.fields["rank"] = or_null(rank >= 0, rank);
  line.fields["host"] = or_null(!host.empty(), host);
  line.fields["pid"] = or_null(pid > 0, pid);
  line.fields["why"] = why;
  line.fields["status"] = status;
  write(line);
}

void Events::stop_ordered(const std::string& why, int status) {
  Line line("stop_ordered");
  line.fields["why"] = why;
  line.fields["status"] = status;
  write(line);
}

void Events::job_ended(int status) {
  Line line("job_ended");
  line.fields["status"] = status;
  write(line);
}

}  // namespace drun::launcher
