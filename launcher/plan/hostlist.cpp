#include "launcher/plan/hostlist.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <tuple>

#include "base/error_id.h"
#include "base/text.h"
#include "launcher/plan/host_item.h"

namespace drun::launcher {
namespace {

constexpr std::size_t kShownItem = 60;  // characters of an item that an error repeats

struct Item {
  std::string_view text;
  std::size_t offset = 0;  // in the list
};

// True if the text at `next` is another GPU of this item: "b:gpus=0,2".
bool goes_on(std::string_view item, std::string_view next) {
  return item.find(kGpusKey) != std::string_view::npos && is_gpu(trim(next.substr(0, next.find(','))));
}

// Splits at commas, except inside brackets and inside a list of GPUs. An unclosed bracket takes the rest of the text;
// parsing that item then reports the error.
std::vector<Item> split_items(std::string_view text) {
  std::vector<Item> out;
  std::size_t start = 0;
  bool in_brackets = false;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '[') in_brackets = true;
    if (i < text.size() && text[i] == ']') in_brackets = false;
    if (i < text.size() && (text[i] != ',' || in_brackets)) continue;
    if (i < text.size() && goes_on(text.substr(start, i - start), text.substr(i + 1))) continue;
    const std::string_view raw = text.substr(start, i - start);
    const std::string_view item = trim(raw);
    out.push_back({item, start + (item.empty() ? 0 : static_cast<std::size_t>(item.data() - raw.data()))});
    start = i + 1;
  }
  return out;
}

Error list_error(std::size_t number, std::string_view item, std::size_t offset, const TextFault& fault) {
  std::string where = "item " + std::to_string(number);
  const bool shown =
      item.size() <= kShownItem && std::all_of(item.begin(), item.end(), [](char c) { return c >= 32 && c < 127; });
  if (shown && !item.empty()) where += " '" + std::string(item) + "'";
  return Error(Errc::kUsage, "-H", where + ", column " + std::to_string(offset + fault.offset + 1) + ": " + fault.cause)
      .with_hint(fault.hint)
      .with_id(error_id::kHostList);
}

}  // namespace

std::vector<std::string> split_hostlist(std::string_view text) {
  std::vector<std::string> out;
  for (const auto& item : split_items(text)) out.emplace_back(item.text);
  return out;
}

Result<std::vector<Host>> parse_hostlist(std::string_view text) {
  if (trim(text).empty()) {
    return fail(Error(Errc::kUsage, "-H", "the list is empty")
                    .with_hint("-H localhost:2,host1:2")
                    .with_id(error_id::kHostList));
  }
  const auto items = split_items(text);
  std::vector<Host> out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto& [item, offset] = items[i];
    if (item.empty()) {
      const char* cause = i + 1 == items.size() ? "nothing behind the last ','" : "nothing between two ','";
      if (i == 0) cause = "nothing in front of the first ','";
      return fail(list_error(i + 1, item, offset, {0, cause, "one ',' between two hosts: a:2,b:2"}));
    }
    auto hosts = host_item(item, "-H, item " + std::to_string(i + 1));
    if (!hosts) return fail(list_error(i + 1, item, offset, hosts.error()));
    if (out.size() + hosts->size() > kMaxHosts) {
      return fail(list_error(i + 1, item, offset, {0, "more than " + std::to_string(kMaxHosts) + " hosts in all", ""}));
    }
    out.insert(out.end(), std::make_move_iterator(hosts->begin()), std::make_move_iterator(hosts->end()));
  }
  return out;
}

Result<std::vector<Host>> parse_host_item(std::string_view item, const std::string& where) {
  auto hosts = host_item(item, where);
  if (hosts) return std::move(*hosts);
  const TextFault& fault = hosts.error();
  return fail(Error(Errc::kUsage, where,
                    "column " + std::to_string(fault.offset + 1) + " of '" + std::string(item) + "': " + fault.cause)
                  .with_hint(fault.hint)
                  .with_id(error_id::kHostList));
}

std::vector<Host> add_slots(std::vector<Host> hosts) {
  std::vector<Host> out;
  std::map<std::tuple<std::string, std::string, int>, std::size_t> places;
  for (auto& host : hosts) {
    const auto [place, is_new] = places.try_emplace({host.name, host.user, host.port}, out.size());
    if (is_new) {
      out.push_back(std::move(host));
      continue;
    }
    Host& first = out[place->second];
    const std::int64_t sum = std::int64_t{first.slots} + host.slots;
    first.slots = static_cast<int>(std::min<std::int64_t>(sum, std::numeric_limits<int>::max()));
    first.slots_given = first.slots_given || host.slots_given;
    first.max_slots = std::max(first.max_slots, host.max_slots);
    first.gpus.insert(first.gpus.end(), host.gpus.begin(), host.gpus.end());
  }
  return out;
}

std::string to_item(const Host& host) {
  const std::string user = host.user.empty() ? "" : host.user + "@";
  return user + (host.name.find(':') == std::string::npos ? host.name : "[" + host.name + "]");
}

std::string to_item(const Host& host, std::int64_t slots) { return to_item(host) + ":" + std::to_string(slots); }

bool looks_like_host_item(std::string_view word) {
  const auto hosts = host_item(word, "");
  return hosts && hosts->front().slots_given;
}

}  // namespace drun::launcher
