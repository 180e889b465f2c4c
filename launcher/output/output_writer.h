// Writes the workers' output to drun's stdout and stderr, and to per-rank files. One writer, on a helper thread of its
// own, so that `drun ... | less` never stalls the control channels. The credits of the agents bound the amount of
// waiting output: credit is returned only after the bytes have been written.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/asio.h"
#include "base/fd.h"
#include "control/messages.h"
#include "launcher/output/output_display.h"
#include "launcher/output/output_sink.h"

namespace drun::launcher {

struct OutputOptions {
  TagStyle tag = TagStyle::kNone;
  bool timestamp = false;
  bool merges_stderr = false;  // into stdout, on the screen and in files
  std::string directory;       // also DIR/rank.N/stdout and stderr; "" = no files
  std::vector<bool> shown;     // by rank, true if it is shown; empty = all are. Files get every rank
};

class OutputWriter {
 public:
  using Stream = control::Stream;
  using OnWritten = std::function<void(int rank, Stream stream, std::size_t credit)>;  // control::output_charge
  using OnBroken = std::function<void(Error)>;

  OutputWriter(asio::io_context& io, OutputOptions options, OnWritten written, OnBroken broken);
  static constexpr std::size_t kNoLimit = SIZE_MAX;

  // Sets the labels of the ranks. Must be called first. `credit`: what the agent of a rank has for each of its streams
  // at the start.
  void open(const std::vector<RankLabel>& ranks, std::size_t credit = kNoLimit);
  // The folder of the ranks' files; "" = no files.
  const std::string& directory() const { return options_.directory; }
  // Creates the files of the ranks, on the writer's thread: their file system may be slow. Errc::kTimeout if that is
  // not done by the deadline. After open(), before run(); only with a directory.
  Task<Result<void>> create_files(Deadline deadline);
  // After create_files(): the writer's thread is still in it, and the destructor would wait for it.
  bool is_stuck() const { return is_stuck_; }
  std::size_t tag_width() const { return display_->tag_width(); }  // after open()
  // An error if no agent may send this: more than its credit, another stream, output after the end. Then nothing is
  // taken.
  Result<void> push(control::Output output);
  Result<void> end(int rank, Stream stream);  // shows what is left of an unfinished line
  void push_own(const std::string& text);     // drun's own text, to stderr
  // Other texts for stderr come first: `is_written` waits for them, at most for a time, on the writer's thread. Must be
  // set before run().
  using IsWritten = std::function<bool(std::chrono::milliseconds limit)>;
  void write_after(IsWritten is_written) { is_written_ = std::move(is_written); }
  // Another program has written to the terminal, for example a shell while drun was stopped.
  void forget_screen();
  // After run(): true if drun's next text on stderr has to begin with a newline.
  bool left_a_line_open() const { return display_ != nullptr && display_->own_words_break_a_line(); }
  // The user wants drun to end: if a reader accepts nothing for this long, the rest of the output is dropped, so that
  // stop() need not wait for the reader.
  void limit_wait(std::chrono::milliseconds reader_timeout = std::chrono::seconds(2));
  Task<void> run();  // until stop(); writes everything first, and closes the files
  void stop();

 private:
  struct Item {
    enum class Kind { kBytes, kEnd, kOwn, kForget };
    Kind kind = Kind::kBytes;
    control::Output output;
  };
  // A batch of the writer: its items, and afterwards its error. Used by one thread at a time.
  struct Batch {
    std::vector<Item> items;
    bool is_last = false;  // nothing follows: also show unfinished lines
    bool draws = true;     // show progress bars that have changed
    Error error;
  };
  // The output of one stream of a rank.
  struct Account {
    std::size_t held = 0;  // credit in use: bytes that have arrived and are not written
    bool is_over = false;
  };
  Account& account(std::uint32_t rank, Stream stream) {
    return accounts_[2 * std::size_t{rank} + (stream == Stream::kStderr ? 1 : 0)];
  }
  Result<void> check_open(std::uint32_t rank, Stream stream);
  Batch next_batch();
  Task<void> write_items();  // until stop()
  Task<void> wait_for_work();
  // On the writer's thread.
  Result<void> create_files_of(std::size_t rank);
  void wait_for_others();
  void write_batch(Batch& batch);
  void write_item(const Item& item, Error& error);
  void write_file(const Item& item, Error& error);
  Error close_files();
  std::size_t files_per_rank() const { return options_.merges_stderr ? 1 : 2; }
  void flush(Error& error);
  void flush_to(OutputSink& sink, bool& is_broken, const std::string& bytes, const char* name, Error& error);
  void tell_broken(Error error);
  void give_credit_back(const Batch& batch);

  asio::thread_pool thread_{1};
  OutputOptions options_;
  OnWritten written_;
  OnBroken broken_;
  IsWritten is_written_;
  std::size_t credit_ = kNoLimit;
  std::vector<Account> accounts_;  // two per rank
  std::deque<Item> items_;
  Event wake_;
  Deadline draw_at_{};  // earliest time for drawing changed progress bars
  bool stopping_ = false;
  bool is_told_ = false;  // an error was already reported
  bool is_stuck_ = false;

  // Belongs to the writer's thread while a batch is being written.
  std::unique_ptr<OutputDisplay> display_;
  OutputSink out_, err_;
  bool out_broken_ = false, err_broken_ = false;
  struct File {
    Fd fd;
    std::string path;
  };
  std::vector<File> files_;  // of each rank stdout, and stderr if it is apart; empty without a directory
  ReaderTimeout reader_timeout_;
};

}  // namespace drun::launcher
