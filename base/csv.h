#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace roofcast {

/// A CSV table with a header line, held in memory (RFC 4180: quoted fields, doubled quotes, CRLF or LF). Throws
/// ConfigError for a missing file, a directory, a missing header, or a row whose number of fields differs from the
/// header's.
class CsvTable {
 public:
  static CsvTable read_file(const std::string& path);
  static CsvTable parse(std::string text, const std::string& path);
  /// Builds a table from rows of another format. `lines` has the line of each row. All rows must be as wide as
  /// `columns`.
  static CsvTable of_rows(const std::string& path, std::vector<std::string> columns,
                          const std::vector<std::vector<std::string>>& rows, std::vector<int> lines);

  /// Rows [begin, end), which keep their line numbers.
  CsvTable slice(std::size_t begin, std::size_t end) const;

  const std::string& path() const { return path_; }
  const std::vector<std::string>& columns() const { return columns_; }
  std::size_t rows() const { return rows_; }
  std::optional<std::size_t> find(std::string_view column) const;
  std::size_t column(std::string_view name) const;  ///< throws ConfigError with the missing name
  std::string_view at(std::size_t row, std::size_t column) const { return fields_[row * columns_.size() + column]; }
  SourceLocation location(
      std::size_t row,
      std::size_t column) const;  ///< line in the file; column = field number, 0 in tables from other formats

  /// A finite number, else ConfigError at its location. Returns `blank` for an empty field.
  double number(std::size_t row, std::size_t column) const;
  double number(std::size_t row, std::size_t column, double blank) const;

 private:
  template <typename NextField>
  void read_header(int line, NextField next);

  std::string path_;
  std::shared_ptr<std::string> text_;  // fields_ point into it; shared, so that a copied table stays valid
  std::vector<std::string> columns_;
  std::vector<std::string_view> fields_;
  std::vector<int> lines_;
  bool other_format_ = false;
  std::size_t rows_ = 0;
};

/// A field as CSV writes it: quoted only when it must be.
std::string csv_field(std::string_view text);
/// Adds such a field to a line; `first`: no comma before it.
void add_csv_field(std::string& line, std::string_view text, bool first = false);

}  // namespace roofcast
