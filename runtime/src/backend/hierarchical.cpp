#include "runtime/src/backend/hierarchical.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "runtime/policy/allreduce_sizes.h"
#include "runtime/src/reduce.h"

namespace drun::runtime {
namespace {

// A broadcast goes through hosts in pieces, so that the network transfers the next piece while this one is broadcast
// inside the host.
constexpr std::size_t kPieceBytes = 1u << 20;
// Number of pieces that are reduced in memory ahead of the one that is broadcast inside the host: the network has them
// to transfer, and does not run dry when a rank gets no processor for a while.
constexpr std::size_t kPiecesAhead = 4;

// A lane consists of one rank of each host, and carries a part of the data between the hosts. The number of lanes is
// the number of ranks of the host with the fewest; the first ranks of each host are in them.
class HierarchicalBackend final : public Backend {
 public:
  HierarchicalBackend(const Group& group, std::vector<int> host_of_member, std::unique_ptr<ShmBackend> local,
                      std::function<std::unique_ptr<TcpBackend>(const Group&)> over_network)
      : group_(group),
        host_of_member_(std::move(host_of_member)),
        over_network_(std::move(over_network)),
        flat_(over_network_(group_)),
        local_(std::move(local)) {
    std::map<int, std::vector<int>> members_of;
    for (int member = 0; member < group_.size(); ++member) members_of[host_of(member)].push_back(member);
    n_hosts_ = static_cast<int>(members_of.size());
    n_lanes_ = group_.size();
    for (const auto& [host, members] : members_of) n_lanes_ = std::min(n_lanes_, static_cast<int>(members.size()));
    mates_ = members_of[host_of(group_.own)];
    place_ = static_cast<int>(std::find(mates_.begin(), mates_.end(), group_.own) - mates_.begin());
    if (place_ >= n_lanes_) return;
    std::vector<bool> in_lane(static_cast<std::size_t>(group_.size()));
    for (const auto& [host, members] : members_of) {
      in_lane[static_cast<std::size_t>(members[static_cast<std::size_t>(place_)])] = true;
    }
    lane_ = over_network_(group_.part([&](int member) { return in_lane[static_cast<std::size_t>(member)]; }));
  }

  Status allreduce(const Operation& operation, const Span& data) override {
    // Size of the longest lane's part, which is the same on all ranks.
    const std::size_t lane_bytes = even_blocks(data, static_cast<std::size_t>(n_lanes_)).front().n_bytes;
    if (lane_bytes > lane_piece_bytes()) return finish(reduce_in_pieces(operation, data, lane_bytes));
    return finish(data.n_bytes() <= kOneLaneBytes || n_lanes_ == 1 ? reduce_in_one_lane(operation, data)
                                                                   : reduce_in_lanes(operation, data));
  }

  // Reduces inside each host, then between one rank of each host, the root among them.
  Status reduce(const Operation& operation, const Span& data) override {
    const int speaker = speaker_for(operation.root);
    Operation part = operation;
    part.partial = true;
    part.place = speaker;
    if (local_) {
      if (auto done = local_->reduce(part, data); !done) return finish(done);
    }
    if (place_ == speaker) {
      auto [between, root] = speakers(operation.root);
      part.place = root;
      if (auto done = between->reduce(part, data); !done) return finish(done);
      drun::runtime::finish(operation, data, group_.size());
    }
    return {};
  }

  Status broadcast(const Operation& operation, void* data, std::size_t n_bytes) override {
    const int speaker = speaker_for(operation.root);
    Operation outside = operation, inside = operation;
    inside.place = speaker;
    Backend* between = nullptr;
    if (place_ == speaker) std::tie(between, outside.place) = speakers(operation.root);
    std::size_t done = 0;
    do {
      const std::size_t n = std::min(kPieceBytes, n_bytes - done);
      char* piece = at(data, done);
      if (between != nullptr) {
        if (auto went = between->broadcast(outside, piece, n); !went) return finish(went);
      }
      if (local_) {
        if (auto went = local_->broadcast(inside, piece, n); !went) return finish(went);
      }
      done += n;
    } while (done < n_bytes);
    return {};
  }

  Status barrier(const Operation& operation) override {
    if (local_) {
      if (auto all = local_->barrier(operation); !all) return finish(all);
    }
    if (place_ == 0) {
      if (auto all = lane_->barrier(operation); !all) return finish(all);
    }
    if (local_) return finish(local_->barrier(operation));
    return {};
  }

  // In a ring in the order of hosts the data crosses each link between hosts once, so a hierarchy has nothing to gain.
  Status reduce_scatter(const Operation& operation, const Span& data) override {
    return finish(flat_->reduce_scatter(operation, data));
  }
  Status allgather(const Operation& operation, void* data, const std::vector<Block>& blocks) override {
    return finish(flat_->allgather(operation, data, blocks));
  }
  Status gather(const Operation& operation, const void* send, void* recv) override {
    return finish(flat_->gather(operation, send, recv));
  }
  Status scatter(const Operation& operation, const void* send, void* recv) override {
    return finish(flat_->scatter(operation, send, recv));
  }
  Status alltoall(const Operation& operation, const void* send, const std::vector<Block>& send_blocks, void* recv,
                  const std::vector<Block>& recv_blocks) override {
    return finish(flat_->alltoall(operation, send, send_blocks, recv, recv_blocks));
  }
  Status transfer(const std::vector<Transfer>& transfers) override { return finish(flat_->transfer(transfers)); }
  Status adasum(const Operation& operation, const Span& data) override {
    return finish(flat_->adasum(operation, data));
  }
  bool has_closed(int member) const override { return flat_->has_closed(member); }
  void close() override {
    if (local_) local_->close();
    flat_->close();
  }

 private:
  int host_of(int member) const { return host_of_member_[static_cast<std::size_t>(member)]; }

  Status finish(Status status) {
    if (!status) close();
    return status;
  }

  Status reduce_in_one_lane(const Operation& operation, const Span& data) {
    Operation part = operation;
    part.partial = true;
    if (local_) {
      part.place = 0;
      if (auto done = local_->reduce(part, data); !done) return done;
    }
    if (place_ == 0) {
      if (auto done = lane_->allreduce(part, data); !done) return done;
      drun::runtime::finish(operation, data, group_.size());
    }
    if (!local_) return {};
    Operation result = operation;
    result.place = 0;
    return local_->broadcast(result, data.data, data.n_bytes());
  }

  // Each lane gets a part of the data: reduced inside the hosts, then between them, then distributed inside the hosts.
  Status reduce_in_lanes(const Operation& operation, const Span& data) {
    Operation part = operation;
    part.partial = true;
    auto blocks = even_blocks(data, static_cast<std::size_t>(n_lanes_));
    blocks.resize(mates_.size());  // mates outside the lanes have none
    if (local_) {
      if (auto done = local_->reduce_to_blocks(part, data, blocks); !done) return done;
    }
    if (place_ < n_lanes_) {
      const Block ours = blocks[static_cast<std::size_t>(place_)];
      const Span own{data.data + ours.offset, ours.n_bytes / size_of(data.dtype), data.dtype};
      if (auto done = lane_->allreduce(part, own); !done) return done;
      drun::runtime::finish(operation, own, group_.size());
    }
    return local_ ? local_->allgather(operation, data.data, blocks) : Status{};
  }

  std::size_t lane_piece_bytes() const { return runtime::lane_piece_bytes(static_cast<std::size_t>(n_hosts_)); }

  // reduce_in_lanes() in pieces, so that memory and the network work at the same time: each piece is reduced inside the
  // hosts, given to the network at once, and distributed inside the hosts when it comes back.
  Status reduce_in_pieces(const Operation& operation, const Span& data, std::size_t lane_bytes) {
    Operation part = operation;
    part.partial = true;
    Operation result = operation;
    if (n_lanes_ == 1) part.place = result.place = 0;
    const auto lanes = even_blocks(data, static_cast<std::size_t>(n_lanes_));
    const std::size_t piece_bytes = lane_piece_bytes();
    const std::size_t n_pieces = (lane_bytes + piece_bytes - 1) / piece_bytes;
    const auto piece_of = [&](std::size_t lane, std::size_t i) {
      const Block& all = lanes[lane];
      const std::size_t skipped = std::min(i * piece_bytes, all.n_bytes);
      return Block{all.offset + skipped, std::min(piece_bytes, all.n_bytes - skipped)};
    };
    const auto pieces_of_mates = [&](std::size_t i) {
      std::vector<Block> blocks(mates_.size());
      for (std::size_t lane = 0; lane < lanes.size(); ++lane) blocks[lane] = piece_of(lane, i);
      return blocks;
    };
    const auto piece_of_all = [&](std::size_t i) {
      const Block piece = piece_of(0, i);
      return Span{data.data + piece.offset, piece.n_bytes / size_of(data.dtype), data.dtype};
    };
    const auto reduce_inside = [&](std::size_t i) {
      if (!local_) return Status{};
      return n_lanes_ == 1 ? local_->reduce(part, piece_of_all(i))
                           : local_->reduce_to_blocks(part, data, pieces_of_mates(i));
    };
    const auto broadcast_pieces = [&](std::size_t i) {
      if (!local_) return Status{};
      const Span piece = piece_of_all(i);
      return n_lanes_ == 1 ? local_->broadcast(result, piece.data, piece.n_bytes())
                           : local_->allgather(result, data.data, pieces_of_mates(i));
    };

    std::unique_ptr<PiecewiseAllreduce> between;
    if (place_ < n_lanes_) {
      std::vector<Block> ours;
      for (std::size_t i = 0; i < n_pieces; ++i) ours.push_back(piece_of(static_cast<std::size_t>(place_), i));
      between = lane_->begin_allreduce(part, data, ours, group_.size());
    }
    const Meanwhile meanwhile(local_.get(), between.get());
    for (std::size_t i = 0; i < n_pieces + kPiecesAhead; ++i) {
      if (i < n_pieces) {
        if (auto reduced = reduce_inside(i); !reduced) return reduced;
        if (between) {
          between->give(i + 1);
          if (auto moved = between->advance(); !moved) return tl::unexpected<Failure>(moved.error());
        }
      }
      if (i < kPiecesAhead) continue;
      if (between) {
        if (auto came = between->wait_for(i - kPiecesAhead + 1); !came) return came;
      }
      if (auto handed = broadcast_pieces(i - kPiecesAhead); !handed) return handed;
    }
    return between ? between->wait_for_end() : Status{};
  }

  // While this lives, waits of the memory backend advance the network.
  class Meanwhile {
   public:
    Meanwhile(ShmBackend* memory, PiecewiseAllreduce* network) : memory_(network != nullptr ? memory : nullptr) {
      if (memory_ != nullptr) memory_->meanwhile([network] { return network->advance(); });
    }
    ~Meanwhile() {
      if (memory_ != nullptr) memory_->meanwhile({});
    }
    Meanwhile(const Meanwhile&) = delete;
    Meanwhile& operator=(const Meanwhile&) = delete;

   private:
    ShmBackend* memory_;
  };

  // The member on our host, as an index into mates_, that uses the network in a call with this root: the root itself,
  // or the first member.
  int speaker_for(int root) const {
    const auto found = std::find(mates_.begin(), mates_.end(), root);
    return found == mates_.end() ? 0 : static_cast<int>(found - mates_.begin());
  }

  // The backend between the speakers of all hosts, which include us, and the root's place among them.
  std::pair<Backend*, int> speakers(int root) {
    auto& [backend, place_of_root] = between_[root];
    if (!backend) {
      std::map<int, int> speaker_of;
      for (int member = 0; member < group_.size(); ++member) speaker_of.emplace(host_of(member), member);
      speaker_of[host_of(root)] = root;
      const Group chosen = group_.part([&](int member) { return speaker_of.at(host_of(member)) == member; });
      backend = over_network_(chosen);
      place_of_root = chosen.member_of(group_.world_rank(root));
    }
    return {backend.get(), place_of_root};
  }

  Group group_;
  std::vector<int> host_of_member_;
  std::function<std::unique_ptr<TcpBackend>(const Group&)> over_network_;
  std::unique_ptr<TcpBackend> flat_;
  std::unique_ptr<ShmBackend> local_;
  int n_hosts_ = 1, n_lanes_ = 1;
  std::vector<int> mates_;  // the members on our host
  int place_ = 0;           // our index in mates_
  std::unique_ptr<TcpBackend> lane_;
  std::map<int, std::pair<std::unique_ptr<TcpBackend>, int>> between_;  // speakers(), by root
};

}  // namespace

std::unique_ptr<Backend> make_hierarchical_backend(
    const Group& group, std::vector<int> host_of_member, std::unique_ptr<ShmBackend> local,
    std::function<std::unique_ptr<TcpBackend>(const Group&)> over_network) {
  return std::make_unique<HierarchicalBackend>(group, std::move(host_of_member), std::move(local),
                                               std::move(over_network));
}

}  // namespace drun::runtime
