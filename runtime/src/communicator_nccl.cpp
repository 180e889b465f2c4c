// Communicator: the choice of the calls that NCCL carries out, on which all members agree. See docs/gpu.md.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <utility>

#include "runtime/src/communicator.h"
#include "runtime/src/gpu/device.h"
#include "runtime/src/gpu/host_copies.h"
#include "runtime/src/gpu/kernel_module.h"
#include "runtime/src/gpu/nccl_comm.h"
#include "runtime/src/gpu/nccl_conf.h"
#include "runtime/src/gpu/nccl_library.h"
#include "runtime/src/gpu/nccl_members.h"
#include "runtime/src/gpu/nccl_reduction.h"
#include "runtime/src/span.h"

namespace drun::runtime {
namespace {

bool reduces(OpKind kind) {
  return kind == OpKind::kAllreduce || kind == OpKind::kReduce || kind == OpKind::kReduceScatter;
}

std::string value_of(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

enum class Memory { kNone, kHost, kDevice, kBoth };

void add(Memory& all, bool is_device) {
  const Memory one = is_device ? Memory::kDevice : Memory::kHost;
  all = all == Memory::kNone || all == one ? one : Memory::kBoth;
}

void add(Memory& all, const gpu::Driver& driver, drun_memory told, const void* memory) {
  if (memory == nullptr) return;
  add(all, told == DRUN_MEMORY_DEVICE || (told == DRUN_MEMORY_AUTO && gpu::is_device_memory(driver, memory)));
}

// The two sides of a call. The driver is asked once for each pointer, and once if they are equal.
std::array<gpu::PointerInfo, 2> examine(const gpu::Driver& driver, const std::array<const void*, 2>& memory) {
  std::array<gpu::PointerInfo, 2> out;
  if (memory[0] != nullptr) out[0] = gpu::pointer_info(driver, memory[0]);
  if (memory[1] != nullptr) out[1] = memory[1] == memory[0] ? out[0] : gpu::pointer_info(driver, memory[1]);
  return out;
}

// Loads our kernels; true if that works.
bool has_kernels(const gpu::Device& device) {
  gpu::ContextScope scope;
  return scope.enter(device.driver(), device.context()) == gpu::kSuccess &&
         gpu::KernelModule::of(device.driver(), device.context(), "setup of NCCL").has_value();
}

tl::unexpected<Failure> mixed(const std::string& during, const JobContext& job_context) {
  return failure(DRUN_ERROR_ARGUMENT, during + ": some of its memory is a GPU's and some the host's",
                 job_context.rank(), job_context.host_of(job_context.rank()));
}

}  // namespace

void Communicator::warn_of_host(const std::string& why) {
  if (group_.own != 0 || !resources_->first_warning()) return;
  std::fprintf(stderr, "drun: warning: data of GPUs goes through the host, which is slow: %s\n", why.c_str());
}

Outcome<gpu::NcclComm*> Communicator::choose_route(const Operation& operation, const CallOptions& options,
                                                   const std::array<const void*, 2>& memory) {
  if (has_chosen_ && nccl_ == nullptr) return nullptr;
  const bool is_adasum = reduces(operation.kind) && operation.op == DRUN_ADASUM;
  if (reduces(operation.kind) && !is_adasum && !gpu::nccl_can_reduce(operation)) return nullptr;
  const gpu::Driver& driver = *gpu::loaded_driver();
  Memory kind = Memory::kNone;
  const auto info = examine(driver, memory);
  for (std::size_t i = 0; i < memory.size(); ++i) {
    if (memory[i] != nullptr) add(kind, options.memory == DRUN_MEMORY_DEVICE || info[i].is_device);
  }
  const void* const first = memory[0] != nullptr ? memory[0] : memory[1];
  // A rank that neither sends nor receives data still takes part.
  if (kind == Memory::kNone && options.memory == DRUN_MEMORY_DEVICE) kind = Memory::kDevice;
  if (kind == Memory::kNone || kind == Memory::kHost) return nullptr;
  if (!has_chosen_) {
    const auto without = std::find_if(group_.ranks.begin(), group_.ranks.end(),
                                      [this](int rank) { return resources_->gpu_of(rank) != gpu::Presence::kThere; });
    if (without != group_.ranks.end()) {
      warn_of_host(job_context().name_of(*without) + " has no GPU (" + gpu::text_of(resources_->gpu_of(*without)) +
                   ")");
      has_chosen_ = true;
      return nullptr;
    }
  }
  if (kind == Memory::kBoth) return mixed(describe(operation), job_context());
  if (!has_chosen_ && first == nullptr) {
    return failure(DRUN_ERROR_UNSUPPORTED,
                   describe(operation) + ": the first call on memory of a GPU needs some, to know which GPU it is",
                   job_context().rank(), job_context().host_of(job_context().rank()));
  }
  int capture = gpu::kCaptureNone;
  if (!has_chosen_ && driver.stream_capture(gpu::stream_of(options), &capture) == gpu::kSuccess &&
      capture != gpu::kCaptureNone) {
    return failure(DRUN_ERROR_STATE,
                   describe(operation) +
                       ": its stream is being captured, and a communicator's first call on memory of "
                       "a GPU sets NCCL up: make one before the capture",
                   job_context().rank(), job_context().host_of(job_context().rank()));
  }
  if (!has_chosen_) {
    if (auto ok = set_up_nccl(operation, first); !ok) return tl::unexpected<Failure>(ok.error());
  }
  if (nccl_ == nullptr || (is_adasum && !nccl_->can_adasum())) return nullptr;
  for (std::size_t i = 0; i < memory.size(); ++i) {
    if (memory[i] == nullptr || info[i].ordinal < 0 || info[i].ordinal == nccl_->device()) continue;
    return failure(DRUN_ERROR_ARGUMENT,
                   describe(operation) + ": its memory is on GPU " + std::to_string(info[i].ordinal) +
                       ", but this communicator's is on GPU " + std::to_string(nccl_->device()),
                   job_context().rank(), job_context().host_of(job_context().rank()));
  }
  return nccl_;
}

Status Communicator::set_up_nccl(const Operation& operation, const void* memory) {
  if ((nccl_ = resources_->nccl_of(group_.comm)) != nullptr) {
    has_chosen_ = true;
    return {};
  }
  const gpu::Driver& driver = *gpu::loaded_driver();
  auto device = resources_->devices().of(driver, memory, describe(operation));
  if (!device) return tl::unexpected<Failure>(device.error());
  gpu::NcclMember own;
  const gpu::Nccl* const nccl = gpu::load_nccl(own.why_not);
  if (nccl != nullptr) {
    int cuda = 0;
    if (driver.version(&cuda) == gpu::kSuccess) own.why_not = gpu::why_not_with_driver(*nccl, cuda);
    if (own.why_not.empty()) own.why_not = gpu::why_not_with_gpu(*nccl, (*device)->compute_capability());
    own.version = nccl->version;
    own.path = nccl->path;
  } else if (own.why_not.empty()) {
    own.why_not = "libnccl.so.2 was not found";
  }
  own.has_kernels = has_kernels(**device);
  own.device = (*device)->uuid();
  own.bus_id = (*device)->bus_id();
  own.machine = gpu::nccl_setting("NCCL_HOSTID");
  if (own.machine.empty()) {
    own.machine = "host " + std::to_string(job_context().client->welcome().host_index_of_rank.at(
                                static_cast<std::size_t>(job_context().rank())));
  }
  own.may_share = value_of("DRUN_SHARED_GPU") == "1";
  // The parts are split off here, where all ranks are present and no call is under way: neither is certain at the
  // parts' own first calls.
  const bool may_split = group_.comm == kCommWorld && resources_->has_parts() && value_of("DRUN_NCCL_SPLIT") != "0";
  own.splits_local = may_split && resources_->nccl_of(kCommLocal) == nullptr;
  own.splits_cross = may_split && resources_->nccl_of(kCommCross) == nullptr;

  const auto n_members = static_cast<std::size_t>(size());
  std::string all(n_members * gpu::kNcclMemberBytes, '\0');
  gpu::encode_member(own).copy(&all[static_cast<std::size_t>(rank()) * gpu::kNcclMemberBytes], gpu::kNcclMemberBytes);
  Operation telling = JobResources::setup_call(group_.comm, operation.timeout, "setup of NCCL");
  telling.kind = OpKind::kAllgather;
  telling.op = DRUN_SUM;
  telling.dtype = DRUN_UINT8;
  telling.count = gpu::kNcclMemberBytes;
  telling.seq = operation.seq;
  telling.clock = operation.clock;
  if (backend_) {
    auto told = backend_->allgather(telling, all.data(), equal_blocks(n_members, gpu::kNcclMemberBytes));
    if (!told) return told;
  }
  std::vector<gpu::NcclMember> members;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < n_members; ++i) {
    members.push_back(gpu::decode_member(all.substr(i * gpu::kNcclMemberBytes, gpu::kNcclMemberBytes)));
    names.push_back(job_context().name_of(group_.world_rank(static_cast<int>(i))));
  }
  auto decision = gpu::decide_nccl(members, names);
  if (!decision) return tl::unexpected<Failure>(decision.error());
  if (decision->use) {
    auto made = gpu::NcclComm::create(job_context(), group_, *nccl, **device, operation);
    if (!made) return tl::unexpected<Failure>(made.error());
    (*made)->have_kernels(decision->has_kernels);
    gpu::NcclComm* const whole = resources_->keep(std::move(*made));
    if (auto split = split_nccl(*whole, *decision, operation); !split) return split;
    nccl_ = whole;
    if (job_context().on_gpu) job_context().on_gpu();
  } else {
    warn_of_host(decision->why_not);
  }
  has_chosen_ = true;
  return {};
}

// JobResources owns each part even after a failure, and ends all of them in the same order on all ranks. The barrier
// keeps every rank from going on before all parts exist, so a part that can't be created fails on all ranks.
Status Communicator::split_nccl(gpu::NcclComm& all, const gpu::NcclDecision& decision, const Operation& operation) {
  std::vector<Group> groups;
  if (decision.splits_local) groups.push_back(resources_->local());
  if (decision.splits_cross) groups.push_back(resources_->cross());
  for (const Group& group : groups) {
    std::unique_ptr<gpu::NcclComm> part;
    const Status split = all.split(group, operation, part);
    resources_->keep(std::move(part));
    if (!split) return split;
  }
  return groups.empty() ? Status() : backend_->barrier(operation);
}

std::optional<Status> Communicator::allreduce_over_nccl(const std::vector<AllreduceCall>& calls, drun_dtype dtype,
                                                        drun_op op, const CallOptions& options,
                                                        std::vector<std::size_t>& on_host) {
  // Adasum combines each vector by itself.
  if (calls.size() < 2 || op == DRUN_ADASUM || gpu::loaded_driver() == nullptr) return std::nullopt;
  if (auto usable = check_usable(); !usable) return usable;
  const AllreduceCall* first = nullptr;
  bool is_any_mixed = false;
  std::size_t count = 0;
  std::vector<const AllreduceCall*> on_gpu;  // and those without elements
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const AllreduceCall& call = calls[i];
    if (call.count > 0) {
      Memory kind = Memory::kNone;
      add(kind, *gpu::loaded_driver(), call.memory, call.send);
      if (call.recv != call.send) add(kind, *gpu::loaded_driver(), call.memory, call.recv);
      if (kind == Memory::kHost) {
        on_host.push_back(i);
        continue;
      }
      is_any_mixed = is_any_mixed || kind == Memory::kBoth;
      if (first == nullptr) first = &call;
    }
    count += call.count;
    on_gpu.push_back(&call);
  }
  if (first == nullptr) return std::nullopt;
  Operation all = to_come(OpKind::kAllreduce, count, dtype, options);
  all.op = op;
  const CallOptions own_options = with_options_of(*first, options);
  if (!may_be_of_gpu(own_options)) return std::nullopt;
  auto nccl = choose_route(all, own_options, {first->send, first->recv});
  if (!nccl) return enqueued(tl::unexpected<Failure>(nccl.error()));
  if (*nccl == nullptr) return std::nullopt;
  if (is_any_mixed) return enqueued(mixed(describe(all), job_context()));
  std::vector<gpu::NcclComm::Allreduce> together;
  for (const AllreduceCall* call : on_gpu) {
    auto operation = begin(OpKind::kAllreduce, call->count, dtype, options);
    if (!operation) return enqueued(tl::unexpected<Failure>(operation.error()));
    operation->op = op;
    if (call->count == 0) continue;
    together.push_back(
        {std::move(*operation), {static_cast<gpu::Stream>(call->stream), call->later}, call->send, call->recv});
  }
  return enqueued((*nccl)->allreduce(together));
}

Outcome<std::vector<std::string>> Communicator::allgather_text(std::string word, std::size_t n_bytes,
                                                               const CallOptions& options) {
  const auto n_members = static_cast<std::size_t>(size());
  std::string all(n_members * n_bytes, '\0');
  word.resize(n_bytes, '\0');
  CallOptions on_host = options;
  on_host.memory = DRUN_MEMORY_HOST;
  auto told = allgather(word.data(), all.data(), n_bytes, DRUN_UINT8, on_host);
  if (!told) return tl::unexpected<Failure>(told.error());
  std::vector<std::string> words;
  for (std::size_t i = 0; i < n_members; ++i) words.emplace_back(all.substr(i * n_bytes, n_bytes).c_str());
  return words;
}

// NCCL needs the memory of all members registered, or of none: if one member can't register its memory, none does.
Status Communicator::register_memory(void* memory, std::size_t n_bytes, const CallOptions& options) {
  if (auto usable = check_usable(); !usable) return usable;
  // All members know this without communication, so that members that train on the host need not make the call.
  const bool all_have_gpus = std::all_of(group_.ranks.begin(), group_.ranks.end(), [this](int rank) {
    return resources_->gpu_of(rank) == gpu::Presence::kThere;
  });
  if (!all_have_gpus) return {};
  const auto name_of_member = [this](std::size_t i) {
    return job_context().name_of(group_.world_rank(static_cast<int>(i)));
  };
  CallOptions named = options;
  named.prescale = named.postscale = 1;
  if (named.name.empty()) named.name = "registered memory";

  const gpu::Driver* const driver = gpu::loaded_driver();
  bool is_device = driver != nullptr && memory != nullptr && n_bytes > 0 && options.memory != DRUN_MEMORY_HOST;
  if (is_device && options.memory == DRUN_MEMORY_AUTO) is_device = gpu::is_device_memory(*driver, memory);
  const std::string kind = !is_device ? "host" : gpu::is_mapped_memory(*driver, memory) ? "mapped" : "other";
  auto kinds = allgather_text(kind, 6, named);
  if (!kinds) return tl::unexpected<Failure>(kinds.error());
  const auto is_of_host = [](const std::string& one) { return one == "host"; };
  const auto of_host = std::find_if(kinds->begin(), kinds->end(), is_of_host),
             of_gpu = std::find_if_not(kinds->begin(), kinds->end(), is_of_host);
  if (of_gpu == kinds->end()) return {};
  const auto member = [&](auto at) { return name_of_member(static_cast<std::size_t>(at - kinds->begin())); };
  if (of_host != kinds->end()) {
    return failure(DRUN_ERROR_MISMATCH,
                   "drun_register: " + member(of_gpu) + " gives memory of a GPU, and " + member(of_host) + " does not");
  }
  const bool are_alike = std::all_of(kinds->begin(), kinds->end(), [&](const auto& one) { return one == kind; });
  // Memory of cuMemAlloc: NCCL considers its registration unsafe, and skips it unless told otherwise.
  if (are_alike && kind == "other") return {};
  named.memory = DRUN_MEMORY_DEVICE;
  const auto operation = begin(OpKind::kAllgather, n_bytes, DRUN_UINT8, named);
  if (!operation) return tl::unexpected<Failure>(operation.error());
  auto nccl = choose_route(*operation, named, {memory, nullptr});
  if (!nccl) return enqueued(tl::unexpected<Failure>(nccl.error()));
  if (*nccl == nullptr) return {};

  constexpr std::size_t kLongestReason = 200;
  std::string why_not = kind == "other" ? "its memory is not of NCCL's allocator" : "";
  if (are_alike) why_not = (*nccl)->register_memory(memory, n_bytes);
  auto reasons = allgather_text(why_not, kLongestReason, named);
  if (!reasons) return tl::unexpected<Failure>(reasons.error());
  const auto failed = std::find_if(reasons->begin(), reasons->end(), [](const auto& why) { return !why.empty(); });
  if (failed == reasons->end()) return {};
  (void)(*nccl)->deregister(memory, 1);
  if (group_.own == 0 && resources_->first_warning_of_memory()) {
    std::fprintf(stderr, "drun: warning: memory is not registered with NCCL, which copies then: %s: %s\n",
                 name_of_member(static_cast<std::size_t>(failed - reasons->begin())).c_str(), failed->c_str());
  }
  return {};
}

// Setting NCCL up needs all members, and these are two: only what collectives have set up is used. Transfers without
// elements are then skipped, because the kind of their memory is unknown.
Status Communicator::transfer_with_nccl(const std::vector<TransferCall>& calls) {
  if (auto usable = check_usable(); !usable) return usable;
  std::vector<TransferCall> rest;
  std::vector<Transfer> transfers;
  std::vector<gpu::UserStream> streams;
  for (const auto& call : calls) {
    Memory kind = Memory::kNone;
    add(kind, *gpu::loaded_driver(), call.options.memory, call.count > 0 ? call.data : nullptr);
    if (kind == Memory::kHost) rest.push_back(call);
    if (kind != Memory::kDevice) continue;
    auto operation = begin_transfer(call);
    if (!operation) return tl::unexpected<Failure>(operation.error());
    transfers.push_back({std::move(*operation), call.data});
    streams.push_back(gpu::user_stream_of(call.options));
  }
  // NCCL and the host carry out their parts at the same time: the order within a group does not matter.
  if (transfers.empty()) return rest.empty() ? Status() : transfer_over_host(rest);
  std::function<Status()> over_host;
  if (!rest.empty()) over_host = [&] { return transfer_over_host(rest); };
  return nccl_->transfer(transfers, streams, over_host);
}

}  // namespace drun::runtime
