// A worker for the tests: runs the scenario that its first argument names, prints its results, exits with status 3 if a
// call failed.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "drun/drun.hpp"

namespace {

void endless(drun::Communicator& all) {
  std::vector<double> data(50'000, 1.0);
  for (;;) all.allreduce(data);
}

void alltoalls(drun::Communicator& all, std::size_t n_calls) {
  const auto size = static_cast<std::size_t>(all.size());
  std::vector<double> send(20'000 * size, 1.0), recv(send.size());
  for (std::size_t i = 0; i < n_calls; ++i) all.alltoall(send.data(), recv.data(), 20'000);
}
void endless_alltoall(drun::Communicator& all) { alltoalls(all, SIZE_MAX); }

// Makes all calls that move data between ranks. Returns true if the received data is right.
bool exchange(drun::Communicator& all) {
  const int rank = all.rank(), size = all.size();
  const auto n = static_cast<std::size_t>(size);
  const std::size_t own = static_cast<std::size_t>(rank);
  bool right = true;

  std::vector<int> to_all(n), from_all(n);  // rank r sends rank i the number 100 r + i
  for (int i = 0; i < size; ++i) to_all[static_cast<std::size_t>(i)] = 100 * rank + i;
  all.alltoall(to_all.data(), from_all.data(), 1);
  for (int i = 0; i < size; ++i) right = right && from_all[static_cast<std::size_t>(i)] == 100 * i + rank;

  // Sends i elements to rank i, so that rank r gets r from each.
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

  if (size > 1) {  // once around the ring
    int token = 7;
    if (rank > 0) all.recv(&token, 1, rank - 1);
    all.send(&token, 1, (rank + 1) % size);
    if (rank == 0) all.recv(&token, 1, size - 1);
    right = right && token == 7;
  }
  return right;
}

// Makes calls in the background, in groups, and on parts of the job. Returns true if the results are right.
bool background(drun::Communicator& all) {
  const int rank = all.rank(), size = all.size();
  const auto n = static_cast<std::size_t>(size);
  bool right = true;

  // Several calls at once, of all sizes, with a blocking one between, which is ordered after those before it.
  const std::vector<std::size_t> counts = {1, 1000, 700'000, 3, 50'000};
  std::vector<std::vector<float>> sums;
  for (const std::size_t count : counts) sums.emplace_back(count, static_cast<float>(rank + 1));
  std::vector<drun::Request> requests(counts.size());
  drun::CallOptions later;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    later.request = &requests[i];
    later.name = "gradient " + std::to_string(i);
    all.allreduce(sums[i], DRUN_SUM, later);
  }
  const auto expected = static_cast<float>(size * (size + 1)) / 2;
  all.barrier();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    right = right && requests[i].test();  // done, because the barrier came after it
    requests[i].wait();                   // nothing is left to wait for
    for (const float value : sums[i]) right = right && value == expected;
  }

  // Arrays of counts may be destroyed before the call is over.
  drun::Request request;
  std::vector<std::int32_t> mine(static_cast<std::size_t>(rank) + 1, rank), everyones(n * (n + 1) / 2, -1);
  {
    std::vector<std::size_t> blocks(n);
    for (std::size_t i = 0; i < n; ++i) blocks[i] = i + 1;
    later = {};
    later.request = &request;
    all.allgatherv(mine.data(), mine.size(), everyones.data(), blocks, {}, later);
    blocks.assign(n, 999);
  }
  request.wait();
  right = right && everyones.front() == 0 && everyones.back() == size - 1;

  // wait() reports a wrong argument.
  later.request = &request;
  all.broadcast(mine.data(), 1, size, later);
  try {
    request.wait();
    right = false;
  } catch (const drun::Error& e) {
    right = right && e.code == DRUN_ERROR_ARGUMENT;
  }

  // All ranks send before they receive, which only a group allows.
  const std::size_t many = 8'000'000;
  const std::vector<std::int8_t> out(many, static_cast<std::int8_t>(rank));
  std::vector<std::int8_t> in(many, -1);
  if (size > 1) {
    drun::Group together;
    all.send(out.data(), many, (rank + 1) % size);
    all.recv(in.data(), many, (rank + size - 1) % size);
    together.end();
    right = right && in == std::vector<std::int8_t>(many, static_cast<std::int8_t>((rank + size - 1) % size));
  }
  // Allreduces that travel together, and a call of another kind, half of them in the background.
  std::vector<double> a(10, rank), b(2000, 2.0 * rank), c(1, 1.0);
  std::vector<std::int32_t> told(1, rank);
  {
    // The first call has the longer deadline of the other, because they travel together.
    if (rank == size - 1) std::this_thread::sleep_for(std::chrono::milliseconds(400));
    drun::Group together;
    drun::CallOptions soon;
    soon.timeout = std::chrono::milliseconds(200);
    all.allreduce(a, DRUN_SUM, soon);
    all.allreduce(b, DRUN_SUM);
    later.request = &request;
    all.allreduce(c, DRUN_SUM, later);
    all.broadcast(told, size - 1);
    together.end();
  }
  request.wait();
  const double ranks = size * (size - 1) / 2.0;
  right = right && a.back() == ranks && b.back() == 2 * ranks && c[0] == size && told[0] == size - 1;

  // A call that returns its result can't be put off.
  const auto is_refused = [](const auto& call) {
    try {
      call();
      return false;
    } catch (const drun::Error& e) {
      return e.code == DRUN_ERROR_ARGUMENT;
    }
  };
  right = right && is_refused([&] { all.allreduce(1, DRUN_SUM, later); });
  right = right && is_refused([&] { all.allgather(1, later); });
  {
    drun::Group together;
    right = right && drun::Group::is_open() && is_refused([&] { all.allreduce(1); });
    together.end();
  }
  right = right && !drun::Group::is_open();

  // A wrong argument fails only its own call.
  std::vector<double> d(10, rank);
  std::int32_t* const nothing = nullptr;
  {
    drun_request one = nullptr, two = nullptr;
    drun_call_options first_options = DRUN_CALL_OPTIONS, second_options = DRUN_CALL_OPTIONS;
    first_options.request = &one;
    second_options.request = &two;
    drun::Group together;
    drun_allreduce(nothing, nothing, 7, DRUN_FLOAT64, DRUN_SUM, DRUN_COMM_WORLD, &first_options);
    drun_allreduce(d.data(), d.data(), d.size(), DRUN_FLOAT64, DRUN_SUM, DRUN_COMM_WORLD, &second_options);
    together.end();
    right = right && drun_wait(&one) == DRUN_ERROR_ARGUMENT && drun_wait(&two) == DRUN_OK && d.back() == ranks;
  }
  // An exception that destroys a group starts none of its calls, because their buffers are gone.
  try {
    drun::Group outer;
    all.allreduce(d, DRUN_SUM);
    {
      drun::Group inner;
      std::vector<double> gone(1000, 1.0);
      later.request = &request;
      all.allreduce(gone, DRUN_SUM, later);
      throw std::runtime_error("in the middle of a group");
    }
  } catch (const std::runtime_error&) {
    try {
      request.wait();
      right = false;
    } catch (const drun::Error& e) {
      right = right && e.code == DRUN_ERROR_STATE;
    }
    right = right && d.back() == ranks && drun_group_end() == DRUN_ERROR_STATE;
  }

  // Parts of the job.
  auto local = all.local(), cross = all.cross();
  right = right && local.rank() == all.local_rank() && local.size() == all.local_size() &&
          cross.rank() == all.cross_rank() && cross.size() == all.cross_size();
  right = right && local.allreduce(1) == all.local_size() && cross.allreduce(1) == all.cross_size();
  const int n_local = all.local_size();
  const bool alike = all.allreduce(n_local, DRUN_MIN) == all.allreduce(n_local, DRUN_MAX);
  right = right && all.is_homogeneous() == alike;
  for (int round = 0; round < 3; ++round) {
    auto half = all.split(rank % 2, -rank);
    right = right && half && half->allreduce(1) == half->size() && half->size() == (size + 1 - rank % 2) / 2;
    auto none = all.split(-1);
    right = right && !none;
  }

  // From several threads.
  std::vector<std::thread> threads;
  std::vector<std::int64_t> results(4, 0);
  drun::Communicator* const job = &all;
  for (std::size_t i = 0; i < results.size(); ++i) {
    threads.emplace_back([job, &results, i] {
      for (int k = 0; k < 50; ++k) results[i] += job->allreduce(std::int64_t{1});
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto result : results) right = right && result == 50 * size;
  return right;
}

// Joins and leaves the job many times. Each start has a key of the same name and another value.
bool starts_often(int n_starts) {
  bool right = true;
  for (int start = 0; start < n_starts; ++start) {
    drun::Communicator all;
    const std::string value = std::to_string(start) + std::string(1000, 'x');
    if (all.rank() == 0) all.set("start", value);
    right = right && all.get("start", std::chrono::seconds(10)) == value;
    all.barrier();
    all.finalize();
  }
  return right;
}

// One rank sets and deletes a key again and again; all read it.
bool reuses_a_key(drun::Communicator& all) {
  bool right = !all.erase("never set by rank " + std::to_string(all.rank()));
  for (int step = 0; step < 10; ++step) {
    const std::string value = std::to_string(step);
    if (all.rank() == 0) all.set("step", value);
    right = right && all.get("step", std::chrono::seconds(10)) == value;
    all.barrier();
    if (all.rank() == all.size() - 1) right = right && all.erase("step") && !all.erase("step");
    all.barrier();
  }
  return right;
}

int run(const std::string& scenario, int who) {
  if (scenario == "starts-often") return starts_often(who) ? 0 : 1;
  drun::Communicator all;
  std::printf("rank %d of %d, local %d of %d, cross %d of %d\n", all.rank(), all.size(), all.local_rank(),
              all.local_size(), all.cross_rank(), all.cross_size());
  std::fflush(stdout);
  const bool is_it = all.rank() == who;
  if (scenario == "work") {
    for (const std::size_t count : {1u, 1000u, 300'000u}) {
      std::vector<float> data(count, static_cast<float>(all.rank() + 1));
      all.allreduce(data);
      const float expected = static_cast<float>(all.size() * (all.size() + 1)) / 2;
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
    if (!reuses_a_key(all)) return 1;
    auto part = all.split(0);
    for (int i = 0; i < 2; ++i) part->finalize();
    if (part->rank() != -1 || !drun_is_initialized()) return 1;
    for (int i = 0; i < 2; ++i) all.finalize();
    return drun_is_initialized() ? 1 : 0;
  }
  if (scenario == "background") return background(all) ? 0 : 1;
  if (scenario == "die-in-background") {  // while the others only wait for a request
    drun::Request first, second;
    std::vector<double> data(50'000, 1.0), more(1, 1.0);
    drun::CallOptions later;
    later.name = "grad.17";
    for (int i = 0;; ++i) {
      later.request = &first;
      all.allreduce(data, DRUN_SUM, later);
      later.request = &second;
      all.allreduce(more, DRUN_SUM, later);
      if (is_it && i == 3) std::raise(SIGKILL);  // no other rank is more than one round behind
      second.wait();
      first.wait();
    }
  }
  if (scenario == "die-in-part") {  // others of its part wait for it, and all wait for them
    auto part = all.split(all.rank() % 2);
    for (int i = 0;; ++i) {
      part->allreduce(1.0);
      if (is_it && i == 20) std::raise(SIGKILL);
      if (i % 10 == 0) all.barrier();
    }
  }
  if (scenario == "die") {  // by a signal, in the middle
    for (int i = 0; i < 10; ++i) all.barrier();
    if (is_it) std::raise(SIGKILL);
    endless(all);
  }
  if (scenario == "die-in-alltoall") {
    if (is_it) {
      alltoalls(all, 1);  // so all others have left drun_init
      std::thread killer([] {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));  // at any point of the call
        std::raise(SIGKILL);
      });
      endless_alltoall(all);
    }
    endless_alltoall(all);
  }
  if (scenario == "few-files") {  // no descriptor is left for another connection
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
  if (scenario == "join") return 0;
  if (scenario == "die-and-leave-a-child") {  // the child inherits all open descriptors
    all.barrier();
    if (is_it) {
      if (::fork() == 0) {
        for (const int fd : {1, 2}) ::close(fd);
        ::sleep(2);
        ::_exit(0);
      }
      ::raise(SIGKILL);
    }
    endless(all);
  }
  if (scenario == "again") {  // runs another program in the same process, in the middle of this one
    all.barrier();
    const std::string path = "/proc/self/exe";
    ::execl(path.c_str(), path.c_str(), "work", nullptr);
    return 1;
  }
  if (scenario == "leave") {  // ends early without notice
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
  if (scenario == "abort-in-barrier" || scenario == "abort-in-get") {  // from another thread
    all.barrier();
    if (is_it) {
      std::thread other([] { drun_abort("enough"); });
      try {
        if (scenario == "abort-in-get") all.get("never", std::chrono::seconds(60));
        all.barrier();  // no other rank comes
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
    if (is_it) all.get("never", std::chrono::seconds(5));  // longer than the others' timeout
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
