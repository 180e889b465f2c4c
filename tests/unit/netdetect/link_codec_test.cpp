#include <gtest/gtest.h>

#include "base/text.h"
#include "netdetect/link_echo.h"
#include "netdetect/link_target.h"
#include "netdetect/link_wire.h"
#include "netdetect/path_mtu.h"

namespace drun::netdetect {
namespace {

TEST(LinkCodec, TargetsComeBackAsTheyWere) {
  LinkTarget target;
  target.id = 1;
  target.address = "10.0.0.2";
  target.port = 2;
  target.source = "10.0.0.1";
  target.n_round_trips = 3;
  target.round_trips_ms = 4;
  target.path_mtu = true;
  target.n_streams = 5;
  target.time_ms = 6;
  target.begin_in_ms = 7;
  target.sends = false;
  target.receives = true;
  target.max_rate = 8;
  target.segment_bytes = 9;
  ByteWriter out;
  encode(out, std::vector<LinkTarget>{target, LinkTarget()});
  ByteReader in(out.bytes());
  const auto back = decode_link_targets(in);
  ASSERT_TRUE(in.done());
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(back[0].source, "10.0.0.1");
  EXPECT_FALSE(back[0].sends);
  EXPECT_EQ(back[0].segment_bytes, 9);
  ByteWriter again;
  encode(again, back);
  EXPECT_EQ(hex(again.bytes()), hex(out.bytes()));
}

TEST(LinkCodec, ResultsComeBackAsTheyWere) {
  LinkResult result;
  result.id = 1;
  result.error = "e";
  result.n_round_trips = 2;
  result.rtt_median_us = 3.25;
  result.rtt_p99_us = 4.5;
  result.rtt_min_us = 0.125;
  result.mtu_forward = 1500;
  result.mtu_backward = 9000;
  result.forward.n_streams = 4;
  result.forward.bits_per_second = 941e6;
  result.forward.seconds = 0.1125;
  result.forward.n_segments = 5;
  result.forward.n_retransmits = 6;
  result.backward.bits_per_second = 400e9;
  ByteWriter out;
  encode(out, std::vector<LinkResult>{result});
  ByteReader in(out.bytes());
  const auto back = decode_link_results(in);
  ASSERT_TRUE(in.done());
  ASSERT_EQ(back.size(), 1u);
  EXPECT_EQ(back[0].error, "e");
  EXPECT_EQ(back[0].rtt_median_us, 3.25);
  EXPECT_EQ(back[0].rtt_min_us, 0.125);
  EXPECT_EQ(back[0].mtu_backward, 9000);
  EXPECT_EQ(back[0].forward.n_streams, 4);
  EXPECT_EQ(back[0].forward.bits_per_second, 941e6);
  EXPECT_EQ(back[0].forward.seconds, 0.1125);
  EXPECT_EQ(back[0].forward.n_retransmits, 6u);
  EXPECT_EQ(back[0].backward.bits_per_second, 400e9);
}

TEST(LinkCodec, ACountThatCanNotBeIsRefused) {
  for (const std::string& bytes :
       {std::string("\xff\xff\xff\xff", 4), std::string("\0\0\0\1", 4), std::string("\0", 1)}) {
    ByteReader targets(bytes), results(bytes);
    EXPECT_TRUE(decode_link_targets(targets).empty());
    EXPECT_FALSE(targets.done());
    EXPECT_TRUE(decode_link_results(results).empty());
    EXPECT_FALSE(results.done());
  }
}

LinkOrder streams_order() {
  LinkOrder order;
  order.kind = LinkOrderKind::kStreams;
  order.session = "0123456789abcdef";
  order.n_streams = 4;
  order.client_sends = true;
  order.time_ms = 150;
  order.max_rate = 1000;
  order.segment_bytes = 1448;
  return order;
}

TEST(LinkWire, AnOrderHasThisForm) {
  const std::string bytes = encode_order(streams_order());
  EXPECT_EQ(bytes.size(), kLinkOrderBytes);
  EXPECT_EQ(hex(bytes),
            "03303132333435363738396162636465660000000401000000960000000000000"
            "3e805a8");
  const auto back = decode_order(bytes);
  ASSERT_TRUE(back);
  EXPECT_EQ(hex(encode_order(*back)), hex(bytes));
}

TEST(LinkWire, WhatIsBeyondTheLimitsIsNoOrder) {
  const auto refused = [](LinkOrder order) { return !decode_order(encode_order(order)); };
  LinkOrder order = streams_order();
  order.n_streams = 0;
  EXPECT_TRUE(refused(order));
  order.n_streams = kMaxStreams + 1;
  EXPECT_TRUE(refused(order));
  order = streams_order();
  order.time_ms = 0;
  EXPECT_TRUE(refused(order));
  order.time_ms = kMaxLinkTime + 1;
  EXPECT_TRUE(refused(order));
  order = streams_order();
  order.kind = LinkOrderKind::kMtu;
  EXPECT_TRUE(refused(order)) << "without a port";
  std::string bytes = encode_order(streams_order());
  bytes[0] = 9;
  EXPECT_FALSE(decode_order(bytes));
  EXPECT_FALSE(decode_order(bytes.substr(1)));
}

TEST(LinkWire, FiguresComeBackAsTheyWere) {
  LinkFigures figures;
  figures.bits_per_second = 9.4e6;
  figures.seconds = 0.25;
  figures.n_segments = 7;
  figures.n_retransmits = 8;
  const std::string bytes = encode_figures(figures);
  ASSERT_EQ(bytes.size(), kLinkFiguresBytes);
  const LinkFigures back = decode_figures(bytes);
  EXPECT_EQ(back.bits_per_second, 9.4e6);
  EXPECT_EQ(back.seconds, 0.25);
  EXPECT_EQ(back.n_segments, 7u);
  EXPECT_EQ(back.n_retransmits, 8u);
}

TEST(RoundTrips, MedianAndP99AreOfTheNearestRank) {
  std::vector<double> micros;
  for (int i = 100; i >= 1; --i) micros.push_back(i);
  const RoundTrips trips = summarize(micros);
  EXPECT_EQ(trips.n, 100u);
  EXPECT_EQ(trips.median_us, 50);
  EXPECT_EQ(trips.p99_us, 99);
  EXPECT_EQ(trips.min_us, 1);
  EXPECT_EQ(summarize({7}).p99_us, 7);
  EXPECT_EQ(summarize({}).n, 0u);
}

TEST(MtuLadder, BeginsWithTheInterfacesOwnAndGoesDown) {
  EXPECT_EQ(mtu_ladder(1500)[0], 1500);
  EXPECT_EQ(mtu_ladder(1500)[1], 1492);
  EXPECT_EQ(mtu_ladder(9000)[0], 9000);
  EXPECT_EQ(mtu_ladder(65536)[0], 65535);
  EXPECT_EQ(mtu_ladder(0)[0], 1500) << "unknown";
  EXPECT_EQ(mtu_ladder(1300), (std::vector<int>{1300, 1280, 576}));
  EXPECT_EQ(largest_tried(1500, 1500), 1500);
  EXPECT_EQ(largest_tried(9000, 1442), 1430) << "the largest that fits";
  EXPECT_EQ(largest_tried(1442, 9000), 1442);
  EXPECT_EQ(largest_tried(9000, 0) + largest_tried(0, 9000), 0) << "unknown";
}

}  // namespace
}  // namespace drun::netdetect
