// A worker for the tests: does as its first argument says, prints what it learns, exits 3 if a call failed.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "drun/drun.hpp"

namespace {

void endless(drun::Communicator& all) {
  std::vector<double> data(50'000, 1.0);
  for (;;) all.allreduce(data);
}

int run(const std::string& scenario, int who) {
  drun::Communicator all;
  std::printf("rank %d of %d, local %d of %d, cross %d of %d\n", all.rank(), all.size(), all.local_rank(),
              all.local_size(), all.cross_rank(), all.cross_size());
  std::fflush(stdout);
  const bool is_it = all.rank() == who;
  if (scenario == "work") {
    for (const std::size_t count : {1u, 1000u, 300'000u}) {
      std::vector<float> data(count, static_cast<float>(all.rank() + 1));
      all.allreduce(data);
      const float expected = static_cast<float>(all.size() * (all.size() + 1) / 2);
      for (const float value : data) {
        if (value != expected) return 1;
      }
      all.broadcast(data, all.size() - 1);
    }
    const auto ranks = all.allgather(static_cast<std::int32_t>(all.rank()));
    for (int rank = 0; rank < all.size(); ++rank) {
      if (ranks[static_cast<std::size_t>(rank)] != rank) return 1;
    }
    if (all.rank() == 0) all.set("greeting", std::string(5000, 'x'));
    if (all.get("greeting", std::chrono::seconds(10)).size() != 5000) return 1;
    all.barrier();
    return 0;
  }
  if (scenario == "die") {  // with a signal, in the middle
    for (int i = 0; i < 10; ++i) all.barrier();
    if (is_it) std::raise(SIGKILL);
    endless(all);
  }
  if (scenario == "leave") {  // goes away early, without a word
    all.barrier();
    if (is_it) std::_Exit(0);
    endless(all);
  }
  if (scenario == "abort") {
    all.barrier();
    if (is_it) {
      all.abort("the loss is NaN");
      return 4;
    }
    endless(all);
  }
  if (scenario == "abort-from-thread") {  // while the same process waits in a collective
    all.barrier();
    if (is_it) {
      std::thread other([] { drun_abort("enough"); });
      try {
        all.barrier();  // nobody else comes
      } catch (const drun::Error&) {
        other.join();
        throw;
      }
      other.join();
      return 1;
    }
    all.get("never", std::chrono::seconds(60));
  }
  if (scenario == "absent") {  // alive, but never calls
    all.barrier();
    if (is_it) all.get("never", std::chrono::seconds(5));  // longer than the others' patience
    endless(all);
  }
  return 5;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : "work", argc > 2 ? std::atoi(argv[2]) : -1);
  } catch (const drun::Error& e) {
    std::printf("error %d rank %d host '%s': %s\n", e.code, e.rank, e.host.c_str(), e.what());
    return 3;
  }
}
