// Checks that all ranks have registered the same tensors. Compares a hash, once; the lists travel only if it differs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "drun/training/transport.hpp"

namespace drun {
inline namespace v0 {
namespace training {

// The settings and tensors that a rank has registered, as text.
struct Registered {
  std::string settings;
  std::vector<std::string> tensors;
};

// FNV-1a over the entries and their lengths.
inline std::uint64_t digest(const Registered& own) {
  std::uint64_t hash = 14695981039346656037u;
  const auto add = [&hash](const std::string& text) {
    for (const char c : text + '\0') hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  };
  add(own.settings);
  for (const auto& tensor : own.tensors) add(tensor);
  add(std::to_string(own.tensors.size()));
  return hash;
}

// "rank 2", "ranks 0-3, 7"; the numbers ascend.
inline std::string ranks_in_words(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (i > 0) text += ", ";
    text += std::to_string(ranks[i]);
    if (end - i > 1) text += (end - i == 2 ? ", " : "-") + std::to_string(ranks[end - 1]);
    i = end;
  }
  return text;
}

struct Disagreement {
  int rank;  // the lowest rank at fault
  std::string text;
};

// Attributes the disagreement: all ranks are at fault except the largest group of ranks with the same entry; of equally
// large groups, the one with the lowest rank is right. Precondition: not all entries are equal.
inline Disagreement faulty(const std::string& subject, const std::vector<std::string>& entry_of_rank) {
  std::map<std::string, std::vector<int>> groups;
  for (std::size_t rank = 0; rank < entry_of_rank.size(); ++rank) {
    groups[entry_of_rank[rank]].push_back(static_cast<int>(rank));
  }
  auto right = groups.begin();
  for (auto group = groups.begin(); group != groups.end(); ++group) {
    const auto &members = group->second, &most = right->second;
    if (members.size() > most.size() || (members.size() == most.size() && members.front() < most.front())) {
      right = group;
    }
  }
  std::map<int, const std::string*> wrong;  // by lowest rank
  for (const auto& [entry, members] : groups) {
    if (entry != right->first) wrong[members.front()] = &entry;
  }
  std::string text = "ranks disagree on " + subject + ": ";
  for (const auto& [first, entry] : wrong) {
    text += ranks_in_words(groups[*entry]) + (groups[*entry].size() == 1 ? " has " : " have ") + *entry + ", ";
  }
  text += ranks_in_words(right->second) + (right->second.size() == 1 ? " has " : " have ") + right->first;
  return {wrong.begin()->first, text};
}

// The first difference: in the settings, else in the tensors, by position.
inline Disagreement first_difference(const std::vector<Registered>& all) {
  std::vector<std::string> entries;
  std::size_t n_tensors = 0;
  for (const auto& one : all) {
    entries.push_back(one.settings);
    n_tensors = std::max(n_tensors, one.tensors.size());
  }
  const auto differ = [&entries] {
    for (const auto& entry : entries) {
      if (entry != entries.front()) return true;
    }
    return false;
  };
  if (differ()) return faulty("their settings", entries);
  for (std::size_t i = 0; i < n_tensors; ++i) {
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      entries[rank] = i < all[rank].tensors.size() ? all[rank].tensors[i] : "none";
    }
    if (differ()) return faulty("tensor #" + std::to_string(i), entries);
  }
  return {-1, "ranks disagree on their tensors"};
}

// Each entry, with a NUL at its end: entries must not have one inside.
inline std::string packed(const Registered& own) {
  std::string bytes = own.settings + '\0';
  for (const auto& tensor : own.tensors) bytes += tensor + '\0';
  return bytes;
}

// The reverse of packed().
inline Registered unpacked(const char* bytes, std::size_t n_bytes) {
  Registered result;
  bool is_first = true;
  std::string entry;
  for (std::size_t i = 0; i < n_bytes; ++i) {
    if (bytes[i] != '\0') {
      entry += bytes[i];
      continue;
    }
    if (is_first) {
      result.settings = entry;
    } else {
      result.tensors.push_back(entry);
    }
    is_first = false;
    entry.clear();
  }
  return result;
}

// Collective. Throws DRUN_ERROR_MISMATCH, with the same text on every rank, if the ranks differ; the transport stays
// usable.
inline void agree(Transport& transport, const Registered& own) {
  const auto size = static_cast<std::size_t>(transport.size());
  const std::string name = "registered tensors";
  std::vector<std::uint64_t> digests(size);
  const std::uint64_t own_digest = digest(own);
  transport.allgather(&own_digest, digests.data(), 1, DRUN_UINT64, name);
  bool is_same = true;
  for (const auto other : digests) is_same = is_same && other == digests.front();
  if (is_same) return;

  const std::string bytes = packed(own);
  const std::uint64_t own_length = bytes.size();
  std::vector<std::uint64_t> lengths(size);
  transport.allgather(&own_length, lengths.data(), 1, DRUN_UINT64, name);
  const std::vector<std::size_t> counts(lengths.begin(), lengths.end());
  std::vector<char> all_bytes(std::accumulate(counts.begin(), counts.end(), std::size_t{0}));
  transport.allgatherv(bytes.data(), bytes.size(), all_bytes.data(), counts.data(), DRUN_UINT8, name);
  std::vector<Registered> all;
  const char* place = all_bytes.data();
  for (const auto count : counts) {
    all.push_back(unpacked(place, count));
    place += count;
  }
  const Disagreement found = first_difference(all);
  throw Error(DRUN_ERROR_MISMATCH, found.text.c_str(), found.rank, "");
}

}  // namespace training
}  // namespace v0
}  // namespace drun
