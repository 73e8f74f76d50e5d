// Traces as CSV: one buffer, fields as views into it, numbers by from_chars.

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <optional>
#include <unordered_map>

#include "base/from_chars.h"
#include "sim/serve/trace_lines.h"

namespace roofcast {
namespace {

/// Columns that a format must have, by name.
struct CsvColumns {
  std::string_view time, prompt, output;
  bool calendar_time;  ///< 2023-11-16 18:15:46.6805900, else seconds
  bool skips_failed;   ///< no output tokens: a request that failed
};

/// In the order of CsvTrace.
constexpr std::array<CsvColumns, 4> kColumns = {{
    {"TIMESTAMP", "ContextTokens", "GeneratedTokens", true, false},
    {"Timestamp", "Request tokens", "Response tokens", false, true},
    {"arrived_at", "num_prefill_tokens", "num_decode_tokens", false, false},
    {"arrival_s", "prompt_tokens", "output_tokens", false, false},
}};

std::string_view unquoted(std::string_view field) {
  field = trim(field);
  return field.size() >= 2 && field.front() == '"' && field.back() == '"' ? field.substr(1, field.size() - 2) : field;
}

/// The next field of `rest`, up to a comma outside of quotes; `rest` then starts after the comma.
std::string_view next_field(std::string_view& rest) {
  bool in_quotes = false;
  std::size_t end = 0;
  while (end < rest.size() && (in_quotes || rest[end] != ',')) in_quotes ^= rest[end++] == '"';
  const std::string_view field = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return field;
}

/// The digits at a fixed position of a calendar time, or -1.
int digits(std::string_view text, std::size_t from, std::size_t count) {
  int value = -1;
  if (text.size() < from + count) return -1;
  const auto [stop, fault] = std::from_chars(text.data() + from, text.data() + from + count, value);
  return fault == std::errc{} && stop == text.data() + from + count ? value : -1;
}

/// Nanoseconds since 1970 of `2023-11-16 18:15:46.6805900`; a T instead of the blank and an offset (+00:00, Z) are
/// allowed.
std::optional<std::int64_t> calendar_nanoseconds(std::string_view text) {
  using namespace std::chrono;
  const int y = digits(text, 0, 4), mo = digits(text, 5, 2), d = digits(text, 8, 2);
  const int h = digits(text, 11, 2), mi = digits(text, 14, 2), s = digits(text, 17, 2);
  if (y < 1970 || y > 2200 || mo < 1 || d < 1 || h < 0 || h > 23 || mi < 0 || mi > 59 || s < 0 || s > 60) return {};
  if (text[4] != '-' || text[7] != '-' || text[13] != ':' || text[16] != ':') return {};
  const year_month_day date{year(y), month(static_cast<unsigned>(mo)), day(static_cast<unsigned>(d))};
  if (!date.ok()) return {};
  std::int64_t nanoseconds = sys_days(date).time_since_epoch().count() * std::int64_t{86400};
  nanoseconds = (nanoseconds + h * 3600 + mi * 60 + s) * 1000000000;
  std::size_t at = 19;
  if (at < text.size() && text[at] == '.') {
    std::int64_t place = 100000000;
    for (++at; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at, place /= 10) {
      nanoseconds += place * (text[at] - '0');
    }
  }
  const std::string_view zone = text.substr(std::min(at, text.size()));
  if (zone.empty() || zone == "Z") return nanoseconds;
  const int zh = digits(zone, 1, 2), zm = digits(zone, 4, 2);
  if ((zone[0] != '+' && zone[0] != '-') || zone.size() != 6 || zh < 0 || zm < 0) return {};
  const std::int64_t shift = (zh * 3600 + zm * 60) * std::int64_t{1000000000};
  return zone[0] == '+' ? nanoseconds - shift : nanoseconds + shift;
}

/// A finite number that fills the whole field.
std::optional<double> finite_number(std::string_view text) {
  double value = 0.0;
  const auto [stop, fault] = from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc{} || stop != text.data() + text.size() || !std::isfinite(value)) return {};
  return value;
}

/// Tokens, also as `374.0`, which data frames write.
int tokens_in(std::string_view field, std::string_view column, int least, const Place& place) {
  int value = 0;
  const char* const end = field.data() + field.size();
  const auto [stop, fault] = std::from_chars(field.data(), end, value);
  if (fault == std::errc{} && stop == end && value >= least && value <= kMostTokens) return value;
  const std::optional<double> number = finite_number(field);
  if (number && *number == std::floor(*number) && *number >= least && *number <= kMostTokens) {
    return static_cast<int>(*number);
  }
  place.fail(fmt::format("'{}' must be a whole number of tokens, at least {}, got '{}'", column, least, field));
}

/// The positions of the columns in one file.
struct Header {
  std::size_t time = 0, prompt = 0, output = 0, width = 0;
  std::optional<std::size_t> session;
};

Header read_header(std::string_view line, const CsvColumns& columns, const Place& place) {
  std::vector<std::string> names;
  if (line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);
  constexpr std::size_t kMostColumns = 2000;
  while (!line.empty() && names.size() < kMostColumns) names.emplace_back(unquoted(next_field(line)));
  if (!line.empty()) place.fail(fmt::format("more than {} columns", kMostColumns));
  const auto column = [&](std::string_view wanted) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i] == wanted) return i;
    }
    place.fail(fmt::format("no column '{}'{}", wanted, nearest_and_valid(wanted, names)));
  };
  Header header{column(columns.time), column(columns.prompt), column(columns.output), names.size(), {}};
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == "session" || names[i] == "Session ID") header.session = i;  // BurstGPT's third part has the latter
  }
  return header;
}

/// Turns the fields of one row into a request of the trace.
class RowReader {
 public:
  RowReader(const CsvColumns& columns, const Header& header, Trace& trace)
      : columns_(columns), header_(header), trace_(trace) {}

  void add(const std::vector<std::string_view>& fields, const Place& place) {
    Trace::Row row;
    row.seconds = seconds_of(fields[header_.time], place);
    row.prompt_tokens = tokens_in(fields[header_.prompt], columns_.prompt, 1, place);
    row.output_tokens = tokens_in(fields[header_.output], columns_.output, columns_.skips_failed ? 0 : 1, place);
    if (row.output_tokens == 0) return;
    if (header_.session && !fields[*header_.session].empty() && fields[*header_.session] != "-1") {
      row.session = sessions_.try_emplace(std::string(fields[*header_.session]), trace_.sessions).first->second;
      trace_.sessions = static_cast<int>(sessions_.size());
    }
    add_row(trace_, row, place);
  }

 private:
  /// Calendar times are made relative to the first one before they become a double, whose 53 bits cannot hold 100 ns
  /// steps since 1970.
  double seconds_of(std::string_view field, const Place& place) {
    if (!columns_.calendar_time) {
      if (const auto seconds = finite_number(field)) return *seconds;
      place.fail(fmt::format("'{}' must be a time in seconds, got '{}'", columns_.time, field));
    }
    const auto nanoseconds = calendar_nanoseconds(field);
    if (!nanoseconds) {
      place.fail(
          fmt::format("'{}' must be a time such as '2023-11-16 18:15:46.6805900', got '{}'", columns_.time, field));
    }
    if (!origin_) origin_ = *nanoseconds;
    return static_cast<double>(*nanoseconds - *origin_) / 1e9;
  }

  const CsvColumns& columns_;
  const Header& header_;
  Trace& trace_;
  std::optional<std::int64_t> origin_;
  std::unordered_map<std::string, int> sessions_;
};

}  // namespace

void read_csv_rows(std::string_view text, const std::string& path, CsvTrace kind, Trace& trace) {
  const CsvColumns& columns = kColumns[static_cast<std::size_t>(kind)];
  Place place{path, 0};
  const auto next_line = [&text, &place] {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++place.line;
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
  };
  const Header header = read_header(next_line(), columns, place);
  RowReader rows(columns, header, trace);
  trace.rows.reserve(std::min(text.size() / 32, kMostRows));
  std::vector<std::string_view> fields;
  while (!text.empty()) {
    std::string_view line = next_line();
    if (line.empty()) continue;
    fields.clear();
    std::size_t count = 0;
    bool more = true;
    while (more) {
      const std::size_t before = line.size();
      const std::string_view field = next_field(line);
      more = before > field.size();  // a comma means that another field follows
      if (fields.size() <= header.width) fields.push_back(unquoted(field));
      ++count;
    }
    if (count != header.width) place.fail(fmt::format("has {} fields, the header has {}", count, header.width));
    rows.add(fields, place);
    check_size(trace, place);
  }
}

}  // namespace roofcast
