#include "sim/serve/servegen.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/from_chars.h"
#include "base/json_file.h"
#include "base/lines.h"
#include "base/read_file.h"
#include "base/text.h"

namespace roofcast {
namespace {

using Gaps = ArrivalSpec::Gaps;

constexpr std::size_t kLargestFile = std::size_t{256} << 20;
constexpr double kMostTokens = 1e7;
constexpr std::size_t kMostWindows = 100000, kLongestLine = 10000;

std::optional<double> number_of(std::string_view text) {
  text = trim(text);
  double value = 0;
  const auto [stop, fault] = from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc{} || stop != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

/// One line of a client's trace.
struct Window {
  double start = 0, rate = 0;
  Gaps gaps;
};

Window window_of(const std::vector<std::string>& fields, const SourceLocation& location) {
  if (fields.size() != 6)
    throw ConfigError(location, fmt::format("expected 6 fields (start, rate, cv, distribution, shape, scale), got {}",
                                            fields.size()));
  const auto field = [&](std::size_t i, const char* what) {
    const std::optional<double> value = number_of(fields[i]);
    if (!value || *value < 0 || *value > 1e9)
      throw ConfigError(location, fmt::format("{} must be a number of at least 0, got '{}'", what, fields[i]));
    return *value;
  };
  Window w{.start = field(0, "the start of a window"), .rate = field(1, "a rate"), .gaps = {}};
  if (w.rate <= 0) return w;
  const std::string law = lower(trim(fields[3]));
  const double cv = std::clamp(field(2, "a coefficient of variation"), 1e-3, 1e3);
  if (law == "gamma") {
    w.gaps = {.law = Gaps::Law::kGamma, .shape = 1 / (cv * cv)};
  } else if (law == "weibull") {
    w.gaps = {.law = Gaps::Law::kWeibull, .shape = std::clamp(field(4, "a shape"), 0.05, 100.0)};
  } else if (!law.empty() && law != "exponential" && law != "expon" && law != "poisson") {
    throw ConfigError(location, unknown_name("distribution of gaps", fields[3],
                                             std::array<std::string, 3>{"Gamma", "Weibull", "Exponential"}));
  }
  return w;
}

/// Reads windows of equal length that start at 0.
std::vector<Window> read_windows(const std::string& path) {
  std::vector<Window> windows;
  each_line(read_file(path, kLargestFile), [&](std::string_view row, int line) {
    if (trim(row).empty()) return;
    if (row.size() > kLongestLine) throw ConfigError(SourceLocation{path, line}, "the line is too long for a window");
    windows.push_back(window_of(split(trim(row), ','), SourceLocation{path, line}));
    const std::size_t n = windows.size();
    const double step = n > 1 ? windows[1].start - windows[0].start : 1;
    const double expected = windows[0].start + step * static_cast<double>(n - 1);
    if (step <= 0 || std::abs(windows.back().start - expected) > 1e-3 || windows[0].start != 0)
      throw ConfigError(SourceLocation{path, line}, "windows must begin at 0 and be of one length");
    if (n > kMostWindows) throw ConfigError(SourceLocation{path, line}, "has too many windows");
  });
  if (windows.size() < 2) throw ConfigError(SourceLocation{path}, "holds fewer than two windows");
  return windows;
}

/// "{45: 0.0097, 46: 0.0117}", a Python dictionary.
LengthTable read_table(std::string_view text, const SourceLocation& location, const std::string& where) {
  LengthTable table;
  text = trim(text);
  const auto fail = [&](std::string_view part) {
    throw ConfigError(location,
                      fmt::format("{}: expected '{{tokens: probability, ..}}', got '{}'", where, part.substr(0, 40)));
  };
  if (text.size() < 2 || text.front() != '{' || text.back() != '}') fail(text);
  text = trim(text.substr(1, text.size() - 2));
  std::vector<std::pair<int, double>> entries;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    const std::size_t colon = std::min(part.find(':'), part.size());
    const auto tokens = number_of(part.substr(0, colon)),
               share = number_of(part.substr(std::min(colon + 1, part.size())));
    if (!tokens || !share || *tokens < 0 || *tokens > kMostTokens || *share < 0) fail(trim(part));
    entries.emplace_back(std::max(1, static_cast<int>(std::lround(*tokens))), *share);
  }
  std::sort(entries.begin(), entries.end());
  double sum = 0;
  for (const auto& [tokens, share] : entries) {
    if (share <= 0) continue;
    table.tokens.push_back(tokens);
    table.cumulative.push_back(sum += share);
  }
  for (double& share : table.cumulative) share /= sum;
  return table;
}

struct DayLengths {
  double start = 0;
  LengthTable prompt, output;
  bool empty() const { return prompt.tokens.empty() || output.tokens.empty(); }
};

std::vector<DayLengths> read_lengths(const std::string& path) {
  const auto fail = [&](const std::string& message) { throw ConfigError(SourceLocation{path}, message); };
  const std::string text = read_file(path, kLargestFile);
  const std::size_t keys = check_json_size(path, text);  // an object keeps one of two that are the same
  const nlohmann::json file = nlohmann::json::parse(text, nullptr, false);
  if (!file.is_object()) fail("is not a JSON object of windows");
  std::vector<DayLengths> out;
  for (const auto& [key, value] : file.items()) {
    DayLengths lengths;
    const std::optional<double> start = number_of(key);
    if (!start || *start < 0 || !value.is_object())
      fail(fmt::format("'{}' is not the start of a window with its lengths", key));
    lengths.start = *start;
    for (const auto& [name, table] : {std::pair{"input_tokens", &lengths.prompt}, {"output_tokens", &lengths.output}}) {
      const auto at = value.find(name);
      if (at == value.end() || !at->is_string()) fail(fmt::format("window {} has no text '{}'", key, name));
      *table = read_table(at->get<std::string>(), SourceLocation{path}, fmt::format("{} of window {}", name, key));
    }
    out.push_back(std::move(lengths));
  }
  std::sort(out.begin(), out.end(), [](const DayLengths& a, const DayLengths& b) { return a.start < b.start; });
  const auto same = [](const DayLengths& a, const DayLengths& b) { return a.start == b.start; };
  if (keys > out.size() || std::adjacent_find(out.begin(), out.end(), same) != out.end())
    fail("has two windows of the same start");
  return out;
}

/// Lengths for each window of the trace; null when the client has none at all.
std::shared_ptr<const LengthsByTime> lengths_over(const std::vector<Window>& windows,
                                                  const std::vector<DayLengths>& known) {
  auto out = std::make_shared<LengthsByTime>();
  const double span = windows.back().start + windows[1].start;
  for (const DayLengths& own : known) {
    if (own.start >= span) continue;
    const auto nearest = std::min_element(known.begin(), known.end(), [&](const DayLengths& a, const DayLengths& b) {
      if (a.empty() != b.empty()) return b.empty();
      return std::abs(a.start - own.start) < std::abs(b.start - own.start);
    });
    if (nearest->empty()) return nullptr;
    out->start.emplace_back(own.start);
    out->prompt.push_back(nearest->prompt);
    out->output.push_back(nearest->output);
  }
  if (out->prompt.empty()) return nullptr;
  out->period = Seconds(span);
  return out;
}

std::optional<WorkloadSpec> read_client(const std::string& stem, double rate_scale) {
  const std::vector<Window> windows = read_windows(stem + "-trace.csv");
  double sum = 0;
  for (const Window& w : windows) sum += w.rate;
  WorkloadSpec client;
  client.by_time = lengths_over(windows, read_lengths(stem + "-dataset.json"));
  if (sum <= 0 || !client.by_time) return std::nullopt;
  client.name = std::filesystem::path(stem).filename().string();
  const double mean = sum / static_cast<double>(windows.size());
  client.arrivals.process = ArrivalSpec::Process::kGamma;
  client.arrivals.rate = PerSecond(mean * rate_scale);
  client.arrivals.profile_period = Seconds(windows[1].start * static_cast<double>(windows.size()));
  for (const Window& w : windows) {
    client.arrivals.profile.push_back(w.rate / mean);
    client.arrivals.gaps.push_back(w.gaps);
  }
  client.prompt_tokens.law = LengthSpec::Fixed{client.by_time->prompt.front().tokens.back()};
  client.output_tokens.law = LengthSpec::Fixed{client.by_time->output.front().tokens.back()};
  return client;
}

}  // namespace

int LengthTable::draw(Random& random) const {
  const auto at = std::upper_bound(cumulative.begin(), cumulative.end(), random.uniform()) - cumulative.begin();
  return tokens[static_cast<std::size_t>(std::min<std::ptrdiff_t>(at, std::ssize(tokens) - 1))];
}

double LengthTable::mean() const {
  double sum = 0, before = 0;
  for (std::size_t i = 0; i < tokens.size(); before = cumulative[i++]) sum += tokens[i] * (cumulative[i] - before);
  return sum;
}

std::size_t LengthsByTime::at(Seconds arrival) const {
  const Seconds within(std::fmod(arrival.base(), period.base()));
  const auto begun = std::upper_bound(start.begin(), start.end(), within) - start.begin();
  return static_cast<std::size_t>(std::max<std::ptrdiff_t>(begun, 1) - 1);
}

std::vector<WorkloadSpec> read_servegen(const std::string& folder, double rate_scale) {
  constexpr std::string_view kTrace = "-trace.csv";
  std::vector<std::string> stems;
  std::error_code fault;
  for (const auto& entry : std::filesystem::directory_iterator(folder, fault)) {
    const std::string path = entry.path().string();
    if (path.ends_with(kTrace)) stems.push_back(path.substr(0, path.size() - kTrace.size()));
  }
  if (fault) throw ConfigError(SourceLocation{folder}, "is not a folder that can be read: " + fault.message());
  std::sort(stems.begin(), stems.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;  // chunk-2 before chunk-10
  });
  std::vector<WorkloadSpec> clients;
  for (const std::string& stem : stems) {
    if (auto client = read_client(stem, rate_scale)) clients.push_back(std::move(*client));
  }
  if (clients.empty())
    throw ConfigError(SourceLocation{folder}, "holds no 'chunk-N-trace.csv' of a client with requests");
  return clients;
}

}  // namespace roofcast
