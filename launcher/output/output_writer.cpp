#include "launcher/output/output_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <utility>

#include "base/terminal.h"
#include "base/units.h"
#include "control/output_credit.h"

namespace drun::launcher {

namespace {
constexpr std::size_t kBatch = 256u << 10;    // so that credit is returned while much output waits
constexpr std::size_t kDisplay = 128u << 10;  // tags make short lines several times as long: flush at this size
constexpr auto kRedraw = std::chrono::milliseconds(100);  // minimum interval between drawings of progress bars

constexpr auto kOthersPoll = std::chrono::milliseconds(500);  // interval between checks of the reader's timeout

bool is_pipe(int fd) {
  struct stat info {};
  return ::fstat(fd, &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode));
}

// A program that reads the other stream from a pipe may write to this terminal: then only one row can be redrawn
// safely.
std::size_t max_bars(int fd, int other) {
  if (!can_move_cursor(fd)) return 0;
  return is_pipe(other) ? OutputDisplay::kMaxBarsBesideOthers : OutputDisplay::kMaxBars;
}

Screen screen_here() {
  Screen screen;
  screen.is_one = is_same_file(STDOUT_FILENO, STDERR_FILENO);
  screen.color_out = wants_color(STDOUT_FILENO);
  screen.color_err = wants_color(STDERR_FILENO);
  if (::isatty(STDOUT_FILENO) == 1) screen.out = Screen::Kind::kTerminal;
  if (::isatty(STDERR_FILENO) == 1) screen.err = Screen::Kind::kTerminal;
  screen.bars_out = max_bars(STDOUT_FILENO, STDERR_FILENO);
  screen.bars_err = max_bars(STDERR_FILENO, STDOUT_FILENO);
  return screen;
}
}  // namespace

OutputWriter::OutputWriter(asio::io_context& io, OutputOptions options, OnWritten written, OnBroken broken)
    : options_(std::move(options)),
      written_(std::move(written)),
      broken_(std::move(broken)),
      wake_(io.get_executor()),
      out_(STDOUT_FILENO),
      err_(STDERR_FILENO) {}

void OutputWriter::open(const std::vector<RankLabel>& ranks, std::size_t credit) {
  credit_ = credit;
  accounts_.assign(2 * ranks.size(), {});
  Screen screen = screen_here();
  screen.merges_stderr = options_.merges_stderr;
  display_ = std::make_unique<OutputDisplay>(OutputTags(options_.tag, options_.timestamp, ranks), ranks.size(), screen);
}

Task<Result<void>> OutputWriter::create_files(Deadline deadline) {
  struct Creation {
    explicit Creation(const asio::any_io_executor& executor) : over(executor) {}
    Result<void> result;
    Event over;
  };
  const auto executor = co_await asio::this_coro::executor;
  const auto creation = std::make_shared<Creation>(executor);
  asio::post(thread_, [this, executor, creation] {
    Result<void> created;
    for (std::size_t rank = 0; rank < accounts_.size() / 2 && created; ++rank) created = create_files_of(rank);
    creation->result = std::move(created);
    asio::post(executor, [creation] { creation->over.notify(); });
  });
  const auto began = Clock::now();
  const bool is_over = co_await creation->over.wait_until(deadline);
  if (is_over) co_return std::move(creation->result);
  is_stuck_ = true;
  const auto waited = std::chrono::round<std::chrono::seconds>(Clock::now() - began);
  co_return fail(Errc::kTimeout, "--output-filename",
                 options_.directory + ": its file system has given no answer within " + limit_text(waited));
}

Result<void> OutputWriter::create_files_of(std::size_t rank) {
  const std::string directory = options_.directory + "/rank." + std::to_string(rank);
  std::error_code ec;
  std::filesystem::create_directories(directory, ec);
  if (ec) return fail(Errc::kUsage, "--output-filename", directory + ": " + ec.message());
  for (std::size_t i = 0; i < files_per_rank(); ++i) {
    std::string path = directory + (i == 0 ? "/stdout" : "/stderr");
    Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (!fd) return fail(Error(Errc::kUsage, "--output-filename", errno_error(errno, path).cause));
    files_.push_back({std::move(fd), std::move(path)});
  }
  return {};
}

Result<void> OutputWriter::check_open(std::uint32_t rank, Stream stream) {
  if (stream != Stream::kStdout && stream != Stream::kStderr) return fail(Errc::kProtocol, "of no such stream");
  if (account(rank, stream).is_over) return fail(Errc::kProtocol, "after its end");
  return {};
}

Result<void> OutputWriter::push(control::Output output) {
  if (auto open = check_open(output.rank, output.stream); !open) return open;
  Account& mine = account(output.rank, output.stream);
  const std::size_t charge = control::output_charge(output.bytes.size());
  if (charge > credit_ - mine.held) return fail(Errc::kProtocol, "beyond its credit");
  mine.held += charge;
  items_.push_back(Item{Item::Kind::kBytes, std::move(output)});
  wake_.notify();
  return {};
}

Result<void> OutputWriter::end(int rank, Stream stream) {
  if (auto open = check_open(static_cast<std::uint32_t>(rank), stream); !open) return open;
  account(static_cast<std::uint32_t>(rank), stream).is_over = true;
  Item item;
  item.kind = Item::Kind::kEnd;
  item.output.rank = static_cast<std::uint32_t>(rank);
  item.output.stream = stream;
  items_.push_back(std::move(item));
  wake_.notify();
  return {};
}

void OutputWriter::push_own(const std::string& text) {
  Item item;
  item.kind = Item::Kind::kOwn;
  item.output.bytes = text;
  items_.push_back(std::move(item));
  wake_.notify();
}

void OutputWriter::forget_screen() {
  Item item;
  item.kind = Item::Kind::kForget;
  items_.push_back(std::move(item));
  wake_.notify();
}

void OutputWriter::limit_wait(std::chrono::milliseconds reader_timeout) {
  reader_timeout_.set(static_cast<int>(reader_timeout.count()));
}

OutputWriter::Batch OutputWriter::next_batch() {
  Batch batch;
  std::size_t charge = 0;
  while (!items_.empty() && charge < kBatch) {
    charge += control::output_charge(items_.front().output.bytes.size());
    batch.items.push_back(std::move(items_.front()));
    items_.pop_front();
  }
  return batch;
}

void OutputWriter::flush_to(OutputSink& sink, bool& is_broken, const std::string& bytes, const char* name,
                            Error& error) {
  if (is_broken) return;
  auto written = sink.write(bytes, reader_timeout_);
  if (written) return;
  is_broken = true;
  if (error.code == Errc::kNone) error = std::move(written.error()).with_subject(name);
}

void OutputWriter::flush(Error& error) {
  flush_to(out_, out_broken_, display_->out(), "stdout", error);
  flush_to(err_, err_broken_, display_->err(), "stderr", error);
  display_->clear();
}

void OutputWriter::write_file(const Item& item, Error& error) {
  const bool is_apart = item.output.stream == Stream::kStderr && !options_.merges_stderr;
  const File& file = files_[files_per_rank() * item.output.rank + (is_apart ? 1 : 0)];
  auto written = write_all(file.fd.get(), item.output.bytes, file.path);
  if (!written && error.code == Errc::kNone) error = std::move(written.error()).with_subject("--output-filename");
}

// Network file systems tell of a full disk or quota only here.
Error OutputWriter::close_files() {
  Error first;
  for (File& file : files_) {
    if (::close(file.fd.release()) != 0 && first.code == Errc::kNone) {
      first = errno_error(errno, file.path).with_subject("--output-filename");
    }
  }
  files_.clear();
  return first;
}

void OutputWriter::write_item(const Item& item, Error& error) {
  const auto rank = static_cast<int>(item.output.rank);
  const Stream stream = item.output.stream;
  if (item.kind == Item::Kind::kOwn) {
    display_->put_own(item.output.bytes);
    return;
  }
  if (item.kind == Item::Kind::kForget) {
    display_->forget_screen();
    return;
  }
  if (!files_.empty() && item.kind == Item::Kind::kBytes) write_file(item, error);
  if (!options_.shown.empty() && !options_.shown[static_cast<std::size_t>(rank)]) return;
  if (item.kind == Item::Kind::kEnd) {
    display_->end(rank, stream);
  } else {
    display_->put(rank, stream, item.output.time_ns, item.output.bytes);
  }
}

void OutputWriter::wait_for_others() {
  std::chrono::milliseconds waited{0};
  while (is_written_ && !is_written_(kOthersPoll)) {
    waited += kOthersPoll;
    const int limit = reader_timeout_.milliseconds();
    if (limit != ReaderTimeout::kForever && waited >= std::chrono::milliseconds(limit)) return;
  }
}

void OutputWriter::write_batch(Batch& batch) {
  wait_for_others();
  display_->resize(terminal_size(STDOUT_FILENO).value_or(TerminalSize()),
                   terminal_size(STDERR_FILENO).value_or(TerminalSize()));
  for (const Item& item : batch.items) {
    write_item(item, batch.error);
    if (display_->size() >= kDisplay) flush(batch.error);
  }
  if (batch.is_last) display_->show_all_unfinished();
  display_->draw(batch.draws);
  flush(batch.error);
}

void OutputWriter::give_credit_back(const Batch& batch) {
  std::map<std::pair<std::uint32_t, Stream>, std::size_t> taken;
  for (const Item& item : batch.items) {
    if (item.kind != Item::Kind::kBytes) continue;
    taken[{item.output.rank, item.output.stream}] += control::output_charge(item.output.bytes.size());
  }
  for (const auto& [source, charge] : taken) {
    account(source.first, source.second).held -= charge;
    written_(static_cast<int>(source.first), source.second, charge);
  }
}

// Waits for items, for stop(), or until it is time to draw progress bars.
Task<void> OutputWriter::wait_for_work() {
  const bool draws_later = display_ && display_->has_changed_bars();
  while (items_.empty() && !stopping_) {
    const Deadline until = draws_later ? draw_at_ : Deadline::max();
    const bool woken = co_await wake_.wait_until(until);
    if (!woken) break;
    wake_.reset();
  }
}

Task<void> OutputWriter::run() {
  co_await write_items();
  if (files_.empty()) co_return;
  auto close = [this] { return close_files(); };
  auto closed = co_await run_blocking(thread_, std::move(close));
  tell_broken(std::move(closed));
  if (!items_.empty()) co_await write_items();  // what drun said about that
}

Task<void> OutputWriter::write_items() {
  for (bool is_over = false; !is_over || !items_.empty();) {
    co_await wait_for_work();
    Batch batch = next_batch();
    is_over = stopping_ && items_.empty();
    batch.draws = is_over || Clock::now() >= draw_at_;
    if (batch.draws) draw_at_ = Clock::now() + kRedraw;
    batch.is_last = is_over;  // also for workers whose end never came because their host was lost
    auto job = [this, &batch] {
      write_batch(batch);
      return true;
    };
    co_await run_blocking(thread_, std::move(job));
    tell_broken(std::move(batch.error));
    give_credit_back(batch);
  }
}

void OutputWriter::tell_broken(Error error) {
  if (error.code != Errc::kNone && !std::exchange(is_told_, true)) broken_(std::move(error));
}

void OutputWriter::stop() {
  stopping_ = true;
  wake_.notify();
}

}  // namespace drun::launcher
