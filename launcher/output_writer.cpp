#include "launcher/output_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <filesystem>
#include <limits>

namespace drun::launcher {

namespace {
// An unfinished line (a prompt, a progress bar) is shown after this long.
constexpr auto kUnfinished = std::chrono::milliseconds(200);
constexpr int kOwn = std::numeric_limits<int>::max();  // no rank's owner()
}  // namespace

OutputWriter::OutputWriter(asio::io_context& io, OutputOptions options, OnWritten written, OnBroken broken)
    : io_(io),
      options_(std::move(options)),
      written_(std::move(written)),
      broken_(std::move(broken)),
      wake_(io.get_executor()),
      timer_wake_(io.get_executor()),
      tasks_(io.get_executor()) {}

Result<void> OutputWriter::open_files(int n_ranks) {
  if (options_.directory.empty()) return {};
  for (int rank = 0; rank < n_ranks; ++rank) {
    const std::string directory = options_.directory + "/rank." + std::to_string(rank);
    std::error_code ec;
    std::filesystem::create_directories(directory, ec);
    if (ec) return fail(Errc::kUsage, "--output-filename", directory + ": " + ec.message());
    for (const Stream stream : {Stream::kStdout, Stream::kStderr}) {
      const std::string path = directory + (stream == Stream::kStdout ? "/stdout" : "/stderr");
      Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
      if (!fd) return fail(Error(Errc::kUsage, "--output-filename", errno_error(errno, path).cause));
      sources_[owner(rank, stream)].file = fd.get();
      files_.push_back(std::move(fd));
    }
  }
  return {};
}

std::string OutputWriter::tag(int rank) const {
  std::string out;
  if (options_.timestamp) {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    tm parts{};
    ::localtime_r(&now.tv_sec, &parts);
    char text[32];
    std::snprintf(text, sizeof text, "%02d:%02d:%02d.%03d ", parts.tm_hour, parts.tm_min, parts.tm_sec,
                  static_cast<int>(now.tv_nsec / 1000000));
    out += text;
  }
  if (options_.tag) out += "[" + std::to_string(rank) + "] ";
  return out;
}

void OutputWriter::push(int rank, Stream stream, std::string_view bytes) {
  Source& source = sources_[owner(rank, stream)];
  if (source.file >= 0) file_bytes_[source.file].append(bytes);
  TaggedOutput& to = target(stream);
  if (!options_.tag && !options_.timestamp) {
    to.put(0, {}, bytes);
  } else {
    source.lines.push(bytes);
    for (std::string line = source.lines.next(); !line.empty(); line = source.lines.next()) {
      to.put(owner(rank, stream), tag(rank), line);
    }
    if (source.lines.has_rest()) {
      source.oldest = Clock::now();
      timer_wake_.notify();
    }
  }
  notes_.push_back(Note{rank, stream, bytes.size()});
  wake_.notify();
}

void OutputWriter::push_own(const std::string& text) {
  err_.put(kOwn, {}, text);
  wake_.notify();
}

void OutputWriter::end(int rank, Stream stream) {
  Source& source = sources_[owner(rank, stream)];
  if (!source.lines.has_rest()) return;
  target(stream).put(owner(rank, stream), tag(rank), source.lines.take_rest() + "\n");
  wake_.notify();
}

void OutputWriter::show_unfinished(bool all) {
  const auto now = Clock::now();
  for (auto& [id, source] : sources_) {
    if (!source.lines.has_rest() || (!all && now - source.oldest < kUnfinished)) continue;
    const Stream stream = id % 2 == 1 ? Stream::kStderr : Stream::kStdout;
    target(stream).put(id, tag(id / 2), source.lines.take_rest());
    wake_.notify();
  }
}

Task<void> OutputWriter::flush_timer() {
  while (!stopping_) {
    co_await timer_wake_.wait_and_reset();
    if (stopping_) break;
    co_await sleep_until(Clock::now() + kUnfinished);
    if (stopping_) break;
    show_unfinished(false);
    for (const auto& [id, source] : sources_) {
      if (source.lines.has_rest()) timer_wake_.notify();
    }
  }
}

bool OutputWriter::anything_pending() const {
  return !out_.empty() || !err_.empty() || !file_bytes_.empty() || !notes_.empty();
}

Error OutputWriter::write_batch(Batch& batch) {
  Error error;
  const auto note = [&](Result<void> written, const char* where) {
    if (!written && error.code == Errc::kNone) error = std::move(written.error()).with_subject(where);
  };
  note(write_all(STDOUT_FILENO, batch.out), "stdout");
  note(write_all(STDERR_FILENO, batch.err), "stderr");
  for (const auto& [fd, bytes] : batch.files) note(write_all(fd, bytes), "--output-filename");
  return error;
}

Task<void> OutputWriter::run() {
  tasks_.spawn(flush_timer());
  for (;;) {
    if (!anything_pending()) {
      if (stopping_) {
        show_unfinished(true);  // of workers whose end never came: their host was lost
        if (!anything_pending()) break;
        continue;
      }
      co_await wake_.wait_and_reset();
      continue;
    }
    Batch batch;
    batch.out = out_.take();
    batch.err = err_.take();
    batch.files.swap(file_bytes_);
    batch.notes.swap(notes_);
    if (!is_broken_) {
      auto job = [&batch] { return write_batch(batch); };
      Error error = co_await run_blocking(writer_, std::move(job));
      if (error.code != Errc::kNone) {
        is_broken_ = true;
        broken_(std::move(error));
      }
    }
    for (const Note& n : batch.notes) written_(n.rank, n.stream, n.n_bytes);
  }
  timer_wake_.notify();
  co_await tasks_.join();
}

void OutputWriter::stop() {
  stopping_ = true;
  wake_.notify();
  timer_wake_.notify();
}

}  // namespace drun::launcher
