#include "rendezvous/protocol.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/bytes.h"

namespace drun::rendezvous {
namespace {

std::vector<ClientMessage> client_messages() {
  return {JoinMessage{3, 812},
          SetMessage{7, "key", std::string("a\0b", 3), true},
          GetMessage{8, "key", 1500},
          BarrierMessage{9, "start", 0xffffffff},
          NcclPutMessage{10, "world", -1, true, std::string(kNcclIdBytes, 'i')},
          NcclPutMessage{11, "world", 2, false, "no library"},
          NcclGetMessage{12, "world", 2, 5, 100},
          AbortMessage{"why"},
          LeaveMessage{13},
          ComplainMessage{"rank 2 is gone"},
          DeleteMessage{14, "key"}};
}

std::vector<ServerMessage> server_messages() {
  Welcome welcome;
  welcome.job_id = "job";
  welcome.rank = 1;
  welcome.size = 4;
  welcome.cross_size = 2;
  welcome.host_names = {"a", "b", "", "a"};  // no rank on the third
  welcome.host_index_of_rank = {0, 3, 1, 0};
  welcome.epoch = 7;
  return {welcome,
          DoneReply{4},
          ValueReply{5, std::make_shared<const std::string>("v\0", 2)},
          ErrorReply{6, Errc::kTimeout, "late"},
          ErrorReply{0, Errc::kPeerFailed, "x"},
          AbortNotice{2, "h", 99, "w"},
          DeletedReply{7, true}};
}

TEST(Protocol, EveryMessageOfTheClientSurvives) {
  for (const auto& message : client_messages()) {
    const auto back = decode_client_message(encode(message));
    ASSERT_TRUE(back) << message.index();
    EXPECT_EQ(back->index(), message.index());
    EXPECT_EQ(encode(*back), encode(message));
    EXPECT_EQ(request_of(*back), request_of(message));
  }
}

TEST(Protocol, EveryMessageOfTheServerSurvives) {
  for (const auto& message : server_messages()) {
    const auto back = decode_server_message(encode(message));
    ASSERT_TRUE(back) << message.index();
    EXPECT_EQ(back->index(), message.index());
    EXPECT_EQ(encode(*back), encode(message));
    const EncodedMessage shared = encode_shared(message);
    EXPECT_EQ(shared.piece(0, shared.size()), encode(message));
  }
}

TEST(Protocol, WelcomeKeepsTheHosts) {
  const auto back = decode_server_message(encode(server_messages()[0]));
  ASSERT_TRUE(back);
  EXPECT_EQ(std::get<Welcome>(*back).host_names, (std::vector<std::string>{"a", "b", "", "a"}));
  EXPECT_EQ(std::get<Welcome>(*back).host_index_of_rank, (std::vector<int>{0, 3, 1, 0}));
  EXPECT_EQ(std::get<Welcome>(*back).epoch, 7);
}

// By rank: 8 ranks on each of `n_hosts` hosts.
Welcome large_welcome(int n_hosts) {
  Welcome welcome;
  welcome.size = 8 * n_hosts;
  for (int rank = 0; rank < welcome.size; ++rank) {
    const std::string number = std::to_string(10000 + rank / 8);
    if (rank % 8 == 0) welcome.host_names.push_back("node-" + number.substr(1) + ".cluster.example.org");
    welcome.host_index_of_rank.push_back(rank / 8);
  }
  return welcome;
}

TEST(Protocol, WelcomeToALargeJobIsSmall) {
  const Welcome welcome = large_welcome(1000);
  const std::string bytes = encode(ServerMessage(welcome));
  EXPECT_LT(bytes.size(), 40u * 1000);
  const auto back = decode_server_message(bytes);
  ASSERT_TRUE(back);
  EXPECT_EQ(std::get<Welcome>(*back).host_names, welcome.host_names);
  EXPECT_EQ(std::get<Welcome>(*back).host_index_of_rank, welcome.host_index_of_rank);
}

TEST(Protocol, WelcomeKeepsHostsOfAnyOrderAndName) {
  Welcome welcome;
  welcome.size = 6;
  welcome.host_names = {std::string(255, 'n') + "cut", "", "node", "node1", "node12"};
  welcome.host_index_of_rank = {4, 3, 2, 1, 0, 4};
  const auto back = decode_server_message(encode(ServerMessage(welcome)));
  ASSERT_TRUE(back);
  welcome.host_names[0] = std::string(255, 'n');
  EXPECT_EQ(std::get<Welcome>(*back).host_names, welcome.host_names);
  EXPECT_EQ(std::get<Welcome>(*back).host_index_of_rank, welcome.host_index_of_rank);
}

TEST(Protocol, EncodedMessageIsCutAnywhere) {
  EncodedMessage message{"head", std::make_shared<const std::string>("tail")};
  for (std::size_t from = 0; from <= message.size(); ++from) {
    for (std::size_t n = 0; n <= message.size() - from; ++n) {
      EXPECT_EQ(message.piece(from, n), std::string("headtail").substr(from, n));
    }
  }
  message.tail = nullptr;
  EXPECT_EQ(message.size(), 4u);
  EXPECT_EQ(message.piece(1, 3), "ead");
}

TEST(Protocol, EveryTruncationAndSurplusIsRefused) {
  for (const auto& message : client_messages()) {
    const std::string bytes = encode(message);
    for (std::size_t n = 0; n < bytes.size(); ++n) EXPECT_FALSE(decode_client_message(bytes.substr(0, n)));
    EXPECT_FALSE(decode_client_message(bytes + "x"));
  }
  for (const auto& message : server_messages()) {
    const std::string bytes = encode(message);
    for (std::size_t n = 0; n < bytes.size(); ++n) EXPECT_FALSE(decode_server_message(bytes.substr(0, n)));
    EXPECT_FALSE(decode_server_message(bytes + "x"));
  }
}

TEST(Protocol, UnknownTypesAreRefused) {
  for (int type = 0; type < 256; ++type) {
    const std::string bytes(1, static_cast<char>(type));
    EXPECT_FALSE(decode_client_message(bytes));
    EXPECT_FALSE(decode_server_message(bytes));
  }
  EXPECT_FALSE(decode_client_message(encode(ServerMessage(DoneReply{1}))));
  EXPECT_FALSE(decode_server_message(encode(ClientMessage(LeaveMessage{1}))));
}

TEST(Protocol, FieldsBeyondTheirLimitsAreRefused) {
  EXPECT_TRUE(decode_client_message(encode(ClientMessage(GetMessage{1, std::string(kMaxKey, 'k'), 0}))));
  EXPECT_FALSE(decode_client_message(encode(ClientMessage(GetMessage{1, std::string(kMaxKey + 1, 'k'), 0}))));
  EXPECT_FALSE(decode_client_message(encode(ClientMessage(DeleteMessage{1, std::string(kMaxKey + 1, 'k')}))));
  const std::string largest(kMaxValue, 'v');
  EXPECT_TRUE(decode_client_message(encode(ClientMessage(SetMessage{1, "k", largest, false}))));
  EXPECT_FALSE(decode_client_message(encode(ClientMessage(SetMessage{1, "k", largest + "v", false}))));
  EXPECT_FALSE(decode_client_message(encode(ClientMessage(NcclPutMessage{1, "c", 0, true, "short"}))));
}

TEST(Protocol, LargestSetFitsIntoAFrame) {
  const SetMessage largest{1, std::string(kMaxKey, 'k'), std::string(kMaxValue, 'v'), false};
  EXPECT_LE(encode(ClientMessage(largest)).size(), kMaxFrame);
}

TEST(Protocol, LongReasonsAreCut) {
  const auto back = decode_client_message(encode(ClientMessage(AbortMessage{std::string(100000, 'w')})));
  ASSERT_TRUE(back);
  EXPECT_EQ(std::get<AbortMessage>(*back).why.size(), kMaxText);
}

TEST(Protocol, WelcomeWithAHostThatIsNotListedIsRefused) {
  const std::string good = encode(server_messages()[0]);
  ASSERT_TRUE(decode_server_message(good));
  const auto bad = [&good](std::size_t from_end, char byte) {
    std::string out = good;
    out[out.size() - from_end] = byte;
    return !decode_server_message(out);
  };
  EXPECT_TRUE(bad(5, 7));  // the host of the last run
  EXPECT_TRUE(bad(1, 2));  // its number of ranks
  EXPECT_TRUE(bad(1, 0));
  EXPECT_TRUE(bad(9, 0x7f));  // that of the run before
}

TEST(Protocol, HostNameThatSharesMoreThanThereIsIsRefused) {
  std::string bytes = encode(server_messages()[0]);
  const auto first = bytes.find(std::string("\0\1a\0\1b", 6));  // its names "a" and "b", which share nothing
  ASSERT_NE(first, std::string::npos);
  bytes[first + 3] = 1;  // of "a"
  EXPECT_TRUE(decode_server_message(bytes));
  bytes[first + 3] = 2;
  EXPECT_FALSE(decode_server_message(bytes));
}

TEST(Protocol, HostNamesOfAWelcomeAreCut) {
  Welcome welcome = std::get<Welcome>(server_messages()[0]);
  for (auto& name : welcome.host_names) name = std::string(kMaxHostName + 1, 'b');
  const auto decoded = decode_server_message(encode(ServerMessage(welcome)));
  ASSERT_TRUE(decoded);
  for (const auto& name : std::get<Welcome>(*decoded).host_names) EXPECT_EQ(name.size(), kMaxHostName);
}

// Its two lengths could add up to twice as much.
TEST(Protocol, LongHostNameInAWelcomeIsRefused) {
  Welcome welcome = std::get<Welcome>(server_messages()[0]);
  for (std::size_t i = 0; i < welcome.host_names.size(); ++i) {
    welcome.host_names[i] = std::string(kMaxHostName - 1, 'b') + (i == 0 ? "b" : "c");
  }
  std::string bytes = encode(ServerMessage(welcome));
  const auto second = bytes.find(
      "\xfe\x01"
      "c");  // 254 bytes of the name before, and one more
  ASSERT_NE(second, std::string::npos);
  EXPECT_TRUE(decode_server_message(bytes));
  bytes[second] = '\xff';
  EXPECT_FALSE(decode_server_message(bytes));
}

TEST(Protocol, AnAbortNamesItsRankAsFarAsKnown) {
  EXPECT_EQ(attribution(AbortNotice{3, "node7", 812, ""}), "rank 3 on node7 (pid 812)");
  EXPECT_EQ(attribution(AbortNotice{3, "node7", 0, ""}), "rank 3 on node7");
  EXPECT_EQ(attribution(AbortNotice{-1, "node7", 0, ""}), "drun on node7");
  EXPECT_EQ(attribution(AbortNotice{-1, "", 0, ""}), "drun");
}

}  // namespace
}  // namespace drun::rendezvous
