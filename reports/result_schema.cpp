#include "reports/result_schema.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "reports/html_text.h"
#include "reports/json_schema.h"

namespace roofcast::reports {
namespace {

using result_keys::KeyGroup;
using result_keys::Presence;

const Json* find(const Json& json, std::string_view path) {
  const Json* at = &json;
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    if (!at->is_object()) return nullptr;
    const std::string_view part = path.substr(begin, end - begin);
    const auto& entries = at->get_ref<const Json::object_t&>();
    const auto it = std::find_if(entries.begin(), entries.end(), [&](const auto& e) { return e.first == part; });
    if (it == entries.end()) return nullptr;
    at = &it->second;
    begin = end + 1;
  }
  return at;
}

/// Calls visit(entry, "operators[2].") for every entry at `place`, and visit(null, ...) if a list or object on the path
/// is missing.
template <class Visit>
void for_each_place(const Json& json, std::string_view place, const std::string& so_far, const Visit& visit) {
  const std::size_t list_end = place.find("[].");
  if (list_end == std::string_view::npos) {
    const std::string_view path = place.substr(0, place.empty() ? 0 : place.size() - 1);
    visit(find(json, path), so_far + std::string(place));
    return;
  }
  const std::string_view name = place.substr(0, list_end), rest = place.substr(list_end + 3);
  const Json* list = find(json, name);
  if (list == nullptr || !list->is_array()) return visit(nullptr, fmt::format("{}{}[].", so_far, name));
  for (std::size_t i = 0; i < list->size(); ++i)
    for_each_place((*list)[i], rest, fmt::format("{}{}[{}].", so_far, name, i), visit);
}

std::string missing_of_group(const Json& json, const KeyGroup& group) {
  std::string missing;
  if (group.presence == Presence::kSometimes) return missing;
  for_each_place(json, group.place, "", [&](const Json* entry, const std::string& place) {
    if (!missing.empty()) return;
    std::size_t found = 0;
    std::string_view first;
    for (const std::string_view key : group.keys) {
      if (entry != nullptr && find(*entry, key) != nullptr) {
        ++found;
      } else if (first.empty()) {
        first = key;
      }
    }
    if (!first.empty() && (group.presence == Presence::kAlways || found > 0)) missing = place + std::string(first);
  });
  return missing;
}

}  // namespace

std::string_view name_of(ResultKind kind) {
  switch (kind) {
    case ResultKind::kKernelRows:
      return "kernel validation";
    case ResultKind::kServingRows:
      return "serving validation";
    case ResultKind::kRequestRows:
      return "requests";
    default:
      return schema_of(kind).name;
  }
}

Json result_head(ResultKind kind) { return {{"kind", schema_of(kind).name}, {"schema", schema_of(kind).version}}; }

Json result_head(ResultKind kind, std::string_view of) {
  Json head = result_head(kind);
  head["of"] = of;
  return head;
}

std::string result_text(const Json& result, const Json& question) {
  for (const ResultSchema& schema : kResultSchemas) {
    if (result.at("kind") != schema.name) continue;
    const std::string missing = missing_key(result, schema);
    SIM_CHECK(missing.empty(), fmt::format("the {} lacks '{}'", schema.name, missing));
  }
  if (question.is_null()) return result.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  Json with = result;
  with["question"] = question;
  return with.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

ResultKind read_kind(const Json& json, const std::string& path) {
  const SourceLocation location{path, 0, 0};
  if (!json.is_object() || !json.contains("kind") || !json.contains("schema"))
    throw ConfigError(location,
                      "not a result of roofcast: no 'kind' and 'schema', which 'roofcast ... --format json' "
                      "writes (older builds wrote none: run the command again)");
  std::vector<std::string> names;
  for (const ResultSchema& schema : kResultSchemas) {
    names.emplace_back(schema.name);
    if (json["kind"] != schema.name) continue;
    if (json["schema"] != schema.version)
      throw ConfigError(location, fmt::format("{} {} of schema {}; this roofcast reads schema {}", schema.article,
                                              schema.name, json["schema"].dump(), schema.version));
    if (const std::string missing = missing_key(json, schema); !missing.empty())
      throw ConfigError(location, fmt::format("'{}' is missing, a key of every {} of schema {}", missing, schema.name,
                                              schema.version));
    if (const std::string wrong = wrong_type(json, schema); !wrong.empty())
      throw ConfigError(location, clean_utf8(wrong));
    return schema.kind;
  }
  const std::string kind = json["kind"].is_string() ? json["kind"].get<std::string>() : json["kind"].dump();
  throw ConfigError(location, unknown_name("kind of result", clean_utf8(kind), names));
}

std::string missing_key(const Json& json, const ResultSchema& schema) {
  for (const KeyGroup& group : schema.groups) {
    if (std::string missing = missing_of_group(json, group); !missing.empty()) return missing;
  }
  return "";
}

std::optional<double> number_at(const Json& json, ResultKey key) {
  const Json* at = find(json, key.path());
  if (at == nullptr || !at->is_number()) return std::nullopt;
  const double value = at->get<double>();
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::optional<double> number_at(const Json& json, const Headline& headline) {
  for (const ResultKey key : {headline.of_estimate, headline.of_simulation, headline.of_ladder}) {
    if (const auto value = number_at(json, key)) return value;
  }
  return std::nullopt;
}

std::string text_at(const Json& json, ResultKey key) {
  const Json* at = find(json, key.path());
  return at != nullptr && at->is_string() ? clean_utf8(at->get<std::string>()) : "";
}

double gpus_of(const Json& json) {
  const auto all = number_at(json, "gpus");
  return std::max(1.0, all ? *all : number_at(json, "machine.gpus").value_or(1));
}

}  // namespace roofcast::reports
