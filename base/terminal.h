#pragma once
#include <cstddef>
#include <optional>

namespace roofcast {

/// Characters a line of stdout has room for: $COLUMNS, else the width of the terminal; none where stdout is no terminal
/// (a file or a program reads it). At least 40.
std::optional<std::size_t> terminal_width();

}  // namespace roofcast
