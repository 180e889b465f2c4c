// Parses one `[user@]host[:slots][:gpus=LIST]` word. Private to this folder: the parsers of -H and of hostfiles share
// it, and place() checks GPUs by it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/host.h"
#include "launcher/plan/host_range.h"

namespace drun::launcher {

// A higher slot count is most likely a port that was typed in place of the slots.
inline constexpr int kMaxSlots = 1024;

// The separator before the GPUs of a word: "b:2:gpus=0,2".
inline constexpr std::string_view kGpusKey = ":gpus=";

// The hosts of one word, with brackets expanded. `where` is stored in Host::where.
FaultOr<std::vector<Host>> host_item(std::string_view item, const std::string& where);

// A slot count of 1..kMaxSlots. `offset` is where `digits` begins, for the fault.
FaultOr<int> slot_count(std::string_view digits, std::size_t offset);

// Parses "0,2" or "GPU-8932f937-...,MIG-...", in the format of CUDA_VISIBLE_DEVICES. A duplicate is a fault.
FaultOr<std::vector<std::string>> gpu_list(std::string_view text, std::size_t offset);
// True if `word` can be an item of such a list; then it is not taken for a host.
bool is_gpu(std::string_view word);
// Fails if there are GPUs, but fewer than `slots`, or one of them twice: no two slots may share a GPU.
FaultOr<void> check_gpus(int slots, const std::vector<std::string>& gpus, std::size_t offset);

// Checks a login name: accepts only names that no shell or ssh option parser can take for something else.
FaultOr<void> check_user(std::string_view user, std::size_t offset);

}  // namespace drun::launcher
