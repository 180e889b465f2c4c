#include "launcher/plan/hostlist.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/launcher/plan/host_text.h"

namespace drun::launcher {
namespace {

struct Good {
  const char* list;
  const char* hosts;  // name:slots, or name~1 if no slots were given
};

TEST(Hostlist, AcceptsWhatUsersType) {
  const Good table[] = {
      {"localhost", "localhost~1"},
      {"localhost:1", "localhost:1"},
      {"localhost:4", "localhost:4"},
      {"localhost:1,host1:1", "localhost:1 host1:1"},
      {"gpu1:8,gpu2:8", "gpu1:8 gpu2:8"},
      {"10.0.0.1:2,10.0.0.2:2", "10.0.0.1:2 10.0.0.2:2"},
      {"root@10.0.0.2:2", "root@10.0.0.2:2"},
      {"root@host1", "root@host1~1"},
      {"[fd00::2]:2", "fd00::2:2"},
      {"[fd00::2]", "fd00::2~1"},
      {"user@[fd00::2]:2", "user@fd00::2:2"},
      {"[fe80::1%eth0]:2", "fe80::1%eth0:2"},
      {"[::ffff:10.0.0.1]:2", "::ffff:10.0.0.1:2"},
      {"fd00::2", "fd00::2~1"},
      {"::1", "::1~1"},
      {"fe80::1%eth0", "fe80::1%eth0~1"},
      {"root@fd00::a:b", "root@fd00::a:b~1"},
      {"2001:db8:0:0:0:0:0:1", "2001:db8:0:0:0:0:0:1~1"},
      {"a:1, b:2 ,c", "a:1 b:2 c~1"},
      {" a:1", "a:1"},
      {"a:2,a:3", "a:2 a:3"},
      {"node-1.example.com:2", "node-1.example.com:2"},
      {"my_host:2", "my_host:2"},
      {"4", "4~1"},
      {"host:1024", "host:1024"},
      {"host:08", "host:8"},
      {"dev+ops@h", "dev+ops@h~1"},
      {"alice@corp.example@gateway:2", "alice@corp.example@gateway:2"},
      {"CORP\\alice@h:2", "CORP\\alice@h:2"},
      // ranges
      {"node[1-3]", "node1~1 node2~1 node3~1"},
      {"node[01-03]:8", "node01:8 node02:8 node03:8"},
      {"node[08-11]", "node08~1 node09~1 node10~1 node11~1"},
      {"node[098-101]", "node098~1 node099~1 node100~1 node101~1"},
      {"node[9-11]", "node9~1 node10~1 node11~1"},
      {"node[01-03,20]:8", "node01:8 node02:8 node03:8 node20:8"},
      {"node[1,3,2]", "node1~1 node3~1 node2~1"},
      {"node[5]", "node5~1"},
      {"node[0]", "node0~1"},
      {"node[00-01]", "node00~1 node01~1"},
      {"node[7-7]", "node7~1"},
      {"r[1-2]n[1-2]:4", "r1n1:4 r1n2:4 r2n1:4 r2n2:4"},
      {"r[1-2]-n[01-02].lan", "r1-n01.lan~1 r1-n02.lan~1 r2-n01.lan~1 r2-n02.lan~1"},
      {"[1-2]node", "1node~1 2node~1"},
      {"10.0.0.[1-2]:2", "10.0.0.1:2 10.0.0.2:2"},
      {"root@node[1-2]:2,head", "root@node1:2 root@node2:2 head~1"},
      {"a,node[1,2],b", "a~1 node1~1 node2~1 b~1"},
  };
  for (const auto& t : table) {
    const auto hosts = parse_hostlist(t.list);
    ASSERT_TRUE(hosts) << t.list << ": " << hosts.error().message();
    EXPECT_EQ(hosts_text(*hosts), t.hosts) << t.list;
  }
}

TEST(Hostlist, NamesTheGpusOfWorkers) {
  const auto hosts =
      parse_hostlist("a:gpus=0,2,root@b:1:gpus=MIG-1/0/0,7,c:2,[fd00::2]:gpus=GPU-8932f937-d72c,n[1-2]:gpus=3");
  ASSERT_TRUE(hosts) << hosts.error().message();
  EXPECT_EQ(hosts_text(*hosts), "a:2 root@b:1 c:2 fd00::2:1 n1:1 n2:1");
  EXPECT_EQ((*hosts)[0].gpus, (std::vector<std::string>{"0", "2"}));
  EXPECT_EQ((*hosts)[1].gpus, (std::vector<std::string>{"MIG-1/0/0", "7"}));
  EXPECT_TRUE((*hosts)[2].gpus.empty());
  EXPECT_EQ((*hosts)[3].gpus, (std::vector<std::string>{"GPU-8932f937-d72c"}));
  EXPECT_EQ((*hosts)[5].gpus, (std::vector<std::string>{"3"}));
  // Two entries of one host: add_slots() adds up their GPUs and their slots.
  const auto twice = add_slots(*parse_hostlist("a:gpus=0,b,a:gpus=3"));
  EXPECT_EQ(twice[0].slots, 2);
  EXPECT_EQ(twice[0].gpus, (std::vector<std::string>{"0", "3"}));
}

struct Bad {
  const char* list;
  const char* cause;
  const char* hint;  // a part of the hint; "" for any
};

// Removes the item from "item 2 'b:0', column 5: ...".
std::string without_item(std::string cause) {
  const auto from = cause.find(" '");
  const auto to = cause.find("', column ");
  if (from < to && to != std::string::npos) cause.erase(from, to + 1 - from);
  return cause;
}

TEST(Hostlist, RefusesWithPlaceAndReason) {
  const Bad table[] = {
      {"", "the list is empty", "-H localhost:2"},
      {"   ", "the list is empty", ""},
      {",", "item 1, column 1: nothing in front of the first ','", ""},
      {",a", "item 1, column 1: nothing in front of the first ','", ""},
      {"a,,b", "item 2, column 3: nothing between two ','", "a:2,b:2"},
      {"a:2,", "item 2, column 5: nothing behind the last ','", ""},
      {"a, ,b", "item 2, column 3: nothing between two ','", ""},
      // slots
      {"a:0", "item 1, column 3: zero slots", "at least 1"},
      {"a:00", "item 1, column 3: zero slots", ""},
      {"b,a:-1", "item 2, column 5: a negative number of slots", ""},
      {"a:+1", "item 1, column 3: the character '+' in a slot count", ""},
      {"a:2/4", "item 1, column 4: the character '/' in a slot count", ""},
      {"[fd00::2]:2=", "item 1, column 12: the character '=' in a slot count", ""},
      {"a:2.5", "item 1, column 3: '2.5' is not a slot count", ""},
      {"a:x", "item 1, column 3: 'x' is not a slot count", "commas between hosts"},
      {"a:0x2", "item 1, column 3: '0x2' is not a slot count", ""},
      {"a:", "item 1, column 3: the slot count is missing", ""},
      {"a:1025", "item 1, column 3: 1025 slots on one host (at most 1024)", ""},
      {"localhost:1,host1:12345", "item 2, column 19: 12345 slots on one host (at most 1024)", "-p 12345"},
      {"a:99999999999999999999", "item 1, column 3: more slots than a number can hold", ""},
      {"a:4294967297", "item 1, column 3: 4294967297 slots on one host", ""},
      // GPUs
      {"a:gpus=", "item 1, column 8: no GPU behind 'gpus='", "gpus=0,2"},
      {"a:gpus=x", "item 1, column 8: 'x' is not a GPU", ""},
      {"b,a:gpus=0,1,0", "item 2, column 14: GPU 0 is given twice", "slots without 'gpus='"},
      {"a:3:gpus=0,1", "item 1, column 3: 3 slots for 2 GPUs", "a GPU for each worker"},
      // colons
      {"a:2:3", "item 1, column 4: a second ':'", "a:2, and the ssh port by -p"},
      {"a:2:", "item 1, column 4: a second ':'", ""},
      {"localhost:server2:2", "item 1, column 10: two hosts with a ':' between them", "localhost,server2:2"},
      {"x::2", "item 1, column 1: 'x::2' is neither HOST:SLOTS nor an IPv6 address", "[fd00::2]:2"},
      {"a:1:2:3", "item 1, column 1: 'a:1:2:3' is neither", ""},
      {":2", "item 1, column 1: the host name is missing", ""},
      // IPv6
      {"fd00::2:4", "item 1, column 1: 'fd00::2:4' may be an address, or an address and its slots", "[fd00::2]:4"},
      {"1:2:3:4:5:6:7:8:2", "item 1, column 1: an IPv6 address with slots needs brackets", "[1:2:3:4:5:6:7:8]:2"},
      {"[fd00::2", "item 1, column 1: the '[' is never closed", ""},
      {"[fd00::g]:2", "item 1, column 2: 'fd00::g' is not an IPv6 address", ""},
      {"[fd00::2]2", "item 1, column 10: only ':' and a slot count may follow the ']'", "[fd00::2]:2"},
      {"[fd00::2]:", "item 1, column 11: the slot count is missing", ""},
      {"[fd00::2]:0", "item 1, column 11: zero slots", ""},
      {"u@[fd00::2]:x", "item 1, column 13: 'x' is not a slot count", ""},
      {"[:]", "item 1, column 2: ':' is not an IPv6 address", ""},
      // users
      {"@a:2", "item 1, column 1: the user name is missing", ""},
      {"root@", "item 1, column 6: the host name is missing", ""},
      {"root@:2", "item 1, column 6: the host name is missing", ""},
      {"root:secret@a", "item 1, column 5: a password can't be given here", ""},
      {"-oProxyCommand=x@a", "item 1, column 15: '=' in a host name", ""},
      {"-l@a", "item 1, column 1: a user name can't begin with '-'", ""},
      {"u[1-2]@a", "item 1, column 2: the character '[' in a user name", ""},
      // names
      {"-oProxyCommand", "item 1, column 1: a host name can't begin with '-'", ""},
      {".a", "item 1, column 1: a host name can't begin with '.'", ""},
      {"a b:2", "item 1, column 2: a space inside of the item", "a,b:2"},
      {"a:2 b:2", "item 1, column 4: a space inside of the item", "a:2,b:2"},
      {"a slots=2", "item 1, column 2: a space inside of the item", "a:2"},
      {"a\nb", "item 1, column 2: a line break inside of the item", "a,b"},
      {"a:2;b:2", "item 1, column 4: ';' between hosts", "a:2,b:2"},
      {"a=2", "item 1, column 2: '=' in a host name", "host:2"},
      {"ssh://a", "item 1, column 5: '/' in a host name", ""},
      {"10.0.0.1/24", "item 1, column 9: '/' in a host name", ""},
      {"10.0.0.300:2", "item 1, column 1: '10.0.0.300' is not an IPv4 address", ""},
      {"10.0.0.[255-256]", "item 1, column 1: '10.0.0.256' is not an IPv4 address", ""},
      {"$(reboot)", "item 1, column 1: the character '$' in a host name", ""},
      {"a`b", "item 1, column 2: the character '`' in a host name", ""},
      {"a'b", "item 1, column 2: the character ''' in a host name", ""},
      {"h\xc3\xb6st", "item 1, column 2: the byte 0xc3 in a host name", ""},
      {"a\x01", "item 1, column 2: the byte 0x01 in a host name", ""},
      {"a%b", "item 1, column 2: the character '%' in a host name", ""},
      // ranges
      {"node[01-", "item 1, column 5: the '[' is never closed", "node[01-16]"},
      {"a:2,node[01-,b:2", "item 2, column 9: the '[' is never closed", ""},
      {"node[", "item 1, column 5: the '[' is never closed", ""},
      {"node]", "item 1, column 5: a ']' without its '['", ""},
      {"node1-2]:3", "item 1, column 8: a ']' without its '['", ""},
      {"node[]", "item 1, column 6: a number is missing in the brackets", ""},
      {"node[1,]", "item 1, column 8: a number is missing in the brackets", ""},
      {"node[1,,2]", "item 1, column 8: a number is missing in the brackets", ""},
      {"node[1-]", "item 1, column 6: the range '1-' needs a number on both sides", ""},
      {"node[-3]", "item 1, column 6: the range '-3' needs a number on both sides", ""},
      {"node[3-1]", "item 1, column 6: the range '3-1' runs backwards", "[1-3]"},
      {"node[5,16-01]", "item 1, column 8: the range '16-01' runs backwards", ""},
      {"node[1-03]", "item 1, column 6: the bounds of '1-03' are padded differently", "[01-03]"},
      {"node[a-c]", "item 1, column 6: 'a-c' in the brackets is neither a number nor a range", ""},
      {"node[1-2-3]", "item 1, column 6: '1-2-3' in the brackets is neither a number nor a range", ""},
      {"node[1, 2]", "item 1, column 8: a space inside of the item", ""},
      {"node[1[2]]", "item 1, column 7: a '[' inside of brackets", ""},
      {"node[1-65537]", "item 1, column 6: the range '1-65537' makes more than 65536 hosts", ""},
      {"node[0-18446744073709551615]", "item 1, column 6: the range", ""},
      {"node[0-99999999999999999999]", "item 1, column 6: '0-99999999999999999999' in the brackets", ""},
      {"r[1-300]n[1-300]", "item 1, column 10: the brackets make more than 65536 hosts", ""},
      {"a[1-40000],b[1-40000]", "item 2, column 12: more than 65536 hosts in all", ""},
      {"node:[1-2]", "item 1, column 6: '[1-2]' is not a slot count", ""},
  };
  for (const auto& t : table) {
    const auto hosts = parse_hostlist(t.list);
    ASSERT_FALSE(hosts) << t.list << " gave " << hosts_text(*hosts);
    const Error& e = hosts.error();
    EXPECT_EQ(e.code, Errc::kUsage) << t.list;
    EXPECT_EQ(e.subject, "-H") << t.list;
    EXPECT_EQ(without_item(e.cause).substr(0, std::string(t.cause).size()), t.cause) << t.list;
    EXPECT_NE(e.hint.find(t.hint), std::string::npos) << t.list << ": hint is " << e.hint;
  }
}

TEST(Hostlist, ErrorsRepeatTheItem) {
  EXPECT_EQ(parse_hostlist("a:1,host1:0").error().cause, "item 2 'host1:0', column 11: zero slots");
  EXPECT_EQ(parse_hostlist("a\x01").error().cause.find('\x01'), std::string::npos);
}

TEST(Hostlist, RefusesNamesLongerThanDnsAllows) {
  EXPECT_TRUE(parse_hostlist(std::string(255, 'a')));
  const auto hosts = parse_hostlist(std::string(256, 'a'));
  ASSERT_FALSE(hosts);
  EXPECT_EQ(hosts.error().cause, "item 1, column 1: a host name of 256 characters (at most 255)");
}

TEST(Hostlist, RemembersTheItem) {
  const auto hosts = parse_hostlist("a:1,node[1-2]");
  ASSERT_TRUE(hosts);
  ASSERT_EQ(hosts->size(), 3u);
  EXPECT_EQ((*hosts)[0].where, "-H, item 1");
  EXPECT_EQ((*hosts)[1].where, "-H, item 2");
  EXPECT_EQ((*hosts)[2].where, "-H, item 2");
}

TEST(Hostlist, TakesTenThousandHosts) {
  std::string list;
  for (int i = 0; i < 10000; ++i) list += (i > 0 ? ",h" : "h") + std::to_string(i) + ":2";
  const auto hosts = parse_hostlist(list);
  ASSERT_TRUE(hosts);
  ASSERT_EQ(hosts->size(), 10000u);
  EXPECT_EQ(host_text(hosts->back()), "h9999:2");
  EXPECT_EQ(add_slots(*hosts).size(), 10000u);
  const auto range = parse_hostlist("h[0-65535]");
  ASSERT_TRUE(range);
  EXPECT_EQ(range->size(), 65536u);
}

TEST(Hostlist, NeverTakesACutListForTheWholeOne) {
  // Every prefix of a list that uses each feature either parses or fails with the column; none may crash.
  const std::string list = "root@node[01-16,20]r[1-2]:8,[fd00::2]:2,u@10.0.0.1:3,fe80::1%eth0";
  for (std::size_t n = 0; n < list.size(); ++n) {
    const auto hosts = parse_hostlist(list.substr(0, n));
    if (hosts) {
      EXPECT_FALSE(hosts->empty()) << list.substr(0, n);
    } else {
      EXPECT_FALSE(hosts.error().cause.empty()) << list.substr(0, n);
    }
  }
}

TEST(HostItem, NamesItsPlace) {
  const auto item = parse_host_item("node[1-2]:4", "hosts.txt:3:1");
  ASSERT_TRUE(item);
  EXPECT_EQ(hosts_text(*item), "node1:4 node2:4");
  EXPECT_EQ(item->front().where, "hosts.txt:3:1");
  const auto bad = parse_host_item("node:0", "hosts.txt:3:1");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().message(), "hosts.txt:3:1: column 6 of 'node:0': zero slots");
  EXPECT_FALSE(parse_host_item("", "x"));
  EXPECT_FALSE(parse_host_item("a,b", "x"));
}

TEST(AddSlots, SumsEqualHostsInThePlaceOfTheFirst) {
  const auto hosts = parse_hostlist("a:2,b:1,a:3,c,b,root@a:5");
  ASSERT_TRUE(hosts);
  EXPECT_EQ(hosts_text(add_slots(*hosts)), "a:5 b:2 c~1 root@a:5");
}

TEST(AddSlots, CountsHostsNamedWithoutSlots) {
  const auto hosts = parse_hostlist("a,a,b");
  ASSERT_TRUE(hosts);
  EXPECT_EQ(hosts_text(add_slots(*hosts)), "a~2 b~1");
}

TEST(AddSlots, KeepsOtherPortsApartAndTheLargestMaximum) {
  Host a;
  a.name = "a";
  a.slots = 2;
  a.slots_given = true;
  Host other_port = a;
  other_port.port = 2222;
  Host bounded = a;
  bounded.max_slots = 3;
  EXPECT_EQ(hosts_text(add_slots({a, other_port, bounded})), "a:4/3 a%2222:2");
}

TEST(AddSlots, DoesNotOverflow) {
  Host a;
  a.name = "a";
  a.slots = 2000000000;
  EXPECT_EQ(add_slots({a, a}).front().slots, 2147483647);
  EXPECT_TRUE(add_slots({}).empty());
}

TEST(LooksLikeHostItem, KnowsAForgottenCommaFromACommand) {
  for (const char* word : {"b:2", "user@b:2", "10.0.0.2:2", "[fd00::2]:2", "node[1-4]:8", "b.example.com:1"}) {
    EXPECT_TRUE(looks_like_host_item(word)) << word;
  }
  for (const char* word :
       {"./train", "train", "python3", "train.py", "C:\\x", "C:\\2",       "/bin/b:2", "./b:2",     "b",   "user@b",
        "",        "b:",    "b:x",     "b:0",      "a:b:2", "http://h:80", "-b:2",     "std::sort", "::1", "A=b:2"}) {
    EXPECT_FALSE(looks_like_host_item(word)) << word;
  }
}

}  // namespace
}  // namespace drun::launcher
