#include "runtime/src/process.h"

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

// Users' keys can't meet ours.
std::string user_key(const std::string& key) { return "user/" + key; }

Failure kv_failure(const Error& error, const std::string& function, const std::string& key) {
  Failure result = from_error(error, function + " '" + key + "'");
  if (error.code == Errc::kProtocol) result.status = DRUN_ERROR_ARGUMENT;  // written twice, or too long
  return result;
}

// Seconds, possibly with a fraction; nothing if unset.
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

// The program's word, else the environment's, else the default.
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
    // The caller's header may be older or newer than we are.
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
  if (communicator_) return failure(DRUN_ERROR_STATE, "drun_init: already initialised");
  auto timeouts = choose_timeouts(options);
  if (!timeouts) return tl::unexpected<Failure>(timeouts.error());
  auto surroundings = read_surroundings([](const char* name) -> const char* { return std::getenv(name); });
  if (!surroundings) return tl::unexpected<Failure>(surroundings.error());
  auto world = join_world(*surroundings, *timeouts);
  if (!world) return tl::unexpected<Failure>(world.error());
  std::uint64_t old_interrupts = 0;
  (void)!::read(interrupt_.get(), &old_interrupts, sizeof old_interrupts);
  world->generation = ++generation_;
  world->interrupt_fd = interrupt_.get();
  auto communicator = Communicator::create(std::move(*world));
  if (!communicator) return tl::unexpected<Failure>(communicator.error());
  communicator_ = std::move(*communicator);
  pid_ = ::getpid();
  return {};
}

Status Process::finalize() {
  if (!communicator_) return {};
  if (pid_ != ::getpid())
    return failure(DRUN_ERROR_STATE, "drun_finalize: this is a forked child of the process that called drun_init");
  communicator_->leave();
  auto left = communicator_->world().client->leave();
  communicator_.reset();
  if (!left && left.error().code != Errc::kPeerFailed && left.error().code != Errc::kClosed) {
    return tl::unexpected<Failure>(from_error(left.error(), "drun_finalize"));
  }
  return {};
}

Outcome<Communicator*> Process::communicator(const char* function) const {
  if (!communicator_) return failure(DRUN_ERROR_STATE, std::string(function) + ": drun_init was not called");
  if (pid_ != ::getpid()) {
    return failure(DRUN_ERROR_STATE,
                   std::string(function) + ": this is a forked child of the process that called drun_init");
  }
  return communicator_.get();
}

Status Process::kv_set(const std::string& key, const std::string& value) {
  auto communicator_here = communicator("drun_kv_set");
  if (!communicator_here) return tl::unexpected<Failure>(communicator_here.error());
  const World& world = (*communicator_here)->world();
  auto set = world.client->set(user_key(key), value);
  if (set) return {};
  if (auto alive = check_alive(world, "drun_kv_set"); !alive) return alive;
  return tl::unexpected<Failure>(kv_failure(set.error(), "drun_kv_set", key));
}

Outcome<std::string> Process::kv_get(const std::string& key, std::chrono::milliseconds timeout) {
  auto communicator_here = communicator("drun_kv_get");
  if (!communicator_here) return tl::unexpected<Failure>(communicator_here.error());
  const World& world = (*communicator_here)->world();
  auto value = world.client->get(user_key(key), timeout);
  if (value) return std::move(*value);
  if (auto alive = check_alive(world, "drun_kv_get"); !alive) return tl::unexpected<Failure>(alive.error());
  return tl::unexpected<Failure>(kv_failure(value.error(), "drun_kv_get", key));
}

void Process::interrupt() {
  if (pid_ != ::getpid()) return;  // a forked child shares the descriptor
  const std::uint64_t one = 1;
  (void)!::write(interrupt_.get(), &one, sizeof one);
}

Status Process::abort(const std::string& why) {
  auto communicator_here = communicator("drun_abort");
  if (!communicator_here) return tl::unexpected<Failure>(communicator_here.error());
  auto told = (*communicator_here)->world().client->abort(why);
  if (!told) return tl::unexpected<Failure>(from_error(told.error(), "drun_abort"));
  return {};
}

}  // namespace drun::runtime
