// A host as the user named it, before anything is resolved or connected.
#pragma once

#include <string>
#include <vector>

namespace drun {

struct Host {
  std::string name;  // as typed: alias, DNS name or address (no brackets around IPv6)
  std::string user;  // "" = from ssh config
  int port = 0;      // 0 = from -p or ssh config
  int slots = 1;
  bool slots_given = false;
  int max_slots = 0;  // 0 = no maximum
  // CUDA_VISIBLE_DEVICES of each worker, by local rank. Empty: drun does not set it.
  std::vector<std::string> gpus;
  std::string where;  // for messages: "-H, item 2 (column 14)" or "hosts.txt:4:1"
  std::string job;    // the batch scheduler's job that allocated the host: "Slurm job 4"; "" = the user named it
};

}  // namespace drun
