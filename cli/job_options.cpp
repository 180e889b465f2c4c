#include "cli/job_options.h"

#include <sys/stat.h>
#include <CLI/CLI.hpp>

#include <utility>

#include "cli/help.h"
#include "cli/paths.h"
#include "cli/usage.h"

namespace drun::cli {

void describe_workers(CLI::App& app, RawJobOptions& raw) {
  app.add_option("--num-proc", raw.np, "workers to start; default: all slots")->type_name("N")->group(kHosts);
}

void describe_interfaces(CLI::App& app, RawJobOptions& raw) {
  app.add_option("--network-interfaces,--network-interface", raw.interfaces,
                 "names or CIDRs of the NICs to use; default: found out by trying")
      ->type_name("LIST")
      ->delimiter(',')
      ->group(kNetwork);
}

void describe_cache(CLI::App& app, RawJobOptions& raw) {
  app.add_flag("--no-cache", raw.no_cache, "try the hosts' NICs, even if an earlier job has found them")
      ->group(kNetwork);
}

std::string cache_directory(const launcher::Environment& env) { return user_folder(env, "XDG_CACHE_HOME", ".cache"); }

Result<void> fill_job(const RawJobOptions& raw, const launcher::Environment& own_env, launcher::JobOptions& job) {
  const auto np = worker_count(raw.np);
  if (!np) return fail(np.error());
  job.np = *np;
  auto hosts = chosen_hosts(raw, job.np, own_env);
  if (!hosts) return fail(std::move(hosts.error()));
  job.hosts = std::move(*hosts);
  auto connect = connect_options(raw);
  if (!connect) return fail(std::move(connect.error()));
  job.connect = std::move(*connect);
  job.interfaces = raw.interfaces;
  job.cache_directory = cache_directory(own_env);
  job.read_cache = !raw.no_cache;
  job.env.exports = raw.exports;
  if (auto ok = launcher::check_exports(job.env, own_env); !ok) return ok;
  job.own_env = own_env;
  job.umask = ::umask(022);  // can't be read without being set
  ::umask(static_cast<mode_t>(job.umask));
  const auto timeout = seconds("--timeout", raw.timeout, true);
  if (!timeout) return fail(timeout.error());
  job.timeout = *timeout;
  return {};
}

}  // namespace drun::cli
