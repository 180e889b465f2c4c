// One `[user@]host[:slots][:gpus=LIST]` word, as -H and hostfiles share it. Private to them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/host.h"
#include "launcher/plan/host_range.h"

namespace drun::launcher {

// More workers than that on one host is a port that was typed in the place of the slots.
inline constexpr int kMaxSlots = 1024;

// What comes before the GPUs of a word: "b:2:gpus=0,2".
inline constexpr std::string_view kGpusKey = ":gpus=";

// The hosts of one word, brackets expanded. `where` goes into Host::where.
FaultOr<std::vector<Host>> host_item(std::string_view item, const std::string& where);

// A slot count of 1..kMaxSlots. `offset` is where `digits` begins, for the fault.
FaultOr<int> slot_count(std::string_view digits, std::size_t offset);

// "0,2" or "GPU-8932f937-...,MIG-...": as CUDA_VISIBLE_DEVICES has them, none twice.
FaultOr<std::vector<std::string>> gpu_list(std::string_view text, std::size_t offset);
// Whether it can be one of such a list, and not a host.
bool is_gpu(std::string_view word);
// That none of `slots` has to share one of `gpus`, if there are any.
FaultOr<void> check_gpus(int slots, const std::vector<std::string>& gpus, std::size_t offset);

// A name to log in with: what no shell and no ssh option parser can take for something else.
FaultOr<void> check_user(std::string_view user, std::size_t offset);

}  // namespace drun::launcher
