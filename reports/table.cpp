#include "reports/table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include <fmt/format.h>

#include "base/csv.h"

namespace roofcast {
namespace {

struct Scale {
  double value;
  const char* unit;
};

template <std::size_t N>
std::string scaled(double value, const std::array<Scale, N>& scales) {
  const auto fits = [&](const Scale& s) { return std::abs(value) >= s.value * 0.9995; };
  const auto at = std::find_if(scales.begin(), scales.end() - 1, fits);
  return significant(value / at->value, 3) + (*at->unit ? " " : "") + at->unit;
}

/// Columns counted in characters, not bytes.
std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

std::string Table::text() const {
  std::vector<std::size_t> widths(rows_.front().size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  }
  std::string out;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string pad(widths[i] - width(row[i]), ' ');
      const bool left = i == 0 || i + words_ >= row.size();
      line += (i == 0 ? "" : "  ") + (left ? row[i] + pad : pad + row[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string Table::csv() const {
  std::string out;
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) out += (i ? "," : "") + csv_field(row[i]);
    out += "\n";
  }
  return out;
}

std::string significant(double value, int digits) {
  if (!std::isfinite(value)) return "-";
  if (value == 0.0) return "0";
  const int decimals = std::max(0, digits - 1 - static_cast<int>(std::floor(std::log10(std::abs(value)))));
  return fmt::format("{:.{}f}", value, std::min(decimals, 12));
}

std::string human_time(double seconds) {
  return scaled(seconds, std::array<Scale, 4>{{{1.0, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}}});
}
std::string human_bytes(double bytes) {
  return scaled(bytes, std::array<Scale, 5>{{{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}, {1.0, "B"}}});
}
std::string human_count(double value) {
  return scaled(value, std::array<Scale, 5>{{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1.0, ""}}});
}

}  // namespace roofcast
