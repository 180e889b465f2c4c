#include "cli/printer.h"

#include <unistd.h>

#include <cstdlib>

#include "base/fd.h"
#include "base/text.h"

namespace drun::cli {

namespace {

std::string paint(const char* code, const std::string& text, bool color) {
  return color ? std::string("\033[") + code + "m" + text + "\033[0m" : text;
}

std::string indented(const std::string& text) {
  std::string out;
  for (const auto line : split(text, '\n')) {
    out += "  ";
    out += line;
    out += '\n';
  }
  return out;
}

}  // namespace

std::string format_error(const Error& error, bool color) {
  std::string out = "drun: " + paint("1;31", "error", color) + ": " + error.message() + "\n";
  if (!error.context.empty()) out += indented(error.context);
  if (!error.hint.empty()) out += "  " + paint("1;36", "hint", color) + ": " + error.hint + "\n";
  return out;
}

Printer::Printer() {
  const char* no_color = std::getenv("NO_COLOR");
  color_ = ::isatty(STDERR_FILENO) == 1 && (no_color == nullptr || *no_color == '\0');
}

void Printer::write(const std::string& text) {
  if (sink_) {
    sink_(text);
  } else {
    write_all(STDERR_FILENO, text);
  }
}

void Printer::note(const std::string& text) {
  write("drun: note: " + text + "\n");
}

void Printer::warning(const std::string& text) {
  write("drun: " + paint("1;33", "warning", color_) + ": " + text + "\n");
}

void Printer::error(const Error& error) { write(format_error(error, color_)); }

}  // namespace drun::cli
