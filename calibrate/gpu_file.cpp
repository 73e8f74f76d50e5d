#include "calibrate/gpu_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <span>

#include "base/output_file.h"
#include "hw/kernel_rules.h"

namespace roofcast::calibrate {
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

/// Whether every block map has this value for the field; false if there are no maps.
bool same_beneath(const std::string& block, const std::string& field, double value,
                  std::span<const BlocksBeneath> beneath) {
  const Kernel* kernel = kernel_at(block);
  if (kernel == nullptr || beneath.empty()) return false;
  const std::vector<FieldFacts> fields = kernel->fields();
  const auto at =
      std::find_if(fields.begin(), fields.end(), [&](const FieldFacts& each) { return each.name == field; });
  if (at == fields.end()) return false;
  return std::all_of(beneath.begin(), beneath.end(), [&](const BlocksBeneath& each) {
    const auto found = each.find(block);
    return found != each.end() &&
           number_text(kernel->numbers(found->second)[static_cast<std::size_t>(at - fields.begin())]) ==
               number_text(value);
  });
}

/// {launch_us: ..., fit: {standing, source, rows, mape, discrepancy, ...}}
ConfigTree constants_tree(const FittedConstants& constants, std::span<const BlocksBeneath> beneath) {
  std::vector<ConfigNode::Entry> entries;
  for (const auto& [name, value] : constants.values) {
    if (!same_beneath(constants.block, name, value, beneath))
      entries.push_back(entry(name, make_scalar(number_text(value))));
  }
  const FitRecord& record = constants.record;
  // By name, because a list would become invalid with a new field. Fixed fields have none.
  std::vector<ConfigNode::Entry> errors;
  for (std::size_t i = 0; i < record.standard_errors.size() && i < constants.values.size(); ++i) {
    if (record.standard_errors[i] <= 0.0) continue;
    errors.push_back(entry(constants.values[i].first, make_scalar(fmt::format("{:.3g}", record.standard_errors[i]))));
  }
  std::vector<ConfigNode::Entry> fit;
  fit.push_back(entry("standing", make_scalar(std::string(name_of(record.provenance)))));
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

/// A map with these blocks inserted; `map` may be null.
ConfigTree with_constants(ConfigTree map, const std::vector<FittedConstants>& blocks,
                          std::span<const BlocksBeneath> beneath) {
  if (!map || map->kind == ConfigNode::Kind::kNull) map = make_map();
  for (const FittedConstants& block : blocks) {
    ConfigTree anew = constants_tree(block, beneath);
    // An older block may have keys that are no longer fields, so it is replaced, except for `extends`.
    const ConfigTree old = block_in(map, block.block);
    const ConfigTree* extends = old ? old->find("extends") : nullptr;
    if (extends != nullptr) anew = overlay(make_map({entry("extends", *extends)}), anew);
    map = with_value(map, block.block, anew, "calibrate");
  }
  return map;
}

/// Names that the maps of a GPU file may have.
std::vector<std::string> all_maps() {
  std::vector<std::string> maps{std::string(kSharedMap)};
  for (const auto& rules : all_kernel_rules()) maps.push_back(rules->name());
  return maps;
}
using BlocksByMap = std::map<std::string, std::vector<FittedConstants>>;

ConfigTree with_map(const ConfigTree& gpu, std::string_view whose, const ConfigTree& map) {
  return with_value(gpu, fmt::format("efficiency.{}", whose), map, "calibrate");
}

ConfigTree with_efficiency(const ConfigTree& gpu) {
  const ConfigTree* stated = gpu->find("efficiency");
  const bool there = stated != nullptr && (*stated)->kind == ConfigNode::Kind::kMap;
  return there ? gpu : with_value(gpu, "efficiency", make_map(), "calibrate");
}

/// What the blocks of a map inherit, for each kernel set that reads the map.
std::vector<BlocksBeneath> beneath_of(const ConfigTree& gpu, std::string_view whose) {
  std::vector<BlocksBeneath> out;
  for (const auto& rules : all_kernel_rules()) {
    bool reads = whose == kSharedMap;
    for (const KernelRules* set = rules.get(); set != nullptr; set = set->base()) reads |= whose == set->name();
    if (reads) out.push_back(blocks_beneath(gpu, rules->name(), whose));
  }
  return out;
}

/// Another fitted block may inherit from a block: all blocks are inserted in full before any is trimmed.
ConfigTree with_blocks(const ConfigTree& gpu, const BlocksByMap& fitted) {
  ConfigTree whole = gpu;
  for (const auto& [whose, blocks] : fitted)
    whole = with_map(whole, whose, with_constants(constants_in(*gpu, whose), blocks, {}));
  ConfigTree trimmed = whole;
  for (const auto& [whose, blocks] : fitted)
    trimmed = with_map(trimmed, whose, with_constants(constants_in(*whole, whose), blocks, beneath_of(whole, whose)));
  return trimmed;
}

bool same_numbers(std::span<const double> a, std::span<const double> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](double x, double y) { return number_text(x) == number_text(y); });
}

/// Finds blocks that changed without being fitted. Kernels that borrow constants are not listed.
void find_moved(const ConfigTree& before, const ConfigTree& after, const std::vector<FittedSet>& fitted,
                std::set<std::string>& moved) {
  for (const auto& rules : all_kernel_rules()) {
    const std::string& name = rules->name();
    const ConfigTree shared = constants_in(*after, kSharedMap), own = constants_in(*after, name);
    if (!own && rules->base() != nullptr) continue;  // they belong to the set that it extends
    const Efficiency old = load_gpu(before, name).efficiency, anew = load_gpu(after, name).efficiency;
    if (old.kernels() != name || anew.kernels() != name) continue;
    const auto was_fitted = [&](const std::string& place) {
      const auto is_here = [&](const FittedConstants& fitted_block) { return fitted_block.block == place; };
      return std::any_of(fitted.begin(), fitted.end(), [&](const FittedSet& of) {
        return of.kernels == name && std::any_of(of.blocks.begin(), of.blocks.end(), is_here);
      });
    };
    for (const Kernel* kernel : kernels()) {
      for (std::size_t i = 0; i < kDtypeCount; ++i) {
        const auto dtype = static_cast<Dtype>(i);
        const ConstantsBlock &one = old.block(*kernel, dtype), &other = anew.block(*kernel, dtype);
        if (!one || !other || same_numbers(kernel->numbers(one), kernel->numbers(other))) continue;
        const std::string place = place_of(*kernel, dtype);
        if ((block_in(shared, place) || block_in(own, place)) && !was_fitted(place))
          moved.insert(fmt::format("{} {}", name, place));
      }
    }
  }
}

}  // namespace

void write_efficiency_files(const std::string& folder, const ConfigTree& gpu, const std::vector<FittedSet>& fitted,
                            std::set<std::string>* moved) {
  const std::string name = parse_gpu_spec(ConfigReader(gpu, "a GPU")).name;
  const auto path_of = [&](std::string_view whose) { return fmt::format("{}/{}-{}.yaml", folder, name, whose); };
  std::map<std::string, ConfigTree, std::less<>> files;
  ConfigTree whole = with_efficiency(gpu);
  for (const std::string& whose : all_maps()) {
    ConfigTree& file = files[whose];
    if (std::filesystem::exists(path_of(whose))) file = parse_config_file(path_of(whose));
    if (file) whole = with_map(whole, whose, file);
  }
  const auto file_of = [&](std::string_view whose) { return map_named(files, whose); };
  BlocksByMap by_map;
  for (const FittedSet& of : fitted) {
    for (const FittedConstants& block : of.blocks) {
      const bool shared = goes_to_shared(block.block, of.kernels, file_of);
      by_map[shared ? std::string(kSharedMap) : of.kernels].push_back(block);
    }
  }
  // The map of a set without a file starts empty.
  for (const auto& [whose, blocks] : by_map) {
    if (!file_of(whose)) whole = with_map(whole, whose, make_map());
  }
  const ConfigTree written = with_blocks(whole, by_map);
  for (const auto& [whose, blocks] : by_map) {
    const std::string engine = whose == kSharedMap ? "every engine" : whose;
    write_text(path_of(whose), fmt::format("# Constants of the {} under {}.\n{}", name, engine,
                                           to_yaml(*constants_in(*written, whose))));
  }
  if (moved != nullptr) find_moved(whole, written, fitted, *moved);
}

ConfigTree with_gpu_constants(const ConfigTree& gpu, const std::vector<FittedSet>& fitted,
                              std::set<std::string>* moved) {
  ConfigTree whole = with_efficiency(gpu);
  // A path relative to `gpu` is not valid relative to the output, so constants are inlined.
  for (const std::string& whose : all_maps()) {
    if (const ConfigTree constants = constants_in(*gpu, whose)) whole = with_map(whole, whose, constants);
  }
  BlocksByMap by_map;
  for (const FittedSet& of : fitted) {
    std::vector<FittedConstants>& blocks = by_map[of.kernels];
    blocks.insert(blocks.end(), of.blocks.begin(), of.blocks.end());
  }
  ConfigTree written = with_blocks(whole, by_map);
  if (moved != nullptr) find_moved(whole, written, fitted, *moved);
  return written;
}

void write_gpu_file(const std::string& path, const ConfigTree& gpu) { write_text(path, to_yaml(*gpu)); }

}  // namespace roofcast::calibrate
