// Rates, sizes and times for people, with at most three significant digits. Pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace drun {

std::string rate_text(double bits_per_second);  // "9.4 Mb/s", "941 Mb/s", "9.41 Gb/s"
std::string size_text(std::size_t n_bytes);     // decimal: "100 MB", "4 B", "1.07 GB"
std::string time_text(double seconds);          // "128 ms", "12.4 us", "3.1 s", "25 min", "4.89 h"
std::string time_text(std::chrono::duration<double> time);
std::string limit_text(std::chrono::milliseconds limit);  // a time limit as it was set: "300 s", "1500 ms"
// One decimal below 10 % and two below 0.1 %. A nonzero share below 0.01 % is "less than 0.01 %".
std::string share_text(double share);   // "75 %", "3.1 %", "0.02 %"
std::string figure_text(double value);  // three significant digits, no unit: "9.41", "0.0944", "20800"

// One unit for figures that are compared with each other: the unit that suits the typical figure, or the next smaller
// one if the least figure would be below 0.1 in it: 9.44 beside 20800, not 0.00944 beside 20.8.
struct Unit {
  double size = 1;  // in bits per second or seconds
  const char* name = "";

  std::string figure(double value) const;  // "9.41"
  std::string text(double value) const;    // "9.41 Gb/s"
};
Unit rate_unit(double typical, double least);
Unit time_unit(double typical, double least);  // "us", "ms", "s"

}  // namespace drun
