// Must come first: its uses of drun::Error must not find the one of the public headers.
#include "tests/unit/runtime/fake_job.h"

// Must come after fake_job.h:
#include "tests/unit/training/ranks.h"

namespace drun::training_test {
namespace {

class ThreadTransport final : public Transport {
 public:
  explicit ThreadTransport(runtime::Communicator& communicator) : communicator_(communicator) {}
  int rank() const override { return communicator_.job_context().rank(); }
  int size() const override { return communicator_.job_context().size(); }
  void* stream() const override { return &stream_; }
  void allreduce(void* data, std::size_t count, drun_dtype dtype, drun_op op, const std::string& name) override {
    check(communicator_.allreduce(data, data, count, dtype, op, named(name)));
  }
  void allgather(const void* send, void* recv, std::size_t count, drun_dtype dtype, const std::string& name) override {
    check(communicator_.allgather(send, recv, count, dtype, named(name)));
  }
  void allgatherv(const void* send, std::size_t send_count, void* recv, const std::size_t* recv_counts,
                  drun_dtype dtype, const std::string& name) override {
    check(communicator_.allgatherv(send, send_count, recv, recv_counts, nullptr, dtype, named(name)));
  }
  void alltoallv(const void* send, const std::size_t* send_counts, void* recv, const std::size_t* recv_counts,
                 drun_dtype dtype, const std::string& name) override {
    check(communicator_.alltoallv(send, send_counts, nullptr, recv, recv_counts, nullptr, dtype, named(name)));
  }

 private:
  runtime::CallOptions named(const std::string& name) const {
    runtime::CallOptions options;
    options.name = name;
    options.stream = &stream_;
    return options;
  }
  static void check(const runtime::Status& status) {
    if (status) return;
    const auto& failure = status.error();
    throw v0::Error(failure.status, failure.text.c_str(), failure.rank, failure.host.c_str());
  }
  runtime::Communicator& communicator_;
  mutable int stream_ = 0;  // its address identifies the stream
};

}  // namespace

std::vector<std::optional<v0::Error>> errors_of_ranks(int size, const std::function<void(Transport&)>& body,
                                                      bool have_gpus) {
  std::vector<std::optional<v0::Error>> errors(static_cast<std::size_t>(size));
  runtime::testing::FakeJob job(size);
  for (int rank = 0; rank < size && have_gpus; ++rank) job.set_gpu(rank, runtime::gpu::Presence::kThere);
  job.run([&](int rank) {
    auto& error = errors[static_cast<std::size_t>(rank)];
    auto communicator = runtime::Communicator::create(job.job_context(rank));
    if (!communicator) {
      error.emplace(communicator.error().status, communicator.error().text.c_str(), -1, "");
      return;
    }
    ThreadTransport transport(**communicator);
    try {
      body(transport);
    } catch (const v0::Error& e) {
      error = e;
    }
  });
  return errors;
}

}  // namespace drun::training_test
