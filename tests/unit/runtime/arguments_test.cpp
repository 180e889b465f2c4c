// The arguments that each collective refuses before it sends anything, and the error texts.
#include "runtime/src/arguments.h"

#include "tests/unit/runtime/grid.h"

namespace drun::runtime {
namespace {

using namespace testing;

void expect_wrong(const Status& status, const std::string& text) {
  ASSERT_FALSE(status) << text;
  EXPECT_EQ(status.error().status, DRUN_ERROR_ARGUMENT);
  EXPECT_EQ(status.error().text, text);
}

class ArgumentsOf : public ::testing::Test {
 protected:
  // Runs `body` on rank 0 of two; rank 1 only shows that nothing was sent.
  void run(const std::function<void(Communicator&)>& body) {
    FakeJob job(2);
    job.run([&](int rank) {
      auto all = join(job, rank);
      ASSERT_TRUE(all);
      if (rank == 0) body(*all);
      EXPECT_TRUE(all->barrier());
    });
  }
  float data[16] = {};
  const std::size_t huge = SIZE_MAX / 4;
};

TEST_F(ArgumentsOf, ReduceAreChecked) {
  run([&](Communicator& all) {
    const auto reduce = [&](const void* send, void* recv, std::size_t count, int dtype, int op, int root) {
      return all.reduce(send, recv, count, static_cast<drun_dtype>(dtype), static_cast<drun_op>(op), root);
    };
    expect_wrong(reduce(data, data, 4, 99, 0, 0), "drun_reduce: there is no element type 99");
    expect_wrong(reduce(data, data, 4, 8, 9, 0), "drun_reduce: there is no reduction 9");
    expect_wrong(reduce(data, data, 4, 8, 0, 2), "drun_reduce: root 2 is not a rank of 2");
    expect_wrong(reduce(nullptr, data, 4, 8, 0, 0), "drun_reduce: send is a null pointer");
    expect_wrong(reduce(nullptr, nullptr, 4, 8, 0, 1), "drun_reduce: send is a null pointer");
    expect_wrong(reduce(data, nullptr, 4, 8, 0, 0), "drun_reduce: recv is a null pointer");
    expect_wrong(reduce(data, data + 1, 4, 8, 0, 0), "drun_reduce: send and recv overlap without being equal");
    expect_wrong(reduce(data, data, huge, 8, 0, 0),
                 "drun_reduce: a count of " + std::to_string(huge) + " is too large");
  });
}

TEST_F(ArgumentsOf, ReduceScatterAreChecked) {
  run([&](Communicator& all) {
    const auto call = [&](const void* send, void* recv, std::size_t count) {
      return all.reduce_scatter(send, recv, count, DRUN_FLOAT32, DRUN_SUM);
    };
    const std::string name = "drun_reduce_scatter: ";
    expect_wrong(call(nullptr, data, 4), name + "send is a null pointer");
    expect_wrong(call(data, nullptr, 4), name + "recv is a null pointer");
    expect_wrong(call(data, data + 4, 4), name + "recv lies in send, but not at this rank's place");  // rank 1's place
    expect_wrong(call(data, data + 7, 4), name + "recv lies in send, but not at this rank's place");
    expect_wrong(call(data, data, huge), name + "a count of " + std::to_string(huge) + " is too large");
  });
}

TEST_F(ArgumentsOf, AllgathervAreChecked) {
  run([&](Communicator& all) {
    const auto call = [&](const void* send, std::size_t n, void* recv, std::vector<std::size_t> counts,
                          std::vector<std::size_t> offsets = {}) {
      return all.allgatherv(send, n, recv, counts.empty() ? nullptr : counts.data(),
                            offsets.empty() ? nullptr : offsets.data(), DRUN_FLOAT32);
    };
    const std::string name = "drun_allgatherv: ";
    float send[8] = {};
    expect_wrong(call(send, 2, data, {}), name + "recv_counts is a null pointer");
    expect_wrong(call(send, 2, data, {3, 1}), name + "send_count is 2, but recv_counts of this rank, 0, is 3");
    expect_wrong(call(nullptr, 2, data, {2, 1}), name + "send is a null pointer");
    expect_wrong(call(send, 0, nullptr, {0, 1}), name + "recv is a null pointer");
    expect_wrong(call(send, 2, data, {2, 3}, {2, 0}), name + "the blocks of recv for rank 1 and rank 0 overlap");
    expect_wrong(call(data + 1, 2, data, {2, 3}), name + "send lies in recv, but not at this rank's place");
    expect_wrong(call(send, 2, data, {2, huge}),
                 name + "recv_counts of rank 1: " + std::to_string(huge) + " elements at 2 are too many");
    expect_wrong(call(send, 2, data, {2, 2}, {0, SIZE_MAX - 1}),
                 name + "recv_counts of rank 1: 2 elements at " + std::to_string(SIZE_MAX - 1) + " are too many");
  });
}

TEST_F(ArgumentsOf, GatherAndScatterAreChecked) {
  run([&](Communicator& all) {
    const auto gather = [&](const void* send, void* recv, std::size_t count, int root = 0) {
      return all.gather(send, recv, count, DRUN_FLOAT32, root);
    };
    const auto scatter = [&](const void* send, void* recv, std::size_t count, int root = 0) {
      return all.scatter(send, recv, count, DRUN_FLOAT32, root);
    };
    expect_wrong(gather(data, data, 4, -1), "drun_gather: root -1 is not a rank of 2");
    expect_wrong(gather(nullptr, nullptr, 4, 1), "drun_gather: send is a null pointer");
    expect_wrong(gather(data, nullptr, 4), "drun_gather: recv is a null pointer");
    expect_wrong(gather(data + 4, data, 4), "drun_gather: send lies in recv, but not at this rank's place");
    expect_wrong(gather(data, data, huge), "drun_gather: a count of " + std::to_string(huge) + " is too large");
    expect_wrong(scatter(data, data, 4, 2), "drun_scatter: root 2 is not a rank of 2");
    expect_wrong(scatter(nullptr, data, 4), "drun_scatter: send is a null pointer");
    expect_wrong(scatter(nullptr, nullptr, 4, 1), "drun_scatter: recv is a null pointer");
    expect_wrong(scatter(data, data + 1, 4), "drun_scatter: recv lies in send, but not at this rank's place");
  });
}

TEST_F(ArgumentsOf, AlltoallAreChecked) {
  run([&](Communicator& all) {
    float recv[8] = {};
    const auto call = [&](const void* send, void* into, std::size_t count) {
      return all.alltoall(send, into, count, DRUN_FLOAT32);
    };
    expect_wrong(call(nullptr, recv, 4), "drun_alltoall: send is a null pointer");
    expect_wrong(call(data, nullptr, 4), "drun_alltoall: recv is a null pointer");
    expect_wrong(call(data, data, 4), "drun_alltoall: send and recv overlap");
    expect_wrong(call(data, recv, huge), "drun_alltoall: a count of " + std::to_string(huge) + " is too large");

    using Counts = std::vector<std::size_t>;
    const auto callv = [&](const void* send, const Counts& sent, void* into, const Counts& received,
                           const Counts& recv_offsets = {0, 4}) {
      return all.alltoallv(send, sent.empty() ? nullptr : sent.data(), nullptr, into,
                           received.empty() ? nullptr : received.data(), recv_offsets.data(), DRUN_FLOAT32);
    };
    const std::string name = "drun_alltoallv: ";
    expect_wrong(callv(data, {}, recv, {1, 1}), name + "send_counts is a null pointer");
    expect_wrong(callv(data, {1, 1}, recv, {}), name + "recv_counts is a null pointer");
    expect_wrong(callv(nullptr, {1, 0}, recv, {1, 1}), name + "send is a null pointer");
    expect_wrong(callv(data, {1, 0}, nullptr, {1, 1}), name + "recv is a null pointer");
    expect_wrong(callv(data, {1, 0}, recv, {2, 1}),
                 name + "send_counts and recv_counts of this rank, 0, differ: 1 and 2");
    expect_wrong(callv(data, {4, 4}, recv, {4, 4}, {1, 4}), name + "the blocks of recv for rank 0 and rank 1 overlap");
    expect_wrong(callv(data, {1, 1}, data + 1, {1, 1}), name + "send and recv overlap");
    expect_wrong(callv(data, {1, huge}, recv, {1, 1}),
                 name + "send_counts of rank 1: " + std::to_string(huge) + " elements at 1 are too many");
  });
}

TEST_F(ArgumentsOf, SendAndRecvAreChecked) {
  run([&](Communicator& all) {
    expect_wrong(all.send(data, 1, DRUN_FLOAT32, 0), "drun_send: peer 0 is this rank itself");
    expect_wrong(all.send(data, 1, DRUN_FLOAT32, 2), "drun_send: peer 2 is not a rank of 2");
    expect_wrong(all.recv(data, 1, DRUN_FLOAT32, -1), "drun_recv: peer -1 is not a rank of 2");
    expect_wrong(all.recv(nullptr, 1, DRUN_FLOAT32, 1), "drun_recv: data is a null pointer");
    expect_wrong(all.send(data, SIZE_MAX, DRUN_FLOAT32, 1),
                 "drun_send: a count of " + std::to_string(SIZE_MAX) + " is too large");
    CallOptions options;
    options.prescale = 2;
    expect_wrong(all.recv(data, 1, DRUN_FLOAT32, 1, options),
                 "drun_recv: prescale and postscale are for operations that reduce");
  });
}

}  // namespace
}  // namespace drun::runtime
