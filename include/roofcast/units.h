#pragma once
// Numbers with units. Times are those of <chrono>, which converts between them.

#include <chrono>

namespace roofcast {
inline namespace v0 {

using Seconds = std::chrono::duration<double>;
using Milliseconds = std::chrono::duration<double, std::milli>;

struct Bytes {
  double value = 0;
  double gigabytes() const { return value / 1e9; }
  double gibibytes() const { return value / (1024.0 * 1024.0 * 1024.0); }
};

}  // namespace v0
}  // namespace roofcast
