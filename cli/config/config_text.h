// The text of a drun.toml as keys and values, before anything is known about options. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace drun::cli {

struct ConfigValue {
  enum class Kind { kText, kNumber, kBool };
  Kind kind = Kind::kText;
  std::string text;  // "true" and "false" for kBool
};

struct ConfigEntry {
  std::string key;
  int line = 0;  // from 1
  enum class Shape { kOne, kList, kTable };
  Shape shape = Shape::kOne;
  std::vector<ConfigValue> values;    // exactly one for kOne, none for kTable
  std::vector<ConfigEntry> children;  // of a kTable, in the order of the file
};

// Entries in the order of the file. Errors are Errc::kUsage with the subject "NAME:LINE" ("NAME:LINE:COLUMN" for the
// syntax); `name` is the file's. Keep `text` below 100 KiB: a key with more dots than that exhausts the stack in
// toml++.
Result<std::vector<ConfigEntry>> parse_config(std::string_view text, const std::string& name);

}  // namespace drun::cli
