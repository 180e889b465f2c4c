// Moves the flows of an algorithm between the members of a group over TCP, with headers, deadline and ABORT.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/src/algorithm/peer_flows.h"
#include "runtime/src/backend/failure_attribution.h"
#include "runtime/src/backend/tcp/connections.h"
#include "runtime/src/backend/tcp/stripes.h"
#include "runtime/src/group.h"
#include "runtime/src/job_context.h"

namespace drun::runtime {

// One thread. After a failure all connections are closed, so that the neighbors notice, and it can't be used.
class Mesh final : public PeerFlows {
 public:
  // All communicators share the links. `job_context` must outlive the mesh.
  Mesh(const JobContext& job_context, std::shared_ptr<Connections> links, Group group)
      : job_context_(job_context), connections_(std::move(links)), group_(std::move(group)) {}
  int rank() const override { return group_.own; }
  int size() const override { return group_.size(); }
  Status run(const Operation& operation, const std::vector<Flow*>& flows) override;
  // As run(), for flows of several calls, each with its own header, deadline and errors. There may be several flows for
  // a peer and direction; they go one after the other.
  struct Part {
    const Operation* operation = nullptr;
    Flow* flow = nullptr;
  };
  Status run_each(const std::vector<Part>& parts);
  // A run that its caller continues, doing other work in between. The operation and the flows must outlive it. No other
  // run may begin before its end.
  class Run;
  std::unique_ptr<Run> begin(const Operation& operation, const std::vector<Flow*>& flows);
  // Moves data without blocking. Returns the time for which the caller may do other work.
  Outcome<std::chrono::microseconds> advance(Run& run);
  // Blocks, as run() does, until `enough` returns true or all flows are finished.
  Status go_on(Run& run, const std::function<bool()>& enough);
  // True if the member is connected and has closed its side.
  bool has_closed(int peer) const;
  void close() { connections_->close(); }

 private:
  // A flow with its socket and the header that precedes it.
  struct Message {
    const Operation* operation = nullptr;
    Flow* flow = nullptr;
    int peer = -1;                   // rank of the job
    int fd = -1;                     // -1: not connected yet; the first of several connections
    std::optional<Stripes> stripes;  // the data behind the header, if it goes over several connections
    std::string header;              // to be sent, or the part that has arrived
    std::size_t header_done = 0;     // bytes sent or received
    const Message* after = nullptr;  // precedes this one in the same direction
    bool finished() const { return header_done == kHeaderBytes && flow->finished(); }
    bool wants_io() const {
      if (after != nullptr && !after->finished()) return false;
      return fd >= 0 && (header_done < kHeaderBytes || flow->window().n_bytes > 0);
    }
    // True if the header is done and the data goes over several connections.
    bool is_striped() const { return stripes && header_done == kHeaderBytes; }
  };

  std::vector<Message> messages_for(const std::vector<Part>& parts);
  // The call as it is described in the header of this flow.
  Operation expected(const Operation& operation, const Flow& flow) const;
  Status connect(std::vector<Message>& messages, const Operation& operation);
  Outcome<bool> send_some(Message& message);  // true if data moved
  Outcome<bool> receive_some(Message& message);
  Outcome<bool> move_stripes(Message& message);
  Status check_header(const Message& message);
  Status wait(const std::vector<Message>& messages, const Operation& operation);
  Failure io_failure(int peer, int error, const Operation& operation);
  Failure timed_out(const std::vector<Message>& messages, const Operation& operation);
  static std::vector<int> waited_for(const std::vector<Message>& messages);
  // The unfinished call whose deadline comes first; null: all calls are finished.
  static const Operation* most_urgent(const std::vector<Message>& messages);
  Outcome<bool> move_some(std::vector<Message>& messages, const Operation& operation);  // true if data moved
  Status run_messages(std::vector<Message>& messages, const std::function<bool()>& enough);
  Status finish(Status status);

  const JobContext& job_context_;
  std::shared_ptr<Connections> connections_;
  Group group_;
  bool links_need_care_ = false;
  WaitNote note_;
  Operation current_, previous_;  // collectives
};

class Mesh::Run {
 private:
  friend class Mesh;
  std::vector<Message> messages;
};

}  // namespace drun::runtime
