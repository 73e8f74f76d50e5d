#include "reports/catalog_entry.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/config_library.h"
#include "base/config_release.h"
#include "base/text.h"
#include "hw/efficiency.h"
#include "reports/catalog_report.h"
#include "reports/result_schema.h"
#include "reports/table.h"
#include "sim/plan/client.h"
#include "sim/plan/launch_recipe.h"
#include "sim/plan/scenario.h"

namespace roofcast::reports {
namespace {

/// The settings of one release, each with the change that introduced it.
std::string release_text(const ConfigTree& document, const Release& release, const std::string& format) {
  const std::vector<SourcedSetting> settings = sourced_settings(document, release);
  const std::string name = (*document->find("name"))->scalar;
  if (format == "json") {
    nlohmann::ordered_json json{{"name", name}, {"version", release.version}, {"released", release.date}};
    json["beyond_known"] = release.beyond_known;
    if (!release.like.empty()) json["like"] = release.like;
    for (const SourcedSetting& s : settings)
      json["settings"].push_back({{"key", s.key}, {"value", s.value}, {"since", s.since}, {"source", s.source}});
    return entry_text("engines", json);
  }
  Table table({"setting", "value", "since", "source"});
  table.words(3);
  constexpr std::size_t kWidest = 48;
  for (const SourcedSetting& s : settings) {
    const bool shorten = format == "table" && s.value.size() > kWidest;
    table.row({s.key, shorten ? s.value.substr(0, kWidest) + " ..." : s.value, s.since, s.source});
  }
  if (format == "csv") return table.csv();
  return fmt::format("{} {}{}{}\n\n", name, release.version,
                     release.date.empty() ? "" : fmt::format(", published {}", release.date),
                     release.beyond_known   ? "; a newer release was asked for, and this is the newest known"
                     : release.like.empty() ? ""
                                            : fmt::format("; not listed, with the settings of {}", release.like)) +
         table.text();
}

std::string releases_text(const ConfigTree& document) {
  std::vector<std::string> versions;
  for (const ConfigTree& item : (*document->find("releases"))->items) {
    const ConfigTree* date = item->find("date");
    versions.push_back((*item->find("version"))->scalar + (date != nullptr ? " of " + (*date)->scalar : ""));
  }
  return join(versions, ", ");
}

}  // namespace

std::string as_written(const ConfigTree& tree, const std::string& format, const nlohmann::ordered_json& head) {
  if (format == "table") return to_yaml(*tree);
  struct Convert {
    nlohmann::ordered_json operator()(const ConfigNode& node) const {
      switch (node.kind) {
        case ConfigNode::Kind::kNull:
          return nullptr;
        case ConfigNode::Kind::kScalar:
          return node.quoted ? nlohmann::ordered_json(node.scalar) : scalar(node.scalar);
        case ConfigNode::Kind::kList: {
          nlohmann::ordered_json list = nlohmann::ordered_json::array();
          for (const ConfigTree& item : node.items) list.push_back((*this)(*item));
          return list;
        }
        case ConfigNode::Kind::kMap:
          break;
      }
      nlohmann::ordered_json map = nlohmann::ordered_json::object();
      for (const auto& entry : node.entries) map[entry.key] = (*this)(*entry.value);
      return map;
    }
    static nlohmann::ordered_json scalar(const std::string& text) {
      const auto parsed = nlohmann::ordered_json::parse(text, nullptr, false);
      return parsed.is_number() || parsed.is_boolean() ? parsed : nlohmann::ordered_json(text);
    }
  };
  const nlohmann::ordered_json json = Convert{}(*tree);
  if (format != "json") return flat_table(json, format);
  Json out = head;
  out.update(json);
  return result_text(out);
}

std::string engine_report(const std::string& name, const std::string& format) {
  const SourceLocation location{"engines", 0, 0};
  const NamedRelease found = find_named("engines", name, location);
  if (!has_releases(found.document)) {
    const ConfigTree tree = load_named("engines", name, location);
    (void)parse_engine_spec(ConfigReader(tree, "an engine"));
    return as_written(tree, format, result_head(ResultKind::kCatalogEntry, "engines"));
  }
  const Release release = find_release(found.document, found.version, location);
  (void)parse_engine_spec(ConfigReader(settings_at(found.document, release), "an engine"));
  std::string text = release_text(found.document, release, format);
  if (format == "table" && found.version.empty())
    text += "\nReleases (NAME@VERSION or NAME@DAY): " + releases_text(found.document) + "\n";
  return text;
}

std::string catalog_entry_json(const std::string& kind, const std::string& name) {
  const std::string folder = kind == "gpus" ? "hardware" : kind, json = "json";
  if (kind == "engines") return engine_report(name, json);
  const ConfigTree tree = load_named(folder, name, SourceLocation{kind, 0, 0});
  if (kind == "models") return model_report(parse_model(tree), json);
  if (kind == "gpus") return gpu_report(load_gpu(tree).spec, json);
  if (kind == "recipes") (void)parse_launch_recipe(tree);
  if (kind == "clients") check_client(tree);
  if (kind == "workloads") (void)parse_workload(ConfigReader(tree, "a workload"));
  return as_written(tree, json, result_head(ResultKind::kCatalogEntry, kind));
}

}  // namespace roofcast::reports
