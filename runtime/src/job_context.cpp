#include "runtime/src/job_context.h"

#include <poll.h>

#include <optional>

#include "base/bytes.h"

namespace drun::runtime {
namespace {

constexpr const char* kFailureKey = "failure";
constexpr std::chrono::milliseconds kExplainWait{1000}, kAskOthers{500};

std::string left_key(int rank) { return own_key("left/" + std::to_string(rank)); }

Failure from_abort(const rendezvous::AbortNotice& notice, const std::string& during) {
  Failure result;
  result.status = notice.rank >= 0 ? DRUN_ERROR_PEER : DRUN_ERROR_ABORTED;
  result.rank = notice.rank;
  result.host = notice.host;
  result.text = during + ": ";
  if (notice.rank >= 0) {
    result.text += "rank " + std::to_string(notice.rank);
    if (!notice.host.empty()) result.text += " on " + notice.host;
    if (notice.pid > 0) result.text += " (pid " + std::to_string(notice.pid) + ")";
    result.text += ": ";
  }
  result.text += notice.why.empty() ? "the job was ended" : notice.why;
  return result;
}

// The failure that drun's ABORT describes, if there was one.
std::optional<Failure> aborted(const JobContext& job_context, const std::string& during) {
  const auto notice = job_context.client->aborted();
  if (!notice) return std::nullopt;
  auto result = from_abort(*notice, during);
  job_context.client->complain(result.text);  // so that drun takes our exit for a consequence, whenever it happens
  return result;
}

}  // namespace

std::string JobContext::host_of(int rank) const { return client->host_of(rank); }

std::string JobContext::name_of(int rank) const {
  const std::string host = host_of(rank);
  return "rank " + std::to_string(rank) + (host.empty() ? "" : " on " + host);
}

std::string own_key(const std::string& name) { return "drun/" + name; }

Status check_alive(const JobContext& job_context, const std::string& during) {
  if (job_context.interrupt_fd >= 0) {
    pollfd interrupt{job_context.interrupt_fd, POLLIN, 0};
    if (::poll(&interrupt, 1, 0) > 0)
      return failure(DRUN_ERROR_ABORTED, during + ": drun_abort was called", job_context.rank());
  }
  if (auto ended = aborted(job_context, during)) return tl::unexpected<Failure>(std::move(*ended));
  return {};
}

void publish_failure(const JobContext& job_context, const Failure& failure) {
  ByteWriter out;
  out.i32(job_context.rank());
  out.i32(failure.status);
  out.i32(failure.rank);
  out.str(failure.host);
  out.str(failure.text);
  (void)job_context.client->set(own_key(kFailureKey), out.bytes());  // another rank may have been first
  job_context.client->complain(failure.text);
}

tl::unexpected<Failure> publish_own_failure(const JobContext& job_context, Failure failure) {
  failure.rank = job_context.rank();
  failure.host = job_context.host_of(failure.rank);
  publish_failure(job_context, failure);
  return tl::unexpected<Failure>(std::move(failure));
}

void publish_leaving(const JobContext& job_context) {
  (void)job_context.client->set(left_key(job_context.rank()), "left");
}

bool has_left(const JobContext& job_context, int rank, std::chrono::milliseconds wait) {
  return job_context.client->get(left_key(rank), wait).has_value();
}

std::optional<Failure> published_failure(const JobContext& job_context, const std::string& during,
                                         std::chrono::milliseconds wait) {
  const auto published = job_context.client->get(own_key(kFailureKey), wait);
  if (auto ended = aborted(job_context, during)) return ended;
  if (!published) return std::nullopt;
  ByteReader in(*published);
  const int reporter = in.i32();
  Failure result;
  result.status = in.i32();
  result.rank = in.i32();
  result.host = in.str();
  const std::string text = in.str();
  if (!in.done() || reporter == job_context.rank()) return std::nullopt;
  result.text = during + ": " + job_context.name_of(reporter) + " reports: " + text;
  job_context.client->complain(result.text);
  return result;
}

Status check_others(const JobContext& job_context, const std::string& during, Clock::time_point& asked) {
  if (auto alive = check_alive(job_context, during); !alive) return alive;
  if (Clock::now() - asked < kAskOthers) return {};
  asked = Clock::now();
  auto cause = published_failure(job_context, during, std::chrono::milliseconds(1));
  return cause ? Status(tl::unexpected<Failure>(std::move(*cause))) : Status();
}

Failure explain_closed(const JobContext& job_context, int peer, const std::string& during,
                       const std::function<pid_t()>& ended) {
  if (auto reason = published_failure(job_context, during, kExplainWait)) return *reason;
  // We are the first to know: publish it, so that ranks that see our connections close in turn learn the cause.
  Failure result{DRUN_ERROR_PEER, job_context.name_of(peer) + " closed its connection during " + during, peer,
                 job_context.host_of(peer)};
  const pid_t process = ended ? ended() : 0;
  if (process != 0) result.text += ": its process (pid " + std::to_string(process) + ") has ended";
  publish_failure(job_context, result);
  return result;
}

}  // namespace drun::runtime
