#include "runtime/src/discovery.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>

#include <cstdio>

#include "base/fd.h"
#include "base/process_stat.h"
#include "base/text.h"
#include "rendezvous/agent_socket.h"
#include "runtime/src/solo_client.h"

namespace drun::runtime {
namespace {

constexpr std::chrono::milliseconds kAgentTimeout{10'000};
constexpr std::uint64_t kMaxStreams = 16;

tl::unexpected<Failure> bad_variable(const std::string& name, const std::string& value, const std::string& what) {
  return failure(DRUN_ERROR_CONNECT, "drun_init: " + name + "=" + value + ": " + what);
}

// "host:port", "[v6]:port"
Status read_endpoint(const std::string& text, Surroundings& into) {
  const auto colon = text.rfind(':');
  if (colon == std::string::npos) return bad_variable("DRUN_RENDEZVOUS", text, "not an address and port");
  const auto port = parse_number(std::string_view(text).substr(colon + 1));
  std::string address = text.substr(0, colon);
  if (address.size() > 2 && address.front() == '[' && address.back() == ']')
    address = address.substr(1, address.size() - 2);
  if (!port || *port == 0 || *port > 65535 || address.empty()) {
    return bad_variable("DRUN_RENDEZVOUS", text, "not an address and port");
  }
  into.rendezvous_address = address;
  into.rendezvous_port = static_cast<int>(*port);
  return {};
}

// The source address of this host's packets to the rendezvous. Sends no packet.
std::string address_towards(const std::string& address, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  hints.ai_flags = AI_NUMERICHOST;
  addrinfo* found = nullptr;
  if (::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return "127.0.0.1";
  std::string result = "127.0.0.1";
  const Fd fd(::socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage own{};
  socklen_t n_bytes = sizeof own;
  char text[NI_MAXHOST];
  if (fd && ::connect(fd.get(), found->ai_addr, found->ai_addrlen) == 0 &&
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&own), &n_bytes) == 0 &&
      ::getnameinfo(reinterpret_cast<sockaddr*>(&own), n_bytes, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0) {
    result = text;
  }
  ::freeaddrinfo(found);
  return result;
}

rendezvous::Handout handout_from_key(const Surroundings& surroundings) {
  rendezvous::Handout handout;
  handout.key = surroundings.key;
  handout.rendezvous_address = surroundings.rendezvous_address;
  handout.rendezvous_port = surroundings.rendezvous_port;
  handout.data_address = surroundings.data_address.empty()
                             ? address_towards(surroundings.rendezvous_address, surroundings.rendezvous_port)
                             : surroundings.data_address;
  return handout;
}

void warn_about_key(const std::string& why) {
  std::fprintf(stderr, "drun: warning: %s: using DRUN_KEY and DRUN_RENDEZVOUS, without shared memory\n", why.c_str());
}

struct Found : rendezvous::Fetched {
  bool is_by_key = false;
};

Found found_by_key(const Surroundings& surroundings) {
  Found found;
  found.handout = handout_from_key(surroundings);
  found.is_by_key = true;
  return found;
}

Outcome<Found> find_handout(const Surroundings& surroundings) {
  if (surroundings.kind == Surroundings::Kind::kKey) {
    warn_about_key("DRUN_AGENT is not set");
    return found_by_key(surroundings);
  }
  auto fetched = rendezvous::fetch_handout(surroundings.agent_socket, kAgentTimeout);
  if (fetched) {
    if (!surroundings.data_address.empty()) fetched->handout.data_address = surroundings.data_address;
    if (!surroundings.use_memory) fetched->memory.reset();
    return Found{std::move(*fetched)};
  }
  if (surroundings.has_key) {
    warn_about_key("the agent's socket " + surroundings.agent_socket + " can't be reached");
    return found_by_key(surroundings);
  }
  Failure result;
  result.status = DRUN_ERROR_CONNECT;
  result.text =
      "drun_init: can't reach this worker's agent at DRUN_AGENT=" + surroundings.agent_socket + ": " +
      fetched.error().message() +
      " (hint: drun -x DRUN_KEY for a container that hides it, or a worker of another user; DRUN_SOLO=1 and no "
      "DRUN_AGENT to run the program alone)";
  return tl::unexpected<Failure>(std::move(result));
}

bool is_loopback(const std::string& address) {
  in_addr v4{};
  if (::inet_pton(AF_INET, address.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  return address == "::1";
}

tl::unexpected<Failure> cleared(pid_t agent) {
  return failure(
      DRUN_ERROR_CONNECT,
      "drun_init: this program runs below drun (its agent is pid " + std::to_string(agent) +
          "), but without DRUN_AGENT: something between, as env -i, sudo or su -, has cleared the "
          "environment (hint: drun -x DRUN_KEY ... sudo "
          "--preserve-env=DRUN_RANK,DRUN_KEY,DRUN_RENDEZVOUS,DRUN_DATA_ADDRESS; DRUN_SOLO=1 if each worker is "
          "to be a job of its own)");
}

}  // namespace

pid_t agent_above(const std::string& proc) {
  constexpr int kMaxAncestors = 256;
  pid_t pid = ::getppid();
  for (int i = 0; i < kMaxAncestors && pid > 1; ++i) {
    const auto text = read_file(proc + "/" + std::to_string(pid) + "/stat", 4096);
    const auto stat = text ? parse_stat(*text) : std::nullopt;
    if (!stat) return 0;
    if (stat->name == "drun-agent") return pid;
    pid = stat->parent;
  }
  return 0;
}

Outcome<Surroundings> read_surroundings(const GetEnv& get_env) {
  const auto value_of = [&](const char* name) {
    const char* value = get_env(name);
    return std::string(value != nullptr ? value : "");
  };
  Surroundings result;
  result.agent_socket = value_of("DRUN_AGENT");
  result.data_address = value_of("DRUN_DATA_ADDRESS");
  const std::string key = value_of("DRUN_KEY"), endpoint = value_of("DRUN_RENDEZVOUS"), rank = value_of("DRUN_RANK");
  result.use_memory = value_of("DRUN_SHARED_MEMORY") != "0";
  result.is_solo = value_of("DRUN_SOLO") == "1";
  if (const std::string streams = value_of("DRUN_STREAMS"); !streams.empty()) {
    const auto n_streams = parse_number(streams);
    if (!n_streams || *n_streams < 1 || *n_streams > kMaxStreams) {
      return bad_variable("DRUN_STREAMS", streams, "not a number from 1 to " + std::to_string(kMaxStreams));
    }
    result.n_streams = static_cast<int>(*n_streams);
  }
  if (const std::string name = value_of("DRUN_TEST_ALLREDUCE"); !name.empty()) {
    result.allreduce = allreduce_algorithm_named(name);
    if (!result.allreduce) return bad_variable("DRUN_TEST_ALLREDUCE", name, "not doubling, halving or ring");
  }
  result.has_key = !key.empty() && !endpoint.empty();
  if (!result.agent_socket.empty()) {
    result.kind = Surroundings::Kind::kAgent;
  } else if (result.has_key) {
    result.kind = Surroundings::Kind::kKey;
  } else {
    return result;
  }
  const auto number = parse_number(rank);
  if (!number || *number > 1'000'000) {
    return bad_variable("DRUN_RANK", rank, rank.empty() ? "not set, but DRUN_AGENT or DRUN_KEY is" : "not a rank");
  }
  result.rank = static_cast<int>(*number);
  if (result.has_key) {
    auto parsed = rendezvous::job_key_from_hex(key);
    // The error text must not contain the key.
    if (!parsed) return failure(DRUN_ERROR_CONNECT, "drun_init: DRUN_KEY is not a key of 64 hexadecimal digits");
    result.key = *parsed;
    if (auto ok = read_endpoint(endpoint, result); !ok) return tl::unexpected<Failure>(ok.error());
  }
  return result;
}

Outcome<JobContext> join_world(const Surroundings& surroundings, const Timeouts& timeouts) {
  JobContext job_context;
  job_context.timeouts = timeouts;
  job_context.n_streams = surroundings.n_streams;
  job_context.allreduce = surroundings.allreduce;
  job_context.gpu = gpu::find_gpu([](const char* name) -> const char* { return std::getenv(name); });
  if (surroundings.kind == Surroundings::Kind::kAlone) {
    if (const pid_t agent = surroundings.is_solo ? 0 : agent_above("/proc"); agent != 0) return cleared(agent);
    job_context.client = make_solo_client();
    return job_context;
  }
  auto fetched = find_handout(surroundings);
  if (!fetched) return tl::unexpected<Failure>(fetched.error());
  const rendezvous::Handout* handout = &fetched->handout;
  auto client = rendezvous::Client::join(handout->rendezvous_address, handout->rendezvous_port, handout->key,
                                         surroundings.rank, timeouts.init);
  if (!client) {
    std::string what = "drun_init: rendezvous";  // the error has the address
    if (fetched->is_by_key && is_loopback(handout->rendezvous_address)) {
      what +=
          " (hint: that is this worker's agent, which a container with a network of its own can't reach: give it the "
          "host's, docker run --network host)";
    }
    return tl::unexpected<Failure>(from_error(client.error(), what));
  }
  job_context.client = std::move(*client);
  job_context.key = handout->key;
  job_context.memory = std::move(fetched->memory);
  job_context.recorder = Recorder::open(fetched->recorder, surroundings.rank);
  // A job on one host needs no listener on the network.
  const auto& welcome = job_context.client->welcome();
  if (welcome.local_size == welcome.size || handout->data_address.empty()) return job_context;
  // Without the agent's socket this is the local address of the route to the rendezvous, which may be a relay on this
  // host.
  if (fetched->is_by_key && surroundings.data_address.empty() && is_loopback(handout->data_address)) {
    return failure(DRUN_ERROR_CONNECT,
                   "drun_init: no address is known at which other hosts reach this one (hint: pass DRUN_DATA_ADDRESS "
                   "into the container, as DRUN_KEY, DRUN_RENDEZVOUS and DRUN_RANK)");
  }
  job_context.data_address = handout->data_address;
  return job_context;
}

}  // namespace drun::runtime
