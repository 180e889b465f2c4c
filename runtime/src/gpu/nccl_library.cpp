#include "runtime/src/gpu/nccl_library.h"

#include <dlfcn.h>
#include <glob.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "runtime/src/gpu/open_library.h"

#if defined(__SANITIZE_ADDRESS__)
#define DRUN_NOT_SANITIZED [[gnu::no_sanitize("address")]]
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DRUN_NOT_SANITIZED [[gnu::no_sanitize("address")]]
#endif
#endif
#if !defined(DRUN_NOT_SANITIZED)
#define DRUN_NOT_SANITIZED
#endif

namespace drun::runtime::gpu {
namespace {

constexpr const char* kName = "libnccl.so.2";
constexpr std::string_view kBanner = "NCCL version ";
constexpr std::size_t kLongestBanner = 60;
// NCCL's kernels, hundreds of megabytes, are behind its strings.
constexpr std::size_t kMaxSearched = std::size_t{64} << 20;

template <typename F>
bool find(void* library, const char* name, F& function, std::string& why_not) {
  function = reinterpret_cast<F>(::dlsym(library, name));
  if (function == nullptr && why_not.empty()) why_not = std::string("it has no ") + name;
  return function != nullptr;
}

bool find_all(void* library, Nccl& n, std::string& why_not) {
  return find(library, "ncclGetErrorString", n.GetErrorString, why_not) &&
         find(library, "ncclGetLastError", n.GetLastError, why_not) &&
         find(library, "ncclGetUniqueId", n.GetUniqueId, why_not) &&
         find(library, "ncclCommInitRankConfig", n.CommInitRankConfig, why_not) &&
         find(library, "ncclCommSplit", n.CommSplit, why_not) &&
         find(library, "ncclCommGetAsyncError", n.CommGetAsyncError, why_not) &&
         find(library, "ncclCommFinalize", n.CommFinalize, why_not) &&
         find(library, "ncclCommDestroy", n.CommDestroy, why_not) &&
         find(library, "ncclCommAbort", n.CommAbort, why_not) &&
         find(library, "ncclGroupStart", n.GroupStart, why_not) && find(library, "ncclGroupEnd", n.GroupEnd, why_not) &&
         find(library, "ncclAllReduce", n.AllReduce, why_not) && find(library, "ncclReduce", n.Reduce, why_not) &&
         find(library, "ncclReduceScatter", n.ReduceScatter, why_not) &&
         find(library, "ncclBroadcast", n.Broadcast, why_not) && find(library, "ncclAllGather", n.AllGather, why_not) &&
         find(library, "ncclSend", n.Send, why_not) && find(library, "ncclRecv", n.Recv, why_not) &&
         find(library, "ncclRedOpCreatePreMulSum", n.RedOpCreatePreMulSum, why_not) &&
         find(library, "ncclRedOpDestroy", n.RedOpDestroy, why_not);
}

// Appends the files that match the pattern, in the order of names.
void add_files(const std::string& pattern, std::vector<std::string>& files) {
  glob_t found{};
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    std::copy(found.gl_pathv, found.gl_pathv + found.gl_pathc, std::back_inserter(files));
  }
  ::globfree(&found);
}

// Finds "NCCL version 2.28.9+cuda13.0", which NCCL prints with NCCL_DEBUG=VERSION, because no function returns it.
// Returns the version of CUDA, or 0. Reads the whole segment, parts of which sanitizers treat as inaccessible.
DRUN_NOT_SANITIZED
int cuda_in_banner(const char* memory, std::size_t n_bytes) {
  char text[kLongestBanner + 1] = {};
  for (std::size_t at = 0; at + kLongestBanner <= n_bytes; ++at) {
    std::size_t n_same = 0;
    while (n_same < kBanner.size() && memory[at + n_same] == kBanner[n_same]) ++n_same;
    if (n_same < kBanner.size()) continue;
    for (std::size_t i = 0; i < kLongestBanner; ++i) text[i] = memory[at + i];  // up to its zero
    int major = 0, minor = 0;
    if (std::sscanf(text, "NCCL version %*d.%*d.%*d+cuda%d.%d", &major, &minor) == 2) return major * 1000 + minor * 10;
  }
  return 0;
}

// Version of CUDA with which the library of this function was built; 0: unknown.
int cuda_of(const void* function) {
  struct Search {
    std::uintptr_t address;
    std::vector<std::pair<const char*, std::size_t>> parts;  // read-only segments, which may have strings
  } search{reinterpret_cast<std::uintptr_t>(function), {}};
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* argument) {
        auto& wanted = *static_cast<Search*>(argument);
        bool is_it = false;
        wanted.parts.clear();
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& part = info->dlpi_phdr[i];
          if (part.p_type != PT_LOAD || (part.p_flags & PF_R) == 0 || (part.p_flags & PF_W) != 0) continue;
          const std::uintptr_t begin = info->dlpi_addr + part.p_vaddr;
          is_it = is_it || (wanted.address >= begin && wanted.address < begin + part.p_memsz);
          wanted.parts.emplace_back(reinterpret_cast<const char*>(begin),
                                    std::min<std::size_t>(part.p_filesz, kMaxSearched));
        }
        return is_it ? 1 : 0;
      },
      &search);
  for (const auto& [memory, n_bytes] : search.parts) {
    if (const int cuda = cuda_in_banner(memory, n_bytes); cuda != 0) return cuda;
  }
  return 0;
}

std::string cuda_text(int version) { return std::to_string(version / 1000) + "." + std::to_string(version / 10 % 100); }

bool load(Nccl& nccl, std::string& why_not) {
  std::string unused;
  if (open_nccl(kName, true, nccl, unused)) return true;
  const char* const named = std::getenv("DRUN_NCCL_LIB");
  for (const std::string& path : nccl_candidates(named != nullptr ? named : "",
                                                 [](const char* name) -> const char* { return std::getenv(name); })) {
    std::string reason;
    if (open_nccl(path, false, nccl, reason)) return true;
    // Keep the most useful reason: the loader's own text, or that a library is too old rather than missing.
    if (why_not.empty() || reason.find("too old") != std::string::npos) why_not = reason;
  }
  return false;
}

}  // namespace

int nccl_type_of(drun_dtype dtype) {
  switch (dtype) {
    case DRUN_INT8:
      return 0;
    case DRUN_UINT8:
      return 1;
    case DRUN_INT32:
      return 2;
    case DRUN_UINT32:
      return 3;
    case DRUN_INT64:
      return 4;
    case DRUN_UINT64:
      return 5;
    case DRUN_FLOAT16:
      return 6;
    case DRUN_FLOAT32:
      return 7;
    case DRUN_FLOAT64:
      return 8;
    case DRUN_BFLOAT16:
      return 9;
  }
  return 1;
}

std::string nccl_version_text(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

std::string why_not_with_driver(const Nccl& nccl, int driver_cuda) {
  if (nccl.cuda == 0 || driver_cuda / 1000 >= nccl.cuda / 1000) return "";
  return "NCCL " + nccl_version_text(nccl.version) + " is made for CUDA " + cuda_text(nccl.cuda) +
         ", and the host's driver knows CUDA up to " + cuda_text(driver_cuda) + " (" + nccl.path + ")";
}

std::string why_not_with_gpu(const Nccl& nccl, int compute_capability) {
  constexpr int kCuda13 = 13000, kOldestOfCuda13 = 75;
  if (nccl.cuda < kCuda13 || compute_capability >= kOldestOfCuda13) return "";
  return "NCCL " + nccl_version_text(nccl.version) + " is made for CUDA " + cuda_text(nccl.cuda) +
         ", which has no code for this GPU (compute capability " + std::to_string(compute_capability / 10) + "." +
         std::to_string(compute_capability % 10) + "): use one that is made for CUDA 12 (" + nccl.path + ")";
}

namespace {

void add_environment(const std::string& prefix, std::vector<std::string>& out) {
  add_files(prefix + "/lib/python3*/site-packages/nvidia/nccl/lib/" + kName, out);
}

// The environments of the first python3 in `path`: that of its name (a virtual environment has a link), and that of the
// file itself.
void add_environments_of_python(std::string_view path, std::vector<std::string>& out) {
  for (const auto folder : split(path, ':')) {
    const std::string python = std::string(folder) + "/python3";
    if (folder.empty() || ::access(python.c_str(), X_OK) != 0) continue;
    add_environment(std::string(folder) + "/..", out);
    char* const real = ::realpath(python.c_str(), nullptr);
    if (real == nullptr) return;
    const std::string file = real;
    std::free(real);
    const std::string bin = file.substr(0, file.rfind('/'));
    if (bin != folder) add_environment(bin + "/..", out);
    return;
  }
}

}  // namespace

std::vector<std::string> nccl_candidates(const std::string& named, const char* (*get_env)(const char*)) {
  if (!named.empty()) return {named};
  std::vector<std::string> out;
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const char* const prefix = get_env(variable);
    if (prefix != nullptr && *prefix != '\0') add_environment(prefix, out);
  }
  const char* const path = get_env("PATH");
  if (path != nullptr) add_environments_of_python(path, out);
  out.emplace_back(kName);
  for (const char* folder : {"/usr/local/cuda/lib64/", "/usr/local/cuda/lib/"}) {
    add_files(std::string(folder) + kName, out);
  }
  return out;
}

bool open_nccl(const std::string& path, bool only_if_loaded, Nccl& nccl, std::string& why_not) {
  void* const library = open_library(path.c_str(), RTLD_NOW | RTLD_LOCAL | (only_if_loaded ? RTLD_NOLOAD : 0));
  if (library == nullptr) {
    const char* const error = ::dlerror();
    why_not = error != nullptr ? error : path + " is not loaded";
    return false;
  }
  // Close an unusable library: otherwise any code that opens NCCL by its name would get it.
  std::string missing;
  if (!find(library, "ncclGetVersion", nccl.GetVersion, missing) || nccl.GetVersion(&nccl.version) != kNcclSuccess) {
    why_not = path + " is no NCCL" + (missing.empty() ? "" : ": " + missing);
    ::dlclose(library);
    return false;
  }
  if (nccl.version < kOldestNccl) {
    why_not = path + " is NCCL " + nccl_version_text(nccl.version) + ", which is too old: drun needs " +
              nccl_version_text(kOldestNccl);
    ::dlclose(library);
    return false;
  }
  if (!find_all(library, nccl, missing)) {
    why_not = path + ", NCCL " + nccl_version_text(nccl.version) + ", can't be used: " + missing;
    ::dlclose(library);
    return false;
  }
  std::string unused;
  find(library, "ncclMemAlloc", nccl.MemAlloc, unused);
  find(library, "ncclMemFree", nccl.MemFree, unused);
  find(library, "ncclCommRegister", nccl.CommRegister, unused);
  find(library, "ncclCommDeregister", nccl.CommDeregister, unused);
  Dl_info info{};
  const bool known = ::dladdr(reinterpret_cast<void*>(nccl.GetVersion), &info) != 0 && info.dli_fname != nullptr;
  nccl.path = known ? info.dli_fname : path;
  nccl.cuda = cuda_of(reinterpret_cast<const void*>(nccl.GetVersion));
  return true;  // stays open for the life of the process
}

const Nccl* load_nccl(std::string& why_not) {
  static std::mutex mutex;
  static Nccl table;
  static bool is_loaded = false;
  const std::lock_guard<std::mutex> lock(mutex);
  if (!is_loaded) is_loaded = load(table, why_not);
  return is_loaded ? &table : nullptr;
}

}  // namespace drun::runtime::gpu
