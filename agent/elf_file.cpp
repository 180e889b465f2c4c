#include "agent/elf_file.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/fd.h"
#include "base/text.h"

namespace drun::agent {

namespace {

constexpr std::size_t kMaxHeaders = 128;
constexpr std::size_t kMaxDynamic = 4096;  // entries
constexpr std::size_t kMaxLibraries = 1024;
constexpr std::size_t kLongestName = 255;

// Reads up to `count` records, fewer where the file ends.
template <typename T>
std::vector<T> read_at(int fd, std::uint64_t offset, std::size_t count) {
  std::vector<T> out(count);
  const ssize_t n = ::pread(fd, out.data(), count * sizeof(T), static_cast<off_t>(offset));
  out.resize(n > 0 ? static_cast<std::size_t>(n) / sizeof(T) : 0);
  return out;
}

std::optional<Elf64_Ehdr> header_of(int fd) {
  const auto headers = read_at<Elf64_Ehdr>(fd, 0, 1);
  if (headers.empty() || std::memcmp(headers[0].e_ident, ELFMAG, SELFMAG) != 0) return std::nullopt;
  return headers[0];
}

// Translates an address of the program into an offset in the file.
std::optional<std::uint64_t> offset_of(const std::vector<Elf64_Phdr>& segments, std::uint64_t address) {
  for (const auto& segment : segments) {
    if (segment.p_type != PT_LOAD || address < segment.p_vaddr || address - segment.p_vaddr >= segment.p_filesz)
      continue;
    return segment.p_offset + (address - segment.p_vaddr);
  }
  return std::nullopt;
}

}  // namespace

std::string foreign_machine(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const auto header = fd ? header_of(fd.get()) : std::nullopt;
  if (!header) return {};
#if defined(__x86_64__)
  constexpr unsigned own = EM_X86_64, own32 = EM_386;
#elif defined(__aarch64__)
  constexpr unsigned own = EM_AARCH64, own32 = EM_ARM;
#else
  return {};
#endif
  if (header->e_machine == own || header->e_machine == own32) return {};
  switch (header->e_machine) {
    case EM_X86_64:
      return "x86_64";
    case EM_AARCH64:
      return "aarch64";
    case EM_PPC64:
      return "ppc64";
    case EM_RISCV:
      return "riscv";
    default:
      return "ELF machine " + std::to_string(header->e_machine);
  }
}

std::vector<std::string> needed_libraries(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const auto header = fd ? header_of(fd.get()) : std::nullopt;
  if (!header || header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB ||
      header->e_phentsize != sizeof(Elf64_Phdr)) {
    return {};
  }
  const auto segments =
      read_at<Elf64_Phdr>(fd.get(), header->e_phoff, std::min<std::size_t>(header->e_phnum, kMaxHeaders));
  const auto is_dynamic = [](const Elf64_Phdr& segment) { return segment.p_type == PT_DYNAMIC; };
  const auto dynamic = std::find_if(segments.begin(), segments.end(), is_dynamic);
  if (dynamic == segments.end()) return {};
  const auto entries = read_at<Elf64_Dyn>(fd.get(), dynamic->p_offset,
                                          std::min<std::size_t>(dynamic->p_filesz / sizeof(Elf64_Dyn), kMaxDynamic));
  std::optional<std::uint64_t> names;
  for (const auto& entry : entries) {
    if (entry.d_tag == DT_STRTAB) names = offset_of(segments, entry.d_un.d_ptr);
  }
  std::vector<std::string> out;
  for (const auto& entry : entries) {
    if (entry.d_tag == DT_NULL || !names || out.size() >= kMaxLibraries) break;
    if (entry.d_tag != DT_NEEDED) continue;
    const auto bytes = read_at<char>(fd.get(), *names + entry.d_un.d_val, kLongestName + 1);
    const auto end = std::find(bytes.begin(), bytes.end(), '\0');
    if (end != bytes.end() && end != bytes.begin()) out.emplace_back(bytes.begin(), end);
  }
  return out;
}

std::string mpi_library(const std::vector<std::string>& libraries) {
  // "libmpi.so.40", "libmpi_cxx.so.40", "libmpich.so.12", "libmpifort.so.12"; not libmpir, a library for large
  // numbers.
  constexpr std::string_view kBeginnings[] = {"libmpi.so", "libmpi_", "libmpich", "libmpicxx", "libmpifort"};
  const auto is_mpi = [&](const std::string& name) {
    return std::any_of(std::begin(kBeginnings), std::end(kBeginnings),
                       [&name](std::string_view beginning) { return starts_with(name, beginning); });
  };
  const auto found = std::find_if(libraries.begin(), libraries.end(), is_mpi);
  return found == libraries.end() ? "" : *found;
}

}  // namespace drun::agent
