// A worker that executes its arguments in order; with the prefix "R@" only rank R executes one:
//   allreduce:NAME[:COUNT]  barrier  send:PEER  recv:PEER  sleep:SECONDS  kill  say:TEXT  abort:TEXT  repeat:N (the
//   next one)  sum:COUNT[:SECONDS] (an allreduce whose result is checked, then a pause)
// Exits with 1 if a call fails.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "runtime/include/drun/drun.h"

namespace {

std::vector<std::string> words(const std::string& text) {
  std::vector<std::string> out(1);
  for (const char c : text) {
    if (c == ':') {
      out.emplace_back();
    } else {
      out.back() += c;
    }
  }
  return out;
}

void check(int status) {
  if (status == DRUN_OK) return;
  std::fprintf(stderr, "caller: %s\n", drun_last_error());
  std::exit(1);
}

void act(const std::vector<std::string>& word) {
  const std::string& verb = word[0];
  const std::string argument = word.size() > 1 ? word[1] : "";
  float one = 1;
  if (verb == "allreduce") {
    std::vector<float> data(word.size() > 2 ? std::stoul(word[2]) : 1000);
    drun_call_options options = DRUN_CALL_OPTIONS;
    options.name = argument.c_str();
    check(drun_allreduce(data.data(), data.data(), data.size(), DRUN_FLOAT32, DRUN_SUM, DRUN_COMM_WORLD, &options));
  } else if (verb == "sum") {
    const int size = drun_size();
    std::vector<std::int64_t> data(std::stoul(argument));
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::int64_t>(i) + drun_rank();
    check(drun_allreduce(data.data(), data.data(), data.size(), DRUN_INT64, DRUN_SUM, DRUN_COMM_WORLD, nullptr));
    for (std::size_t i = 0; i < data.size(); ++i) {
      if (data[i] == static_cast<std::int64_t>(i) * size + size * (size - 1) / 2) continue;
      std::fprintf(stderr, "caller: the sum at %zu is wrong\n", i);
      std::exit(9);
    }
    if (word.size() > 2) std::this_thread::sleep_for(std::chrono::duration<double>(std::stod(word[2])));
  } else if (verb == "barrier") {
    check(drun_barrier(DRUN_COMM_WORLD, nullptr));
  } else if (verb == "send") {
    check(drun_send(&one, 1, DRUN_FLOAT32, std::stoi(argument), DRUN_COMM_WORLD, nullptr));
  } else if (verb == "recv") {
    check(drun_recv(&one, 1, DRUN_FLOAT32, std::stoi(argument), DRUN_COMM_WORLD, nullptr));
  } else if (verb == "sleep") {
    std::this_thread::sleep_for(std::chrono::duration<double>(std::stod(argument)));
  } else if (verb == "kill") {
    ::kill(::getpid(), SIGKILL);
  } else if (verb == "say") {
    std::printf("%s\n", argument.c_str());
    std::fflush(stdout);
  } else if (verb == "abort") {
    drun_abort(argument.c_str());
  } else {
    std::fprintf(stderr, "caller: what is '%s'?\n", verb.c_str());
    std::exit(2);
  }
}

}  // namespace

int main(int argc, char** argv) try {
  check(drun_init(nullptr));
  int n_times = 1;
  for (int i = 1; i < argc; ++i) {
    std::string text = argv[i];
    if (const auto at = text.find('@'); at != std::string::npos) {
      if (std::stoi(text.substr(0, at)) != drun_rank()) continue;
      text.erase(0, at + 1);
    }
    const auto word = words(text);
    if (word[0] == "repeat") {
      n_times = std::stoi(word.at(1));
      continue;
    }
    for (int n = 0; n < n_times; ++n) act(word);
    n_times = 1;
  }
  check(drun_finalize());
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "caller: %s\n", e.what());
  return 2;
}
