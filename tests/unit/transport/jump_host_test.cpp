#include "transport/jump_host.h"

#include <gtest/gtest.h>

namespace drun::transport {
namespace {

// The lines "Executing proxy command" and "Invalid ProxyJump" of OpenSSH 9.2's `ssh -v` are the source.
TEST(JumpHost, IsTakenApartAsInOpenssh) {
  struct Case {
    const char *text, *user, *host, *port;
  };
  for (const Case& c :
       {Case{"jump", "", "jump", ""}, Case{"me@jump:2222", "me", "jump", "2222"}, Case{"jump:ssh", "", "jump", "ssh"},
        Case{"me@jump:", "me", "jump", ""}, Case{"a@b@jump:22", "a@b", "jump", "22"}, Case{"x+y@j", "x+y", "j", ""},
        Case{"[::1]:2222", "", "::1", "2222"}, Case{"me@[fd00::1]", "me", "fd00::1", ""},
        Case{"a@[b]", "a", "b", ""}}) {
    const auto jump = parse_jump_host(c.text);
    ASSERT_TRUE(jump) << c.text;
    EXPECT_EQ(jump->user, c.user) << c.text;
    EXPECT_EQ(jump->host, c.host) << c.text;
    EXPECT_EQ(jump->port, c.port) << c.text;
    EXPECT_EQ(jump->uri, "") << c.text;
  }
  for (const char* text : {"", "::1", "fd00::1:22", "@jump", "[::1", "[::1]22", "jump:22:1", "me@"}) {
    EXPECT_FALSE(parse_jump_host(text)) << text;
  }
}

TEST(JumpHost, LeavesAnAddressForSsh) {
  for (const char* text : {"ssh://x%2By@jump:22", "ssh://x%2By@jump:22/"}) {
    const auto jump = parse_jump_host(text);
    ASSERT_TRUE(jump) << text;
    EXPECT_EQ(jump->uri, text);
    EXPECT_EQ(jump->host, "jump") << text;
  }
}

}  // namespace
}  // namespace drun::transport
