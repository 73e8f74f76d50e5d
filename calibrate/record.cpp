#include "calibrate/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error_summary.h"
#include "base/json_file.h"
#include "base/read_file.h"
#include "base/text.h"
#include "hw/dtype.h"

namespace roofcast::calibrate {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::pair<Stop, std::string_view>, 7> kStops{{{Stop::kConverged, "converged"},
                                                                   {Stop::kTime, "time"},
                                                                   {Stop::kSamples, "samples"},
                                                                   {Stop::kOutOfMemory, "out_of_memory"},
                                                                   {Stop::kUnsupported, "unsupported"},
                                                                   {Stop::kWrongResult, "wrong_result"},
                                                                   {Stop::kFailed, "failed"}}};

double rounded(double value) { return std::stod(fmt::format("{:.7g}", value)); }

Json state_json(const DeviceState& s) {
  return {{"sm_clock_mhz", s.sm_clock_mhz},
          {"memory_clock_mhz", s.memory_clock_mhz},
          {"temperature_c", s.temperature_c},
          {"power_w", s.power_w},
          {"throttled", s.throttled}};
}

/// Checked access to one line of JSON.
class Line {
 public:
  Line(const Json& json, SourceLocation location) : json_(json), location_(std::move(location)) {}

  [[noreturn]] void fail(const std::string& message) const { throw ConfigError(location_, message); }
  const Json& at(const char* key) const {
    if (!json_.contains(key)) fail(fmt::format("missing '{}', which every measurement has", key));
    return json_[key];
  }
  std::string text(const char* key) const {
    const Json& value = at(key);
    if (!value.is_string()) fail(fmt::format("'{}' must be text", key));
    return value.get<std::string>();
  }
  double number(const char* key, double low) const {
    const Json& value = at(key);
    if (!value.is_number() || !(value.get<double>() >= low) || !std::isfinite(value.get<double>()))
      fail(fmt::format("'{}' must be a number of at least {}, got {}", key, low, value.dump()));
    return value.get<double>();
  }
  Line inside(const char* key) const {
    if (!at(key).is_object()) fail(fmt::format("'{}' must be an object", key));
    return {json_[key], location_};
  }
  const Json& json() const { return json_; }
  const SourceLocation& location() const { return location_; }

 private:
  const Json& json_;
  SourceLocation location_;
};

DeviceState read_state(const Line& line) {
  const Json& throttled = line.at("throttled");
  if (!throttled.is_boolean()) line.fail("'throttled' must be true or false");
  return {.sm_clock_mhz = line.number("sm_clock_mhz", 0),
          .memory_clock_mhz = line.number("memory_clock_mhz", 0),
          .temperature_c = line.number("temperature_c", -100),
          .power_w = line.number("power_w", 0),
          .throttled = throttled.get<bool>()};
}

/// The keys that the shape of an operator must have; a star marks text.
constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kShapes{{
    {"stream", "kind* bytes blocks"},
    {"tensor_rate", "instruction*"},
    {"launch", "kind*"},
    {"copy", "direction* memory* bytes"},
    {"elementwise", "operation* tokens width"},
    {"gemm", "m n k"},
    {"skinny_gemm", "m n k"},
    {"attention_decode", "batch context_len heads kv_heads head_dim"},
    {"attention_prefill", "batch seq_len heads kv_heads head_dim"},
    {"moe", "tokens hidden_size inter_size top_k experts"},
    {"all_reduce", "gpus elements"},
    {"decode_step", "batch context"},
}};

void check_shape(const Line& line, const Point& point) {
  for (const auto& [op, keys] : kShapes) {
    if (op != point.op) continue;
    for (std::string key : split(keys, ' ')) {
      const bool word = key.ends_with('*');
      if (word) key.pop_back();
      const Point::Value* value = point.find(key);
      if (!value || std::holds_alternative<std::string>(*value) != word ||
          (!word && std::get<std::int64_t>(*value) < 1))
        line.fail(fmt::format("a measured {} has 'shape.{}', {}", op, key, word ? "a word" : "a number of at least 1"));
    }
    return;
  }
  std::vector<std::string> names;
  for (const auto& [op, keys] : kShapes) names.emplace_back(op);
  line.fail(unknown_name("operator", point.op, names));
}

Point read_point(const Line& line) {
  Point point;
  point.op = line.text("op");
  point.dtype = line.text("dtype");
  if (!point.dtype.empty() && point.dtype != "int4_wo") (void)parse_dtype(point.dtype, line.location());
  const Line shape = line.inside("shape");
  for (const auto& [name, value] : shape.json().items()) {
    if (value.is_string()) {
      point.shape.emplace_back(name, value.get<std::string>());
    } else if (value.is_number_integer() && value.get<double>() >= 0 && value.get<double>() < 9e15) {
      point.shape.emplace_back(name, value.get<std::int64_t>());
    } else {
      line.fail(fmt::format("'shape.{}' must be a whole number or text, got {}", name, value.dump()));
    }
  }
  check_shape(line, point);
  return point;
}

void read_samples(const Line& line, Record& record) {
  const Json& samples = line.at("samples_us");
  if (!samples.is_array()) line.fail("'samples_us' must be a list");
  for (const Json& sample : samples) {
    if (!sample.is_number() || !(sample.get<double>() > 0.0) || !std::isfinite(sample.get<double>()))
      line.fail(fmt::format("'samples_us' must be positive numbers of microseconds, got {}", sample.dump()));
    record.samples_us.push_back(sample.get<double>());
  }
  const Json& throttled = line.at("throttled_samples");
  if (!throttled.is_array()) line.fail("'throttled_samples' must be a list");
  for (const Json& index : throttled) {
    if (!index.is_number_unsigned() || index.get<std::size_t>() >= record.samples_us.size())
      line.fail(fmt::format("'throttled_samples' must count samples from 0, got {}", index.dump()));
    record.throttled.push_back(index.get<int>());
  }
}

Record read_record(const Line& line) {
  Record record;
  record.point = read_point(line);
  record.engine = line.text("engine");
  record.kernel = line.text("kernel");
  const Line device = line.inside("device");
  record.device = {.name = device.text("name"),
                   .driver = device.text("driver"),
                   .cuda = device.text("cuda"),
                   .compute_capability = device.text("compute_capability"),
                   .sm_count = static_cast<int>(std::min(device.number("sm_count", 0), 1e6)),
                   .devices = static_cast<int>(std::min(device.number("devices", 1), 1e6)),
                   .memory_bytes = device.number("memory_bytes", 0),
                   .l2_bytes = device.number("l2_bytes", 0)};
  record.commit = line.text("commit");
  record.time = line.text("time");
  record.before = read_state(line.inside("before"));
  if (line.json().contains("during")) record.during = read_state(line.inside("during"));
  record.after = read_state(line.inside("after"));
  record.flops = line.number("flops", 0);
  record.bytes = line.number("bytes", 0);
  record.repeats = static_cast<int>(std::min(line.number("repeats", 1), 1e9));
  read_samples(line, record);
  const std::string stop = line.text("stop");
  const auto known = std::find_if(kStops.begin(), kStops.end(), [&](const auto& s) { return s.second == stop; });
  if (known == kStops.end()) line.fail(fmt::format("unknown reason to stop '{}'", stop));
  record.stop = known->first;
  record.note = line.text("note");
  return record;
}

Json parse_line(std::string_view text, const SourceLocation& location) {
  try {
    Json json = Json::parse(text);
    if (json.is_object()) return json;
  } catch (const Json::exception&) {  // not JSON, NaN, or a number out of range: reported below
  }
  throw ConfigError(location,
                    "not a measurement: expected one JSON object per line, as written by `calibrate measure`");
}

}  // namespace

std::string_view name_of(Stop stop) {
  for (const auto& [value, name] : kStops) {
    if (value == stop) return name;
  }
  return "";
}

const Point::Value* Point::find(std::string_view name) const {
  for (const auto& [key, value] : shape) {
    if (key == name) return &value;
  }
  return nullptr;
}

std::int64_t Point::number(std::string_view name) const {
  const Value* value = find(name);
  SIM_CHECK(value && std::holds_alternative<std::int64_t>(*value), std::string(name));
  return std::get<std::int64_t>(*value);
}

const std::string& Point::word(std::string_view name) const {
  const Value* value = find(name);
  SIM_CHECK(value && std::holds_alternative<std::string>(*value), std::string(name));
  return std::get<std::string>(*value);
}

std::string Point::key() const {
  std::string text = op + (dtype.empty() ? "" : " " + dtype);
  for (const auto& [name, value] : shape) {
    text += " " + name + "=";
    text += std::holds_alternative<std::string>(value) ? std::get<std::string>(value)
                                                       : std::to_string(std::get<std::int64_t>(value));
  }
  return text;
}

namespace {

/// Relative spread of the medians of `kBatches` runs of samples, over sqrt(kBatches): the error of the median if
/// neighbouring samples are correlated (method of batch means; Law, Simulation Modeling and Analysis, 9.5.3).
double batched_error(const std::vector<double>& samples, double median) {
  constexpr std::size_t kBatches = 5;
  if (samples.size() < 2 * kBatches) return 0.0;
  double squares = 0;
  for (std::size_t b = 0; b < kBatches; ++b) {
    const auto at = [&](std::size_t i) {
      return samples.begin() + static_cast<std::ptrdiff_t>(i * samples.size() / kBatches);
    };
    const double of_batch = quantile(std::vector<double>(at(b), at(b + 1)), 0.5) / median - 1.0;
    squares += of_batch * of_batch;
  }
  return std::sqrt(squares / static_cast<double>(kBatches - 1) / static_cast<double>(kBatches));
}

}  // namespace

Statistics statistics_of(const std::vector<double>& samples_us) {
  Statistics out;
  if (samples_us.empty()) return out;
  const auto count = static_cast<double>(samples_us.size());
  out.median_us = quantile(samples_us, 0.5);
  out.noise = (quantile(samples_us, 0.75) - quantile(samples_us, 0.25)) / 1.349 / out.median_us;
  // sqrt(pi / 2): the median of normal samples scatters more than their mean by this factor.
  const double independent = 1.2533 * out.noise / std::sqrt(count);
  out.standard_error = std::max(independent, batched_error(samples_us, out.median_us));
  const std::size_t third = samples_us.size() / 3;
  if (third < 3) return out;
  const std::vector<double> first(samples_us.begin(), samples_us.begin() + static_cast<std::ptrdiff_t>(third)),
      last(samples_us.end() - static_cast<std::ptrdiff_t>(third), samples_us.end());
  out.drift = quantile(last, 0.5) / quantile(first, 0.5) - 1.0;
  // The medians of two thirds of independent samples differ by sqrt(2 x 3) standard errors of the whole median; three
  // times that is not chance. The noise is that within the thirds, without the trend.
  const auto spread = [](const std::vector<double>& part) {
    return (quantile(part, 0.75) - quantile(part, 0.25)) / 1.349;
  };
  const double chance =
      1.2533 * std::hypot(spread(first), spread(last)) / std::sqrt(static_cast<double>(third)) / out.median_us;
  out.drifts = std::abs(out.drift) > std::max(0.01, 3.0 * chance);
  return out;
}

bool is_hot(const Record& record) {
  return record.point.find("load_ms") != nullptr || 2 * record.throttled.size() > record.samples_us.size();
}

bool is_held_down(const Record& record) { return is_hot(record) && record.point.find("load_ms") == nullptr; }

std::string to_json_line(const Record& r) {
  Json shape = Json::object();
  for (const auto& [name, value] : r.point.shape)
    std::visit([&, &key = name](const auto& v) { shape[key] = v; }, value);
  const Statistics s = statistics_of(r.samples_us);
  Json samples = Json::array();
  for (const double sample : r.samples_us) samples.push_back(rounded(sample));
  const Json json{{"op", r.point.op},
                  {"dtype", r.point.dtype},
                  {"shape", std::move(shape)},
                  {"engine", r.engine},
                  {"kernel", r.kernel},
                  {"median_us", rounded(s.median_us)},
                  {"standard_error", rounded(s.standard_error)},
                  {"noise", rounded(s.noise)},
                  {"drift", rounded(s.drift)},
                  {"stop", name_of(r.stop)},
                  {"note", r.note},
                  {"flops", r.flops},
                  {"bytes", r.bytes},
                  {"device",
                   {{"name", r.device.name},
                    {"driver", r.device.driver},
                    {"cuda", r.device.cuda},
                    {"compute_capability", r.device.compute_capability},
                    {"sm_count", r.device.sm_count},
                    {"devices", r.device.devices},
                    {"memory_bytes", r.device.memory_bytes},
                    {"l2_bytes", r.device.l2_bytes}}},
                  {"before", state_json(r.before)},
                  {"during", state_json(r.during)},
                  {"after", state_json(r.after)},
                  {"commit", r.commit},
                  {"time", r.time},
                  {"repeats", r.repeats},
                  {"throttled_samples", r.throttled},
                  {"samples_us", std::move(samples)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool looks_like_records(std::string_view text) { return trim(text.substr(0, 4096)).starts_with('{'); }

RecordFile parse_records(std::string_view text, const std::string& path) {
  RecordFile file;
  file.path = path;
  check_json_size(path, text);  // of all lines together
  int number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    ++number;
    if (end == std::string_view::npos) {
      file.torn = true;
      break;
    }
    const std::string_view line = trim(text.substr(at, end - at));
    at = file.whole_bytes = end + 1;
    if (line.empty()) continue;
    const SourceLocation location{path, number, 0};
    file.records.push_back(read_record(Line(parse_line(line, location), location)));
    file.lines.push_back(number);
  }
  return file;
}

RecordFile read_records(const std::string& path) { return parse_records(read_file(path, kMostRecordBytes), path); }

}  // namespace roofcast::calibrate
