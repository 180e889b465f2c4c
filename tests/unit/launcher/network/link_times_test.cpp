#include "launcher/network/link_times.h"

#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(LinkTimes, LongWaysGetMoreThanOthersLostFramesDoNot) {
  netdetect::Link link;
  EXPECT_EQ(stream_time(link, milliseconds(150)), milliseconds(150));  // nothing is known
  link.rtt_median_us = link.rtt_min_us = 50e3;
  EXPECT_EQ(stream_time(link, milliseconds(150)), milliseconds(600));
  EXPECT_EQ(stream_time(link, milliseconds(800)), milliseconds(800));
  link.rtt_median_us = link.rtt_min_us = 500e3;
  EXPECT_EQ(stream_time(link, milliseconds(150)), seconds(2));
  link.rtt_min_us = 25;  // half of the messages were lost
  EXPECT_EQ(stream_time(link, milliseconds(150)), milliseconds(150));
}

TEST(LinkTimes, LostMessagesAreToldFromLongWays) {
  netdetect::Link link;
  EXPECT_TRUE(lost_messages(link, 100));  // no message came back
  link.n_round_trips = 100;
  link.rtt_min_us = 50;
  link.rtt_p99_us = 250e3;
  EXPECT_FALSE(lost_messages(link, 100));  // all came back in time
  link.n_round_trips = 70;
  EXPECT_TRUE(lost_messages(link, 100));
  link.rtt_p99_us = 2000;
  EXPECT_FALSE(lost_messages(link, 100));
}

TEST(LinkTimes, ATimeFitsIntoWhatIsLeft) {
  LinkTimes times;
  times.bandwidth_min = milliseconds(100);
  times.bandwidth_max = milliseconds(500);
  EXPECT_EQ(bandwidth_time(times, seconds(10), 10, milliseconds(50)), milliseconds(500));
  EXPECT_EQ(bandwidth_time(times, seconds(3), 10, milliseconds(50)), milliseconds(250));
  EXPECT_EQ(bandwidth_time(times, milliseconds(1500), 10, milliseconds(50)), milliseconds(100));
  EXPECT_EQ(bandwidth_time(times, milliseconds(1400), 10, milliseconds(50)), milliseconds(0));
  EXPECT_EQ(bandwidth_time(times, seconds(1), 0, milliseconds(50)), milliseconds(500));
}

netdetect::Link link_of(double bits_per_second, int path_mtu) {
  netdetect::Link link;
  for (netdetect::Direction* direction : {&link.forward, &link.backward}) {
    netdetect::Rate rate;
    rate.n_streams = 1;
    rate.bits_per_second = bits_per_second;
    direction->rates.push_back(rate);
    direction->path_mtu = path_mtu;
  }
  return link;
}

TEST(LossTarget, FillsNoQueueOfTheSlowerDirection) {
  netdetect::Link link = link_of(40e6, 1500);
  link.backward.rates[0].bits_per_second = 20e6;
  EXPECT_EQ(loss_target(link, milliseconds(200)).max_rate, 5'000'000u);
  link.backward.rates[0].bits_per_second = 1e6;
  EXPECT_EQ(loss_target(link, milliseconds(200)).max_rate, 1'000'000u);  // the minimum
  // A fast link whose stream waited for a lost retransmission.
  link.backward.rates[0].seconds = 0.1;
  link.backward.rates[0].n_segments = 1000;
  link.backward.rates[0].n_retransmits = 30;
  EXPECT_EQ(loss_target(link, milliseconds(200)).max_rate, 10'000'000u);
}

TEST(LossTarget, HasSegmentsAsLongAsThePathCarries) {
  EXPECT_EQ(loss_target(link_of(1e9, 1500), milliseconds(200)).segment_bytes, 1428);
  EXPECT_EQ(loss_target(link_of(1e9, 9000), milliseconds(200)).segment_bytes, 8928);
  EXPECT_EQ(loss_target(link_of(1e9, 0), milliseconds(200)).segment_bytes, 1428);  // not measured
  EXPECT_EQ(loss_target(link_of(100e9, 1500), milliseconds(200)).max_rate, 5000u * 8 * 1428);
}

TEST(LinkTimes, ALinkIsSlowIfOneDirectionIs) {
  netdetect::Link link = link_of(1e9, 1500);
  EXPECT_FALSE(is_slow(link));
  link.backward.rates[0].bits_per_second = 95e6;
  EXPECT_TRUE(is_slow(link));
  EXPECT_FALSE(is_slow(netdetect::Link()));  // not measured
}

}  // namespace
}  // namespace drun::launcher
