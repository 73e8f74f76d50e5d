#include "roofcast/result.h"

#include <charconv>

#include <fmt/format.h>

#include "base/text.h"
#include "library/public_types.h"

namespace roofcast {
inline namespace v0 {
namespace {

using Json = nlohmann::ordered_json;

/// The part of a map or a list by its key or position; null when there is none.
const Json* find_part(const Json& in, const std::string& part) {
  if (in.is_object()) return in.contains(part) ? &in[part] : nullptr;
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
  const bool number = error == std::errc() && end == part.data() + part.size();
  return in.is_array() && number && index < in.size() ? &in[index] : nullptr;
}

/// The value under a dotted key, whose numbers are indices of lists; null if there is none.
const Json* find(const Json& json, std::string_view key) {
  const Json* at = &json;
  for (const std::string& part : split(key, '.'))
    if (at = find_part(*at, part); at == nullptr) break;
  return at;
}

std::vector<std::string> keys_of(const Json& map) {
  std::vector<std::string> names;
  for (const auto& item : map.items()) names.push_back(item.key());
  return names;
}

/// Which part of a key does not exist, and what stands there.
std::string no_such_key(const Json& json, std::string_view key, const std::string& kind) {
  const Json* at = &json;
  for (const std::string& part : split(key, '.')) {
    const Json* inner = find_part(*at, part);
    if (inner == nullptr && at->is_object())
      return fmt::format("{}: {}", key, unknown_name("key of the " + kind, part, keys_of(*at)));
    if (inner == nullptr && at->is_array())
      return fmt::format("{}: '{}' is no position in a list of {}", key, part, at->size());
    if (inner == nullptr) break;
    at = inner;
  }
  return fmt::format("{}: the {} has a value there, and nothing in it", key, kind);
}

const Json& value_of(const Result::State& state, std::string_view key) {
  if (const Json* value = find(state.answer.json, key)) return *value;
  if (state.answer.json.is_null())
    throw Error(fmt::format("{}: the {} has no answer: {}", key, state.kind, state.answer.reason));
  throw Error(no_such_key(state.answer.json, key, state.kind));
}

const Json& value_of(const Result::State& state, std::string_view key, bool (Json::*is)() const noexcept,
                     const char* word) {
  const Json& value = value_of(state, key);
  if (!(value.*is)()) throw Error(fmt::format("{}: is not {}", key, word));
  return value;
}

std::string last_part(std::string_view key) { return std::string(key.substr(key.rfind('.') + 1)); }

}  // namespace

Result::Result(std::shared_ptr<const State> state) : state_(std::move(state)) {}

const std::string& Result::kind() const { return state_->kind; }
int Result::schema() const { return static_cast<int>(number("schema")); }
bool Result::answered() const { return state_->answer.reason.empty(); }
const std::string& Result::reason() const { return state_->answer.reason; }
const std::vector<std::string>& Result::notes() const { return state_->answer.notes; }
const std::string& Result::json() const { return state_->text; }
bool Result::has(std::string_view key) const { return find(state_->answer.json, key) != nullptr; }

double Result::number(std::string_view key) const {
  return value_of(*state_, key, &Json::is_number, "a number").get<double>();
}

Seconds Result::time(std::string_view key) const {
  const std::string name = last_part(key);
  // "ttft_ms_low" and "ttft_ms_high" are the bounds of an interval.
  for (const char* end : {"", "_low", "_high"}) {
    if (name.ends_with(std::string("_ms") + end)) return Milliseconds(number(key));
    if (name.ends_with(std::string("_us") + end)) return std::chrono::duration<double, std::micro>(number(key));
  }
  if (name == "duration" || (name.ends_with("_s") && !name.ends_with("_per_s"))) return Seconds(number(key));
  throw Error(fmt::format("{}: is not a time; keys of times end in _s, _ms or _us", key));
}

Bytes Result::bytes(std::string_view key) const {
  const std::string name = last_part(key);
  if (name.find("bytes") == std::string::npos || name.ends_with("_per_s"))
    throw Error(fmt::format("{}: is not a number of bytes", key));
  return {number(key)};
}

bool Result::flag(std::string_view key) const {
  return value_of(*state_, key, &Json::is_boolean, "true or false").get<bool>();
}

std::string Result::text(std::string_view key) const {
  return value_of(*state_, key, &Json::is_string, "a text").get<std::string>();
}

std::vector<std::string> Result::keys(std::string_view key) const {
  if (key.empty()) return keys_of(state_->answer.json);
  return keys_of(value_of(*state_, key, &Json::is_object, "a map"));
}

std::size_t Result::size(std::string_view key) const {
  return value_of(*state_, key, &Json::is_array, "a list").size();
}

}  // namespace v0
}  // namespace roofcast
