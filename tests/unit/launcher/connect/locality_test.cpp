#include "launcher/connect/locality.h"

#include <gtest/gtest.h>

#include <string>

namespace drun::launcher {
namespace {

OwnIdentity own() {
  OwnIdentity out;
  out.host_name = "n1";
  out.user = "ann";
  out.addresses = {"10.0.0.1"};
  return out;
}

bool local(const std::string& name, const std::string& job = "") {
  Host host;
  host.name = name;
  host.job = job;
  transport::SshTarget target;
  target.host_name = name;
  return is_local(host, target, own());
}

TEST(Locality, IsByOwnNamesAndAddresses) {
  for (const char* name : {"localhost", "127.0.0.1", "::1", "n1", "N1", "10.0.0.1"}) EXPECT_TRUE(local(name)) << name;
  for (const char* name : {"n2", "n1.other.example", "10.0.0.2"}) EXPECT_FALSE(local(name)) << name;
}

TEST(Locality, LooksPastTheDomainOfHostsOfASchedulersJob) {
  EXPECT_TRUE(local("n1.cluster.example", "PBS job 7"));
  EXPECT_FALSE(local("n2.cluster.example", "PBS job 7"));
  EXPECT_FALSE(local("10.0.0.2", "PBS job 7"));
}

}  // namespace
}  // namespace drun::launcher
