#pragma once
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace roofcast {

/// The row of a table of {name, help, ...}. Throws ConfigError for an unknown name.
template <class Table>
const auto& named_row(const Table& table, const char* kind, const std::string& name) {
  std::vector<std::string> names;
  for (const auto& row : table) {
    if (row.name == name) return row;
    names.emplace_back(row.name);
  }
  throw ConfigError(unknown_name(kind, name, names));
}

}  // namespace roofcast
