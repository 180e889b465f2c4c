// Where the workers' output ends: drun's stdout and stderr, and per-rank files. One writer, on a helper thread of its
// own, so that `drun ... | less` never stalls the control channels. What waits is bounded by the credits given to the
// agents: credit goes back only when bytes have been written.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/asio.h"
#include "base/fd.h"
#include "launcher/control/messages.h"
#include "launcher/line_assembler.h"

namespace drun::launcher {

struct OutputOptions {
  bool tag = false;        // start each line with [rank]
  bool timestamp = false;  // and the time of day
  std::string directory;   // also DIR/rank.N/stdout and stderr; "" = no files
};

class OutputWriter {
 public:
  using Stream = control::Stream;
  using OnWritten = std::function<void(int rank, Stream stream, std::size_t n_bytes)>;
  using OnBroken = std::function<void(Error)>;

  OutputWriter(asio::io_context& io, OutputOptions options, OnWritten written, OnBroken broken);
  // Creates the per-rank files. Before the workers start.
  Result<void> open_files(int n_ranks);
  void push(int rank, Stream stream, std::string_view bytes);
  void push_own(const std::string& text);  // drun's own words, to stderr
  void end(int rank, Stream stream);  // shows what is left of an unfinished line
  Task<void> run();                   // until stop(); writes everything first
  void stop();

 private:
  struct Source {
    LineAssembler lines;
    Deadline oldest{};  // when the rest of an unfinished line began to wait
    int file = -1;
  };
  struct Note {
    int rank;
    Stream stream;
    std::size_t n_bytes;
  };
  // Everything that waits, taken at once by the writer.
  struct Batch {
    std::string out, err;
    std::map<int, std::string> files;  // by descriptor
    std::vector<Note> notes;
  };
  static int owner(int rank, Stream stream) { return 2 * rank + (stream == Stream::kStderr ? 1 : 0); }
  TaggedOutput& target(Stream stream) { return stream == Stream::kStderr ? err_ : out_; }
  std::string tag(int rank) const;
  void show_unfinished(bool all);
  bool anything_pending() const;
  Task<void> flush_timer();
  static Error write_batch(Batch& batch);

  asio::io_context& io_;
  asio::thread_pool writer_{1};
  OutputOptions options_;
  OnWritten written_;
  OnBroken broken_;
  std::map<int, Source> sources_;  // by owner()
  std::vector<Fd> files_;
  TaggedOutput out_, err_;
  std::map<int, std::string> file_bytes_;
  std::vector<Note> notes_;
  Event wake_, timer_wake_;
  TaskGroup tasks_;
  bool stopping_ = false;
  bool is_broken_ = false;
};

}  // namespace drun::launcher
