#include "launcher/plan/rank_list.h"

#include "base/text.h"

namespace drun::launcher {

Result<std::vector<bool>> parse_rank_list(const std::string& text, int n_ranks, const std::string& option) {
  const auto size = static_cast<std::size_t>(n_ranks);
  const auto bad = [&](const std::string& cause) {
    const std::string all = size == 1 ? "0" : "0-" + std::to_string(size - 1);
    return fail(Error(Errc::kUsage, option, cause).with_hint(option + " " + all));
  };
  std::vector<bool> out(size, false);
  for (const auto part : split(text, ',')) {
    const auto item = trim(part);
    const auto dash = item.find('-');
    const auto first = parse_number(item.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_number(item.substr(dash + 1));
    if (!first || !last) return bad("'" + std::string(item) + "' is neither a rank nor a range of ranks");
    if (*first > *last) return bad("'" + std::string(item) + "' runs backwards");
    if (*last >= size) {
      return bad("there is no rank " + std::to_string(*first >= size ? *first : size) + " among " +
                 plural(size, "worker"));
    }
    for (std::size_t rank = *first; rank <= *last; ++rank) out[rank] = true;
  }
  return out;
}

std::string ranks_text(const std::vector<int>& ranks) { return ranges_text(ranks); }

}  // namespace drun::launcher
