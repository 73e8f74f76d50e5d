#pragma once
// Texts line by line.

#include <algorithm>
#include <string_view>

namespace roofcast {

/// Calls `take` with each line, without its line feed, and its number from 1 on. Allocates nothing, unlike split().
template <class Take>
void each_line(std::string_view text, Take take) {
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    take(text.substr(0, end), number);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace roofcast
