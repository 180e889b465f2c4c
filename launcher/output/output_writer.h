// Where the workers' output ends: drun's stdout and stderr, and per-rank files. One writer, on a helper thread of its
// own, so that `drun ... | less` never stalls the control channels. What waits is bounded by the credits given to the
// agents: credit goes back only when bytes have been written.
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
  std::string directory;    // also DIR/rank.N/stdout and stderr; "" = no files
  std::vector<bool> shown;  // by rank, whether it is shown; empty = all are. Files get every rank
};

class OutputWriter {
 public:
  using Stream = control::Stream;
  using OnWritten = std::function<void(int rank, Stream stream, std::size_t credit)>;  // control::output_charge
  using OnBroken = std::function<void(Error)>;

  OutputWriter(asio::io_context& io, OutputOptions options, OnWritten written, OnBroken broken);
  // Says who the ranks are, and creates their files. Before anything else.
  Result<void> open(const std::vector<RankLabel>& ranks);
  std::size_t tag_width() const { return display_->tag_width(); }  // after open()
  void push(control::Output output);
  void end(int rank, Stream stream);       // shows what is left of an unfinished line
  void push_own(const std::string& text);  // drun's own words, to stderr
  // Somebody else has written to the terminal, as a shell does while drun is stopped.
  void forget_screen();
  // After run(): what drun says next on stderr has to begin with a newline.
  bool left_a_line_open() const { return display_ != nullptr && display_->own_words_break_a_line(); }
  // The user wants the end: a reader that takes nothing for so long loses what is left, and stop() need not wait for
  // it.
  void limit_patience(std::chrono::milliseconds patience = std::chrono::seconds(2));
  Task<void> run();  // until stop(); writes everything first
  void stop();

 private:
  struct Item {
    enum class Kind { kBytes, kEnd, kOwn, kForget };
    Kind kind = Kind::kBytes;
    control::Output output;
  };
  // What the writer takes at once: the items, and afterwards how it went. Touched by one thread at a time.
  struct Batch {
    std::vector<Item> items;
    bool is_last = false;  // nothing comes after it: unfinished lines are shown, too
    bool draws = true;     // progress bars that have changed
    Error error;
  };
  Batch next_batch();
  Task<void> wait_for_work();
  // On the writer's thread.
  void write_batch(Batch& batch);
  void write_item(const Item& item, Error& error);
  void flush(Error& error);
  void flush_to(OutputSink& sink, bool& is_broken, const std::string& bytes, const char* name, Error& error);
  void give_credit_back(const Batch& batch);

  asio::thread_pool thread_{1};
  OutputOptions options_;
  OnWritten written_;
  OnBroken broken_;
  std::deque<Item> items_;
  Event wake_;
  Deadline draw_at_{};  // progress bars that change are not drawn before
  bool stopping_ = false;
  bool is_told_ = false;  // that something broke

  // While a batch is being written: the writer's thread's.
  std::unique_ptr<OutputDisplay> display_;
  OutputSink out_, err_;
  bool out_broken_ = false, err_broken_ = false;
  std::vector<Fd> files_;  // two per rank, stdout and stderr; empty without a directory
  Patience patience_;
};

}  // namespace drun::launcher
