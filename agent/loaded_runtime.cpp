#include "agent/loaded_runtime.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "agent/elf_file.h"
#include "base/text.h"

namespace drun::agent {
namespace {

bool has_variable(std::string_view environment, std::string_view name) {
  const auto items = split(environment, '\0');
  return std::any_of(items.begin(), items.end(), [name](std::string_view item) {
    return item.size() > name.size() && item[name.size()] == '=' && starts_with(item, name);
  });
}

bool is_started_by_mpirun(std::string_view environment) {
  constexpr std::string_view kNames[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_FD",
                                         "MV2_COMM_WORLD_SIZE"};
  return std::any_of(std::begin(kNames), std::end(kNames),
                     [&](std::string_view name) { return has_variable(environment, name); });
}

}  // namespace

LoadedRuntime loaded_runtime(std::string_view maps) {
  LoadedRuntime out;
  std::vector<std::string> names;
  for (const std::string_view line : split(maps, '\n')) {
    const std::size_t slash = line.rfind('/');
    if (slash == std::string_view::npos) continue;
    const std::string_view name = line.substr(slash + 1);
    if (starts_with(name, "libtensorflow") || starts_with(name, "_pywrap_tensorflow")) out.tensorflow = true;
    if (starts_with(name, "libdrun.so")) out.libdrun = true;
    const bool is_of_horovod = line.find("/horovod/") != std::string_view::npos;
    if (is_of_horovod && starts_with(name, "mpi_lib")) out.horovod = true;  // horovod/torch/mpi_lib_v2.cpython-*.so
    if (starts_with(name, "libmpi") && (names.empty() || names.back() != name)) names.emplace_back(name);
  }
  out.mpi = mpi_library(names);
  return out;
}

std::string alone_warning(const LoadedRuntime& runtime, const std::string& program, std::string_view environment,
                          bool settled) {
  if (!runtime.mpi.empty() && !is_started_by_mpirun(environment)) {
    return program + " has loaded " + runtime.mpi +
           ": drun does not serve MPI, and each worker that calls MPI_Init is a world of its own, of one rank; start "
           "it "
           "with mpirun, or pass --mpi none if that is meant";
  }
  if (runtime.horovod && !has_variable(environment, "HOROVOD_GLOO_RENDEZVOUS_ADDR")) {
    return program +
           " has loaded Horovod's own library: under drun each worker is a job of its own, rank 0 of 1; drun --compat "
           "horovod runs the script over drun's package, --compat real-horovod over that library (docs/migrating.md)";
  }
  if (settled && runtime.tensorflow && !runtime.libdrun && !has_variable(environment, "TF_CONFIG")) {
    return program +
           " uses TensorFlow, without libdrun, and TF_CONFIG is not set: unless the program sets it, each worker is a "
           "MultiWorkerMirroredStrategy of one replica (docs/frameworks.md)";
  }
  return "";
}

}  // namespace drun::agent
