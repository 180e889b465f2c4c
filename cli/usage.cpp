#include "cli/usage.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>

#include "base/text.h"

namespace drun::cli {

namespace {

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> out = {"-np", "-hostfile"};
  for (const CLI::Option* option : app.get_options()) {
    for (const auto& name : option->get_lnames()) out.push_back("--" + name);
  }
  return out;
}

// `name`: as typed.
Error unknown_option(const CLI::App& app, const std::string& name, const std::string& help) {
  if (name == "--num-proc") return usage_error("-np", "this command starts no workers", "leave it out");
  const auto names = option_names(app);
  auto near = nearest(name, names);
  for (const auto& candidate : names) {
    if (!near && name.size() > 3 && starts_with(candidate, name)) near = candidate;
  }
  return usage_error(name, "unknown option", near ? "did you mean " + *near + "?" : "see " + help);
}

}  // namespace

Error usage_error(const std::string& subject, const std::string& cause, const std::string& hint) {
  return Error(Errc::kUsage, subject, cause).with_hint(hint);
}

Error parse_error(const CLI::App& app, const CLI::ParseError& e, const std::vector<std::string>& args,
                  const std::string& help) {
  const std::string what = e.what();
  if (dynamic_cast<const CLI::ExtrasError*>(&e) != nullptr) {
    for (const auto& arg : args) {
      if (arg.size() < 2 || arg[0] != '-') continue;
      const std::string name = arg.substr(0, arg.find('='));
      const auto names = option_names(app);
      if (std::find(names.begin(), names.end(), name) != names.end()) continue;
      if (what.find(name) == std::string::npos) continue;
      return unknown_option(app, name, help);
    }
    return usage_error("options", lower(what.substr(0, 1)) + what.substr(1), "see " + help);
  }
  std::string cause = lower(what.substr(0, 1)) + what.substr(1);
  while (!cause.empty() && (cause.back() == '.' || cause.back() == '\n')) cause.pop_back();
  constexpr std::string_view kNoNumber = "could not convert: ";
  if (const auto equals = cause.find(" = "); starts_with(cause, kNoNumber) && equals != std::string::npos) {
    const std::string option = cause.substr(kNoNumber.size(), equals - kNoNumber.size());
    return usage_error(option, "'" + cause.substr(equals + 3) + "' is not a number", "see " + help);
  }
  const auto colon = cause.find(": ");
  if (starts_with(cause, "--") && colon != std::string::npos) {
    return usage_error(cause.substr(0, colon), cause.substr(colon + 2), "see " + help);
  }
  return usage_error("options", cause, "see " + help);
}

std::optional<Error> misread_error(const CLI::App& app, const std::vector<std::string>& args,
                                   const ValueOptions& value_options, const std::string& help) {
  const auto option = misread_option(args, value_options);
  if (!option) return std::nullopt;
  return unknown_option(app, *option, help);
}

Result<std::chrono::milliseconds> seconds(const char* option, double value, bool zero_allowed) {
  if (!(value >= 0) || value > 1e7 || (value == 0 && !zero_allowed)) {
    return fail(usage_error(option, "not a time in seconds", std::string(option) + " 30"));
  }
  return std::chrono::milliseconds(static_cast<long long>(value * 1000));
}

CLI::Validator one_of(std::vector<std::string> words) {
  return CLI::Validator(
      [words = std::move(words)](std::string& value) {
        if (std::find(words.begin(), words.end(), value) != words.end()) return std::string();
        return "'" + value + "' is none of " + join(words, ", ");
      },
      "");
}

ValueOptions value_options(const CLI::App& app) {
  ValueOptions out;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_expected_max() == 0) continue;
    for (const auto& name : option->get_lnames()) out.insert("--" + name);
    for (const auto& name : option->get_snames()) out.insert("-" + name);
  }
  return out;
}

}  // namespace drun::cli
