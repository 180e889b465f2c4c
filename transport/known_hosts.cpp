#include "transport/known_hosts.h"

#include <arpa/inet.h>

#include <algorithm>

#include "base/text.h"
#include "transport/sha1.h"

namespace drun::transport {
namespace {

// The next word of a line; spaces and tabs separate.
std::string_view next_word(std::string_view& line) {
  while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
  std::size_t n = 0;
  while (n < line.size() && line[n] != ' ' && line[n] != '\t' && line[n] != '\r') ++n;
  const auto word = line.substr(0, n);
  line.remove_prefix(n);
  return word;
}

}  // namespace

std::string known_hosts_name(std::string_view host, int port, std::string_view alias) {
  if (!alias.empty()) return lower(alias);
  std::string name = lower(host);
  in6_addr address{};
  char text[INET6_ADDRSTRLEN] = {};
  // As OpenSSH: fd00:0:0::2 is fd00::2.
  if (::inet_pton(AF_INET6, name.c_str(), &address) == 1 &&
      ::inet_ntop(AF_INET6, &address, text, sizeof text) != nullptr) {
    name = text;
  }
  return port == 22 ? name : "[" + name + "]:" + std::to_string(port);
}

void KnownHostLines::append(std::string_view text) {
  if (text.empty()) return;
  if (text.back() == '\n') text.remove_suffix(1);
  for (auto line : split(text, '\n')) {
    ++n_lines_;
    Line parsed;
    auto word = next_word(line);
    if (word.empty() || word.front() == '#') continue;
    if (word.front() == '@') {
      parsed.key.revoked = word == "@revoked";
      parsed.key.authority = word == "@cert-authority";
      if (!parsed.key.revoked && !parsed.key.authority) continue;
      word = next_word(line);
    }
    parsed.key.key.type = next_word(line);
    parsed.key.key.base64 = next_word(line);
    if (parsed.key.key.type.empty() || parsed.key.key.base64.empty()) continue;
    if (parsed.key.key.type.find_first_not_of("0123456789") == std::string::npos)
      continue;  // protocol 1: bits, exponent, modulus; ssh skips it, too
    parsed.key.file = file_;
    parsed.key.line = n_lines_;
    index(std::move(parsed), word);
  }
}

void KnownHostLines::index(Line line, std::string_view names) {
  const std::size_t number = lines_.size();
  if (starts_with(names, "|")) {
    const auto parts = split(names, '|');  // "", "1", salt, hash
    if (parts.size() != 4 || parts[1] != "1") return;
    line.salt = unbase64(parts[2]);
    line.hash = unbase64(parts[3]);
    if (line.salt.empty()) return;
    others_.push_back(number);
  } else {
    for (const auto pattern : split(names, ',')) line.patterns.push_back(lower(pattern));
    if (names.find_first_of("*?!") != std::string_view::npos) {
      others_.push_back(number);
    } else {
      for (const auto& name : line.patterns) by_name_[name].push_back(number);
    }
  }
  lines_.push_back(std::move(line));
}

// One pattern with "!" that matches refuses all.
bool KnownHostLines::Line::matches(const std::string& name) const {
  if (!salt.empty()) return hmac_sha1(salt, name) == hash;
  bool found = false;
  for (const std::string_view pattern : patterns) {
    const bool negated = starts_with(pattern, "!");
    if (!glob_match(pattern.substr(negated ? 1 : 0), name)) continue;
    if (negated) return false;
    found = true;
  }
  return found;
}

std::vector<std::size_t> KnownHostLines::candidates(const std::string& name, const std::string& plain_name,
                                                    std::size_t from) const {
  std::vector<std::size_t> out;
  const auto add = [&out, from](const std::vector<std::size_t>& lines) {
    out.insert(out.end(), std::lower_bound(lines.begin(), lines.end(), from), lines.end());
  };
  add(others_);
  for (const auto* one : {&name, &plain_name}) {
    if (const auto found = by_name_.find(*one); found != by_name_.end() && !one->empty()) add(found->second);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::vector<KnownKey> KnownHostLines::find(const std::string& name, const std::string& plain_name) {
  Hits& hits = hits_[{name, plain_name}];
  for (const std::size_t number : candidates(name, plain_name, hits.n_seen)) {
    const Line& line = lines_[number];
    const bool by_name = line.matches(name);
    if (!by_name && (plain_name.empty() || !line.matches(plain_name))) continue;
    hits.matched.push_back(line.key);
    hits.matched.back().plain_name = !by_name;
  }
  hits.n_seen = lines_.size();
  return hits.matched;
}

std::string hashed_name(std::string_view salt, std::string_view name) {
  return "|1|" + base64(salt) + "|" + base64(hmac_sha1(salt, name));
}

}  // namespace drun::transport
