#include "runtime/src/backend/tcp/mesh.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "runtime/src/backend/failure_attribution.h"
#include "runtime/src/dtype.h"

namespace drun::runtime {
namespace {

constexpr int kPassesBetweenChecks = 64;      // checks for ABORT while data flows without a wait
constexpr std::size_t kMaxAtOnce = 4u << 20;  // per system call, so that no flow starves another
// Interval of polls: a socket's buffer lasts for longer on links where this interval matters.
constexpr std::chrono::microseconds kBetweenPolls{250};

// Leaves one entry for each descriptor from `first` on. With two for each connection, there could be more than the
// process may have open files, and poll() fails.
void merge_entries(std::vector<pollfd>& fds, std::size_t first) {
  const auto begin = fds.begin() + static_cast<std::ptrdiff_t>(first);
  std::sort(begin, fds.end(), [](const pollfd& a, const pollfd& b) { return a.fd < b.fd; });
  auto end = begin;
  for (auto entry = begin; entry != fds.end(); ++entry) {
    if (end != begin && (end - 1)->fd == entry->fd) {
      (end - 1)->events = static_cast<short>((end - 1)->events | entry->events);
    } else {
      *end++ = *entry;
    }
  }
  fds.erase(end, fds.end());
}

Window clipped(const Window& window) { return {window.data, std::min(window.n_bytes, kMaxAtOnce)}; }

}  // namespace

Status Mesh::run(const Operation& operation, const std::vector<Flow*>& flows) {
  std::vector<Part> parts;
  for (Flow* flow : flows) parts.push_back({&operation, flow});
  return run_each(parts);
}

Status Mesh::run_each(const std::vector<Part>& parts) {
  auto messages = messages_for(parts);
  return finish(run_messages(messages, {}));
}

std::unique_ptr<Mesh::Run> Mesh::begin(const Operation& operation, const std::vector<Flow*>& flows) {
  std::vector<Part> parts;
  for (Flow* flow : flows) parts.push_back({&operation, flow});
  auto run = std::make_unique<Run>();
  run->messages = messages_for(parts);
  return run;
}

Outcome<std::chrono::microseconds> Mesh::advance(Run& run) {
  const Operation* operation = most_urgent(run.messages);
  if (operation == nullptr) return CallDeadline::kPollInterval;
  // The caller's time does not count as time for which we were stopped.
  (void)job_context_.call_deadline.left(*operation);
  links_need_care_ = connections_->busy();
  const auto moved = move_some(run.messages, *operation);
  if (!moved) {
    (void)finish(tl::unexpected<Failure>(moved.error()));
    return tl::unexpected<Failure>(moved.error());
  }
  if (*moved) return std::chrono::microseconds(0);
  const bool waits = connections_->busy() ||
                     std::any_of(run.messages.begin(), run.messages.end(),
                                 [](const Message& message) { return !message.finished() && message.wants_io(); });
  if (waits) return kBetweenPolls;
  return CallDeadline::kPollInterval;
}

Status Mesh::go_on(Run& run, const std::function<bool()>& enough) { return finish(run_messages(run.messages, enough)); }

Status Mesh::finish(Status status) {
  if (status) {
    note_.done(job_context_);
  } else {
    connections_->close();
  }
  return status;
}

std::vector<Mesh::Message> Mesh::messages_for(const std::vector<Part>& parts) {
  if (!parts.empty() && !is_of_two(*parts[0].operation)) {
    const Operation& operation = *parts[0].operation;
    if (operation.seq != current_.seq) previous_ = std::exchange(current_, operation);
  }
  std::vector<Message> messages;
  messages.reserve(parts.size());  // the messages point to each other
  for (const auto& [operation, flow] : parts) {
    Message message;
    message.operation = operation;
    message.flow = flow;
    message.peer = group_.world_rank(flow->peer());
    message.fd = connections_->fd(message.peer);
    if (message.fd < 0) connections_->want(message.peer);
    if (connections_->n_streams() > 1 && flow->n_bytes() > Stripes::kBytes)
      message.stripes.emplace(connections_->n_streams());
    if (flow->direction() == Flow::Direction::kSend) message.header = encode_header(expected(*operation, *flow));
    // Only sends and receives may have several messages for a peer.
    for (std::size_t before = is_of_two(*operation) ? messages.size() : 0; before-- > 0;) {
      const Flow& other = *messages[before].flow;
      if (other.direction() != flow->direction() || messages[before].peer != message.peer) continue;
      message.after = &messages[before];
      break;
    }
    messages.push_back(std::move(message));
  }
  return messages;
}

// In an alltoallv each sender gives the size of its block. What one rank sends, another receives.
Operation Mesh::expected(const Operation& operation, const Flow& flow) const {
  Operation result = operation;
  if (operation.kind == OpKind::kAlltoallv) result.count = flow.n_bytes() / size_of(operation.dtype);
  if (operation.kind == OpKind::kRecv) {
    result.kind = OpKind::kSend;
    result.root = rank();
  }
  return result;
}

const Operation* Mesh::most_urgent(const std::vector<Message>& messages) {
  const Operation* first = nullptr;
  for (const auto& message : messages) {
    if (message.finished()) continue;
    if (first == nullptr || message.operation->deadline() < first->deadline()) first = message.operation;
  }
  return first;
}

Outcome<bool> Mesh::move_some(std::vector<Message>& messages, const Operation& operation) {
  if (links_need_care_) {
    if (auto connected = connect(messages, operation); !connected) {
      return tl::unexpected<Failure>(connected.error());
    }
  }
  bool moved = false;
  for (auto& message : messages) {
    if (message.finished()) continue;
    auto progress = message.flow->direction() == Flow::Direction::kSend ? send_some(message) : receive_some(message);
    if (!progress) return tl::unexpected<Failure>(progress.error());
    moved = moved || *progress;
  }
  return moved;
}

Status Mesh::run_messages(std::vector<Message>& messages, const std::function<bool()>& enough) {
  links_need_care_ = connections_->busy();
  for (int pass = 1;; ++pass) {
    const Operation* operation = most_urgent(messages);
    if (operation == nullptr || (enough && enough())) return {};
    auto moved = move_some(messages, *operation);
    if (!moved) return tl::unexpected<Failure>(moved.error());
    if (!*moved) {
      if (auto waited = wait(messages, *operation); !waited) return waited;
    } else if (pass % kPassesBetweenChecks == 0) {
      if (auto alive = check_alive(job_context_, name_of(*operation)); !alive) return alive;
      links_need_care_ = connections_->busy();
    }
  }
}

Status Mesh::connect(std::vector<Message>& messages, const Operation& operation) {
  links_need_care_ = false;
  if (auto advanced = connections_->advance(name_of(operation)); !advanced) return advanced;
  for (auto& message : messages) {
    if (message.fd < 0) message.fd = connections_->fd(message.peer);
  }
  return {};
}

Outcome<bool> Mesh::send_some(Message& message) {
  if (!message.wants_io()) return false;
  if (message.is_striped()) return move_stripes(message);
  const Window window = message.stripes ? Window{} : message.flow->window();
  std::array<iovec, 2> parts{iovec{message.header.data() + message.header_done, kHeaderBytes - message.header_done},
                             iovec{window.data, std::min(window.n_bytes, kMaxAtOnce)}};
  msghdr out{};
  out.msg_iov = parts.data();
  out.msg_iovlen = parts.size();
  const ssize_t sent = ::sendmsg(message.fd, &out, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0) {
    if (errno == EAGAIN || errno == EINTR) return errno == EINTR;
    return tl::unexpected<Failure>(io_failure(message.peer, errno, *message.operation));
  }
  auto n_bytes = static_cast<std::size_t>(sent);
  const std::size_t of_header = std::min(n_bytes, parts[0].iov_len);
  message.header_done += of_header;
  if (n_bytes > of_header) message.flow->moved(n_bytes - of_header);
  return true;
}

Outcome<bool> Mesh::receive_some(Message& message) {
  if (!message.wants_io()) return false;
  if (message.is_striped()) return move_stripes(message);
  message.header.resize(kHeaderBytes);
  const Window window = message.stripes ? Window{} : message.flow->window();
  std::array<iovec, 2> parts{iovec{message.header.data() + message.header_done, kHeaderBytes - message.header_done},
                             iovec{window.data, std::min(window.n_bytes, kMaxAtOnce)}};
  msghdr in{};
  in.msg_iov = parts.data();
  in.msg_iovlen = parts.size();
  const ssize_t received = ::recvmsg(message.fd, &in, MSG_DONTWAIT);
  if (received < 0 && (errno == EAGAIN || errno == EINTR)) return errno == EINTR;
  if (received <= 0) {
    return tl::unexpected<Failure>(io_failure(message.peer, received == 0 ? 0 : errno, *message.operation));
  }
  auto n_bytes = static_cast<std::size_t>(received);
  const std::size_t of_header = std::min(n_bytes, parts[0].iov_len);
  message.header_done += of_header;
  if (of_header > 0 && message.header_done == kHeaderBytes) {
    if (auto same = check_header(message); !same) return tl::unexpected<Failure>(same.error());
  }
  if (n_bytes > of_header) message.flow->moved(n_bytes - of_header);
  return true;
}

// Moves data on each connection until it would block.
Outcome<bool> Mesh::move_stripes(Message& message) {
  const bool sends = message.flow->direction() == Flow::Direction::kSend;
  const Window window = clipped(message.flow->window());
  const std::size_t done = message.flow->done();
  Stripes& stripes = *message.stripes;
  bool moved = false;
  for (std::size_t stream = 0; stream < stripes.n_connections(); ++stream) {
    const int fd = connections_->fd(message.peer, stream);
    for (;;) {
      const Window part = stripes.window_of(stream, window, done);
      if (part.n_bytes == 0) break;
      const ssize_t n = sends ? ::send(fd, part.data, part.n_bytes, MSG_NOSIGNAL | MSG_DONTWAIT)
                              : ::recv(fd, part.data, part.n_bytes, MSG_DONTWAIT);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) break;
      if (n < 0 || (n == 0 && !sends)) {
        return tl::unexpected<Failure>(io_failure(message.peer, n == 0 ? 0 : errno, *message.operation));
      }
      moved = true;
      stripes.moved(stream, static_cast<std::size_t>(n));
      if (static_cast<std::size_t>(n) < part.n_bytes) break;
    }
  }
  if (const std::size_t n = stripes.n_moved(window, done); n > 0) message.flow->moved(n);
  return moved;
}

Status Mesh::check_header(const Message& message) {
  const Operation& operation = *message.operation;
  const int peer = message.peer;
  auto theirs = decode_header(message.header);
  if (!theirs) {
    Failure garbled{DRUN_ERROR_INTERNAL,
                    name_of(operation) + ": " + job_context_.name_of(peer) + " sent something else than a message",
                    peer, job_context_.host_of(peer)};
    publish_failure(job_context_, garbled);
    return tl::unexpected<Failure>(std::move(garbled));
  }
  const Operation ours = expected(operation, *message.flow);
  if (same_call(*theirs, ours)) return {};
  theirs->name = name_in_header(message.header);
  // A rank that only sends may have finished a call, and learns of a mismatch in the next one.
  if (theirs->comm == previous_.comm && theirs->seq == previous_.seq && !same_call(*theirs, previous_)) {
    return tl::unexpected<Failure>(
        mismatch_failure(job_context_, group_, previous_, peer, describe_in(group_, *theirs)));
  }
  Operation same_block = *theirs;
  same_block.count = ours.count;
  if (ours.kind != OpKind::kAlltoallv || !same_call(same_block, ours)) {
    return tl::unexpected<Failure>(
        mismatch_failure(job_context_, group_, operation, peer, describe_in(group_, *theirs)));
  }
  Failure result{DRUN_ERROR_MISMATCH,
                 name_of(operation) + ": " + job_context_.name_of(peer) + " sends " + std::to_string(theirs->count) +
                     " " + name_of(ours.dtype) + " to " + job_context_.name_of(job_context_.rank()) +
                     ", which expects " + std::to_string(ours.count),
                 peer, job_context_.host_of(peer)};
  publish_failure(job_context_, result);
  return tl::unexpected<Failure>(std::move(result));
}

Status Mesh::wait(const std::vector<Message>& messages, const Operation& operation) {
  std::vector<pollfd> fds{{job_context_.client->fd(), POLLIN, 0}};
  if (job_context_.interrupt_fd >= 0) fds.push_back({job_context_.interrupt_fd, POLLIN, 0});
  const std::size_t n_control = fds.size();
  connections_->add_to(fds);
  const std::size_t n_before = fds.size();
  for (const auto& message : messages) {
    if (message.finished() || !message.wants_io()) continue;
    const bool sends = message.flow->direction() == Flow::Direction::kSend;
    const auto events = static_cast<short>(sends ? POLLOUT : POLLIN);
    if (!message.is_striped()) {
      fds.push_back({message.fd, events, 0});
      continue;
    }
    const Window window = clipped(message.flow->window());
    for (std::size_t stream = 0; stream < message.stripes->n_connections(); ++stream) {
      if (message.stripes->window_of(stream, window, message.flow->done()).n_bytes == 0) continue;
      fds.push_back({connections_->fd(message.peer, stream), events, 0});
    }
  }
  merge_entries(fds, n_before);
  const auto left = job_context_.call_deadline.left(operation).count();
  if (left <= 0) return tl::unexpected<Failure>(timed_out(messages, operation));
  note_.waiting(job_context_, group_, operation, [&] { return waited_for(messages); });
  const auto longest = connections_->busy() ? Connections::kRetry : CallDeadline::kPollInterval;
  const int ready = ::poll(fds.data(), fds.size(), static_cast<int>(std::min<long long>(left + 1, longest.count())));
  if (ready < 0 && errno != EINTR) {
    Failure failed{DRUN_ERROR_SYSTEM, name_of(operation) + ": poll: " + std::strerror(errno), -1, {}};
    return publish_own_failure(job_context_, std::move(failed));
  }
  for (std::size_t i = 0; i < n_control; ++i) {
    if (fds[i].revents == 0) continue;
    if (auto alive = check_alive(job_context_, name_of(operation)); !alive) return alive;
  }
  links_need_care_ = connections_->busy() || fds[n_control].revents != 0;
  return {};
}

bool Mesh::has_closed(int peer) const {
  pollfd link{connections_->fd(group_.world_rank(peer)), POLLRDHUP, 0};
  return link.fd >= 0 && ::poll(&link, 1, 0) == 1;
}

Failure Mesh::io_failure(int peer, int error, const Operation& operation) {
  auto result = explain_closed(job_context_, peer, name_of(operation));
  // The connection timed out in the network, the other side did not close it: add the error.
  if (error != 0 && error != ECONNRESET && error != EPIPE && result.rank == peer) {
    result.text += std::string(" (") + std::strerror(error) + ")";
  }
  return result;
}

std::vector<int> Mesh::waited_for(const std::vector<Message>& messages) {
  std::vector<int> result;
  for (const auto& message : messages) {
    if (!message.finished()) result.push_back(message.peer);
  }
  return result;
}

Failure Mesh::timed_out(const std::vector<Message>& messages, const Operation& operation) {
  // In a group the call that timed out comes first, but another call may hold it up.
  std::vector<int> peers;
  for (const bool of_this : {true, false}) {
    for (const auto& message : messages) {
      if (!message.finished() && (message.operation == &operation) == of_this) peers.push_back(message.peer);
    }
  }
  return timeout_failure(job_context_, group_, operation, peers,
                         [this](int rank) { return connections_->why_not(rank); });
}

}  // namespace drun::runtime
