// Rates, sizes and times as people read them: three digits at most. Pure.
#pragma once

#include <cstddef>
#include <string>

namespace drun::netdetect {

std::string rate_text(double bits_per_second);  // "9.4 Mb/s", "941 Mb/s", "9.41 Gb/s"
std::string size_text(std::size_t n_bytes);     // decimal: "100 MB", "4 B", "1.07 GB"
std::string time_text(double seconds);          // "128 ms", "12.4 us", "3.1 s"
std::string share_text(double share);           // 0.031 -> "3.1 %"

}  // namespace drun::netdetect
