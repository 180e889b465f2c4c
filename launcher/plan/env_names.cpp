#include "launcher/plan/env_names.h"

#include <algorithm>
#include <iterator>

#include "base/text.h"

namespace drun::launcher {
namespace {

// Patterns for glob_match() of base/text.h.

constexpr std::string_view kAssigned[] = {
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "LOCAL_SIZE",
    "NODE_RANK",
    "GROUP_RANK",
    "GROUP_WORLD_SIZE",
    "ROLE_NAME",
    "ROLE_RANK",
    "ROLE_WORLD_SIZE",
    "CROSS_RANK",
    "CROSS_SIZE",
    "DRUN_RANK",
    "DRUN_SIZE",
    "DRUN_LOCAL_RANK",
    "DRUN_LOCAL_SIZE",
    "DRUN_CROSS_RANK",
    "DRUN_CROSS_SIZE",
    "DRUN_JOB_ID",
    "DRUN_RENDEZVOUS",
    "DRUN_AGENT",
    "DRUN_KEY",
};

constexpr std::string_view kLaunch[] = {
    // drun sets these too, but -x may override them
    "MASTER_ADDR",
    "MASTER_PORT",
    "JAX_COORDINATOR_ADDRESS",
    "DRUN_DATA_ADDRESS",
    // drun's own option: a drun inside a job would overwrite its file
    "DRUN_TIMELINE",
    // torchrun; PET_* are torchrun's own options, and those of an outer pod name that pod
    "TORCHELASTIC_*",
    "PET_*",
    // horovodrun: the variables it assigns, not those the user tunes (HOROVOD_FUSION_THRESHOLD ...)
    "HOROVOD_RANK",
    "HOROVOD_SIZE",
    "HOROVOD_LOCAL_RANK",
    "HOROVOD_LOCAL_SIZE",
    "HOROVOD_CROSS_RANK",
    "HOROVOD_CROSS_SIZE",
    "HOROVOD_HOSTNAME",
    "HOROVOD_GLOO_IFACE",
    "HOROVOD_GLOO_RENDEZVOUS_*",
    "HOROVOD_CONTROLLER",
    "HOROVOD_CPU_OPERATIONS",
    "HOROVOD_ELASTIC",
    "_HOROVOD_*",
    // PMI and PMIx: MPI_Init would contact a server that does not exist
    "PMI_*",
    "PMI2_*",
    "PMIX_*",
    "PRTE_*",
    // Open MPI: the variables mpirun sets, not the user's own OMPI_MCA_btl, OMPI_MCA_pml ...
    "OMPI_COMM_WORLD_*",
    "OMPI_WORLD_*",
    "OMPI_UNIVERSE_SIZE",
    "OMPI_APP_CTX_NUM_PROCS",
    "OMPI_NUM_APP_CTX",
    "OMPI_FIRST_RANKS",
    "OMPI_FILE_LOCATION",
    "OMPI_COMMAND",
    "OMPI_ARGV",
    "OMPI_MCA_num_procs",
    "OMPI_MCA_num_restarts",
    "OMPI_MCA_initial_wdir",
    "OMPI_MCA_ess",
    "OMPI_MCA_ess_*",
    "OMPI_MCA_orte_*",
    "OMPI_MCA_prte_*",
    "OMPI_MCA_pmix",
    // MPICH, Intel MPI, MVAPICH, Cray
    "MPI_LOCALRANKID",
    "MPI_LOCALNRANKS",
    "HYDI_*",
    "MV2_COMM_WORLD_*",
    "MVP_COMM_WORLD_*",
    "PALS_*",
    "ALPS_APP_*",
    "JSM_NAMESPACE_*",
    // Slurm: the variables of the step and the task; those of the allocation (SLURM_JOB_ID, SLURM_JOB_NODELIST ...)
    // stay
    "SLURM_PROCID",
    "SLURM_LOCALID",
    "SLURM_NODEID",
    "SLURM_NTASKS",
    "SLURM_NPROCS",
    "SLURM_NTASKS_PER_*",
    "SLURM_STEP_*",
    "SLURM_STEPID",
    "SLURM_TASK_PID",
    "SLURM_TASKS_PER_NODE",
    "SLURM_GTIDS",
    "SLURM_SRUN_*",
    "SLURM_LAUNCH_NODE_IPADDR",
    "SLURM_CPU_BIND*",
    "SLURM_DISTRIBUTION",
    "SLURM_PMI*",
    "SLURMD_NODENAME",
    // Flux, and the Kubernetes operators' convention for JAX
    "FLUX_TASK_*",
    "JAX_PROCESS_ID",
    "JAX_NUM_PROCESSES",
};

constexpr std::string_view kHostOwned[] = {
    "SSH_*",  "HOSTNAME", "HOME",    "USER",  "LOGNAME", "SHELL",      "MAIL",        "PWD",
    "OLDPWD", "TMPDIR",   "DISPLAY", "XDG_*", "DBUS_*",  "KRB5CCNAME", "BASH_FUNC_*", "_",
};

constexpr std::string_view kDevice[] = {"*CUDA_VISIBLE_DEVICES", "*_IFNAME"};

template <std::size_t N>
bool in(const std::string_view (&patterns)[N], std::string_view name) {
  return std::any_of(std::begin(patterns), std::end(patterns), [&](auto p) { return glob_match(p, name); });
}

}  // namespace

EnvClass classify(std::string_view name) {
  if (in(kAssigned, name)) return EnvClass::kAssigned;
  if (in(kLaunch, name)) return EnvClass::kLaunch;
  if (in(kHostOwned, name)) return EnvClass::kHostOwned;
  if (in(kDevice, name)) return EnvClass::kDevice;
  return EnvClass::kOrdinary;
}

}  // namespace drun::launcher
