// Moves the flows of an algorithm between the members of a group over TCP, with headers, deadline and ABORT.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/src/algorithm/exchange.h"
#include "runtime/src/backend/culprit.h"
#include "runtime/src/backend/tcp/links.h"
#include "runtime/src/backend/tcp/stripes.h"
#include "runtime/src/group.h"
#include "runtime/src/patience.h"
#include "runtime/src/world.h"

namespace drun::runtime {

// One thread. After a failure every connection is closed, so that the neighbours notice, and it is of no more use.
class Mesh final : public Exchange {
 public:
  // The links are those of all communicators. `world` outlives the mesh.
  Mesh(const World& world, std::shared_ptr<Links> links, Group group)
      : world_(world), links_(std::move(links)), group_(std::move(group)) {}
  int rank() const override { return group_.own; }
  int size() const override { return group_.size(); }
  Status run(const Operation& operation, const std::vector<Flow*>& flows) override;
  // The same with flows of several calls, whose headers, deadlines and errors are those of each. Of a peer and
  // direction there may be several, which go one after the other.
  struct Part {
    const Operation* operation = nullptr;
    Flow* flow = nullptr;
  };
  Status run_each(const std::vector<Part>& parts);
  // A run that its caller goes on with, and does something else in between. The operation and the flows outlive it. No
  // other run comes before its end.
  class Run;
  std::unique_ptr<Run> begin(const Operation& operation, const std::vector<Flow*>& flows);
  // Moves what moves without a wait. Returns for how long the caller may do something else.
  Outcome<std::chrono::microseconds> advance(Run& run);
  // Waits, as run() does, until `enough` says so or all flows are finished.
  Status go_on(Run& run, const std::function<bool()>& enough);
  // Whether the member, if it is connected, has closed its side.
  bool has_closed(int peer) const;
  void close() { links_->close(); }

 private:
  // A flow with its socket and the header that goes ahead.
  struct Message {
    const Operation* operation = nullptr;
    Flow* flow = nullptr;
    int peer = -1;                   // the rank
    int fd = -1;                     // not connected yet; with several connections, the first
    std::optional<Stripes> stripes;  // of a message that goes over several: what follows the header
    std::string header;              // to be sent, or what has arrived of it
    std::size_t header_done = 0;     // bytes sent
    const Message* after = nullptr;  // that goes the same way, and first
    bool finished() const { return header_done == kHeaderBytes && flow->finished(); }
    bool wants_io() const {
      if (after != nullptr && !after->finished()) return false;
      return fd >= 0 && (header_done < kHeaderBytes || flow->window().n_bytes > 0);
    }
    // The header is through.
    bool is_striped() const { return stripes && header_done == kHeaderBytes; }
  };

  std::vector<Message> messages_for(const std::vector<Part>& parts);
  // The call as the header of this flow has it.
  Operation expected(const Operation& operation, const Flow& flow) const;
  Status connect(std::vector<Message>& messages, const Operation& operation);
  Outcome<bool> send_some(Message& message);  // whether anything moved
  Outcome<bool> receive_some(Message& message);
  Outcome<bool> move_stripes(Message& message);
  Status check_header(const Message& message);
  Status wait(const std::vector<Message>& messages, const Operation& operation);
  Failure io_failure(int peer, int error, const Operation& operation);
  Failure timed_out(const std::vector<Message>& messages, const Operation& operation);
  static std::vector<int> waited_for(const std::vector<Message>& messages);
  // Of the calls that are not over, the one whose deadline comes first; null: none is left.
  static const Operation* most_urgent(const std::vector<Message>& messages);
  Outcome<bool> move_some(std::vector<Message>& messages, const Operation& operation);  // whether anything moved
  Status run_messages(std::vector<Message>& messages, const std::function<bool()>& enough);
  Status finish(Status status);

  const World& world_;
  std::shared_ptr<Links> links_;
  Group group_;
  bool links_need_care_ = false;
  Patience patience_;
  WaitNote note_;
  Operation current_, previous_;  // calls
};

class Mesh::Run {
 private:
  friend class Mesh;
  std::vector<Message> messages;
};

}  // namespace drun::runtime
