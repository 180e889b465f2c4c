// Messages of clients and of the server, and the handout of an agent.
#include <memory>

#include "rendezvous/agent_socket.h"
#include "rendezvous/protocol.h"
#include "tests/fuzz/fuzz.h"

namespace drun::fuzz {
namespace {

using namespace rendezvous;

// A WELCOME has runs of ranks: a few bytes for any number of them. All other memory is bounded by the input.
std::size_t memory_of_ranks(const Result<ServerMessage>& message) {
  const Welcome* const welcome = message ? std::get_if<Welcome>(&*message) : nullptr;
  return welcome != nullptr ? 2 * sizeof(int) * welcome->host_index_of_rank.size() : 0;  // a vector grows by doubling
}
std::size_t memory_of_ranks(const Result<ClientMessage>&) { return 0; }

// Some bytes have several readings (any byte but 0 is true; texts are cut): encoding once makes them unique.
template <typename Decode>
void decode_and_encode(std::string_view bytes, Decode decode) {
  const std::size_t before = allocated_bytes();
  const auto message = decode(bytes);
  expect_bounded_memory(before, bytes.size(), memory_of_ranks(message));
  if (!message) return expect(message.error().code == Errc::kProtocol, "a malformed message is kProtocol");
  const std::string once = encode(*message);
  const auto again = decode(once);
  expect(again && encode(*again) == once, "an encoded message is decoded as it was");
}

void run(std::string_view bytes) {
  decode_and_encode(bytes, decode_client_message);
  decode_and_encode(bytes, decode_server_message);
  if (const auto message = decode_client_message(bytes)) {
    const bool has_boolean =
        std::holds_alternative<SetMessage>(*message) || std::holds_alternative<NcclPutMessage>(*message);
    const std::string encoded = encode(*message);
    expect(encoded == bytes || (has_boolean && encoded.size() == bytes.size()), "each client message has one form");
    (void)request_of(*message);
  }
  if (const auto message = decode_server_message(bytes)) {
    if (const auto* notice = std::get_if<AbortNotice>(&*message)) (void)attribution(*notice);
  }
  if (const auto handout = decode_handout(bytes)) {
    expect(encode_handout(*handout) == bytes, "each handout has one form");
  }
}

std::vector<std::string> seeds() {
  Welcome welcome;
  welcome.job_id = "job";
  welcome.size = 3;
  welcome.host_names = {"a", "b"};
  welcome.host_index_of_rank = {0, 1, 0};
  Handout handout;
  handout.job_id = "job";
  handout.rendezvous_address = "10.0.0.1";
  handout.rendezvous_port = 4711;
  handout.data_address = "10.0.0.2";
  return {
      encode(ClientMessage(JoinMessage{1, 812})),
      encode(ClientMessage(SetMessage{2, "key", "value", true})),
      encode(ClientMessage(GetMessage{3, "key", 500})),
      encode(ClientMessage(BarrierMessage{4, "start", 500})),
      encode(ClientMessage(NcclPutMessage{5, "world", 1, true, std::string(kNcclIdBytes, 'i')})),
      encode(ClientMessage(NcclPutMessage{5, "world", 1, false, "no NCCL"})),
      encode(ClientMessage(NcclGetMessage{6, "world", 1, 0, 500})),
      encode(ClientMessage(AbortMessage{"loss is nan"})),
      encode(ClientMessage(LeaveMessage{7})),
      encode(ClientMessage(ComplainMessage{"rank 1 closed its connection"})),
      encode(ServerMessage(welcome)),
      encode(ServerMessage(DoneReply{1})),
      encode(ServerMessage(ValueReply{1, std::make_shared<const std::string>("value")})),
      encode(ClientMessage(DeleteMessage{8, "key"})),
      encode(ServerMessage(DeletedReply{8, true})),
      encode(ServerMessage(ErrorReply{1, Errc::kTimeout, "late"})),
      encode(ServerMessage(AbortNotice{1, "node1", 812, "killed"})),
      encode_handout(handout),
  };
}

const Target kTarget("rendezvous_messages", run, seeds);

}  // namespace
}  // namespace drun::fuzz
