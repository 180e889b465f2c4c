// The kind of program that is to run on the hosts: programs differ in their needs of a network. Pure.
#pragma once

#include <cstdint>
#include <string>

namespace drun::check {

// kAll: any of them may run, so the strictest needs count. kUnknown: one of them will run; the most lenient needs
// count.
enum class Purpose : std::uint8_t { kAll, kUnknown, kNccl, kTorch, kLibdrun, kMpi };

// True if every two hosts must be able to connect in both directions. libdrun uses whichever direction works.
inline bool needs_both_directions(Purpose purpose) {
  return purpose != Purpose::kLibdrun && purpose != Purpose::kUnknown;
}

// "libdrun can work with that": for hosts that connect in one direction only.
inline std::string one_way_words(Purpose purpose) {
  switch (purpose) {
    case Purpose::kNccl:
      return "NCCL can not work with that";
    case Purpose::kTorch:
      return "torch can not work with that";
    case Purpose::kLibdrun:
      return "libdrun can work with that";
    case Purpose::kMpi:
      return "MPI can not work with that";
    case Purpose::kAll:
    case Purpose::kUnknown:
      break;
  }
  return "libdrun can work with that, torch, Gloo, NCCL and MPI can not";
}

}  // namespace drun::check
