#include "hw/constants_file.h"

#include <array>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/config_library.h"
#include "base/text.h"
#include "hw/kernel.h"
#include "hw/kernel_rules.h"

namespace roofcast {
namespace {

constexpr std::string_view kExtends = "extends";

/// `own` if `stated` has the constant, else `beneath`.
ConstantsBlock laid_over(const Kernel& kernel, const ConfigNode& stated, const ConstantsBlock& own,
                         const ConstantsBlock& beneath) {
  const std::vector<FieldFacts> fields = kernel.fields();
  std::vector<double> values = kernel.numbers(beneath);
  const std::vector<double> mine = kernel.numbers(own);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (stated.find(fields[i].name) != nullptr) values[i] = mine[i];
  }
  return kernel.from_numbers(values, stated.find("fit") != nullptr ? *own.record : *beneath.record);
}

/// Reads one map of blocks. A block that another one extends is read first.
class BlocksReader {
 public:
  BlocksReader(ConfigReader in, Efficiency& efficiency, BlocksBeneath* record)
      : in_(std::move(in)), efficiency_(efficiency), record_(record), read_(kernels().size()) {}

  void read() {
    for (const Kernel* kernel : kernels()) {
      const std::optional<ConfigReader> formats = in_.optional_child(kernel->name());
      if (!formats) continue;
      std::array<bool, kDtypeCount> met{};
      for (const ConfigNode::Entry& entry : formats->whole()->entries) {
        const Dtype dtype = parse_dtype(entry.key, entry.key_location);
        bool& again = met[static_cast<std::size_t>(dtype)];
        if (again) throw ConfigError(entry.key_location, "'" + entry.key + "' repeats a format");
        again = true;
        read_block(*kernel, dtype, entry, 0);
      }
    }
    in_.finish();
  }

 private:
  void read_block(const Kernel& kernel, Dtype dtype, const ConfigNode::Entry& entry, int depth) {
    bool& done = read_[kernel.id()][static_cast<std::size_t>(dtype)];
    if (done) return;
    const ConstantsBlock beneath = extended(kernel, *entry.value, depth);
    const ConstantsBlock start = beneath ? beneath : efficiency_.block(kernel, dtype);
    ConfigReader own(entry.value, "'" + entry.key + "'");
    own.ignore(kExtends);
    ConstantsBlock block = kernel.read(std::move(own));
    if (start) block = laid_over(kernel, *entry.value, block, start);
    efficiency_.put_block(kernel, dtype, std::move(block));
    if (record_ != nullptr) (*record_)[place_of(kernel, dtype)] = start;
    done = true;
  }

  /// The block that this one extends, converted to this kernel; null if there is none.
  ConstantsBlock extended(const Kernel& kernel, const ConfigNode& block, int depth) {
    constexpr int kLongestChain = 4;  ///< of blocks that extend each other; stops at a circle
    const ConfigTree* named = block.find(kExtends);
    if (named == nullptr) return {};
    if ((*named)->kind != ConfigNode::Kind::kScalar)
      throw ConfigError((*named)->location, "'extends' must name a format, or KERNEL.FORMAT");
    if (depth >= kLongestChain) throw ConfigError((*named)->location, "blocks extend each other in a circle");
    const std::string& text = (*named)->scalar;
    const std::size_t dot = text.find('.');
    const Kernel* base = dot == std::string::npos ? &kernel : kernel_at(text);
    if (base == nullptr) {
      std::vector<std::string> valid;
      for (const Kernel* each : kernels()) valid.emplace_back(each->name());
      throw ConfigError((*named)->location, "'extends': " + unknown_name("kernel", text.substr(0, dot), valid));
    }
    const Dtype dtype = parse_dtype(dot == std::string::npos ? text : text.substr(dot + 1), (*named)->location);
    if (const ConfigTree* formats = in_.whole()->find(base->name()); formats != nullptr && *formats) {
      for (const ConfigNode::Entry& entry : (*formats)->entries) {
        if (parse_dtype(entry.key, entry.key_location) == dtype) read_block(*base, dtype, entry, depth + 1);
      }
    }
    const ConstantsBlock found = efficiency_.block(*base, dtype);
    if (!found) throw ConfigError((*named)->location, "'extends': no constants of " + place_of(*base, dtype));
    return base == &kernel ? found : kernel.borrowed(*base, found);
  }

  ConfigReader in_;
  Efficiency& efficiency_;
  BlocksBeneath* record_;
  std::vector<std::array<bool, kDtypeCount>> read_;  ///< by Kernel::id()
};

}  // namespace

std::string place_of(const Kernel& kernel, Dtype dtype) {
  return std::string(kernel.name()) + "." + std::string(name_of(dtype));
}

const Kernel* kernel_at(std::string_view place) {
  for (const Kernel* kernel : kernels()) {
    if (kernel->name() == place.substr(0, place.find('.'))) return kernel;
  }
  return nullptr;
}

ConstantsBlock block_at(const Efficiency& efficiency, std::string_view place) {
  const std::size_t dot = place.find('.');
  const Kernel* kernel = kernel_at(place);
  if (kernel == nullptr || dot >= place.size()) return {};
  for (std::size_t i = 0; i < kDtypeCount; ++i) {
    if (dtype_names()[i] == place.substr(dot + 1)) return efficiency.block(*kernel, static_cast<Dtype>(i));
  }
  return {};
}

Efficiency read_blocks(ConfigReader in, Efficiency efficiency, BlocksBeneath* record) {
  BlocksReader(std::move(in), efficiency, record).read();
  return efficiency;
}

ConfigTree constants_map(const ConfigTree& value) {
  if (value->kind == ConfigNode::Kind::kMap) return value;
  if (value->kind != ConfigNode::Kind::kScalar || value->scalar.empty()) {
    throw ConfigError(value->location, "must be a map of constants, or the name of a file with them");
  }
  const std::filesystem::path folder = std::filesystem::path(value->location.path.str()).parent_path();
  const std::filesystem::path path = (folder.empty() ? "." : folder) / value->scalar;
  if (!std::filesystem::is_regular_file(path)) {
    throw ConfigError(value->location, "no file '" + path.string() + "' with the constants");
  }
  return load_document("constants", path.string(), value->location);
}

ConfigTree block_in(const ConfigTree& map, std::string_view place) {
  if (!map || map->kind != ConfigNode::Kind::kMap) return nullptr;
  const std::size_t dot = place.find('.');
  const ConfigTree* formats = map->find(place.substr(0, dot));
  const ConfigTree* block =
      formats && *formats && dot < place.size() ? (*formats)->find(place.substr(dot + 1)) : nullptr;
  return block ? *block : nullptr;
}

bool goes_to_shared(std::string_view place, const std::string& kernels,
                    const std::function<ConfigTree(std::string_view whose)>& map_of) {
  if (!block_in(map_of(kSharedMap), place)) return false;
  const std::shared_ptr<const KernelRules> rules = kernel_rules(kernels);
  for (const KernelRules* set = rules.get(); set != nullptr; set = set->base()) {
    if (block_in(map_of(set->name()), place)) return false;
  }
  return true;
}

BlocksBeneath blocks_beneath(const ConfigTree& gpu, const std::string& kernels) {
  BlocksBeneath beneath = blocks_beneath(gpu, kernels, kernels);
  if (!constants_in(*gpu, kSharedMap)) return beneath;
  std::map<std::string, ConfigTree, std::less<>> maps{{std::string(kSharedMap), constants_in(*gpu, kSharedMap)}};
  for (const std::string& name : kernel_sets()) maps[name] = constants_in(*gpu, name);
  const BlocksBeneath beneath_shared = blocks_beneath(gpu, kernels, kSharedMap);
  const auto map_of = [&](std::string_view whose) { return map_named(maps, whose); };
  for (auto block = beneath.begin(); block != beneath.end();) {
    if (!goes_to_shared(block->first, kernels, map_of)) {
      ++block;
    } else if (const auto found = beneath_shared.find(block->first); found != beneath_shared.end()) {
      block++->second = found->second;
    } else {
      block = beneath.erase(block);
    }
  }
  return beneath;
}

ConfigTree constants_in(const ConfigNode& gpu, std::string_view whose) {
  const ConfigTree* efficiency = gpu.find("efficiency");
  const ConfigTree* found = efficiency != nullptr ? (*efficiency)->find(whose) : nullptr;
  return found != nullptr ? constants_map(*found) : nullptr;
}

}  // namespace roofcast
