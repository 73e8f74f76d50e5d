#include "calibrate/gpu_file.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "base/output_file.h"

namespace roofcast {
namespace {

ConfigTree number_node(double value) { return make_scalar(fmt::format("{:.6g}", value)); }

ConfigTree text_node(const std::string& text) {
  ConfigNode node;
  node.kind = ConfigNode::Kind::kScalar;
  node.scalar = text;
  node.quoted = true;
  return std::make_shared<const ConfigNode>(std::move(node));
}

ConfigNode::Entry entry(std::string key, ConfigTree value) { return {std::move(key), {}, std::move(value)}; }

void write_text(const std::string& path, const std::string& text) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  std::error_code ignored;
  if (!parent.empty()) std::filesystem::create_directories(parent, ignored);
  write_file("calibrate", path, text);
}

}  // namespace

ConfigTree constants_in(const ConfigNode& gpu, KernelFamily family) {
  const ConfigTree* efficiency = gpu.find("efficiency");
  const ConfigTree* old = efficiency ? (*efficiency)->find(std::string(name_of(family))) : nullptr;
  if (!old) return nullptr;
  if ((*old)->kind != ConfigNode::Kind::kScalar) return *old;
  const std::filesystem::path beside = std::filesystem::path((*old)->mark.path).parent_path() / (*old)->scalar;
  return std::filesystem::exists(beside) ? parse_config_file(beside.string()) : nullptr;
}

ConfigTree constants_tree(const FittedConstants& constants) {
  std::vector<ConfigNode::Entry> entries;
  for (const auto& [name, value] : constants.values) entries.push_back(entry(name, number_node(value)));
  const FitRecord& record = constants.record;
  // By name: a list would not outlive a new field. What was held fixed has none.
  std::vector<ConfigNode::Entry> errors;
  for (std::size_t i = 0; i < record.standard_errors.size() && i < constants.values.size(); ++i) {
    if (record.standard_errors[i] <= 0.0) continue;
    errors.push_back(entry(constants.values[i].first, make_scalar(fmt::format("{:.3g}", record.standard_errors[i]))));
  }
  std::vector<ConfigNode::Entry> fit;
  fit.push_back(entry("standing", make_scalar(std::string(name_of(record.standing)))));
  fit.push_back(entry("source", text_node(record.source)));
  fit.push_back(entry("rows", make_scalar(std::to_string(record.rows))));
  fit.push_back(entry("mape", make_scalar(fmt::format("{:.3g}", record.mape))));
  fit.push_back(entry("discrepancy", make_scalar(fmt::format("{:.3g}", record.discrepancy))));
  if (record.discrepancy_elsewhere > 0.0) {
    fit.push_back(entry("discrepancy_elsewhere", make_scalar(fmt::format("{:.3g}", record.discrepancy_elsewhere))));
  }
  fit.push_back(entry("standard_errors", make_map(std::move(errors))));
  entries.push_back(entry("fit", make_map(std::move(fit))));
  return make_map(std::move(entries));
}

ConfigTree with_constants(ConfigTree efficiency, const std::vector<FittedConstants>& constants) {
  if (!efficiency || efficiency->kind == ConfigNode::Kind::kNull) efficiency = make_map();
  for (const FittedConstants& block : constants) {
    // An older block may hold keys that the fields no longer have: it goes, whole.
    efficiency = with_value(efficiency, block.block, constants_tree(block), "calibrate");
  }
  return efficiency;
}

void write_efficiency_file(const std::string& path, const std::string& heading,
                           const std::vector<FittedConstants>& constants) {
  ConfigTree old;
  if (std::filesystem::exists(path)) old = parse_config_file(path);
  write_text(path, "# " + heading + "\n" + to_yaml(*with_constants(old, constants)));
}

ConfigTree with_gpu_constants(const ConfigTree& gpu, KernelFamily family, const std::vector<FittedConstants>& blocks) {
  const ConfigTree* stated = gpu->find("efficiency");
  ConfigTree whole = stated && (*stated)->kind == ConfigNode::Kind::kMap
                         ? gpu
                         : with_value(gpu, "efficiency", make_map(), "calibrate");
  for (const KernelFamily each : kKernelFamilies) {
    ConfigTree constants = constants_in(*gpu, each);
    if (each == family) constants = with_constants(constants, blocks);
    if (constants) whole = with_value(whole, fmt::format("efficiency.{}", name_of(each)), constants, "calibrate");
  }
  return whole;
}

void write_gpu_file(const std::string& path, const ConfigTree& gpu) { write_text(path, to_yaml(*gpu)); }

}  // namespace roofcast
