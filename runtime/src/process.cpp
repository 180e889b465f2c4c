#include "runtime/src/process.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "base/text.h"
#include "runtime/src/call_options.h"
#include "runtime/src/discovery.h"

namespace drun::runtime {
namespace {

// Keeps users' keys apart from those of the runtime.
std::string user_key(const std::string& key) { return "user/" + key; }

Failure kv_failure(const Error& error, const std::string& function, const std::string& key) {
  Failure result = from_error(error, function + " '" + key + "'");
  if (error.code == Errc::kProtocol) result.status = DRUN_ERROR_ARGUMENT;  // written twice, or too long
  return result;
}

// Seconds, possibly with a fraction; nullopt if unset.
Outcome<std::optional<std::chrono::milliseconds>> seconds_from_env(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  char* end = nullptr;
  const double seconds = std::strtod(text, &end);
  if (end == text || *end != '\0' || !(seconds > 0) || seconds > 1e9) {
    return failure(DRUN_ERROR_ARGUMENT,
                   std::string("drun_init: ") + name + "=" + text + ": not a number of seconds above 0");
  }
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

// The program's value, else the environment's, else the default.
Status choose_timeout(std::int64_t option_ms, const char* variable, std::chrono::milliseconds& timeout) {
  if (option_ms < 0) return failure(DRUN_ERROR_ARGUMENT, "drun_init: a timeout is negative");
  auto from_env = seconds_from_env(variable);
  if (!from_env) return tl::unexpected<Failure>(from_env.error());
  if (*from_env) timeout = **from_env;
  if (option_ms > 0) timeout = std::chrono::milliseconds(std::min(option_ms, kLongestMs));
  return {};
}

Outcome<Timeouts> choose_timeouts(const drun_init_options* given) {
  drun_init_options options = DRUN_INIT_OPTIONS;
  if (given != nullptr) {
    // The caller's header may be older or newer than this library.
    if (given->struct_size < sizeof given->struct_size) {
      return failure(DRUN_ERROR_ARGUMENT, "drun_init: options.struct_size is not set");
    }
    std::memcpy(&options, given, std::min(sizeof options, given->struct_size));
  }
  Timeouts timeouts;
  if (auto ok = choose_timeout(options.init_timeout_ms, "DRUN_INIT_TIMEOUT", timeouts.init); !ok) {
    return tl::unexpected<Failure>(ok.error());
  }
  if (auto ok = choose_timeout(options.op_timeout_ms, "DRUN_OP_TIMEOUT", timeouts.op); !ok) {
    return tl::unexpected<Failure>(ok.error());
  }
  return timeouts;
}

}  // namespace

Fd Process::make_interrupt() { return Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)); }

Status Process::init(const drun_init_options* options) {
  if (all_ != nullptr) return failure(DRUN_ERROR_STATE, "drun_init: already initialised");
  auto timeouts = choose_timeouts(options);
  if (!timeouts) return tl::unexpected<Failure>(timeouts.error());
  auto surroundings = read_surroundings([](const char* name) -> const char* { return std::getenv(name); });
  if (!surroundings) return tl::unexpected<Failure>(surroundings.error());
  auto job_context = join_world(*surroundings, *timeouts);
  if (!job_context) return tl::unexpected<Failure>(job_context.error());
  std::uint64_t old_interrupts = 0;
  (void)!::read(interrupt_.get(), &old_interrupts, sizeof old_interrupts);
  job_context->first_comm = next_comm_;
  job_context->interrupt_fd = interrupt_.get();
  job_context->on_gpu = on_gpu_;
  job_context->stopped_ns = stopped_ns_;
  const auto welcome = job_context->client->welcome();
  auto communicator = Communicator::create(std::move(*job_context));
  if (!communicator) return tl::unexpected<Failure>(communicator.error());
  all_ = communicator->get();
  communicators_[DRUN_COMM_WORLD] = std::move(*communicator);
  note_forks();
  rendezvous_fd_ = all_->job_context().client->fd();
  in_use_ = true;
  note_place(DRUN_COMM_WORLD, welcome.rank, welcome.size, has_as_many_each(welcome.host_index_of_rank) ? 1 : 0);
  note_place(DRUN_COMM_LOCAL, welcome.local_rank, welcome.local_size);
  note_place(DRUN_COMM_CROSS, welcome.cross_rank, welcome.cross_size);
  return {};
}

Status Process::finalize() {
  if (all_ == nullptr) return {};
  if (is_forked_child())
    return failure(DRUN_ERROR_STATE, "drun_finalize: this is a forked child of the process that called drun_init");
  {
    const std::lock_guard<std::mutex> lock(places_mutex_);
    places_.clear();
  }
  in_use_ = false;
  rendezvous_fd_ = -1;
  next_comm_ = all_->next_comm();
  const Status gpu = all_->finish_gpu();
  all_->leave();
  all_->end_gpu();
  auto left = all_->job_context().client->leave();
  all_ = nullptr;
  communicators_.clear();
  if (!left && left.error().code != Errc::kPeerFailed && left.error().code != Errc::kClosed) {
    return tl::unexpected<Failure>(from_error(left.error(), "drun_finalize"));
  }
  return gpu;
}

// A fork handler, because asking for the process id would cost more than a small collective. A child replaces its copy
// of the connection with the rendezvous by /dev/null, so that the connection ends with the process that has joined, and
// the next program can join.
void Process::note_forks() {
  static const int registered = ::pthread_atfork(nullptr, nullptr, [] {
    if (!in_use_) return;
    forked_ = true;
    const int fd = rendezvous_fd_;
    const int nothing = fd >= 0 ? ::open("/dev/null", O_RDWR | O_CLOEXEC) : -1;
    if (nothing < 0) return;
    ::dup3(nothing, fd, O_CLOEXEC);
    ::close(nothing);
  });
  (void)registered;
}

Status Process::check_state(const char* function) const {
  if (is_forked_child()) {
    return failure(DRUN_ERROR_STATE,
                   std::string(function) + ": this is a forked child of the process that called drun_init");
  }
  if (all_ == nullptr) return failure(DRUN_ERROR_STATE, std::string(function) + ": drun_init was not called");
  return {};
}

Outcome<Communicator*> Process::other_communicator(const char* function, drun_comm comm,
                                                   std::chrono::milliseconds timeout) {
  if (auto ok = check_state(function); !ok) return tl::unexpected<Failure>(ok.error());
  if (comm == DRUN_COMM_WORLD) return all_;
  const auto found = communicators_.find(comm);
  if (found != communicators_.end()) return found->second.get();
  if (comm != DRUN_COMM_LOCAL && comm != DRUN_COMM_CROSS) {
    return failure(DRUN_ERROR_ARGUMENT, std::string(function) + ": there is no such communicator");
  }
  auto made = all_->among(comm == DRUN_COMM_LOCAL ? all_->local_group() : all_->cross_group(), timeout, function);
  if (!made) return tl::unexpected<Failure>(made.error());
  return (communicators_[comm] = std::move(*made)).get();
}

Outcome<drun_comm> Process::split(Communicator& parent, int color, int key, const CallOptions& options) {
  auto made = parent.split(color, key, options);
  if (!made) return tl::unexpected<Failure>(made.error());
  if (!*made) return DRUN_COMM_NONE;
  const auto comm = reinterpret_cast<drun_comm>(std::uintptr_t{(*made)->comm()});
  note_place(comm, (*made)->rank(), (*made)->size());
  communicators_[comm] = std::move(*made);
  return comm;
}

Status Process::free(drun_comm comm) {
  if (auto ok = check_state("drun_comm_free"); !ok) return ok;
  if (comm == DRUN_COMM_WORLD || comm == DRUN_COMM_LOCAL || comm == DRUN_COMM_CROSS) {
    return failure(DRUN_ERROR_ARGUMENT, "drun_comm_free: every job has this communicator, it can't be freed");
  }
  if (communicators_.erase(comm) == 0) {
    return failure(DRUN_ERROR_ARGUMENT, "drun_comm_free: there is no such communicator");
  }
  const std::lock_guard<std::mutex> lock(places_mutex_);
  places_.erase(comm);
  return {};
}

void Process::note_place(drun_comm comm, int rank, int size, int homogeneous) {
  const std::lock_guard<std::mutex> lock(places_mutex_);
  places_[comm] = {rank, size, homogeneous};
}

bool Process::is_initialized() const { return place_in(DRUN_COMM_WORLD).rank >= 0; }

Process::Place Process::place_in(drun_comm comm) const {
  const std::lock_guard<std::mutex> lock(places_mutex_);
  const auto found = places_.find(comm);
  return found != places_.end() ? found->second : Place{};
}

Status Process::kv_set(const std::string& key, const std::string& value) {
  auto communicator_here = communicator("drun_kv_set");
  if (!communicator_here) return tl::unexpected<Failure>(communicator_here.error());
  const JobContext& job_context = (*communicator_here)->job_context();
  auto set = job_context.client->set(user_key(key), value);
  if (set) return {};
  if (auto alive = check_alive(job_context, "drun_kv_set"); !alive) return alive;
  return tl::unexpected<Failure>(kv_failure(set.error(), "drun_kv_set", key));
}

Outcome<bool> Process::kv_delete(const std::string& key) {
  auto communicator_here = communicator("drun_kv_delete");
  if (!communicator_here) return tl::unexpected<Failure>(communicator_here.error());
  const JobContext& job_context = (*communicator_here)->job_context();
  auto existed = job_context.client->erase(user_key(key));
  if (existed) return *existed;
  if (auto alive = check_alive(job_context, "drun_kv_delete"); !alive) return tl::unexpected<Failure>(alive.error());
  return tl::unexpected<Failure>(kv_failure(existed.error(), "drun_kv_delete", key));
}

Outcome<std::string> Process::kv_get(const std::string& key, std::chrono::milliseconds timeout) {
  auto communicator_here = communicator("drun_kv_get");
  if (!communicator_here) return tl::unexpected<Failure>(communicator_here.error());
  const JobContext& job_context = (*communicator_here)->job_context();
  auto value = job_context.client->get(user_key(key), timeout, job_context.interrupt_fd);
  if (value) return std::move(*value);
  if (auto alive = check_alive(job_context, "drun_kv_get"); !alive) return tl::unexpected<Failure>(alive.error());
  return tl::unexpected<Failure>(kv_failure(value.error(), "drun_kv_get", key));
}

void Process::interrupt() {
  if (is_forked_child()) return;  // a forked child shares the descriptor
  const std::uint64_t one = 1;
  (void)!::write(interrupt_.get(), &one, sizeof one);
}

Status Process::abort(const std::string& why) {
  auto communicator_here = communicator("drun_abort");
  if (!communicator_here) return tl::unexpected<Failure>(communicator_here.error());
  auto told = (*communicator_here)->job_context().client->abort(why);
  if (!told) return tl::unexpected<Failure>(from_error(told.error(), "drun_abort"));
  return {};
}

}  // namespace drun::runtime
