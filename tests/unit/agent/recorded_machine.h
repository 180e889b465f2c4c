// A machine's /sys/devices/system tree, made from a text file with lines such as "cpu/online:0-31".
#pragma once

#include <cstdlib>
#include <string>

#include "base/fd.h"
#include "base/text.h"
#include "tests/temp_folder.h"

namespace drun::agent {

class RecordedMachine {
 public:
  // two_sockets: a server with hyper-threads and two NUMA nodes. one_node: a desktop whose last 8 of 14 cores have one
  // thread each. offline: four sockets with hyper-threads, with four CPUs offline. gpu_memory_nodes: a POWER9 in which
  // each GPU's memory is a NUMA node. All are from the recordings of hwloc's tests.
  explicit RecordedMachine(const std::string& name) {
    const auto text = read_file(DRUN_TEST_TOPOLOGIES "/" + name + ".txt");
    if (!text) std::abort();
    for (const auto line : split(*text, '\n')) {
      const auto colon = line.find(':');
      if (colon == std::string_view::npos) continue;
      folder_.write("sys/devices/system/" + std::string(line.substr(0, colon)),
                    std::string(line.substr(colon + 1)) + "\n");
    }
  }
  std::string root() const { return folder_.path(); }

 private:
  drun::testing::TempFolder folder_;
};

}  // namespace drun::agent
