#include "agent/shell_word.h"

#include <algorithm>
#include <cctype>
#include <iterator>

#include "base/text.h"

namespace drun::agent {

namespace {

constexpr std::string_view kSpaces = " \t\n";
constexpr std::string_view kOperators = ";&|<>$`";

// Words that change the shell that runs them, so that they do nothing alone.
constexpr std::string_view kPreparations[] = {".",      "alias", "eval",   "exec",  "set",  "shopt",
                                              "source", "trap",  "ulimit", "umask", "unset"};
// Words that do something alone.
constexpr std::string_view kOtherWords[] = {"command", "for", "if", "time", "type", "while"};
// Functions that login scripts define.
constexpr std::string_view kOfLogin[] = {"ml", "module"};

template <std::size_t N>
bool in(const std::string_view (&words)[N], std::string_view word) {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

// True for NAME=VALUE.
bool is_assignment(std::string_view word) {
  const auto end = word.find('=');
  if (end == std::string_view::npos || end == 0 || std::isdigit(static_cast<unsigned char>(word[0]))) return false;
  return std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(end),
                     [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

std::string quoted(const std::vector<std::string>& argv, std::size_t from) {
  std::string out;
  for (std::size_t i = from; i < argv.size(); ++i) out += (i > from ? " " : "") + shell_quote(argv[i]);
  return out;
}

}  // namespace

std::string first_word(std::string_view line) {
  const auto begin = line.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return "";
  return std::string(line.substr(begin, line.find_first_of(kSpaces, begin) - begin));
}

std::string hint_for_shell_word(const std::vector<std::string>& argv, bool is_program) {
  const std::string& word = argv[0];
  const std::string rest = quoted(argv, 1);
  if (is_assignment(word)) return "-x " + quoted(argv, 0);
  if (word.find_first_of(kOperators) != std::string::npos ||
      (is_program && word.find_first_of(kSpaces) != std::string::npos)) {
    return "it is a line for a shell: sh -c " + quoted(argv, 0);
  }
  if (word == "cd" && argv.size() > 1) return "--wdir " + rest;
  if (word == "export" && argv.size() > 1) return "-x " + rest;
  if (in(kPreparations, word))
    return "it is a word of the shell's: bash -c " + shell_quote(quoted(argv, 0) + " && ...");
  if (in(kOtherWords, word)) return "it is a word of the shell's: bash -c " + shell_quote(quoted(argv, 0));
  if (in(kOfLogin, word))
    return "it is a function of the shell's: bash -lc " + shell_quote(quoted(argv, 0) + " && ...");
  return "";
}

}  // namespace drun::agent
