#include "base/csv.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "base/from_chars.h"
#include "base/read_file.h"
#include "base/text.h"

namespace roofcast {
namespace {

constexpr std::size_t kLimitBytes = 1'000'000'000;
constexpr std::size_t kLimitFields = 50'000'000;
constexpr std::size_t kLimitColumns = 2000;  // each name is compared with all before

/// Reads the text field by field. Doubled quotes are undone in place, because a field can only shrink.
class Scanner {
 public:
  Scanner(std::string& text, const std::string& path) : at_(text.data()), end_(at_ + text.size()), path_(path) {
    if (text.starts_with("\xEF\xBB\xBF")) at_ += 3;  // byte order mark
  }
  bool done() const { return at_ == end_; }
  int line() const { return line_; }
  bool skip_blank_line() {
    if (*at_ != '\n' && !(*at_ == '\r' && at_ + 1 < end_ && at_[1] == '\n')) return false;
    end_of_row();
    return true;
  }

  /// The next field. `last` says whether it is the last one of its row.
  std::string_view field(bool& last) {
    const std::string_view text = !done() && *at_ == '"' ? quoted() : plain();
    last = done() || *at_ != ',';
    if (!last) {
      ++at_;
    } else {
      end_of_row();
    }
    return text;
  }

 private:
  std::string_view plain() {
    const char* first = at_;
    while (at_ < end_ && *at_ != ',' && *at_ != '\n') ++at_;
    const bool carriage = at_ > first && at_[-1] == '\r' && (done() || *at_ == '\n');
    return {first, static_cast<std::size_t>(at_ - first) - (carriage ? 1 : 0)};
  }

  std::string_view quoted() {
    const int opened = line_;
    char* const first = ++at_;
    char* to = first;
    while (true) {
      if (done()) throw ConfigError(SourceLocation{path_, opened}, "this quoted field is not closed");
      const char c = *at_++;
      if (c == '\n') ++line_;
      if (c == '"') {
        if (done() || *at_ != '"') break;
        ++at_;
      }
      *to++ = c;
    }
    if (!done() && *at_ == '\r') ++at_;
    if (!done() && *at_ != ',' && *at_ != '\n') {
      throw ConfigError(SourceLocation{path_, line_}, "text follows the closing quote of a field");
    }
    return {first, static_cast<std::size_t>(to - first)};
  }

  void end_of_row() {
    if (!done() && *at_ == '\r') ++at_;
    if (!done()) ++at_;
    ++line_;
  }

  char* at_;
  char* end_;
  const std::string& path_;
  int line_ = 1;
};

}  // namespace

CsvTable CsvTable::read_file(const std::string& path) { return parse(roofcast::read_file(path, kLimitBytes), path); }

CsvTable CsvTable::parse(std::string text, const std::string& path) {
  CsvTable table;
  table.path_ = path;
  table.text_ = std::make_shared<std::string>(std::move(text));
  Scanner in(*table.text_, path);
  while (!in.done() && in.skip_blank_line()) {
  }
  if (in.done()) throw ConfigError(SourceLocation{path}, "is empty: a header line was expected");
  table.read_header(in.line(), [&](bool& last) { return in.field(last); });
  const std::size_t width = table.columns_.size();
  while (!in.done()) {
    if (in.skip_blank_line()) continue;
    const int line = in.line();
    std::size_t got = 0;
    for (bool last = false; !last; ++got) {
      const std::string_view field = in.field(last);
      if (got < width) table.fields_.push_back(field);
    }
    if (table.fields_.size() > kLimitFields)
      throw ConfigError(SourceLocation{path, line}, fmt::format("more than {} fields in one table", kLimitFields));
    if (got != width) {
      throw ConfigError(SourceLocation{path, line},
                        fmt::format("the row has {} field{}, the header {}", got, got == 1 ? "" : "s", width));
    }
    table.lines_.push_back(line);
  }
  table.rows_ = table.lines_.size();
  return table;
}

CsvTable CsvTable::of_rows(const std::string& path, std::vector<std::string> columns,
                           const std::vector<std::vector<std::string>>& rows, std::vector<int> lines) {
  CsvTable table;
  table.path_ = path;
  table.columns_ = std::move(columns);
  table.lines_ = std::move(lines);
  table.rows_ = rows.size();
  table.other_format_ = true;
  table.text_ = std::make_shared<std::string>();
  for (const std::vector<std::string>& row : rows) {
    SIM_CHECK(row.size() == table.columns_.size(), "a row must be as wide as the header");
    for (const std::string& field : row) *table.text_ += field;
  }
  std::size_t at = 0;
  for (const std::vector<std::string>& row : rows) {
    for (const std::string& field : row) {
      table.fields_.emplace_back(table.text_->data() + at, field.size());
      at += field.size();
    }
  }
  return table;
}

template <typename NextField>
void CsvTable::read_header(int line, NextField next) {
  for (bool last = false; !last;) {
    std::string name(trim(next(last)));
    if (find(name)) {
      throw ConfigError(SourceLocation{path_, line, static_cast<int>(columns_.size()) + 1},
                        fmt::format("duplicate column '{}'", name));
    }
    columns_.push_back(std::move(name));
    if (columns_.size() > kLimitColumns)
      throw ConfigError(SourceLocation{path_, line}, fmt::format("more than {} columns", kLimitColumns));
  }
}

CsvTable CsvTable::slice(std::size_t begin, std::size_t end) const {
  CsvTable part;
  part.path_ = path_;
  part.text_ = text_;
  part.columns_ = columns_;
  const auto field = [&](std::size_t row) {
    return fields_.begin() + static_cast<std::ptrdiff_t>(row * columns_.size());
  };
  part.fields_.assign(field(begin), field(end));
  const auto line = [&](std::size_t row) { return lines_.begin() + static_cast<std::ptrdiff_t>(row); };
  part.lines_.assign(line(begin), line(end));
  part.other_format_ = other_format_;
  part.rows_ = end - begin;
  return part;
}

std::optional<std::size_t> CsvTable::find(std::string_view column) const {
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i] == column) return i;
  }
  return std::nullopt;
}

std::size_t CsvTable::column(std::string_view name) const {
  if (const auto found = find(name)) return *found;
  throw ConfigError(SourceLocation{path_, 1},
                    fmt::format("missing column '{}'{}", name, nearest_and_valid(name, columns_)));
}

SourceLocation CsvTable::location(std::size_t row, std::size_t column) const {
  return SourceLocation{path_, lines_[row], other_format_ ? 0 : static_cast<int>(column) + 1};
}

double CsvTable::number(std::size_t row, std::size_t column) const {
  std::string_view text = trim(at(row, column));
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  double value = 0.0;
  const auto [end, error] = from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    throw ConfigError(location(row, column),
                      fmt::format("'{}' must be a finite number, got '{}'", columns_[column], at(row, column)));
  }
  return value;
}

double CsvTable::number(std::size_t row, std::size_t column, double blank) const {
  return trim(at(row, column)).empty() ? blank : number(row, column);
}

std::string csv_field(std::string_view text) {
  std::string out;
  add_csv_field(out, text, true);
  return out;
}

void add_csv_field(std::string& line, std::string_view text, bool first) {
  if (!first) line += ',';
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    line += text;
    return;
  }
  line += '"';
  for (const char c : text) {
    if (c == '"') line += '"';
    line += c;
  }
  line += '"';
}

}  // namespace roofcast
