#include "sim/plan/measured/bench_reader.h"

#include <cmath>

#include <fmt/format.h>

namespace roofcast {

const BenchReader::Json* BenchReader::at(std::string_view key) const {
  if (key.starts_with('/')) {
    const Json::json_pointer pointer{std::string(key)};
    if (!json_.contains(pointer)) return nullptr;
    const Json& value = json_.at(pointer);
    return value.is_null() ? nullptr : &value;
  }
  const auto found = json_.find(std::string(key));
  return found == json_.end() || found->is_null() ? nullptr : &*found;
}

const BenchReader::Json* BenchReader::first(std::initializer_list<const char*> keys) const {
  for (const char* key : keys) {
    if (const Json* value = at(key)) return value;
  }
  return nullptr;
}

std::optional<double> BenchReader::number(std::string_view key) const {
  const Json* value = at(key);
  return value == nullptr ? std::nullopt : std::optional(checked(*value, key));
}

std::optional<double> BenchReader::first_number(std::initializer_list<const char*> keys) const {
  for (const char* key : keys) {
    if (const auto value = number(key)) return value;
  }
  return std::nullopt;
}

double BenchReader::required(std::string_view key) const {
  if (const auto value = number(key)) return *value;
  if (json_.contains(std::string(key))) fail(fmt::format("'{}' must be a number, got null", key));
  fail(fmt::format("missing key '{}' of a result of {}", key, tool_));
}

std::string BenchReader::text(std::string_view key) const {
  const Json* value = at(key);
  return value != nullptr && value->is_string() ? value->get<std::string>() : "";
}

double BenchReader::checked(const Json& value, std::string_view key) const {
  if (value.is_number()) {
    const double number = value.get<double>();
    if (std::isfinite(number) && number >= 0) return number;
  }
  std::string got = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (got.size() > 40) got = got.substr(0, 40) + " ...";
  fail(fmt::format("'{}' must be a number from 0 up, got {}", key, got));
}

std::vector<int> BenchReader::lengths(std::string_view key) const {
  std::vector<int> out;
  const Json* list = at(key);
  if (list == nullptr) return out;
  if (!list->is_array()) fail(fmt::format("'{}' must be a list of token counts", key));
  for (const Json& item : *list) {
    const double tokens = checked(item, key);
    if (tokens > 1e7) fail(fmt::format("'{}' holds {} tokens, more than 1e7", key, tokens));
    if (tokens >= 1) out.push_back(static_cast<int>(tokens));
  }
  return out;
}

}  // namespace roofcast
