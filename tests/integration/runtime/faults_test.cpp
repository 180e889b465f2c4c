// SIGKILL and SIGSTOP at every point of every algorithm: at each message, each wait, each copy of data, in real
// processes. DRUN_TEST_FAULT_STRIDE=N tries every N-th point of all calls, 1 every point; without it a few points are
// tried. DRUN_TEST_FAULT_CALL=init, or another call, tries that one alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <thread>

#include "tests/contains.h"
#include "tests/integration/runtime/job_server.h"

namespace drun {
namespace {

using namespace std::chrono_literals;
using testing::JobOptions;
using testing::run_job;
using testing::WorkerEnd;

const std::string kWorker = WORKER_PATH;

using drun::testing::contains;

enum class Ways { kNetwork, kMemory, kHosts };
constexpr const char* kWayNames[] = {"network", "memory", "hosts"};

// A call and its number of floats in each block: counts around the limits between algorithms.
struct Call {
  const char* name;
  std::size_t count;
};
constexpr Call kCalls[] = {
    {"allreduce", 1000},       // doubling; in memory all at once
    {"allreduce", 20'000},     // halving; in one piece; in lanes
    {"allreduce", 350'000},    // ring; in pieces
    {"adasum", 1000},          //
    {"adasum", 1'100'000},     // in two passes
    {"reduce", 1000},          //
    {"reduce", 350'000},       //
    {"reduce_scatter", 1000},  //
    {"reduce_scatter", 100'000},
    {"broadcast", 1000},
    {"broadcast", 350'000},
    {"allgather", 1000},
    {"allgather", 200'000},
    {"allgatherv", 1000},
    {"gather", 1000},
    {"gather", 200'000},
    {"scatter", 1000},
    {"scatter", 200'000},
    {"alltoall", 1000},
    {"alltoall", 100'000},
    {"alltoallv", 1000},
    {"exchange", 1000},
    {"exchange", 1'000'000},
    {"barrier", 1},
    {"split", 1},
    {"init", 1},
};
// The deadline, in seconds, of ranks that wait for a stopped one: longer than any of the calls takes on a busy machine,
// even with sanitizers.
constexpr int kDeadline = 3;

constexpr int kRanks = 5;  // not a power of two; three and two on the hosts
constexpr int kVictims[] = {0, 3, 4};

struct Fault {
  Ways ways;
  Call call;
  int victim, at, signal;
};

std::string describe(const Fault& fault) {
  return std::string(kWayNames[static_cast<int>(fault.ways)]) + " " + fault.call.name + " of " +
         std::to_string(fault.call.count) + ", signal " + std::to_string(fault.signal) + " in rank " +
         std::to_string(fault.victim) + " at point " + std::to_string(fault.at);
}

std::vector<WorkerEnd> run(const Fault& fault) {
  JobOptions options;
  options.size = kRanks;
  options.shares_memory = fault.ways != Ways::kNetwork;
  if (fault.ways == Ways::kHosts) options.ranks_per_host = 3;
  const bool stops = fault.signal == SIGSTOP;
  options.limit = std::chrono::seconds(80);
  // Timeouts that are not under test are long.
  const std::string timeout = std::to_string(kDeadline), long_time = "60";
  const bool joins = fault.call.name == std::string("init");
  // A rank that is stopped at the end of drun_init delays the calls that follow.
  options.env = {"DRUN_OP_TIMEOUT=" + (stops ? timeout : long_time),
                 "DRUN_INIT_TIMEOUT=" + (stops && joins ? timeout : long_time)};
  return run_job({kWorker, fault.call.name, std::to_string(fault.call.count), std::to_string(fault.victim),
                  std::to_string(fault.at), std::to_string(fault.signal)},
                 options);
}

struct ReachabilityVotes {
  std::atomic<int> n_reached{0}, n_beyond{0};
  std::mutex mutex;
  std::chrono::steady_clock::duration longest{};
};

// Returns true if the fault was reached. All other ranks must then name the victim and how it ended.
bool try_it(const Fault& fault, ReachabilityVotes& tally) {
  SCOPED_TRACE(describe(fault));
  const auto ends = run(fault);
  const auto& victim = ends[static_cast<std::size_t>(fault.victim)];
  if (contains(victim.output, "not reached")) {
    for (const auto& end : ends) EXPECT_EQ(end.status, 0) << end.rank << ": " << end.output;
    ++tally.n_beyond;
    return false;
  }
  const std::string host = fault.ways == Ways::kHosts ? "node" + std::to_string(fault.victim / 3) : "node0";
  const std::string name = "rank " + std::to_string(fault.victim) + " on " + host;
  const bool stops = fault.signal == SIGSTOP, joins = fault.call.name == std::string("init");
  EXPECT_EQ(victim.status, 128 + SIGKILL) << victim.output;
  EXPECT_EQ(victim.stopped, stops) << victim.output;
  for (const auto& end : ends) {
    if (end.rank == fault.victim) continue;
    EXPECT_EQ(end.status, 3) << end.rank << ": " << end.output;
    EXPECT_FALSE(end.killed) << end.rank << " did not end";
    if (!stops) {
      EXPECT_TRUE(contains(end.output, name + " (pid " + std::to_string(victim.pid) + "): killed by signal 9"))
          << end.rank << ": " << end.output;
    } else if (!joins) {
      EXPECT_TRUE(contains(end.output, "waiting for " + name)) << end.rank << ": " << end.output;
    }
    if (!joins) {
      EXPECT_TRUE(contains(end.output, " rank " + std::to_string(fault.victim) + " host '" + host + "'"))
          << end.rank << ": " << end.output;
    }
    const auto took = end.after - victim.after;
    EXPECT_LT(took, stops ? std::chrono::seconds(kDeadline) + 20s : 20s) << end.rank << ": " << end.output;
    const std::lock_guard<std::mutex> lock(tally.mutex);
    tally.longest = std::max(tally.longest, took);
  }
  ++tally.n_reached;
  return true;
}

// Runs several at a time, because they mostly wait.
void run_all(const std::vector<std::function<void()>>& tasks, std::size_t n_threads) {
  std::atomic<std::size_t> next{0};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < n_threads; ++i) {
    threads.emplace_back([&] {
      for (std::size_t task = next++; task < tasks.size(); task = next++) tasks[task]();
    });
  }
  for (auto& thread : threads) thread.join();
}

void try_faults(int signal, int n_by_default, std::size_t n_threads) {
  const char* text = std::getenv("DRUN_TEST_FAULT_STRIDE");
  const int stride = text != nullptr ? std::max(1, std::atoi(text)) : 0;
  const char* const only = std::getenv("DRUN_TEST_FAULT_CALL");
  ReachabilityVotes tally;
  std::vector<std::function<void()>> tasks;
  int n = 0;
  for (const Ways ways : {Ways::kNetwork, Ways::kMemory, Ways::kHosts}) {
    for (const Call& call : kCalls) {
      // At a deadline of an exchange the error names the peer, which may itself only wait; and no call may take as long
      // as the deadline by itself.
      const bool skipped = signal == SIGSTOP && (call.name == std::string("exchange") || call.count > 1'000'000);
      const bool wanted = only == nullptr || call.name == std::string(only);
      for (const int victim : kVictims) {
        ++n;
        if (skipped || !wanted) continue;
        const Fault fault{ways, call, victim, 0, signal};
        if (stride > 0) {
          tasks.push_back([fault, stride, n, &tally] {
            Fault now = fault;
            // The longer a call, the more of its points are alike.
            for (now.at = n % stride; try_it(now, tally); now.at += stride * (1 + now.at / 50)) {
            }
          });
        } else if (n % n_by_default == 0) {
          Fault one = fault;
          one.at = n / n_by_default % 5;
          tasks.push_back([one, &tally] { try_it(one, tally); });
        }
      }
    }
  }
  run_all(tasks, n_threads);
  EXPECT_GT(tally.n_reached, 0);
  std::printf("%d faults, %d ends of a call; the last to notice took %.2f s\n", tally.n_reached.load(),
              tally.n_beyond.load(), std::chrono::duration<double>(tally.longest).count());
}

TEST(Faults, ARankThatIsKilledAnywhereIsNamedByAllOthers) { try_faults(SIGKILL, 7, 4); }
TEST(Faults, ARankThatIsStoppedAnywhereIsNamedByAllOthersAtTheirDeadline) { try_faults(SIGSTOP, 37, 6); }

// Checks that the points above exist: the worker intercepts the functions by which libdrun moves data and waits.
TEST(Faults, HavePointsInAllPhases) {
  const auto points = [](Ways ways, const Call& call) { return run({ways, call, 3, -1, SIGKILL})[3].output; };
  // The call is late, because no rank waits in a call whose data has come already.
  const auto network = points(Ways::kNetwork, {"late", 350'000});
  EXPECT_TRUE(contains(network, "not reached")) << network;
  for (const char* none : {" 0 sends", " 0 receives", " 0 waits"}) EXPECT_FALSE(contains(network, none)) << network;
  const auto memory = points(Ways::kMemory, {"late", 350'000});
  EXPECT_TRUE(contains(memory, "not reached")) << memory;
  for (const char* none : {" 0 sleeps", " 0 copies"}) EXPECT_FALSE(contains(memory, none)) << memory;
}

}  // namespace
}  // namespace drun
