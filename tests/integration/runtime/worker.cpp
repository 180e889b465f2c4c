// A worker for the tests: does as its first argument says, prints what it learns, exits 3 if a call failed.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

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

void endless_alltoall(drun::Communicator& all) {
  const auto size = static_cast<std::size_t>(all.size());
  std::vector<double> send(20'000 * size, 1.0), recv(send.size());
  for (;;) all.alltoall(send.data(), recv.data(), 20'000);
}

// Everything that goes from rank to rank; true if what came is right.
bool exchange(drun::Communicator& all) {
  const int rank = all.rank(), size = all.size();
  const auto n = static_cast<std::size_t>(size);
  const std::size_t own = static_cast<std::size_t>(rank);
  bool right = true;

  std::vector<int> to_all(n), from_all(n);  // rank r sends rank i the number 100 r + i
  for (int i = 0; i < size; ++i) to_all[static_cast<std::size_t>(i)] = 100 * rank + i;
  all.alltoall(to_all.data(), from_all.data(), 1);
  for (int i = 0; i < size; ++i) right = right && from_all[static_cast<std::size_t>(i)] == 100 * i + rank;

  // i elements for rank i, so that rank r gets r of each.
  std::vector<std::size_t> sent(n), received(n, own);
  for (std::size_t i = 0; i < n; ++i) sent[i] = i;
  std::vector<std::int64_t> out(n * (n - 1) / 2, rank), in(n * own, -1);
  all.alltoallv(out.data(), sent, in.data(), received);
  for (std::size_t i = 0; i < in.size(); ++i) right = right && in[i] == static_cast<std::int64_t>(i / own);

  const int root = size - 1;
  std::vector<int> gathered(rank == root ? n : 0), gathered_v(n * (n + 1) / 2, -1);
  all.gather(&rank, gathered.data(), 1, root);
  for (std::size_t i = 0; i < gathered.size(); ++i) right = right && gathered[i] == static_cast<int>(i);
  int scattered = -1;
  all.scatter(gathered.data(), &scattered, 1, root);
  right = right && scattered == rank;
  std::vector<std::size_t> counts(n);
  for (std::size_t i = 0; i < n; ++i) counts[i] = i + 1;
  const std::vector<int> mine(own + 1, rank);
  all.allgatherv(mine.data(), mine.size(), gathered_v.data(), counts);
  right = right && gathered_v.back() == size - 1 && gathered_v.front() == 0;

  drun::CallOptions options;
  options.name = "halved";
  options.prescale = 0.5;
  std::vector<double> values(n, 2.0), sum(n);
  double block = 0;
  all.reduce(values.data(), sum.data(), n, DRUN_SUM, root, options);
  right = right && (rank != root || sum.back() == size);
  all.reduce_scatter(values.data(), &block, 1, DRUN_SUM, options);
  right = right && block == size;

  if (size > 1) {  // once around the circle
    int token = 7;
    if (rank > 0) all.recv(&token, 1, rank - 1);
    all.send(&token, 1, (rank + 1) % size);
    if (rank == 0) all.recv(&token, 1, size - 1);
    right = right && token == 7;
  }
  return right;
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
    if (!exchange(all)) return 1;
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
  if (scenario == "die-in-alltoall") {
    if (is_it) {
      std::thread killer([] {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));  // at any point of it
        std::raise(SIGKILL);
      });
      endless_alltoall(all);
    }
    endless_alltoall(all);
  }
  if (scenario == "few-files") {  // none is left for another connection
    all.barrier();
    if (is_it) {
      const int next = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
      ::close(next);
      const rlimit files{static_cast<rlim_t>(next), static_cast<rlim_t>(next)};
      if (::setrlimit(RLIMIT_NOFILE, &files) != 0) return 1;
      all.set("limited", "yes");
    }
    all.get("limited", std::chrono::seconds(10));
    int value = all.rank();
    std::vector<int> values(static_cast<std::size_t>(all.size()));
    all.gather(&value, values.data(), 1, who);
    all.barrier();
    return 0;
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
