#include "check/connect_findings.h"

#include <algorithm>
#include <cstddef>

#include "base/text.h"
#include "base/units.h"

namespace drun::check {

namespace {

using Seconds = std::chrono::duration<double>;

constexpr Seconds kSlow{2};
constexpr double kTimesMedian = 3;

Seconds login_time(const launcher::Progress::Times& phases) {
  Seconds sum{0};
  for (const auto& [phase, time] : phases) {
    if (phase != transport::Phase::kDelivery) sum += time;
  }
  return sum;
}

Seconds median(std::vector<Seconds> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>((times.size() - 1) / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

// "ssh -vvv host1 true"; a program of the user's in place of ssh may not know the option.
std::string with_words_of_ssh(const std::string& login) {
  constexpr std::string_view kSsh = "ssh ";
  return (starts_with(login, kSsh) ? "ssh -vvv " + login.substr(kSsh.size()) : login) + " true";
}

struct Advice {
  const char* meaning;
  std::string command;
};

Advice advice(transport::Phase phase, const launcher::TypedLogin& login) {
  if (login.words.empty()) return {"the agent of this host started late: is the host busy?", "uptime"};
  switch (phase) {
    case transport::Phase::kResolve:
      return {"the name server is slow, or one of several does not answer", "getent ahosts " + login.address};
    case transport::Phase::kConnect:
      return {"packets are lost on the way to the port of sshd", "ping -c 20 " + login.address};
    case transport::Phase::kHandshake:
      return {
          "sshd is slow to answer: a busy host, MaxStartups, or UseDNS in sshd_config with a name server that is not "
          "there",
          with_words_of_ssh(login.words)};
    case transport::Phase::kLogin:
      return {"the login is slow: UseDNS or GSSAPIAuthentication in sshd_config, PAM, or a home directory that is slow",
              with_words_of_ssh(login.words)};
    case transport::Phase::kSsh:
      return {
          "OpenSSH's client does not say how far it got: a busy sshd, MaxStartups, the login, or the shell's startup "
          "files",
          with_words_of_ssh(login.words)};
    default:
      return {
          "the shell that ssh starts is slow: what its startup files do (.bashrc, conda, modules), or the home "
          "directory",
          "time " + login.words + " true"};
  }
}

}  // namespace

Finding unreachable_finding(int host, const Error& error) {
  Finding finding;
  finding.severity = Severity::kFailure;
  finding.code = "host-unreachable";
  if (host >= 0) finding.hosts = {host};
  finding.subject = error.subject;
  finding.text = error.cause;
  for (const auto line : split(error.context, '\n')) {
    if (!line.empty()) finding.details.emplace_back(line);
  }
  finding.command = error.hint;
  return finding;
}

std::vector<Finding> connect_findings(const std::vector<ConnectTimes>& hosts) {
  std::vector<Finding> out;
  if (hosts.empty()) return out;
  std::vector<Seconds> all;
  all.reserve(hosts.size());
  for (const auto& host : hosts) all.push_back(login_time(host.phases));
  // With two hosts, one of which is drun's own, the median is the faster one.
  const Seconds typical = median(all);
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (all[i] < kSlow || all[i] < kTimesMedian * typical) continue;
    auto worst = hosts[i].phases.front();
    for (const auto& phase : hosts[i].phases) {
      if (phase.first != transport::Phase::kDelivery && phase.second > worst.second) worst = phase;
    }
    Advice about = advice(worst.first, hosts[i].login);
    Finding finding;
    finding.severity = Severity::kWarning;
    finding.code = "ssh-slow";
    finding.hosts = {static_cast<int>(i)};
    finding.subject = hosts[i].name;
    finding.text = "ssh takes " + time_text(all[i]) + ", typical is " + time_text(typical) + "; " +
                   time_text(worst.second) + " of it in " + transport::phase_name(worst.first);
    finding.details = {about.meaning};
    finding.command = std::move(about.command);
    out.push_back(std::move(finding));
  }
  return out;
}

}  // namespace drun::check
