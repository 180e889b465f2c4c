#include "rendezvous/horovod_store.h"

#include <utility>

namespace drun::rendezvous {

namespace {

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
}

}  // namespace

ScopeSizes horovod_scopes(const std::vector<Member>& members, const std::vector<std::string>& hosts) {
  ScopeSizes out;
  for (const Member& member : members) {
    out["global"] = static_cast<int>(members.size());
    out["local_" + hosts[static_cast<std::size_t>(member.host_index)]] = member.local_size;
    out["cross_" + std::to_string(member.local_rank)] = member.cross_size;
  }
  return out;
}

std::vector<std::string> horovod_host_names(const std::vector<std::string>& names) {
  std::vector<std::string> out;
  std::set<std::string> taken;
  for (std::string name : names) {
    for (char& c : name) {
      if (!is_plain(c)) c = '_';
    }
    std::string candidate = name;
    for (int n = 1; !taken.insert(candidate).second; ++n) candidate = name + "-" + std::to_string(n);
    out.push_back(std::move(candidate));
  }
  return out;
}

std::size_t HorovodStore::cost(const std::string& scope, const std::string& key, const std::string& value) const {
  return scope.size() + key.size() + value.size();
}

bool HorovodStore::put(const std::string& scope, const std::string& key, SharedBytes value) {
  const SharedBytes old = get(scope, key);
  const std::size_t without = bytes_ - (old ? cost(scope, key, *old) : 0);
  const std::size_t bytes = without + cost(scope, key, *value);
  if (bytes > limits_.bytes || (!old && n_keys_ >= limits_.keys)) return false;
  bytes_ = bytes;
  if (!old) ++n_keys_;
  scopes_[scope].values[key] = std::move(value);
  return true;
}

SharedBytes HorovodStore::get(const std::string& scope, const std::string& key) const {
  const auto found = scopes_.find(scope);
  if (found == scopes_.end()) return nullptr;
  const auto value = found->second.values.find(key);
  return value == found->second.values.end() ? nullptr : value->second;
}

void HorovodStore::finish(const std::string& scope, const std::string& key) {
  const auto found = scopes_.find(scope);
  if (found == scopes_.end()) return;
  const auto planned = planned_.find(scope);
  if (planned == planned_.end()) {
    erase(found, key);
    erase(found, "rank_" + key);
    if (found->second.values.empty()) scopes_.erase(found);
    return;
  }
  // A rank that repeats its request counts once, and one that has put nothing not at all.
  if (found->second.values.count(key) == 0) return;
  found->second.finished.insert(key);
  if (found->second.finished.size() < static_cast<std::size_t>(planned->second)) return;
  while (!found->second.values.empty()) erase(found, std::string(found->second.values.begin()->first));
  scopes_.erase(found);
}

void HorovodStore::erase(Scopes::iterator scope, const std::string& key) {
  const auto value = scope->second.values.find(key);
  if (value == scope->second.values.end()) return;
  bytes_ -= cost(scope->first, key, *value->second);
  --n_keys_;
  scope->second.values.erase(value);
}

}  // namespace drun::rendezvous
