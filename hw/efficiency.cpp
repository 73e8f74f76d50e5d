#include "hw/efficiency.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <vector>

#include "base/config_library.h"
#include "base/root_sum.h"
#include "base/text.h"
#include "hw/ampere_kernels.h"
#include "hw/carry_over.h"
#include "hw/changed_gpu.h"
#include "hw/constants_file.h"
#include "hw/kernel_rules.h"

namespace roofcast {
namespace {

constexpr int kLongestChain = 4;  ///< of GPUs that take constants from each other; stops at a circle

/// Records what the blocks of one map inherit, if requested.
struct RecordedMap {
  std::string_view whose;  ///< the map
  BlocksBeneath beneath;
};

CalibratedGpu load(const ConfigTree& tree, const std::string& kernels, int chain, RecordedMap* record);

/// Another GPU whose constants partly apply to this one.
CalibratedGpu load_source(const std::string& name, const SourceLocation& location, const std::string& kernels,
                          int chain) {
  if (chain >= kLongestChain) throw ConfigError(location, "GPUs take their constants from each other in a circle");
  return load(load_named("hardware", name, location), kernels, chain + 1, nullptr);
}

Efficiency read_constants(const ConfigTree& value, Efficiency beneath, BlocksBeneath* record = nullptr) {
  return read_blocks(ConfigReader(constants_map(value), "the constants of a GPU"), std::move(beneath), record);
}

/// The constants of a GPU file, not yet merged.
struct Stated {
  std::map<std::string, ConfigTree, std::less<>> of_sets;  ///< by name of the kernel set
  ConfigTree shared;                                       ///< for all kernel sets
  std::string source, ampere;
  SourceLocation source_location, ampere_location;
  CarryOver how;
  bool pooled = false;                  ///< this GPU was measured too: the source's constants fill the gaps of its own
  std::optional<double> without_aiter;  ///< else the source's
};

Stated read_stated(const ConfigTree& tree, const GpuSpec& gpu) {
  ConfigReader in(tree, "an efficiency block");
  Stated out;
  for (const std::string& name : kernel_sets()) out.of_sets[name] = in.tree(name);
  out.shared = in.tree("shared");
  out.pooled = in.has("pooled_with");
  if (out.pooled && in.has("carried_over_from"))
    in.fail("pooled_with", "cannot be combined with 'carried_over_from': a GPU is either measured or not");
  const char* key = out.pooled ? "pooled_with" : "carried_over_from";
  out.source = in.text(key, "");
  out.source_location = in.location_of(key);
  out.ampere = in.text("ampere_kernels_from", "");
  out.ampere_location = in.location_of("ampere_kernels_from");
  out.how = {.another_generation = in.boolean("another_generation", false),
             .matrix_limit = in.number("matrix_limit", 1.0, Range{0.1, 1.0}),
             .memory_ecc = in.boolean("memory_ecc", true)};
  if (in.has("without_aiter")) out.without_aiter = in.number("without_aiter", 1.0, Range{0.05, 1.0});
  if (in.has("without_aiter") && traits_of(gpu.architecture).matrix_units != MatrixUnits::kMfma)
    in.fail("without_aiter", "needs an AMD GPU: 'architecture: cdna3' or 'cdna4'");
  in.finish();
  for (const char* beside :
       {"ampere_kernels_from", "matrix_limit", "memory_ecc", "another_generation", "without_aiter"}) {
    if (!in.has(beside)) continue;
    if (out.pooled) in.fail(beside, "cannot be combined with 'pooled_with': the GPU is measured");
    if (out.source.empty()) in.fail(beside, "needs 'carried_over_from' beside it");
  }
  return out;
}

/// The constants of another GPU, transferred to this one.
Efficiency carried(const Stated& stated, const GpuSpec& gpu, const std::string& kernels, int chain) {
  const CalibratedGpu measured = load_source(stated.source, stated.source_location, kernels, chain);
  CarryOver how = stated.how;
  how.same_kind = measured.spec.name == gpu.name && same_chip(measured.spec, gpu);
  Efficiency mine = carry_over(measured.efficiency, measured.spec, gpu, how);
  if (stated.pooled) mine.carried_over_from.clear();
  if (stated.ampere.empty()) return mine;
  CalibratedGpu second = load_source(stated.ampere, stated.ampere_location, kernels, chain);
  lend_to_fp8(second.efficiency);
  if (second.efficiency.kernels() == mine.kernels()) {
    take_ampere_kernels(mine, carry_over(second.efficiency, second.spec, gpu, how));
    mine.carried_over_from += ", " + second.spec.name;
  }
  return mine;
}

/// Records all blocks read so far: the next map's blocks that extend no other block inherit from them.
void record_all(const Efficiency& efficiency, BlocksBeneath& record) {
  for (const Kernel* kernel : kernels()) {
    for (std::size_t i = 0; i < kDtypeCount; ++i) {
      const auto dtype = static_cast<Dtype>(i);
      const ConstantsBlock& block = efficiency.block(*kernel, dtype);
      if (block) record[place_of(*kernel, dtype)] = block;
    }
  }
}

/// A kernel set and the sets that it extends, in order.
std::vector<const KernelRules*> bases_of(const KernelRules& rules) {
  std::vector<const KernelRules*> chain;
  for (const KernelRules* each = &rules; each != nullptr; each = each->base()) chain.insert(chain.begin(), each);
  return chain;
}

/// Constants in order of precedence: those of the requested kernel set, those of the sets that it extends, those shared
/// by all sets, those of another GPU. If there are none, those of an unrelated set apply, else priors. The file of an
/// unrelated set is read only when needed, to keep start-up fast.
Efficiency read_efficiency(const ConfigTree& tree, const GpuSpec& gpu, const std::string& kernels, int chain,
                           RecordedMap* record) {
  const Stated stated = read_stated(tree, gpu);
  const std::shared_ptr<const KernelRules> rules = kernel_rules(kernels);
  const std::vector<const KernelRules*> bases = bases_of(*rules);
  const auto map_of = [&](const KernelRules* set) { return map_named(stated.of_sets, set->name()); };
  const bool own = std::any_of(bases.begin(), bases.end(), [&](const KernelRules* set) { return map_of(set); });
  const bool any =
      std::any_of(stated.of_sets.begin(), stated.of_sets.end(), [](const auto& set) { return set.second; });
  if (by_roofline(gpu.architecture) && (any || stated.shared || !stated.source.empty()))
    throw ConfigError(tree->location,
                      "an architecture priced by a roofline, such as 'generic', has no kernels and takes "
                      "no constants: leave 'efficiency' out");
  const auto read_over = [&](Efficiency mine) {
    const auto read = [&](const ConfigTree& map, std::string_view whose) {
      BlocksBeneath* asked = record != nullptr && record->whose == whose ? &record->beneath : nullptr;
      if (asked != nullptr) record_all(mine, *asked);
      if (map) mine = read_constants(map, std::move(mine), asked);
    };
    read(stated.shared, kSharedMap);
    for (const KernelRules* set : bases) read(map_of(set), set->name());
    return mine;
  };
  if (!stated.source.empty()) {
    Efficiency mine = carried(stated, gpu, kernels, chain);
    mine.without_aiter = stated.without_aiter.value_or(mine.without_aiter);
    if (own) mine.follow(rules);  // its own constants are for these kernels
    return read_over(std::move(mine));
  }
  if (own || record != nullptr || !any) return read_over(Efficiency(rules));
  // The constants of other sets are not inherited; they only stand in.
  for (const auto& [name, map] : stated.of_sets) {
    if (!map || kernel_rules(name)->base() != nullptr) continue;
    Efficiency theirs(name);
    if (stated.shared) theirs = read_constants(stated.shared, std::move(theirs));
    return read_constants(map, std::move(theirs));
  }
  return read_over(Efficiency(rules));
}

CalibratedGpu load(const ConfigTree& document, const std::string& kernels, int chain, RecordedMap* record) {
  const ConfigTree tree = with_sibling(document);
  CalibratedGpu gpu{.spec = parse_gpu_spec(ConfigReader(tree, "a GPU")), .efficiency = Efficiency(kernels)};
  const ConfigTree* efficiency = tree->find("efficiency");
  if (efficiency && (*efficiency)->kind != ConfigNode::Kind::kNull) {
    gpu.efficiency = read_efficiency(*efficiency, gpu.spec, kernels, chain, record);
  }
  return gpu;
}

}  // namespace

Efficiency::Efficiency() : Efficiency(kDefaultKernels) {}
Efficiency::Efficiency(const std::string& kernels) : Efficiency(kernel_rules(kernels)) {}
Efficiency::Efficiency(std::shared_ptr<const KernelRules> rules) : rules_(std::move(rules)) {
  static const auto nothing = std::make_shared<const Blocks>(roofcast::kernels().size());
  blocks_ = nothing;
}

std::shared_ptr<const Efficiency> nothing_measured() {
  static const auto one = std::make_shared<const Efficiency>();
  return one;
}

const Efficiency& efficiency_of(const Machine& machine) {
  if (machine.efficiency != nullptr) return *machine.efficiency;
  static const auto nothing = nothing_measured();
  return *nothing;
}

/// Copy-on-write: blocks not shared with another copy are changed in place.
void Efficiency::put_block(const Kernel& kernel, Dtype dtype, ConstantsBlock block) {
  auto changed =
      blocks_.use_count() == 1 ? std::const_pointer_cast<Blocks>(blocks_) : std::make_shared<Blocks>(*blocks_);
  changed->at(kernel.id())[static_cast<std::size_t>(dtype)] = std::move(block);
  blocks_ = std::move(changed);
}

void Efficiency::take(const Kernel& kernel, const Efficiency& from) {
  auto changed = std::make_shared<Blocks>(*blocks_);
  changed->at(kernel.id()) = from.blocks_->at(kernel.id());
  blocks_ = std::move(changed);
}

const std::string& Efficiency::kernels() const { return rules_->name(); }

void Efficiency::at_release(std::string_view release) { rules_ = kernel_rules(rules_->name(), release); }

void Efficiency::borrow() {
  for (const Kernel* kernel : roofcast::kernels()) {  // lenders come before the kernels that borrow from them
    if (has(*kernel)) continue;
    for (const Kernel* lender : kernel->facts().lenders) {
      for (std::size_t i = 0; lender != nullptr && i < kDtypeCount; ++i) {
        const auto dtype = static_cast<Dtype>(i);
        const ConstantsBlock lent = block(*lender, dtype);
        if (lent && !block(*kernel, dtype)) put_block(*kernel, dtype, kernel->borrowed(*lender, lent));
      }
    }
  }
}

bool Efficiency::has(const Kernel& kernel) const {
  const auto& formats = blocks_->at(kernel.id());
  return std::any_of(formats.begin(), formats.end(), [](const ConstantsBlock& block) { return bool(block); });
}

double Evidence::discrepancy(bool other_kernel) const {
  return fit != nullptr ? root_sum_of_squares(fit->discrepancy_of(other_kernel), lent)
                        : std::max(kDiscrepancyOfPriors, lent);
}

Evidence evidence_of(const Efficiency& efficiency, const Kernel& kernel, Dtype dtype) {
  if (const ConstantsBlock& own = efficiency.block(kernel, dtype)) return {own.record, 0.0};
  const ConstantsBlock& wide = efficiency.block(kernel, Dtype::kBf16);
  return wide ? Evidence{wide.record, kernel.facts().unexplained.lent} : Evidence{};
}

CalibratedGpu load_gpu(const ConfigTree& tree, const std::string& kernels) {
  CalibratedGpu gpu = load(tree, kernels, 0, nullptr);
  gpu.efficiency.borrow();
  return gpu;
}

BlocksBeneath blocks_beneath(const ConfigTree& gpu, const std::string& kernels, std::string_view whose) {
  RecordedMap record{whose, {}};
  load(gpu, kernels, 0, &record);
  std::erase_if(record.beneath, [](const auto& block) { return !block.second; });
  return std::move(record.beneath);
}

}  // namespace roofcast
