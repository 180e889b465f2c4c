#include "cli/command_words.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "cli/usage.h"
#include "launcher/plan/hostlist.h"

namespace drun::cli {

namespace {

constexpr std::size_t kLongestSlip = 5;  // letters of a word that may be a mistyped subcommand

// Checks this host; other hosts may have other programs.
bool is_program(const std::string& word, const launcher::Environment& env) {
  if (word.find('/') != std::string::npos) return true;
  const auto path = env.find("PATH");
  if (path == env.end()) return false;
  const auto directories = split(path->second, ':');
  return std::any_of(directories.begin(), directories.end(), [&word](std::string_view directory) {
    return ::access((std::string(directory) + "/" + word).c_str(), X_OK) == 0;
  });
}

}  // namespace

Result<void> check_command_words(const std::vector<std::string>& command, const RawJobOptions& raw, bool has_env_file,
                                 const launcher::Environment& own_env) {
  if (command.empty()) {
    return fail(usage_error("", "no command given", "drun -np 2 ./train   (see drun --help)"));
  }
  if (command[0].empty()) return fail(usage_error("", "the command is an empty string"));
  const std::string& word = command[0];
  for (std::size_t i = 1; i + 1 < command.size(); ++i) {
    if (command[i] != ":" || (command[i + 1] != "-np" && command[i + 1] != "-n")) continue;
    return fail(usage_error("command", "':' and another program: drun starts one program, with one -np",
                            "drun -np 2 sh -c 'if [ $RANK = 0 ]; then exec ./a; else exec ./b; fi'"));
  }
  // A one-letter mistake, not `cleanup`. If the workers get another PATH, its programs are unknown here.
  const auto meant = word.size() <= kLongestSlip ? nearest(word, {"bench", "check", "clean", "init"}) : std::nullopt;
  const bool has_path_of_its_own =
      std::any_of(raw.exports.begin(), raw.exports.end(),
                  [](const std::string& word_of_x) { return word_of_x == "PATH" || starts_with(word_of_x, "PATH="); });
  if (meant && !has_path_of_its_own && !has_env_file && !is_program(word, own_env)) {
    std::vector<std::string> words{"drun", *meant};
    std::transform(command.begin() + 1, command.end(), std::back_inserter(words),
                   [](const std::string& rest) { return shell_quote(rest); });
    return fail(
        usage_error("command", "there is no '" + word + "'; did you mean drun " + *meant + "?", join(words, " ")));
  }
  if (!raw.hosts.empty() && launcher::looks_like_host_item(word) && ::access(word.c_str(), F_OK) != 0) {
    return fail(usage_error("command", "'" + word + "' looks like a host, and is not a file: a comma may be missing",
                            "-H " + join(raw.hosts, ",") + "," + word));
  }
  return {};
}

}  // namespace drun::cli
