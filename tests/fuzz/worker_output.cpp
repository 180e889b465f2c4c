// The output of workers, cut into lines, and as a terminal would show it. The cuts of the stream change nothing.
#include <algorithm>

#include "base/text_width.h"
#include "launcher/output/line_assembler.h"
#include "launcher/output/output_display.h"
#include "launcher/output/terminal_lines.h"
#include "tests/fuzz/fuzz.h"

namespace drun::fuzz {
namespace {

using namespace launcher;

// Calls `push` for each piece; the first bytes of the input say how long the pieces are.
template <typename Push>
void in_pieces(std::string_view cuts, std::string_view stream, Push push) {
  for (std::size_t i = 0; !stream.empty(); ++i) {
    const std::size_t n =
        cuts.empty() ? stream.size() : static_cast<unsigned char>(cuts[i % cuts.size()]) + std::size_t{1};
    push(stream.substr(0, n));
    stream.remove_prefix(std::min(n, stream.size()));
  }
}

std::vector<std::string> lines_of(std::string_view cuts, std::string_view stream) {
  std::vector<std::string> out;
  LineAssembler lines;
  in_pieces(cuts, stream,
            [&](std::string_view piece) { lines.push(piece, [&](std::string_view line) { out.emplace_back(line); }); });
  out.push_back(lines.take_all());
  return out;
}

void show_on_terminal(std::string_view cuts, std::string_view stream) {
  TerminalLines rows;
  const auto sink = [](const TerminalLines::Line& line) {
    expect(line.text.find('\n') == std::string_view::npos, "a line has no line end");
  };
  in_pieces(cuts, stream, [&](std::string_view piece) {
    rows.push(piece, sink);
    expect(rows.bars().size() <= TerminalLines::kMaxRows, "the bars of a stream are few");
  });
  rows.give_unfinished(sink);
  rows.end(sink);
}

void run(std::string_view bytes) {
  Input in(bytes);
  const std::string_view cuts = in.text();
  const std::string_view stream = in.rest().substr(0, 1024);  // a longer one takes long
  const auto lines = lines_of({}, stream);
  expect(lines_of(cuts, stream) == lines, "cuts change no line");
  std::string joined;
  for (const auto& line : lines) joined += line;
  expect(joined == stream, "no byte is lost");
  show_on_terminal(cuts, stream);

  Screen screen;
  screen.is_one = true;
  screen.out = screen.err = Screen::Kind::kTerminal;
  screen.bars_out = screen.bars_err = OutputDisplay::kMaxBars;
  OutputDisplay display(OutputTags(TagStyle::kNone, false, std::vector<RankLabel>(2)), 2, screen);
  display.resize({20, 10}, {20, 10});
  int rank = 0;
  in_pieces(cuts, stream, [&](std::string_view piece) {
    display.put(rank, rank == 0 ? control::Stream::kStdout : control::Stream::kStderr, 1, piece);
    display.draw(true);
    display.clear();
    rank = 1 - rank;
  });
  display.put_own("drun: note: own words\n");
  for (const auto stream_of_rank : {control::Stream::kStdout, control::Stream::kStderr}) display.end(0, stream_of_rank);
  display.show_all_unfinished();

  const std::string row = cut_to_width(stream, 20);
  expect(text_width(row) <= 20, "a row has its width");
  (void)without_escapes(stream);
  (void)wrap_text(stream.substr(0, stream.find('\n')), 20);
}

std::vector<std::string> seeds() {
  return {
      Script().text("\x02\x05").raw("epoch 1\r\nloss 0.5\n\nno end"),
      Script().text("").raw("\r 10%|#    |\r 20%|##   |\r100%|#####|\ndone\n"),
      Script().text("\x01").raw("\x1b[31mred\x1b[0m\n\x1b[2A\x1b[2Kup\n\x1b[K\x1b]0;title\x07text\b\b\n"),
      Script().text("\x03\x01").raw("bar1\n\rbar2\x1b[A\rbar1 more\n\rbar2 more\n\xe2\x9c\x93 \xf0\x9f\x98\x80\n"),
      Script().text("\xff").raw(std::string(600, 'x') + "\n" + std::string(30, '\r')),
  };
}

const Target kTarget("worker_output", run, seeds);

}  // namespace
}  // namespace drun::fuzz
