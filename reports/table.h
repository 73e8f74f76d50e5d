#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace roofcast::reports {

/// Text in columns: the first column left, numbers right, columns of words left, two spaces between.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : rows_{std::move(header)} {}
  /// The last `columns` columns hold words.
  Table& words(std::size_t columns) {
    words_ = columns;
    return *this;
  }
  /// The first `columns` columns distinguish the rows: they start each block of a table that is too wide for a line.
  Table& keys(std::size_t columns) {
    keys_ = columns;
    return *this;
  }
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string text() const;  ///< for a terminal
  std::string csv() const;
  std::size_t width() const;  ///< characters per line without a limit

 private:
  std::vector<std::vector<std::string>> rows_;
  std::size_t words_ = 0, keys_ = 0;
};

/// 3 significant digits with a unit that fits: "23.8 ms", "1.34 GB", "989 TFLOP/s".
std::string human_time(double seconds);
std::string human_bytes(double bytes);
std::string human_count(double value);  ///< 1.2 k, 8.03 B; whole below 1000: 20
std::string usd(double value);          ///< dollars and cents: "5.50"; "-" for NaN
std::string significant(double value, int digits = 4);
std::string plain_number(double value, int digits = 4);  ///< without trailing zeros: "64", "51.6"

}  // namespace roofcast::reports
