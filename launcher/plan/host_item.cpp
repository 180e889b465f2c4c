#include "launcher/plan/host_item.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/text.h"

namespace drun::launcher {
namespace {

constexpr std::size_t kMaxName = 255;   // characters of a DNS name
constexpr std::size_t kMaxShown = 500;  // characters of an item, in a hint
constexpr const char* kOwnGpuHint = "a GPU for each worker; workers that share one are slots without 'gpus='";

tl::unexpected<TextFault> fault(std::size_t offset, std::string cause, std::string hint = {}) {
  return tl::unexpected<TextFault>(TextFault{offset, std::move(cause), std::move(hint)});
}
tl::unexpected<TextFault> given_twice(std::size_t offset, const std::string& gpu) {
  return fault(offset, "GPU " + gpu + " is given twice", kOwnGpuHint);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_'; }
bool is_name_char(char c) { return is_word(c) || c == '.' || c == '-'; }

std::string in_quotes(std::string_view s) { return "'" + std::string(s) + "'"; }

std::string shown(char c) {
  if (c == '\t') return "a tab";
  if (c == '\n' || c == '\r') return "a line break";
  if (c > ' ' && c < 0x7f) return "the character " + in_quotes(std::string_view(&c, 1));
  return "the byte 0x" + hex(std::string_view(&c, 1));
}

bool is_ipv4(std::string_view s) {
  in_addr address{};
  return inet_pton(AF_INET, std::string(s).c_str(), &address) == 1;
}

// An address without a zone.
bool is_ipv6(std::string_view s) {
  in6_addr address{};
  return s.size() < INET6_ADDRSTRLEN && inet_pton(AF_INET6, std::string(s).c_str(), &address) == 1;
}

// An address with or without a zone: "fe80::1%eth0".
bool is_ipv6_with_zone(std::string_view s) {
  const auto percent = s.find('%');
  if (percent == std::string_view::npos) return is_ipv6(s);
  const std::string_view zone = s.substr(percent + 1);
  return !zone.empty() && std::all_of(zone.begin(), zone.end(), is_name_char) && is_ipv6(s.substr(0, percent));
}

// "fd00::2:4" may be an address, or fd00::2 with 4 slots.
bool is_ambiguous_ipv6(std::string_view s) {
  const auto colon = s.rfind(':');
  return parse_number(s.substr(colon + 1)).has_value() && is_ipv6(s.substr(0, colon));
}

bool is_name(std::string_view s) {
  return !s.empty() && is_word(s.front()) && std::all_of(s.begin(), s.end(), is_name_char);
}

// Checks a name, an alias or an IPv4 address, with brackets already expanded.
FaultOr<void> check_name(std::string_view name, std::size_t offset) {
  if (name.empty()) return fault(offset, "the host name is missing");
  if (name.front() == '-' || name.front() == '.') {
    return fault(offset, "a host name can't begin with " + in_quotes(name.substr(0, 1)));
  }
  if (name.size() > kMaxName) {
    return fault(offset, "a host name of " + std::to_string(name.size()) + " characters (at most 255)");
  }
  const bool numeric = std::all_of(name.begin(), name.end(), [](char c) { return is_digit(c) || c == '.'; });
  if (numeric && std::count(name.begin(), name.end(), '.') == 3 && !is_ipv4(name)) {
    return fault(offset, in_quotes(name) + " is not an IPv4 address");
  }
  return {};
}

// Replaces the blanks between the words by commas.
std::string with_commas(std::string_view words) {
  std::string out;
  for (const char c : words) {
    const bool blank = c == ' ' || c == '\t' || c == '\n';
    if (!blank) {
      out += c;
    } else if (!out.empty() && out.back() != ',') {
      out += ',';
    }
  }
  return out;
}

// Rejects characters that are not allowed anywhere in an item, with a hint at what was probably meant.
FaultOr<void> check_characters(std::string_view item) {
  bool in_brackets = false;
  const std::size_t host = item.rfind('@') + 1;  // 0 if there is no '@'
  const auto is_slots = [&](std::size_t i) {
    const std::size_t colon = item.rfind(':', i);
    if (colon == std::string_view::npos || colon < host) return false;
    return colon == item.find(':', host) || item[colon - 1] == ']';
  };
  for (std::size_t i = 0; i < item.size(); ++i) {
    const char c = item[i];
    if (c == '[') in_brackets = true;
    if (c == ']') in_brackets = false;
    if (is_name_char(c) || std::string_view("[]:@").find(c) != std::string_view::npos) continue;
    if (in_brackets && (c == ',' || c == '%')) continue;
    if (c == '%' && is_ipv6_with_zone(item.substr(host))) continue;
    if ((c == '+' || c == '\\') && item.find('@', i) != std::string_view::npos) continue;
    if (c == ' ' || c == '\t' || c == '\n') {
      std::string hint;
      if (!in_brackets) {
        hint = "commas between hosts, no spaces: " + with_commas(item.substr(0, kMaxShown));
        if (item.find("slots=") != std::string_view::npos) hint = std::string(item.substr(0, i)) + ":2";
      }
      return fault(i, c == ' ' ? "a space inside of the item" : shown(c) + " inside of the item", hint);
    }
    if (c == ';') return fault(i, "';' between hosts", "commas between hosts: a:2,b:2");
    if (c == ',') return fault(i, "',' between hosts", "a line for each host");
    if (item.substr(i, 2) == "//") return fault(i, "'/' in a host name", "the host's name alone, the ssh port by -p");
    if (is_slots(i)) return fault(i, shown(c) + " in a slot count", "a number from 1 to 1024");
    if (c == '=') return fault(i, "'=' in a host name", "host:2 for two slots");
    if (c == '/') return fault(i, "'/' in a host name", "the host's name alone, the ssh port by -p");
    return fault(i, shown(c) + " in a host name");
  }
  return {};
}

// The error for a text after the host that is not `:slots`: says which of the usual mistakes it is.
tl::unexpected<TextFault> too_many_colons(std::string_view text, std::size_t offset) {
  const auto parts = split(text, ':');
  if (text.find("::") != std::string_view::npos || parts.size() > 3) {
    return fault(offset, in_quotes(text) + " is neither HOST:SLOTS nor an IPv6 address",
                 "an IPv6 address in brackets: [fd00::2]:2");
  }
  const std::string name(parts[0]);
  if (is_name(parts[1]) && !parse_number(parts[1])) {
    return fault(offset + parts[0].size(), "two hosts with a ':' between them",
                 name + "," + std::string(parts[1]) + ":" + std::string(parts[2]));
  }
  return fault(offset + parts[0].size() + 1 + parts[1].size(), "a second ':' (the slots come once)",
               name + ":" + std::string(parts[1]) + ", and the ssh port by -p");
}

struct Pieces {
  std::vector<std::string> names;
  std::string_view slots;  // after the ':'
  bool slots_given = false;
  std::size_t slots_offset = 0;
};

// `[v6]` or `[v6]:n`.
FaultOr<Pieces> bracketed_ipv6(std::string_view text, std::size_t offset) {
  const auto close = text.find(']');
  const std::string_view address = text.substr(1, close - 1);
  if (!is_ipv6_with_zone(address)) return fault(offset + 1, in_quotes(address) + " is not an IPv6 address");
  Pieces out;
  out.names.emplace_back(address);
  const std::string_view rest = text.substr(close + 1);
  if (rest.empty()) return out;
  if (rest[0] != ':') {
    return fault(offset + close + 1, "only ':' and a slot count may follow the ']'",
                 "[" + std::string(address) + "]:2");
  }
  out.slots = rest.substr(1);
  out.slots_given = true;
  out.slots_offset = offset + close + 2;
  return out;
}

// `text` is the item without its user.
FaultOr<Pieces> split_host(std::string_view text, std::size_t offset) {
  const auto close = text.find(']');
  const auto first_colon = text.find(':');
  if (!text.empty() && text[0] == '[' && close != std::string_view::npos && first_colon < close) {
    return bracketed_ipv6(text, offset);
  }
  Pieces out;
  if (std::count(text.begin(), text.end(), ':') > 1) {
    if (text[0] == '[' && close == std::string_view::npos) {
      return fault(offset, "the '[' is never closed", "[fd00::2]:2");
    }
    if (!is_ipv6_with_zone(text)) {
      const auto colon = text.rfind(':');
      if (is_ipv6(text.substr(0, colon))) {
        return fault(offset, "an IPv6 address with slots needs brackets",
                     "[" + std::string(text.substr(0, colon)) + "]" + std::string(text.substr(colon)));
      }
      return too_many_colons(text, offset);
    }
    if (is_ambiguous_ipv6(text)) {
      const auto colon = text.rfind(':');
      return fault(offset, in_quotes(text) + " may be an address, or an address and its slots",
                   "[" + std::string(text.substr(0, colon)) + "]" + std::string(text.substr(colon)) + " or [" +
                       std::string(text) + "]");
    }
    out.names.emplace_back(text);
    return out;
  }
  auto names = expand_ranges(text.substr(0, first_colon));
  if (!names) {
    names.error().offset += offset;
    return tl::unexpected<TextFault>(names.error());
  }
  out.names = std::move(*names);
  for (const auto& name : out.names) {
    const auto good = check_name(name, offset);
    if (!good) return tl::unexpected<TextFault>(good.error());
  }
  if (first_colon != std::string_view::npos) {
    out.slots = text.substr(first_colon + 1);
    out.slots_given = true;
    out.slots_offset = offset + first_colon + 1;
  }
  return out;
}

}  // namespace

FaultOr<int> slot_count(std::string_view digits, std::size_t offset) {
  const auto number = parse_number(digits);
  if (digits.empty()) return fault(offset, "the slot count is missing", "a number from 1 to 1024, or nothing for 1");
  if (!number && std::all_of(digits.begin(), digits.end(), is_digit)) {
    return fault(offset, "more slots than a number can hold", "a number from 1 to 1024");
  }
  if (!number && digits[0] == '-' && parse_number(digits.substr(1))) {
    return fault(offset, "a negative number of slots", "a number from 1 to 1024");
  }
  if (!number) {
    return fault(offset, in_quotes(digits) + " is not a slot count",
                 is_name(digits) ? "a number from 1 to 1024; commas between hosts" : "a number from 1 to 1024");
  }
  if (*number == 0) return fault(offset, "zero slots", "at least 1, or leave the host out");
  if (*number > static_cast<std::uint64_t>(kMaxSlots)) {
    return fault(offset, std::to_string(*number) + " slots on one host (at most 1024)",
                 *number <= 65535 ? "if it is the ssh port: -p " + std::to_string(*number) : "a number from 1 to 1024");
  }
  return static_cast<int>(*number);
}

bool is_gpu(std::string_view word) {
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_digit)) return true;
  if (!starts_with(word, "GPU-") && !starts_with(word, "MIG-")) return false;
  return std::all_of(word.begin(), word.end(), [](char c) { return is_word(c) || c == '-' || c == '/'; });
}

FaultOr<std::vector<std::string>> gpu_list(std::string_view text, std::size_t offset) {
  constexpr const char* kHint = "their numbers, or what nvidia-smi -L calls them: gpus=0,2";
  if (text.empty()) return fault(offset, "no GPU behind 'gpus='", kHint);
  std::vector<std::string> out;
  for (const std::string_view word : split(text, ',')) {
    if (!is_gpu(word)) return fault(offset, in_quotes(word) + " is not a GPU", kHint);
    if (std::find(out.begin(), out.end(), word) != out.end()) {
      return given_twice(offset, std::string(word));
    }
    out.emplace_back(word);
    offset += word.size() + 1;
  }
  return out;
}

FaultOr<void> check_gpus(int slots, const std::vector<std::string>& gpus, std::size_t offset) {
  const auto n_slots = static_cast<std::size_t>(slots);
  if (!gpus.empty() && n_slots > gpus.size()) {
    return fault(offset, plural(n_slots, "slot") + " for " + plural(gpus.size(), "GPU"), kOwnGpuHint);
  }
  for (auto gpu = gpus.begin(); gpu != gpus.end(); ++gpu) {
    if (std::find(gpus.begin(), gpu, *gpu) != gpu) return given_twice(offset, *gpu);
  }
  return {};
}

FaultOr<void> check_user(std::string_view user, std::size_t offset) {
  if (user.empty()) return fault(offset, "the user name is missing");
  if (user.front() == '-') return fault(offset, "a user name can't begin with '-'");
  for (std::size_t i = 0; i < user.size(); ++i) {
    const char c = user[i];
    if (is_name_char(c) || c == '+' || c == '@' || (c == '\\' && i + 1 < user.size())) continue;
    if (c == ':') return fault(offset + i, "a password can't be given here: drun logs in by key");
    return fault(offset + i, shown(c) + " in a user name");
  }
  return {};
}

FaultOr<std::vector<Host>> host_item(std::string_view item, const std::string& where) {
  if (item.empty()) return fault(0, "no host");
  std::vector<std::string> gpus;
  if (const auto place = item.find(kGpusKey); place != std::string_view::npos) {
    const std::size_t begin = place + kGpusKey.size();
    auto list = gpu_list(item.substr(begin), begin);
    if (!list) return tl::unexpected<TextFault>(list.error());
    gpus = std::move(*list);
    item = item.substr(0, place);
  }
  const auto at = item.rfind('@');
  const std::size_t offset = at == std::string_view::npos ? 0 : at + 1;
  const auto characters = check_characters(item);
  if (!characters) return tl::unexpected<TextFault>(characters.error());
  const std::string_view user = item.substr(0, at == std::string_view::npos ? 0 : at);
  if (at != std::string_view::npos) {
    const auto good = check_user(user, 0);
    if (!good) return tl::unexpected<TextFault>(good.error());
  }
  auto pieces = split_host(item.substr(offset), offset);
  if (!pieces) return tl::unexpected<TextFault>(pieces.error());
  int slots = 1;
  if (pieces->slots_given) {
    const auto count = slot_count(pieces->slots, pieces->slots_offset);
    if (!count) return tl::unexpected<TextFault>(count.error());
    slots = *count;
  } else if (!gpus.empty()) {
    slots = static_cast<int>(gpus.size());
  }
  if (auto enough = check_gpus(slots, gpus, pieces->slots_offset); !enough) {
    return tl::unexpected<TextFault>(enough.error());
  }
  std::vector<Host> out;
  out.reserve(pieces->names.size());
  for (auto& name : pieces->names) {
    Host host;
    host.name = std::move(name);
    host.user = user;
    host.slots = slots;
    host.slots_given = pieces->slots_given || !gpus.empty();
    host.gpus = gpus;
    host.where = where;
    out.push_back(std::move(host));
  }
  return out;
}

}  // namespace drun::launcher
