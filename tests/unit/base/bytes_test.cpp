#include "base/bytes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace drun {
namespace {

TEST(Bytes, IntegersAreBigEndian) {
  ByteWriter w;
  w.u8(0x01);
  w.u16(0x0203);
  w.u32(0x04050607);
  w.u64(0x08090a0b0c0d0e0fULL);
  EXPECT_EQ(w.bytes(), std::string("\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f", 15));
}

TEST(Bytes, EveryTypeComesBack) {
  ByteWriter w;
  w.u8(255);
  w.u16(65535);
  w.u32(std::numeric_limits<std::uint32_t>::max());
  w.u64(std::numeric_limits<std::uint64_t>::max());
  w.i32(-1);
  w.i32(std::numeric_limits<std::int32_t>::min());
  w.i64(std::numeric_limits<std::int64_t>::min());
  w.boolean(true);
  w.boolean(false);
  w.str(std::string("a\0b", 3));
  w.str("");
  w.strs({"x", "", "yz"});
  w.strs({});
  w.raw("end");
  ByteReader r(w.bytes());
  EXPECT_EQ(r.u8(), 255);
  EXPECT_EQ(r.u16(), 65535);
  EXPECT_EQ(r.u32(), std::numeric_limits<std::uint32_t>::max());
  EXPECT_EQ(r.u64(), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(r.i32(), -1);
  EXPECT_EQ(r.i32(), std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(r.i64(), std::numeric_limits<std::int64_t>::min());
  EXPECT_TRUE(r.boolean());
  EXPECT_FALSE(r.boolean());
  EXPECT_EQ(r.str(), std::string("a\0b", 3));
  EXPECT_EQ(r.str(), "");
  EXPECT_EQ(r.strs(), (std::vector<std::string>{"x", "", "yz"}));
  EXPECT_TRUE(r.strs().empty());
  EXPECT_EQ(r.left(), 3u);
  EXPECT_FALSE(r.done());
  EXPECT_EQ(r.raw(3), "end");
  EXPECT_TRUE(r.done());
}

TEST(Bytes, TakeEmptiesTheWriter) {
  ByteWriter w;
  w.str("abc");
  EXPECT_EQ(w.take().size(), 7u);
  EXPECT_TRUE(w.bytes().empty());
}

TEST(ByteReader, AReadPastTheEndFailsForGood) {
  ByteReader r(std::string_view("\x01\x02\x03", 3));
  EXPECT_EQ(r.u32(), 0u);
  EXPECT_FALSE(r.ok());
  EXPECT_EQ(r.u8(), 0) << "even though a byte would have been there";
  EXPECT_EQ(r.str(), "");
  EXPECT_TRUE(r.strs().empty());
  EXPECT_EQ(r.count(), 0u);
  EXPECT_EQ(r.left(), 0u);
  EXPECT_FALSE(r.done());
}

TEST(ByteReader, ALengthBeyondTheDataIsRefusedWithoutAllocating) {
  const std::string huge(
      "\xff\xff\xff\xff"
      "abc",
      7);
  ByteReader s(huge);
  EXPECT_EQ(s.str(), "");
  EXPECT_FALSE(s.ok());
  ByteReader l(huge);
  EXPECT_TRUE(l.strs().empty());
  EXPECT_FALSE(l.ok());
  ByteReader c(huge);
  EXPECT_EQ(c.count(8), 0u);
  EXPECT_FALSE(c.ok());
}

TEST(ByteReader, CountsOnlyWhatCanFit) {
  ByteWriter w;
  w.u32(3);
  w.raw("123456");
  EXPECT_EQ(ByteReader(w.bytes()).count(2), 3u);
  ByteReader r(w.bytes());
  r.count(3);
  EXPECT_FALSE(r.ok());
}

TEST(ByteReader, EveryCutOfAMessageFails) {
  ByteWriter w;
  w.u16(7);
  w.str("hello");
  w.strs({"a", "bc"});
  w.u64(9);
  const std::string whole = w.take();
  for (std::size_t n = 0; n < whole.size(); ++n) {
    ByteReader r(std::string_view(whole).substr(0, n));
    r.u16();
    r.str();
    r.strs();
    r.u64();
    EXPECT_FALSE(r.ok()) << n;
  }
}

TEST(ByteReader, AnEmptyMessageIsDone) { EXPECT_TRUE(ByteReader("").done()); }

}  // namespace
}  // namespace drun
