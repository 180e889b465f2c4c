// drun's end of one host's control channel: requests, orders, heartbeats. Owned by the job; one thread.
//
// States: opened (after bring_agent) -> running (start) -> closed (close, the agent's end, or silence). `on_lost` is
// called at most once, and not after close().
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/asio.h"
#include "base/host.h"
#include "base/stall_watch.h"
#include "control/clock_alignment.h"
#include "control/frame_queue.h"
#include "control/frames.h"
#include "control/messages.h"
#include "launcher/connect/typed_login.h"
#include "transport/transport.h"

namespace drun::launcher {

struct HeartbeatTimes {
  std::chrono::milliseconds interval{5000};
  std::chrono::milliseconds warn{10000};
  std::chrono::milliseconds timeout{30000};
};

class AgentChannel;

// Every channel of a job, those of hosts that are still connecting included: a stop of drun by Ctrl-Z concerns all of
// them. Outlives its channels.
class AgentChannels {
 public:
  // Before drun is stopped: the agents stop their workers, and drun's silence has no meaning to them until resume().
  // Agents that connect meanwhile are told at their start. Returns when the orders are on their way.
  Task<void> pause();
  void resume();

 private:
  friend class AgentChannel;
  std::set<AgentChannel*> channels_;
  bool paused_ = false;
};

class AgentChannel {
 public:
  using OnFrame = std::function<void(AgentChannel&, control::Frame)>;
  using OnLost = std::function<void(AgentChannel&, Error)>;
  using OnSilent = std::function<void(AgentChannel&, std::chrono::seconds)>;

  AgentChannel(asio::io_context& io, AgentChannels& group, Host host, std::unique_ptr<transport::Channel> channel,
               control::Hello hello, control::FrameParser parser);
  ~AgentChannel() { group_.channels_.erase(this); }
  AgentChannel(const AgentChannel&) = delete;
  AgentChannel& operator=(const AgentChannel&) = delete;

  // Sets the handlers of frames that no request waits for, of the channel's end, and of silence. Until then such frames
  // are dropped, and a loss is only remembered.
  void on(OnFrame frame, OnLost lost, OnSilent silent);
  // At once after the hello: the agent ends itself if drun is silent, however long other hosts take to connect.
  void start();
  void set_times(HeartbeatTimes times);  // with the Configure that tells the agent the same

  const std::string& name() const { return host_.name; }
  const Host& host() const { return host_; }
  // By this name it is compared with other hosts from here on; equal names are the same network namespace.
  void set_net_namespace(std::string name) { hello_.net_namespace = std::move(name); }
  void add_slots(const Host& again) {  // a second name of this machine
    host_.slots += again.slots;
    host_.gpus.insert(host_.gpus.end(), again.gpus.begin(), again.gpus.end());
  }
  const control::Hello& hello() const { return hello_; }
  void set_login(TypedLogin login) { login_ = std::move(login); }
  const TypedLogin& login() const { return login_; }
  bool lost() const { return lost_; }
  const Error& lost_error() const { return lost_error_; }  // why, once it is lost
  Deadline last_heard() const { return last_heard_; }
  bool lost_in_silence() const { return lost_in_silence_; }
  const control::ClockAlignment& clock() const { return clock_; }

  void send(control::Type type, std::string_view body);  // control: goes before stdin
  void send_bulk(control::Type type, std::string_view body) { outgoing_.push_bulk(type, body); }  // stdin
  // Bytes of control frames that wait to be sent. `sent` (empty: nothing) is called after each frame.
  std::size_t queued_bytes() const { return outgoing_.urgent_bytes(); }
  void on_sent(std::function<void()> sent) { on_sent_ = std::move(sent); }
  // Sends and waits for the next frame of type `reply`. Errors name `what`, the phase. One request per reply type at a
  // time. `is_meant`: false for a reply of that type to an earlier request, which is skipped; empty: each one is meant.
  using IsMeant = std::function<bool(const control::Frame&)>;
  Task<Result<control::Frame>> request(control::Type type, std::string body, control::Type reply, std::string what,
                                       Deadline deadline, IsMeant is_meant = nullptr);
  // For a job that waits no longer: a host that is silent for as long as the user is warned of (HeartbeatTimes::warn)
  // is lost now. Any other host, for example one whose agent waits for a process that can't be killed, is not.
  void lose_if_silent();
  // The channel can't go on, for example because the agent has sent what an agent of this host can't send. The host is
  // lost, and its agent ends its workers.
  void refuse(std::string cause);
  void close();       // idempotent; at once: an agent that has not ended yet ends without anybody who waits for it
  Task<void> join();  // after close()
  // close() and join(), but an agent without workers, or that has said Finished, gets the time to end first (kEndTime):
  // it is the child of that host's sshd, which reaps it only as long as the connection lasts. Afterwards PID 1 would
  // have to, and that of a container may reap nothing.
  Task<void> end();

 private:
  friend class AgentChannels;
  Task<void> read_loop();
  Task<void> read_frames();
  Task<void> write_loop();
  Task<void> beat_loop();
  void lose(Error error);
  void lose_in_silence(Clock::duration silence);
  // Without the time for which this process was stopped.
  Clock::duration silent_for();
  void ping();

  asio::io_context& io_;
  AgentChannels& group_;
  Host host_;
  std::unique_ptr<transport::Channel> channel_;
  control::Hello hello_;
  TypedLogin login_;
  control::FrameParser parser_;
  HeartbeatTimes times_;
  OnFrame on_frame_;
  OnLost on_lost_;
  OnSilent on_silent_;
  std::function<void()> on_sent_;
  TaskGroup tasks_;

  control::FrameQueue outgoing_;
  Event beat_wake_;
  Deadline last_heard_;
  StallWatch own_stops_;
  control::ClockAlignment clock_;
  int pings_left_ = 0;

  struct Waiting {
    explicit Waiting(const asio::any_io_executor& executor) : arrived(executor) {}
    bool takes(const control::Frame& arriving) const {
      return arriving.type == type && !frame && (!is_meant || arriving.body.empty() || is_meant(arriving));
    }
    control::Type type{};
    IsMeant is_meant;
    std::optional<control::Frame> frame;
    Event arrived;
  };
  std::deque<std::shared_ptr<Waiting>> waiting_;
  Error lost_error_;
  bool lost_ = false;
  bool lost_in_silence_ = false;
  bool has_workers_ = false;  // Spawn is sent, Finished has not come
  bool closed_ = false;
  bool ending_ = false;
  Event ended_;  // nothing more will be read
};

// end() of all, at the same time.
Task<void> end_channels(asio::io_context& io, const std::vector<std::unique_ptr<AgentChannel>>& agents);

}  // namespace drun::launcher
