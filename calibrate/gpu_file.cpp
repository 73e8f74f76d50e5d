#include "calibrate/gpu_file.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "base/output_file.h"

namespace roofcast {
namespace {

std::string number_text(double value) { return fmt::format("{:.6g}", value); }

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

ConfigTree constants_tree(const FittedConstants& constants, const ConstantsBlock& beneath) {
  std::vector<ConfigNode::Entry> entries;
  const Kernel* kernel = kernel_at(constants.block);
  const std::vector<double> below = beneath && kernel ? kernel->numbers(beneath) : std::vector<double>{};
  for (std::size_t i = 0; i < constants.values.size(); ++i) {
    const auto& [name, value] = constants.values[i];
    if (i >= below.size() || number_text(value) != number_text(below[i]))
      entries.push_back(entry(name, make_scalar(number_text(value))));
  }
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

ConfigTree with_constants(ConfigTree efficiency, const std::vector<FittedConstants>& constants,
                          const BlocksBeneath& beneath) {
  if (!efficiency || efficiency->kind == ConfigNode::Kind::kNull) efficiency = make_map();
  for (const FittedConstants& block : constants) {
    const auto found = beneath.find(block.block);
    ConfigTree anew = constants_tree(block, found != beneath.end() ? found->second : ConstantsBlock{});
    // An older block may hold keys that the fields no longer have: it goes, whole but for what it extends.
    const ConfigTree old = block_in(efficiency, block.block);
    const ConfigTree* extends = old ? old->find("extends") : nullptr;
    if (extends != nullptr) anew = overlay(make_map({entry("extends", *extends)}), anew);
    efficiency = with_value(efficiency, block.block, anew, "calibrate");
  }
  return efficiency;
}

void write_efficiency_files(const std::string& folder, const ConfigTree& gpu, KernelFamily family,
                            const std::vector<FittedConstants>& blocks) {
  const std::string name = parse_gpu_spec(ConfigReader(gpu, "a GPU")).name;
  const auto path_of = [&](std::string_view whose) { return fmt::format("{}/{}-{}.yaml", folder, name, whose); };
  const auto read = [&](std::string_view whose) {
    return std::filesystem::exists(path_of(whose)) ? parse_config_file(path_of(whose)) : nullptr;
  };
  const ConfigTree own = read(name_of(family)), shared = read("shared");
  std::vector<FittedConstants> mine, common;
  for (const FittedConstants& block : blocks)
    (block_in(shared, block.block) && !block_in(own, block.block) ? common : mine).push_back(block);
  ConfigTree whole = gpu->find("efficiency") ? gpu : with_value(gpu, "efficiency", make_map(), "calibrate");
  const auto put = [&](std::string_view whose, const ConfigTree& old, const std::vector<FittedConstants>& anew,
                       const std::string& heading) {
    if (old) whole = with_value(whole, fmt::format("efficiency.{}", whose), old, "calibrate");
    if (anew.empty()) return;
    const ConfigTree written = with_constants(old, anew, blocks_beneath(whole, family));
    whole = with_value(whole, fmt::format("efficiency.{}", whose), written, "calibrate");
    write_text(path_of(whose), fmt::format("# Constants of the {} {}.\n{}", name, heading, to_yaml(*written)));
  };
  put("shared", shared, common, "under every engine");
  put(name_of(family), own, mine, fmt::format("under {}", name_of(family)));
}

ConfigTree with_gpu_constants(const ConfigTree& gpu, KernelFamily family, const std::vector<FittedConstants>& blocks) {
  const ConfigTree* stated = gpu->find("efficiency");
  ConfigTree whole = stated && (*stated)->kind == ConfigNode::Kind::kMap
                         ? gpu
                         : with_value(gpu, "efficiency", make_map(), "calibrate");
  // A file that was named beside `gpu` is not beside what is written.
  for (const std::string_view whose : {"shared", "trtllm", "vllm", "sglang"}) {
    if (const ConfigTree constants = constants_in(*gpu, whose))
      whole = with_value(whole, fmt::format("efficiency.{}", whose), constants, "calibrate");
  }
  const ConfigTree anew = with_constants(constants_in(*gpu, name_of(family)), blocks, blocks_beneath(whole, family));
  return with_value(whole, fmt::format("efficiency.{}", name_of(family)), anew, "calibrate");
}

void write_gpu_file(const std::string& path, const ConfigTree& gpu) { write_text(path, to_yaml(*gpu)); }

}  // namespace roofcast
