#pragma once
#include <cstddef>
#include <optional>
#include <string>

namespace roofcast::reports {

/// Limits tables to this many characters per line from now on; empty: no limit. Headings and words are wrapped; columns
/// that still do not fit follow in further blocks, after the first column again.
void set_table_width(std::optional<std::size_t> columns);
/// `text` with longer lines wrapped at spaces, aligned with the column in which their words start.
std::string within_width(const std::string& text);

}  // namespace roofcast::reports
