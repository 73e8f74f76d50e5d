#include "reports/table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/csv.h"
#include "base/text.h"
#include "reports/table_width.h"

namespace roofcast::reports {
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

std::optional<std::size_t>& table_width() {
  static std::optional<std::size_t> columns;
  return columns;
}

constexpr std::size_t kGap = 2;         // between columns
constexpr std::size_t kNarrowest = 24;  // minimum width of a column of words

/// `text` in lines of at most `columns`, broken at spaces; a longer word has a line of its own.
std::vector<std::string> wrapped(const std::string& text, std::size_t columns) {
  if (width(text) <= columns) return {text};
  std::vector<std::string> lines{""};
  for (const std::string& word : split(text, ' ')) {
    if (!lines.back().empty() && width(lines.back()) + 1 + width(word) > columns) lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + word;
  }
  return lines;
}

std::size_t longest_word(const std::string& text) {
  std::size_t longest = 0;
  for (const std::string& word : split(text, ' ')) longest = std::max(longest, width(word));
  return longest;
}

/// Column widths of a table, and its text.
class Layout {
 public:
  /// `keys`: columns that start each block; 0: those that distinguish rows, if they leave half of the line.
  Layout(const std::vector<std::vector<std::string>>& rows, std::size_t words, std::size_t keys)
      : rows_(rows), words_(words), keys_(std::min(keys, rows.front().size())), widths_(rows.front().size(), 0) {
    for (std::size_t i = 0; i < widths_.size(); ++i) widths_[i] = widest(i, 0);
  }

  /// Narrows columns as far as needed: first headings are wrapped, then words.
  void fit(std::size_t columns) {
    for (std::size_t i = 0; i < widths_.size() && all() > columns; ++i)
      widths_[i] = std::max(widest(i, 1), longest_word(rows_.front()[i]));
    while (all() > columns) {
      std::size_t widest_words = 0;
      bool found = false;
      for (std::size_t i = 0; i < widths_.size(); ++i) {
        if (!is_words(i) || widths_[i] <= std::max(kNarrowest, longest_in(i))) continue;
        if (!found || widths_[i] > widths_[widest_words]) widest_words = i;
        found = true;
      }
      if (!found) return;
      --widths_[widest_words];
    }
  }

  /// Columns per block. Each block starts with the columns that distinguish rows.
  std::vector<std::vector<std::size_t>> blocks(std::optional<std::size_t> columns) const {
    const std::size_t keys = columns ? key_columns(*columns) : 1;
    std::vector<std::size_t> start;
    std::size_t start_width = 0;
    for (std::size_t i = 0; i < keys; ++i) start.push_back(i), start_width += widths_[i] + (i > 0 ? kGap : 0);
    std::vector<std::vector<std::size_t>> out{start};
    std::size_t used = start_width;
    for (std::size_t i = keys; i < widths_.size(); ++i) {
      if (columns && used + kGap + widths_[i] > *columns && out.back().size() > keys) {
        out.push_back(start);
        used = start_width;
      }
      out.back().push_back(i);
      used += kGap + widths_[i];
    }
    return out;
  }

  std::string text(const std::vector<std::size_t>& block) const {
    std::string out;
    for (const std::vector<std::string>& row : rows_) {
      std::vector<std::vector<std::string>> cells;
      std::size_t lines = 1;
      for (const std::size_t i : block) {
        cells.push_back(i < row.size() ? wrapped(row[i], widths_[i]) : std::vector<std::string>{""});
        lines = std::max(lines, cells.back().size());
      }
      for (std::size_t line = 0; line < lines; ++line)
        out += line_of(block, cells, line, lines, &row == &rows_.front());
    }
    return out;
  }

  std::size_t all() const {
    std::size_t sum = kGap * (widths_.size() - 1);
    for (const std::size_t w : widths_) sum += w;
    return sum;
  }

 private:
  /// The keys, or how many first columns no two rows have in common; 1 where they leave too little of the line.
  std::size_t key_columns(std::size_t columns) const {
    std::size_t used = 0;
    for (std::size_t i = 0; i < keys_; ++i) used += widths_[i] + kGap;
    if (keys_ > 0) return used < columns ? keys_ : 1;
    for (std::size_t keys = 1; keys < widths_.size(); ++keys) {
      used += widths_[keys - 1] + kGap;
      if (used > columns / 2) return 1;
      std::set<std::vector<std::string>> seen;
      for (std::size_t r = 1; r < rows_.size(); ++r)
        seen.emplace(rows_[r].begin(), rows_[r].begin() + static_cast<std::ptrdiff_t>(std::min(keys, rows_[r].size())));
      if (seen.size() + 1 >= rows_.size()) return keys;
    }
    return 1;
  }
  bool is_words(std::size_t column) const { return column == 0 || column + words_ >= widths_.size(); }
  std::size_t widest(std::size_t column, std::size_t from_row) const {
    std::size_t most = 0;
    for (std::size_t r = from_row; r < rows_.size(); ++r) {
      if (column < rows_[r].size()) most = std::max(most, width(rows_[r][column]));
    }
    return most;
  }
  std::size_t longest_in(std::size_t column) const {
    std::size_t most = 0;
    for (const auto& row : rows_) {
      if (column < row.size()) most = std::max(most, longest_word(row[column]));
    }
    return most;
  }
  /// Headings are aligned at the bottom, cells at the top.
  std::string line_of(const std::vector<std::size_t>& block, const std::vector<std::vector<std::string>>& cells,
                      std::size_t line, std::size_t lines, bool heading) const {
    std::string out;
    for (std::size_t c = 0; c < block.size(); ++c) {
      const std::size_t above = heading ? lines - cells[c].size() : 0;
      const bool here = line >= above && line - above < cells[c].size();
      const std::string text = here ? cells[c][line - above] : "";
      const std::string pad(widths_[block[c]] - std::min(widths_[block[c]], width(text)), ' ');
      out += (c == 0 ? "" : std::string(kGap, ' ')) + (is_words(block[c]) ? text + pad : pad + text);
    }
    out.erase(out.find_last_not_of(' ') + 1);
    return out + "\n";
  }

  const std::vector<std::vector<std::string>>& rows_;
  std::size_t words_, keys_;
  std::vector<std::size_t> widths_;
};

/// Whether a line is a launch command, which must be copied whole: a program at the margin with several flags.
bool is_command(const std::string& line) {
  constexpr int kFlags = 3;
  int flags = 0;
  for (std::size_t at = line.find(" --"); at != std::string::npos; at = line.find(" --", at + 1)) ++flags;
  return flags >= kFlags && line.front() != ' ';
}

}  // namespace

void set_table_width(std::optional<std::size_t> columns) { table_width() = columns; }

std::string within_width(const std::string& text) {
  if (!table_width()) return text;
  std::string out;
  for (const std::string& line : split(text, '\n')) {
    out += out.empty() ? "" : "\n";
    if (width(line) <= *table_width() || is_command(line)) {
      out += line;
      continue;
    }
    // A comment of a script stays one: each line of it begins with '#'.
    const bool comment = line.starts_with("# ");
    // "cost     10.8 USD/h; ...": the words begin after the gap, if that leaves them half the line
    const std::size_t own = std::min(line.find_first_not_of(' '), line.size());
    const std::size_t gap = line.find("  ", own);
    const std::size_t after = gap == std::string::npos ? own : line.find_first_not_of(' ', gap);
    const std::size_t begin = comment ? 2 : after <= *table_width() / 2 ? after : own;
    const std::string margin = comment ? "# " : std::string(begin, ' ');
    const std::vector<std::string> lines = wrapped(line.substr(begin), *table_width() - begin);
    for (std::size_t i = 0; i < lines.size(); ++i)
      out += i == 0 ? line.substr(0, begin) + lines[i] : "\n" + margin + lines[i];
  }
  return out;
}

std::string Table::text() const {
  Layout layout(rows_, words_, keys_);
  if (table_width()) layout.fit(*table_width());
  std::string out;
  for (const std::vector<std::size_t>& block : layout.blocks(table_width()))
    out += (out.empty() ? "" : "\n") + layout.text(block);
  return out;
}

std::size_t Table::width() const { return Layout(rows_, words_, keys_).all(); }

std::string Table::csv() const {
  std::string out;
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) add_csv_field(out, row[i], i == 0);
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

std::string plain_number(double value, int digits) {
  std::string text = significant(value, digits);
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

std::string usd(double value) { return std::isfinite(value) ? fmt::format("{:.2f}", value) : "-"; }

std::string human_time(double seconds) {
  return scaled(seconds, std::array<Scale, 4>{{{1.0, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}}});
}
std::string human_bytes(double bytes) {
  return scaled(bytes, std::array<Scale, 5>{{{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}, {1.0, "B"}}});
}
std::string human_count(double value) {
  if (std::abs(value) < 1000 && value == std::floor(value)) return fmt::format("{:.0f}", value);
  return scaled(value, std::array<Scale, 5>{{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1.0, ""}}});
}

}  // namespace roofcast::reports
