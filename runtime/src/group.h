// A subset of the job's ranks in an order of its own: the members of a communicator, or of a part of one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/src/job_context.h"

namespace drun::runtime {

// Members are numbered from 0 in the group's order. Everything above the connections uses members; errors, and data
// that other ranks read in the rendezvous, use the job's ranks.
struct Group {
  std::uint32_t comm = 0;  // the communicator's number; unique among communicators that share two of its members
  std::vector<int> ranks;  // ranks of the job, by member
  int own = 0;             // our member number
  // Ranks of the communicator that this group is a part of, which number its roots; empty if this is all of it.
  std::vector<int> ranks_of_comm;

  int size() const { return static_cast<int>(ranks.size()); }
  int world_rank(int member) const { return ranks[static_cast<std::size_t>(member)]; }
  int world_rank_of_root(int root) const {
    const auto& all = ranks_of_comm.empty() ? ranks : ranks_of_comm;
    return root >= 0 && root < static_cast<int>(all.size()) ? all[static_cast<std::size_t>(root)] : root;
  }
  // -1 if the rank is not in the group.
  int member_of(int world_rank) const {
    const auto found = std::find(ranks.begin(), ranks.end(), world_rank);
    return found == ranks.end() ? -1 : static_cast<int>(found - ranks.begin());
  }
  // Ranks of the job: all members except this one.
  std::vector<int> others() const {
    std::vector<int> others = ranks;
    others.erase(std::remove(others.begin(), others.end(), world_rank(own)), others.end());
    return others;
  }
  std::vector<int> world_ranks(std::vector<int> members) const {
    for (int& member : members) member = world_rank(member);
    return members;
  }

  static Group all(const JobContext& job_context) {
    Group group;
    for (int rank = 0; rank < job_context.size(); ++rank) group.ranks.push_back(rank);
    group.own = job_context.rank();
    return group;
  }
  // The part of the members for which `chosen`(member) is true, in the same order. Must include us.
  template <typename Chosen>
  Group part(Chosen chosen) const {
    Group result;
    result.comm = comm;
    result.ranks_of_comm = ranks_of_comm.empty() ? ranks : ranks_of_comm;
    for (int member = 0; member < size(); ++member) {
      if (!chosen(member)) continue;
      if (member == own) result.own = result.size();
      result.ranks.push_back(world_rank(member));
    }
    return result;
  }
};

// True if all hosts have the same number of ranks.
inline bool has_as_many_each(const std::vector<int>& host_of_rank) {
  std::map<int, int> n_on_host;
  for (const int host : host_of_rank) ++n_on_host[host];
  return std::all_of(n_on_host.begin(), n_on_host.end(),
                     [&](const auto& host) { return host.second == n_on_host.begin()->second; });
}

}  // namespace drun::runtime
