#include "reports/json_schema.h"

#include <algorithm>
#include <initializer_list>

#include <fmt/format.h>

#include "base/text.h"
#include "reports/html_text.h"
#include "reports/result_types.h"

namespace roofcast::reports {
namespace {

using result_keys::KeyGroup;
using result_keys::Presence;
using result_types::Entry;
using result_types::Type;

/// Whether `path` ends in `end`, comparing whole parts.
bool ends_in(std::string_view path, std::string_view end) {
  return path.ends_with(end) && (path.size() == end.size() || path[path.size() - end.size() - 1] == '.');
}

Type type_of(std::string_view path) {
  Type type = Type::kNumber;
  std::size_t longest = 0;
  const auto look = [&](const auto& entries) {
    for (const Entry& entry : entries) {
      if (entry.path.size() < longest || !ends_in(path, entry.path)) continue;
      longest = entry.path.size();
      type = entry.type;
    }
  };
  look(result_types::kTexts);
  look(result_types::kFlags);
  look(result_types::kIntegers);
  look(result_types::kLists);
  look(result_types::kNullable);
  look(result_types::kObjects);
  look(result_types::kLoose);
  return type;
}

Json leaf(std::string_view path) {
  switch (type_of(path)) {
    case Type::kNumber:
      return {{"type", "number"}};
    case Type::kInteger:
      return {{"type", "integer"}};
    case Type::kText:
      return {{"type", "string"}};
    case Type::kFlag:
      return {{"type", "boolean"}};
    case Type::kTexts:
      return {{"type", "array"}, {"items", {{"type", "string"}}}};
    case Type::kNumberOrNull:
      return {{"type", {"number", "null"}}};
    case Type::kObject:
      return {{"type", "object"}};
    case Type::kAny:
      break;
  }
  return Json::object();
}

void add_once(Json& list, const std::string& text) {
  if (list.is_null()) list = Json::array();
  if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(text);
}

/// The object schema for one part of a path, "operators[]" or "memory"; created if missing. A bare key declared earlier
/// ("deployments") becomes a list.
Json& step_into(Json& object, const std::string& part, bool required) {
  const bool list = part.ends_with("[]");
  const std::string name = list ? part.substr(0, part.size() - 2) : part;
  if (required) add_once(object["required"], name);
  Json& property = object["properties"][name];
  property["type"] = list ? "array" : "object";
  if (!list) return property;
  Json& items = property["items"];
  items["type"] = "object";
  return items;
}

void add_key(Json& root, const KeyGroup& group, const std::string& key) {
  const bool required = group.presence == Presence::kAlways;
  Json* at = &root;
  std::vector<std::string> parts = split(std::string(group.place) + key, '.');
  const std::string name = parts.back();
  parts.pop_back();
  const auto of_place = static_cast<std::size_t>(std::count(group.place.begin(), group.place.end(), '.'));
  for (std::size_t i = 0; i < parts.size(); ++i)
    at = &step_into(*at, parts[i], required || (i > of_place && group.presence == Presence::kTogether));
  if (required || (parts.size() > of_place && group.presence == Presence::kTogether)) add_once((*at)["required"], name);
  Json& property = (*at)["properties"][name];
  if (property.is_null()) property = leaf(std::string(group.place) + key);
}

/// The object that contains a group.
Json& at_place(Json& root, std::string_view place) {
  Json* at = &root;
  if (place.empty()) return *at;
  for (const std::string& part : split(std::string(place.substr(0, place.size() - 1)), '.'))
    at = &step_into(*at, part, false);
  return *at;
}

/// Makes each key of the group require the others.
void bind_together(Json& root, const KeyGroup& group) {
  if (group.keys.size() < 2) return;
  Json& at = at_place(root, group.place);
  std::vector<std::string> names;
  for (const std::string_view key : group.keys) {
    std::string first(key.substr(0, key.find('.')));
    if (std::find(names.begin(), names.end(), first) == names.end()) names.push_back(std::move(first));
  }
  for (const std::string& name : names) {
    for (const std::string& other : names) {
      if (other != name) add_once(at["dependentRequired"][name], other);
    }
  }
}

const char* words_of(const std::string& type) {
  return type == "array"     ? "a list"
         : type == "object"  ? "an object"
         : type == "string"  ? "a text"
         : type == "boolean" ? "true or false"
                             : "a number";
}

/// Whether the value has one of the types. Non-finite and unknown values are written as null; an integer may be written
/// as 2.0.
bool has_type(const Json& value, const Json& types) {
  const auto is = [&](const std::string& type) {
    if (type == "array") return value.is_array();
    if (type == "object") return value.is_object() || value.is_null();
    if (type == "string") return value.is_string();
    if (type == "boolean") return value.is_boolean();
    return value.is_number() || value.is_null();
  };
  if (types.is_string()) return is(types.get<std::string>());
  return std::any_of(types.begin(), types.end(), [&](const Json& type) { return is(type.get<std::string>()); });
}

/// The first entry in `value` whose type differs from the schema; empty: none.
std::string wrong_type_at(const Json& value, const Json& schema, const Json& root, const std::string& path) {
  constexpr std::size_t kLooked = 1000;  // maximum checked entries of a list
  if (schema.contains("$ref") && !value.is_null())
    return wrong_type_at(value, root["properties"]["deployments"]["items"], root, path);
  if (schema.contains("$ref")) return fmt::format("'{}' must be an object, got null", path);
  if (const auto types = schema.find("type"); types != schema.end() && !has_type(value, *types)) {
    const std::string type = types->is_string() ? types->get<std::string>() : types->front().get<std::string>();
    return fmt::format("'{}' must be {}, got {}", path, words_of(type),
                       value.is_structured()
                           ? words_of(value.type_name())
                           : shortened(value.dump(-1, ' ', false, Json::error_handler_t::replace), 40));
  }
  std::string wrong;
  if (const auto items = schema.find("items"); items != schema.end() && value.is_array()) {
    for (std::size_t i = 0; i < std::min(kLooked, value.size()) && wrong.empty(); ++i)
      wrong = wrong_type_at(value[i], *items, root, fmt::format("{}[{}]", path, i));
  }
  if (const auto properties = schema.find("properties"); properties != schema.end() && value.is_object()) {
    for (const auto& [key, entry] : value.items()) {
      const auto property = properties->find(key);
      if (property == properties->end()) continue;
      wrong = wrong_type_at(entry, *property, root, path.empty() ? key : path + "." + key);
      if (!wrong.empty()) break;
    }
  }
  return wrong;
}

}  // namespace

std::string wrong_type(const Json& result, const ResultSchema& schema) {
  const Json root = json_schema(schema);
  return wrong_type_at(result, root, root, "");
}

Json json_schema(const ResultSchema& schema) {
  Json root{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
            {"title", fmt::format("{} of roofcast, schema {}", schema.name, schema.version)},
            {"type", "object"},
            {"properties", {{"kind", {{"const", schema.name}}}, {"schema", {{"const", schema.version}}}}},
            {"required", {"kind", "schema"}}};
  for (const KeyGroup& group : schema.groups) {
    for (const std::string_view key : group.keys) add_key(root, group, std::string(key));
    if (group.presence == Presence::kTogether) bind_together(root, group);
  }
  if (schema.kind == ResultKind::kPlan) {  // two deployments in addition to the list
    for (const char* name : {"winner", "nearest"})
      root["properties"][name] = {{"$ref", "#/properties/deployments/items"}};
  }
  return root;
}

std::string json_schema_text(const ResultSchema& schema) { return json_schema(schema).dump(2) + "\n"; }

}  // namespace roofcast::reports
