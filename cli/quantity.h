// Parses sizes, rates and times as users type them, for `drun check`; base/units.h prints them. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace drun::cli {

// "100MB": 10^8; "25MiB", and as everywhere in drun "25M": 25 * 2^20; "4096": bytes. Ignores case. Zero and values
// that don't fit are errors; errors have no subject.
Result<std::size_t> parse_bytes(std::string_view text);
// In bits per second: "1gbit", "10Mb/s", "940Mbps", and in bytes "125MB/s", "125MBps". The unit is required.
Result<double> parse_rate(std::string_view text);
// In seconds: "300ms", "0.3s", "250us", "2min". The unit is required.
Result<double> parse_time(std::string_view text);
// "110M": 110 million; K, M, B (or G) and T are powers of 1000.
Result<std::uint64_t> parse_count(std::string_view text);
// Bytes of one element: libdrun's and nccl-tests' names ("f16", "half"), and PyTorch's ("float16", "fp16").
Result<std::size_t> parse_dtype_size(std::string_view text);

// A figure without its unit: "9.41", "94.1", "1043".
std::string digits(double value);

}  // namespace drun::cli
