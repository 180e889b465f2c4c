// A job under any sequence of messages of agents and workers: it ends, with a status that fits.
#include "launcher/run/job_state.h"

#include <algorithm>

#include "launcher/report/clock_track.h"
#include "tests/fuzz/fuzz.h"

namespace drun::fuzz {
namespace {

using namespace launcher;
using std::chrono::milliseconds;

class Job {
 public:
  explicit Job(Input& in) : in_(in), n_hosts_(1 + in.below(3)), slots_(1 + in.below(3)) {
    std::vector<std::string> names;
    std::vector<Host> hosts(n_hosts_);
    for (std::size_t i = 0; i < n_hosts_; ++i) {
      names.push_back("node" + std::to_string(i));
      hosts[i].name = names.back();
      hosts[i].slots = static_cast<int>(slots_);
    }
    const auto placement = place(hosts, 0);
    expect(placement.has_value(), "hosts with slots get ranks");
    state_.place(*placement, names);
    time_.now = Deadline(std::chrono::hours(1));
    time_.ns = 3'600'000'000'000;
  }

  void run() {
    while (!in_.empty() && !state_.over()) {
      pass(milliseconds(in_.number() % 4096));
      event();
      take_actions();
    }
    finish();
  }

 private:
  std::uint32_t a_rank() { return static_cast<std::uint32_t>(in_.below(n_hosts_ * slots_ + 1)); }  // one too many
  std::size_t a_host() { return in_.below(n_hosts_); }

  template <typename Message>
  Message message() {
    return control::decode<Message>(in_.text()).value_or(Message());
  }

  void event() {
    switch (in_.below(12)) {
      case 0:
        if (!state_.active()) (void)state_.activate(time_);
        break;
      case 1: {
        auto started = message<control::Started>();
        started.rank = a_rank();
        state_.started(started, time_);
        break;
      }
      case 2:
        state_.output_ended(static_cast<int>(a_rank()), time_);
        break;
      case 3: {
        auto exited = message<control::Exited>();
        exited.rank = a_rank();
        const auto when = clock_.ours(static_cast<std::int64_t>(exited.time_ns));
        (void)track_.ours(
            static_cast<std::int64_t>(std::min(exited.time_ns, std::uint64_t{1} << 61)));  // as timeline.cpp
        state_.exited(exited, when, time_);
        break;
      }
      case 4:
        state_.finished(a_host(), message<control::Finished>(), time_);
        break;
      case 5: {
        const std::size_t host = a_host();
        std::optional<Deadline> silent_since;
        if (in_.below(2) == 1) silent_since = time_.now - milliseconds(in_.byte());
        state_.lost(host, Error(Errc::kUnreachable, std::string(in_.text())), silent_since, time_);
        break;
      }
      case 6:
        state_.abort_requested(static_cast<int>(a_rank()), std::string(in_.text()), time_);
        break;
      case 7:
        if (in_.below(2) == 0) {
          state_.joined(static_cast<int>(a_rank()));
        } else {
          state_.complained(static_cast<int>(a_rank()), std::string(in_.text()));
        }
        break;
      case 8: {
        auto output = message<control::Output>();
        output.rank = a_rank();
        state_.wrote(output);
        break;
      }
      case 9:
        state_.stop(static_cast<int>(in_.byte()), std::string(in_.text()), time_);
        break;
      case 10:
        // A pong: the time of the host's clock may be anything.
        clock_.add(time_.ns - static_cast<std::int64_t>(in_.number()), time_.ns,
                   static_cast<std::int64_t>(in_.big_number()));
        track_.add(clock_);
        break;
      default:
        if (in_.below(2) == 0) {
          (void)state_.output_broken(1, time_);
        } else {
          state_.stop_now(time_);
        }
    }
  }

  void pass(milliseconds time) {
    time_.now += time;
    time_.ns += std::chrono::nanoseconds(time).count();
    if (time_.now >= state_.wake_at()) state_.time_passed(time_);
  }

  void take_actions() {
    for (const auto& action : state_.take_actions()) {
      if (const auto* stop = std::get_if<SendStop>(&action)) {
        expect(stop->host < n_hosts_, "an order goes to a host of the job");
        for (const auto rank : stop->order.delayed) expect(state_.ranks().has(rank), "a rank of the job is delayed");
      }
      if (const auto* over = std::get_if<StdinOver>(&action)) {
        expect(over->rank >= 0 && state_.ranks().has(static_cast<std::uint64_t>(over->rank)),
               "a rank of the job reads");
      }
    }
  }

  // An interrupt ends any job within its deadlines, unless only its output is left to be read.
  void finish() {
    state_.stop_now(time_);
    for (int i = 0; i < 3 && !state_.over() && state_.wake_at() != Deadline::max(); ++i) {
      pass(std::chrono::duration_cast<milliseconds>(state_.wake_at() - time_.now) + milliseconds(1));
    }
    take_actions();
    if (!state_.over()) {
      expect(state_.unfinished_hosts().empty(), "a job ends unless its hosts have");
      for (const auto& rank : state_.ranks()) {
        for (int i = 0; i < 2 && !rank.over; ++i) state_.output_ended(rank.rank, time_);
      }
    }
    if (state_.active()) expect(state_.over(), "a job ends");
    state_.conclude();
    take_actions();
    const JobReport report = state_.report();
    expect(report.ranks.size() == n_hosts_ * slots_, "the report has all ranks");
    expect(report.status >= 0 && report.status <= 255, "a status fits in a byte");
    if (state_.first_failure()) {
      expect(!state_.first_failure()->first.empty(), "a failure has a cause");
      expect(report.status != 0, "a job that failed has not the status of a good one");
    }
  }

  Input& in_;
  std::size_t n_hosts_, slots_;
  JobState state_{milliseconds(5000),
                  [this] { return std::vector<int>(1, static_cast<int>(in_.below(n_hosts_ * slots_))); }};
  control::ClockAlignment clock_;
  ClockTrack track_;
  JobTime time_;
};

void run(std::string_view bytes) {
  Input in(bytes);
  Job(in).run();
}

// 2 hosts with 2 ranks each; each event is preceded by 10 ms.
class Play {
 public:
  Play() { script_.byte(1).byte(1); }
  Script& next(std::size_t kind) { return script_.number(10).byte(kind); }
  Play& begin() {
    next(0);
    for (std::size_t rank = 0; rank < 4; ++rank) {
      control::Started started;
      started.pid = 100 + static_cast<std::int32_t>(rank);
      next(1).text(control::encode(started)).byte(rank);
    }
    return *this;
  }
  Play& exit(std::size_t rank, std::int32_t wait_status, const std::string& error_file = "") {
    control::Exited exited;
    exited.wait_status = wait_status;
    exited.time_ns = 5;
    exited.error_file = error_file;
    next(3).text(control::encode(exited)).byte(rank);
    return *this;
  }
  Play& outputs_end() {
    for (std::size_t rank = 0; rank < 4; ++rank) next(2).byte(rank), next(2).byte(rank);
    return *this;
  }
  Play& finished() {
    for (std::size_t host = 0; host < 2; ++host) next(4).byte(host).text(control::encode(control::Finished()));
    return *this;
  }
  operator std::string() const { return script_; }

 private:
  Script script_;
};

std::vector<std::string> seeds() {
  Play good, failed, lost, aborted, output, early, late;
  good.begin();
  for (std::size_t rank = 0; rank < 4; ++rank) good.exit(rank, 0);
  good.outputs_end().finished();
  failed.begin().next(10).number(1000).big_number(77);
  failed.exit(2, 9).exit(1, 1 << 8, R"({"message": {"message": "nan"}})").outputs_end().finished();
  lost.begin().next(5).byte(1).byte(1).byte(200).text("the connection to the agent ended");
  lost.exit(0, 15).outputs_end();
  aborted.begin().next(7).byte(0).byte(3);
  aborted.next(7).byte(1).byte(2).text("rank 1 closed its connection");
  aborted.next(6).byte(3).text("loss is nan");
  aborted.finished();
  control::Output wrote;
  wrote.bytes = "Traceback (most recent call last):\nValueError: x\n";
  output.begin().next(8).text(control::encode(wrote)).byte(1);
  output.exit(1, 1 << 8).next(11).byte(0);
  early.next(5).byte(0).byte(0).text("lost before the start");
  early.next(0);
  late.begin().next(9).byte(75).text("the time is over");
  late.next(11).byte(1);
  return {good, failed, lost, aborted, output, early, late};
}

const Target kTarget("job_state", run, seeds);

}  // namespace
}  // namespace drun::fuzz
