#include "runtime/src/operation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "runtime/src/backend/tcp/connections.h"

namespace drun::runtime {
namespace {

Operation sample() {
  Operation operation;
  operation.kind = OpKind::kAllreduce;
  operation.dtype = DRUN_FLOAT32;
  operation.op = DRUN_MAX;
  operation.seq = 17;
  operation.count = 12;
  return operation;
}

TEST(Operation, SurvivesItsHeader) {
  const auto bytes = encode_header(sample());
  ASSERT_EQ(bytes.size(), kHeaderBytes);
  const auto decoded = decode_header(bytes);
  ASSERT_TRUE(decoded);
  EXPECT_TRUE(same_call(*decoded, sample()));
  EXPECT_EQ(describe(*decoded), "allreduce #17 of 12 f32 (max)");
}

TEST(Operation, RefusesWhatIsNoHeader) {
  EXPECT_FALSE(decode_header(std::string(kHeaderBytes, 'x')));
  EXPECT_FALSE(decode_header(encode_header(sample()).substr(1)));
  for (const std::size_t place : {4u, 5u, 6u, 7u}) {  // version, kind, type, reduction
    auto bytes = encode_header(sample());
    bytes[place] = 77;
    EXPECT_FALSE(decode_header(bytes)) << place;
  }
}

TEST(Operation, TellsEveryDifference) {
  const auto differs = [](auto change) {
    Operation other = sample();
    change(other);
    return !same_call(sample(), other);
  };
  EXPECT_TRUE(differs([](Operation& o) { o.kind = OpKind::kBarrier; }));
  EXPECT_TRUE(differs([](Operation& o) { o.dtype = DRUN_INT32; }));
  EXPECT_TRUE(differs([](Operation& o) { o.op = DRUN_SUM; }));
  EXPECT_TRUE(differs([](Operation& o) { o.root = 1; }));
  EXPECT_TRUE(differs([](Operation& o) { o.seq = 18; }));
  EXPECT_TRUE(differs([](Operation& o) { o.count = 13; }));
  EXPECT_TRUE(differs([](Operation& o) { o.counts = 1; }));
}

TEST(Operation, NamesAreComparedWhereBothGaveOne) {
  Operation a = sample(), b = sample();
  a.names = scan_name("a").digest;
  EXPECT_TRUE(same_call(a, b));
  EXPECT_TRUE(same_call(b, a));
  b.names = scan_name("b").digest;
  EXPECT_FALSE(same_call(a, b));
  a.name = "a";
  const auto bytes = encode_header(a);
  EXPECT_FALSE(same_call(*decode_header(bytes), b));
  EXPECT_EQ(name_in_header(bytes), "a");
  a.name.assign(kNameBytes, 'n');
  EXPECT_EQ(name_in_header(encode_header(a)), a.name);
  a.name = "a\033[2J\nb";
  EXPECT_EQ(name_in_header(encode_header(a)), "a?[2J b");
}

TEST(Operation, EveryByteOfANameThatIsNotPlainIsFound) {
  for (int byte = 0; byte < 256; ++byte) {
    const bool is_plain = byte >= 0x20 && byte < 0x7f;
    for (const char other : {'a', '~', ' ', '!'}) {
      for (std::size_t length = 1; length <= 20; ++length) {
        for (std::size_t place = 0; place < length; ++place) {
          std::string name(length, other);
          name[place] = static_cast<char>(byte);
          ASSERT_EQ(scan_name(name).is_plain, is_plain) << byte << " at " << place << " of " << length;
        }
      }
    }
  }
}

TEST(Operation, DigestOfNamesTellsThemApart) {
  std::set<std::uint32_t> digests;
  std::string name;
  for (int length = 1; length <= 40; ++length) {  // last words of all lengths
    name += static_cast<char>('a' + length % 26);
    for (std::size_t place = 0; place < name.size(); ++place) {
      std::string other = name;
      other[place] = 'Z';
      EXPECT_TRUE(digests.insert(scan_name(other).digest).second) << other;
    }
  }
  const auto a = scan_name("a").digest, b = scan_name("b").digest;
  EXPECT_NE(digest_of_names(a, b), digest_of_names(b, a));
  EXPECT_NE(digest_of_names(a, b), 0u);
  EXPECT_EQ(digest_of_names(a, 0), 0u);
  EXPECT_EQ(digest_of_names(0, b), 0u);
}

TEST(Neighbours, AreMutualAndFew) {
  for (int size = 1; size <= 70; ++size) {
    for (int rank = 0; rank < size; ++rank) {
      const auto mine = neighbors(rank, size);
      EXPECT_LE(mine.size(), 14u);
      for (const int peer : mine) {
        const auto theirs = neighbors(peer, size);
        EXPECT_NE(peer, rank);
        EXPECT_EQ(std::count(theirs.begin(), theirs.end(), rank), 1) << size << ": " << rank << " " << peer;
      }
    }
  }
  EXPECT_EQ(neighbors(0, 64).size(), 11u);
}

}  // namespace
}  // namespace drun::runtime
