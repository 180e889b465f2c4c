// Completes a command line of drun, from the option tables. Pure. The scripts in packaging/completions start
// `drun __complete WORD...` and show the answer in bash, zsh and fish.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace drun::cli {

struct Candidate {
  std::string word;
  std::string text;  // describes it, "" = nothing to say
};

struct Completion {
  enum class Kind {
    kWords,        // the candidates
    kList,         // the candidates, after which the word may continue: no space
    kFiles,        // names of files, which the shell knows
    kDirectories,  // names of directories
    kCommand,      // a command line that begins at word `command_at`: any program, and its own arguments
  };
  Kind kind = Kind::kWords;
  std::string kept;            // the beginning of the word that stays before each candidate: "--hosts=a:2,"
  std::size_t command_at = 0;  // for kCommand
  std::vector<Candidate> candidates;
};

// The names that complete a list of hosts.
struct HostSource {
  // Known hosts, for the argument of -F ("" = without -F).
  std::function<std::vector<std::string>(const std::string& ssh_config)> hosts;
  // Groups of drun.toml files, for the argument of --config ("" = without --config).
  std::function<std::vector<std::string>(const std::string& config)> groups;
};

// `words`: those after the program's name, the last one up to the cursor. Every candidate begins with what is typed.
Completion complete(const std::vector<std::string>& words, const HostSource& source);

// For the scripts: lines with the kind, `kept` and `command_at`, then WORD<TAB>TEXT of each candidate.
std::string completion_text(const Completion& completion);

}  // namespace drun::cli
