#include "launcher/plan/hostfile.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>

#include "base/error_id.h"
#include "base/fd.h"
#include "base/text.h"
#include "launcher/plan/host_item.h"

namespace drun::launcher {
namespace {

constexpr std::size_t kMaxFile = 16u << 20;
constexpr std::string_view kBlanks = " \t\r";

enum class Key { kSlots, kMaxSlots, kPort, kUser, kGpus };

struct KeyName {
  const char* name;
  Key key;
};

// Includes the spellings that Open MPI has used over the years.
constexpr KeyName kKeys[] = {
    {"slots", Key::kSlots},        {"cpu", Key::kSlots},          {"count", Key::kSlots},
    {"max_slots", Key::kMaxSlots}, {"max-slots", Key::kMaxSlots}, {"slots-max", Key::kMaxSlots},
    {"slots_max", Key::kMaxSlots}, {"cpu-max", Key::kMaxSlots},   {"cpu_max", Key::kMaxSlots},
    {"count-max", Key::kMaxSlots}, {"count_max", Key::kMaxSlots}, {"port", Key::kPort},
    {"user", Key::kUser},          {"username", Key::kUser},      {"user-name", Key::kUser},
    {"user_name", Key::kUser},     {"gpus", Key::kGpus},
};

tl::unexpected<TextFault> fault(std::size_t offset, std::string cause, std::string hint = {}) {
  return tl::unexpected<TextFault>(TextFault{offset, std::move(cause), std::move(hint)});
}

std::string in_quotes(std::string_view s) { return "'" + std::string(s) + "'"; }

FaultOr<Key> find_key(std::string_view word, std::size_t offset) {
  std::vector<std::string> names;
  for (const auto& k : kKeys) {
    if (lower(word) == k.name) return k.key;
    names.emplace_back(k.name);
  }
  if (lower(word) == "binding")
    return fault(offset, "drun binds on every host alike", "--bind-to core, without binding=");
  const auto meant = nearest(lower(word), names);
  return fault(offset, "unknown key " + in_quotes(word),
               meant ? *meant + "=, if that was meant" : "slots=, max_slots=, port=, user= or gpus=");
}

struct Field {
  std::string_view key, value;
  std::size_t key_offset = 0, value_offset = 0;
};

// Parses `key=value`; blanks around the '=' are allowed. Moves `at` past it.
FaultOr<Field> next_field(std::string_view line, std::size_t& at, std::string_view host) {
  Field f;
  f.key_offset = at;
  std::size_t end = std::min(line.find_first_of(" \t\r=", at), line.size());
  f.key = line.substr(at, end - at);
  const std::size_t equals = line.find_first_not_of(kBlanks, end);
  if (f.key.empty()) return fault(at, "'=' without a key in front of it", "slots=2");
  if (equals == std::string_view::npos || line[equals] != '=') {
    return fault(at, in_quotes(f.key) + " is neither KEY=VALUE nor a comment",
                 parse_number(f.key) ? std::string(host) + " slots=" + std::string(f.key) : "a line for each host");
  }
  f.value_offset = std::min(line.find_first_not_of(kBlanks, equals + 1), line.size());
  at = std::min(line.find_first_of(kBlanks, f.value_offset), line.size());
  f.value = line.substr(f.value_offset, at - f.value_offset);
  if (f.value.empty()) return fault(equals, in_quotes(f.key) + " has no value", std::string(f.key) + "=2");
  return f;
}

// The keys of one line; unset where a key is missing.
struct LineKeys {
  std::optional<int> slots, max_slots, port;
  std::optional<std::string> user;
  std::vector<std::string> gpus;
};

FaultOr<void> apply(const Field& f, LineKeys& keys) {
  const auto key = find_key(f.key, f.key_offset);
  if (!key) return tl::unexpected<TextFault>(key.error());
  const auto twice = [&] { return fault(f.key_offset, in_quotes(f.key) + " is given twice on this line"); };
  if (*key == Key::kUser) {
    if (keys.user) return twice();
    const auto good = check_user(f.value, f.value_offset);
    if (!good) return tl::unexpected<TextFault>(good.error());
    keys.user = f.value;
    return {};
  }
  if (*key == Key::kPort) {
    if (keys.port) return twice();
    const auto port = parse_number(f.value);
    if (!port || *port == 0 || *port > 65535) {
      return fault(f.value_offset, in_quotes(f.value) + " is not a port", "a number from 1 to 65535");
    }
    keys.port = static_cast<int>(*port);
    return {};
  }
  if (*key == Key::kGpus) {
    if (!keys.gpus.empty()) return twice();
    auto gpus = gpu_list(f.value, f.value_offset);
    if (!gpus) return tl::unexpected<TextFault>(gpus.error());
    keys.gpus = std::move(*gpus);
    return {};
  }
  std::optional<int>& target = *key == Key::kSlots ? keys.slots : keys.max_slots;
  if (target) return twice();
  const auto count = slot_count(f.value, f.value_offset);
  if (!count) return tl::unexpected<TextFault>(count.error());
  target = *count;
  return {};
}

// Without the comments: from '#' or "//" on, and Open MPI's "/* ... */" within a line, which becomes blanks.
std::string without_comments(std::string_view line) {
  std::string out(line);
  for (auto begin = out.find("/*"); begin != std::string::npos; begin = out.find("/*", begin)) {
    const auto end = out.find("*/", begin + 2);
    if (end == std::string::npos) break;
    out.replace(begin, end + 2 - begin, end + 2 - begin, ' ');
  }
  return out.substr(0, std::min(out.find('#'), out.find("//")));
}

// `line` contains a host; its comment and line end are already removed.
FaultOr<std::vector<Host>> parse_line(std::string_view line, std::size_t start, const std::string& where) {
  std::size_t at = std::min(line.find_first_of(kBlanks, start), line.size());
  const std::string_view item = line.substr(start, at - start);
  auto hosts = host_item(item, where);
  if (!hosts) {
    hosts.error().offset += start;
    return hosts;
  }
  LineKeys keys;
  for (;;) {
    at = line.find_first_not_of(kBlanks, at);
    if (at == std::string_view::npos) break;
    const std::size_t begin = at;
    const auto field = next_field(line, at, hosts->front().name);
    if (!field) return tl::unexpected<TextFault>(field.error());
    const auto applied = apply(*field, keys);
    if (!applied) return tl::unexpected<TextFault>(applied.error());
    const Host& first = hosts->front();
    if (keys.slots && first.slots_given) {
      return fault(begin, "slots are given twice: behind the ':' and by " + in_quotes(field->key));
    }
    if (keys.user && !first.user.empty()) {
      return fault(begin, "the user is given twice: before the '@' and by " + in_quotes(field->key));
    }
    const int slots = keys.slots.value_or(first.slots);
    if (keys.max_slots && (keys.slots || first.slots_given) && *keys.max_slots < slots) {
      return fault(begin, std::to_string(slots) + " slots, but at most " + std::to_string(*keys.max_slots),
                   "slots=" + std::to_string(*keys.max_slots));
    }
  }
  if (!keys.gpus.empty()) {
    const bool given = keys.slots || hosts->front().slots_given;
    if (!given) keys.slots = static_cast<int>(keys.gpus.size());
    const auto enough = check_gpus(keys.slots.value_or(hosts->front().slots), keys.gpus, start);
    if (!enough) return tl::unexpected<TextFault>(enough.error());
  }
  for (Host& host : *hosts) {
    if (keys.slots) host.slots = *keys.slots;
    if (!keys.gpus.empty()) host.gpus = keys.gpus;
    host.slots_given = host.slots_given || keys.slots.has_value();
    if (keys.max_slots) host.max_slots = *keys.max_slots;
    if (keys.port) host.port = *keys.port;
    if (keys.user) host.user = *keys.user;
  }
  return hosts;
}

}  // namespace

Result<std::vector<Host>> parse_hostfile(std::string_view text, const std::string& file) {
  std::vector<Host> out;
  std::size_t line_number = 0;
  const auto place = [&](std::size_t offset) {
    return file + ":" + std::to_string(line_number) + ":" + std::to_string(offset + 1);
  };
  if (starts_with(text, "\xef\xbb\xbf")) text.remove_prefix(3);  // a byte order mark, as Windows editors write it
  for (const std::string_view whole : split(text, '\n')) {
    ++line_number;
    const std::string line = without_comments(whole);
    const auto start = line.find_first_not_of(kBlanks);
    if (start == std::string_view::npos) continue;
    auto hosts = parse_line(line, start, place(start));
    if (!hosts) {
      const TextFault& f = hosts.error();
      return fail(Error(Errc::kUsage, place(f.offset), f.cause).with_hint(f.hint).with_id(error_id::kHostList));
    }
    if (out.size() + hosts->size() > kMaxHosts) {
      return fail(Errc::kUsage, place(start), "more than " + std::to_string(kMaxHosts) + " hosts in all");
    }
    out.insert(out.end(), std::make_move_iterator(hosts->begin()), std::make_move_iterator(hosts->end()));
  }
  if (out.empty()) {
    return fail(Error(Errc::kUsage, file, "no host in this hostfile")
                    .with_hint("a line such as: localhost slots=2")
                    .with_id(error_id::kHostList));
  }
  return out;
}

Result<std::vector<Host>> read_hostfile(const std::string& file) {
  const auto text = read_file(file, kMaxFile);
  if (!text) {
    std::string cause = text.error().cause;
    if (starts_with(cause, file + ": ")) cause.erase(0, file.size() + 2);
    return fail(Error(Errc::kUsage, file, "the hostfile can't be read: " + cause)
                    .with_hint("--hostfile FILE, with a line such as: localhost slots=2"));
  }
  return parse_hostfile(*text, file);
}

}  // namespace drun::launcher
