#pragma once
#include <cstddef>
#include <optional>
#include <string>

namespace roofcast::reports {

/// From now on tables are laid out for so many characters a line; none: as wide as they are. Headings and words are
/// broken at spaces; columns that still have no room follow below, after the first column again.
void set_table_width(std::optional<std::size_t> columns);
/// `text` with lines that are longer than that broken at spaces, under the column in which their words begin.
std::string within_width(const std::string& text);

}  // namespace roofcast::reports
