#pragma once
#include <cstddef>
#include <optional>

namespace roofcast {

/// Line width of stdout in characters: $COLUMNS, else the width of the terminal; at least 40. Empty if stdout is not a
/// terminal.
std::optional<std::size_t> terminal_width();

}  // namespace roofcast
