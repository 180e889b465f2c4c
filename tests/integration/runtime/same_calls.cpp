// same_calls SEED FOLDER: makes every collective that libdrun and MPI both have on the same random data, with libdrun
// or, if USE_MPI is defined, with MPI. Each rank writes its results to FOLDER/RANK.
#ifdef USE_MPI
#include <mpi.h>
#endif

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "drun/drun.hpp"
#include "tests/integration/runtime/same_calls.h"

namespace {

#ifdef USE_MPI

// The part of drun::Communicator that is used below.
class Library {
 public:
  Library() {
    MPI_Init(nullptr, nullptr);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  ~Library() { MPI_Finalize(); }
  int rank() const { return rank_; }
  int size() const { return size_; }

  template <typename T>
  void allreduce(const T* send, T* recv, std::size_t count, drun_op op) {
    MPI_Allreduce(send, recv, number(count), type<T>(), op_of(op), MPI_COMM_WORLD);
  }
  template <typename T>
  void reduce(const T* send, T* recv, std::size_t count, drun_op op, int root) {
    MPI_Reduce(send, recv, number(count), type<T>(), op_of(op), root, MPI_COMM_WORLD);
  }
  template <typename T>
  void reduce_scatter(const T* send, T* recv, std::size_t count, drun_op op) {
    MPI_Reduce_scatter_block(send, recv, number(count), type<T>(), op_of(op), MPI_COMM_WORLD);
  }
  template <typename T>
  void broadcast(T* data, std::size_t count, int root) {
    MPI_Bcast(data, number(count), type<T>(), root, MPI_COMM_WORLD);
  }
  template <typename T>
  void allgather(const T* send, T* recv, std::size_t count) {
    MPI_Allgather(send, number(count), type<T>(), recv, number(count), type<T>(), MPI_COMM_WORLD);
  }
  template <typename T>
  void allgatherv(const T* send, std::size_t count, T* recv, const std::vector<std::size_t>& counts) {
    MPI_Allgatherv(send, number(count), type<T>(), recv, numbers(counts).data(), places(counts).data(), type<T>(),
                   MPI_COMM_WORLD);
  }
  template <typename T>
  void gather(const T* send, T* recv, std::size_t count, int root) {
    MPI_Gather(send, number(count), type<T>(), recv, number(count), type<T>(), root, MPI_COMM_WORLD);
  }
  template <typename T>
  void scatter(const T* send, T* recv, std::size_t count, int root) {
    MPI_Scatter(send, number(count), type<T>(), recv, number(count), type<T>(), root, MPI_COMM_WORLD);
  }
  template <typename T>
  void alltoall(const T* send, T* recv, std::size_t count) {
    MPI_Alltoall(send, number(count), type<T>(), recv, number(count), type<T>(), MPI_COMM_WORLD);
  }
  template <typename T>
  void alltoallv(const T* send, const std::vector<std::size_t>& sent, T* recv, const std::vector<std::size_t>& got) {
    MPI_Alltoallv(send, numbers(sent).data(), places(sent).data(), type<T>(), recv, numbers(got).data(),
                  places(got).data(), type<T>(), MPI_COMM_WORLD);
  }
  template <typename T>
  void exchange(const T* send, T* recv, std::size_t count, int to, int from) {
    MPI_Sendrecv(send, number(count), type<T>(), to, 0, recv, number(count), type<T>(), from, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
  }

 private:
  static int number(std::size_t count) { return static_cast<int>(count); }
  static std::vector<int> numbers(const std::vector<std::size_t>& counts) { return {counts.begin(), counts.end()}; }
  static std::vector<int> places(const std::vector<std::size_t>& counts) {  // contiguous blocks
    std::vector<int> result(counts.size(), 0);
    for (std::size_t i = 1; i < counts.size(); ++i) result[i] = result[i - 1] + number(counts[i - 1]);
    return result;
  }
  static MPI_Op op_of(drun_op op) {
    switch (op) {
      case DRUN_PROD:
        return MPI_PROD;
      case DRUN_MIN:
        return MPI_MIN;
      case DRUN_MAX:
        return MPI_MAX;
      default:
        return MPI_SUM;
    }
  }
  template <typename T>
  static MPI_Datatype type() {
    switch (drun::dtype_of<T>()) {
      case DRUN_INT8:
        return MPI_INT8_T;
      case DRUN_UINT8:
        return MPI_UINT8_T;
      case DRUN_INT32:
        return MPI_INT32_T;
      case DRUN_UINT32:
        return MPI_UINT32_T;
      case DRUN_INT64:
        return MPI_INT64_T;
      case DRUN_UINT64:
        return MPI_UINT64_T;
      case DRUN_FLOAT32:
        return MPI_FLOAT;
      default:
        return MPI_DOUBLE;
    }
  }

  int rank_ = 0, size_ = 0;
};

#else

class Library : public drun::Communicator {
 public:
  template <typename T>
  void exchange(const T* to_send, T* to_recv, std::size_t count, int to, int from) {
    drun::Group together;
    send(to_send, count, to);
    recv(to_recv, count, from);
    together.end();
  }
};

#endif

struct Call {
  const char* name;
  int op;  // a drun_op; -1: none
  std::size_t count;
};

class Calls {
 public:
  Calls(std::uint64_t seed, const std::string& folder) : seed_(seed) {
    const std::string path = folder + "/" + std::to_string(all_.rank());
    file_ = std::fopen(path.c_str(), "wb");
    if (file_ == nullptr) {
      std::perror(path.c_str());
      std::exit(1);
    }
  }
  bool close() { return std::fclose(std::exchange(file_, nullptr)) == 0; }

  template <typename T>
  void reductions(std::size_t count) {
    const std::size_t size = n_ranks();
    std::vector<T> result(count);
    for (const drun_op op : {DRUN_SUM, DRUN_PROD, DRUN_MIN, DRUN_MAX}) {
      auto given = fresh<T>(count, op);
      all_.allreduce(given.data(), result.data(), count, op);
      write<T>({"allreduce", op, count}, result, true);
      const int root = next_root();
      given = fresh<T>(count, op);
      all_.reduce(given.data(), result.data(), count, op, root);
      write<T>({"reduce", op, count}, result, all_.rank() == root);
      given = fresh<T>(count * size, op);
      all_.reduce_scatter(given.data(), result.data(), count, op);
      write<T>({"reduce_scatter", op, count}, result, true);
    }
  }

  template <typename T>
  void moves(std::size_t count) {
    const std::size_t size = n_ranks(), rank = static_cast<std::size_t>(all_.rank());
    int root = next_root();
    auto data = fresh<T>(count);
    all_.broadcast(data.data(), count, root);
    write<T>({"broadcast", -1, count}, data, true);

    std::vector<T> everyones(count * size);
    data = fresh<T>(count);
    all_.allgather(data.data(), everyones.data(), count);
    write<T>({"allgather", -1, count}, everyones, true);

    data = fresh<T>(count);
    root = next_root();
    all_.gather(data.data(), everyones.data(), count, root);
    write<T>({"gather", -1, count}, everyones, all_.rank() == root);

    everyones = fresh<T>(count * size);
    root = next_root();
    all_.scatter(everyones.data(), data.data(), count, root);
    write<T>({"scatter", -1, count}, data, true);

    std::vector<T> others(count * size);
    everyones = fresh<T>(count * size);
    all_.alltoall(everyones.data(), others.data(), count);
    write<T>({"alltoall", -1, count}, others, true);

    data = fresh<T>(count);
    std::vector<T> from_before(count);
    all_.exchange(data.data(), from_before.data(), count, static_cast<int>((rank + 1) % size),
                  static_cast<int>((rank + size - 1) % size));
    write<T>({"send and recv", -1, count}, from_before, true);

    // Sizes that all ranks know, some of them 0: of each rank's contribution, and from rank i to rank j.
    ++call_;
    std::vector<std::size_t> given(size), sent(size), got(size);
    for (std::size_t i = 0; i < size; ++i) {
      given[i] = random(i, 0) % (count + 1);
      sent[i] = random(rank, i + 1) % (count + 1);
      got[i] = random(i, rank + 1) % (count + 1);
    }
    data = fresh<T>(given[rank]);
    std::vector<T> joined(std::accumulate(given.begin(), given.end(), std::size_t{0}));
    all_.allgatherv(data.data(), data.size(), joined.data(), given);
    write<T>({"allgatherv", -1, count}, joined, true);
    data = fresh<T>(std::accumulate(sent.begin(), sent.end(), std::size_t{0}));
    joined.assign(std::accumulate(got.begin(), got.end(), std::size_t{0}), T{});
    all_.alltoallv(data.data(), sent, joined.data(), got);
    write<T>({"alltoallv", -1, count}, joined, true);
  }

  template <typename T>
  void all_of_type() {
    for (const std::size_t count : {std::size_t{1}, std::size_t{37}, std::size_t{4099}}) {
      reductions<T>(count);
      moves<T>(count);
    }
  }

 private:
  std::size_t n_ranks() const { return static_cast<std::size_t>(all_.size()); }
  int next_root() const { return static_cast<int>(call_ % n_ranks()); }

  // splitmix64 of the call, `who` and `which`: the same number on every rank and with both libraries.
  std::uint64_t random(std::uint64_t who, std::uint64_t which) const {
    std::uint64_t x = seed_ + 0x9e3779b97f4a7c15u * (call_ + 1000003 * (who + 1000003 * which));
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }

  // This rank's input for the next call. Floating-point numbers are 0.5 to 1.5, of either sign, as the bounds in
  // mpi_test.cpp require. Sums and products of integers don't overflow, because overflow is undefined in MPI, and Open
  // MPI's sums of bytes saturate.
  template <typename T>
  std::vector<T> fresh(std::size_t count, int op = -1) {
    ++call_;
    std::vector<T> values(count);
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t bits = random(static_cast<std::uint64_t>(all_.rank()), i);
      if constexpr (std::is_floating_point_v<T>) {
        const double value = 0.5 + static_cast<double>(bits >> 11) * 0x1p-53;
        values[i] = static_cast<T>(bits % 2 == 0 ? value : -value);
      } else if (op == DRUN_PROD) {
        values[i] = static_cast<T>(std::is_signed_v<T> ? static_cast<int>(bits % 5) - 2 : static_cast<int>(bits % 4));
      } else if (op == DRUN_SUM) {
        values[i] = static_cast<T>(static_cast<T>(bits) / static_cast<T>(n_ranks()));
      } else {
        values[i] = static_cast<T>(bits);
      }
    }
    return values;
  }

  template <typename T>
  void write(const Call& call, const std::vector<T>& result, bool is_ours) {
    drun::testing::Record record{};
    std::snprintf(record.label, sizeof record.label, "call %llu, %s of %zu", static_cast<unsigned long long>(call_),
                  call.name, call.count);
    record.dtype = drun::dtype_of<T>();
    record.op = call.op;
    record.n_bytes = is_ours ? result.size() * sizeof(T) : 0;
    std::fwrite(&record, sizeof record, 1, file_);
    if (record.n_bytes > 0) std::fwrite(result.data(), 1, record.n_bytes, file_);
  }

  Library all_;
  std::uint64_t seed_, call_ = 0;
  std::FILE* file_ = nullptr;
};

int run(std::uint64_t seed, const std::string& folder) {
  Calls calls(seed, folder);
  calls.all_of_type<std::int8_t>();
  calls.all_of_type<std::uint8_t>();
  calls.all_of_type<std::int32_t>();
  calls.all_of_type<std::uint32_t>();
  calls.all_of_type<std::int64_t>();
  calls.all_of_type<std::uint64_t>();
  calls.all_of_type<float>();
  calls.all_of_type<double>();
  // Sizes that take several steps.
  calls.reductions<float>(150'000);
  calls.moves<double>(70'000);
  return calls.close() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    return run(std::strtoull(argv[1], nullptr, 10), argv[2]);
  } catch (const std::exception& e) {
    std::printf("%s\n", e.what());
    return 3;
  }
}
