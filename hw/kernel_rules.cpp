#include "hw/kernel_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>
#include <utility>

#include "base/config_library.h"
#include "base/config_reader.h"
#include "base/config_release.h"
#include "base/error.h"
#include "base/text.h"
#include "hw/constants_file.h"
#include "hw/kernels/moe.h"
#include "hw/kernels/state.h"

namespace roofcast {
namespace {

constexpr std::array<std::string_view, kTraitCount> kTraitNames{
    "architecture", "matrix_units", "products_bits", "cache_bits", "head_dim",        "window", "group",
    "query_len",    "shared_reads", "always_split",  "weights",    "activation_bits", "gated",  "expert_ranks",
    "asked",        "layout",       "format",        "mixer",      "blocks_per_sm"};

Trait parse_trait(const std::string& name, const Mark& mark) {
  const auto found = std::find(kTraitNames.begin(), kTraitNames.end(), name);
  if (found != kTraitNames.end()) return static_cast<Trait>(found - kTraitNames.begin());
  throw ConfigError(mark,
                    unknown_name("condition", name, std::vector<std::string>(kTraitNames.begin(), kTraitNames.end())));
}

/// The index of a name in a list.
double parse_name(const char* kind, std::span<const std::string_view> names, const std::string& name,
                  const Mark& mark) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<double>(found - names.begin());
  throw ConfigError(mark, unknown_name(kind, name, std::vector<std::string>(names.begin(), names.end())));
}

/// A number, or the number of a name.
double parse_value(Trait trait, const ConfigTree& node) {
  if (trait == Trait::kArchitecture) return static_cast<double>(parse_architecture(node->scalar, node->mark));
  if (trait == Trait::kMatrixUnits) return static_cast<double>(parse_matrix_units(node->scalar, node->mark));
  if (trait == Trait::kWeights || trait == Trait::kFormat)
    return static_cast<double>(parse_dtype(node->scalar, node->mark));
  if (trait == Trait::kAsked) return static_cast<double>(parse_requested_experts(node->scalar, node->mark));
  if (trait == Trait::kLayout) return parse_name("layout of tokens", expert_layout_names(), node->scalar, node->mark);
  if (trait == Trait::kMixer) return parse_name("mixer", state_mixer_names(), node->scalar, node->mark);
  if (node->scalar == "true") return 1.0;
  if (node->scalar == "false") return 0.0;
  return ConfigReader(make_map({{std::string("value"), node->mark, node}})).number("value");
}

CallCondition parse_condition(const ConfigNode::Entry& entry) {
  CallCondition out{.trait = parse_trait(entry.key, entry.key_mark), .values = {}, .except = {}};
  if (entry.value->kind == ConfigNode::Kind::kList) {
    for (const ConfigTree& item : entry.value->items) out.values.push_back(parse_value(out.trait, item));
  } else if (entry.value->kind == ConfigNode::Kind::kMap) {
    ConfigReader in(entry.value, "the bounds of a condition");
    out.at_least = in.number("at_least", out.at_least);
    out.at_most = in.number("at_most", out.at_most);
    out.except = in.numbers("except");
    in.finish();
  } else {
    out.values.push_back(parse_value(out.trait, entry.value));
  }
  return out;
}

const Kernel& parse_kernel(KernelKind kind, const std::string& name, const Mark& mark) {
  std::vector<std::string> names;
  for (const Kernel* kernel : kernels()) {
    if (kernel->kind() != kind) continue;
    if (kernel->name() == name) return *kernel;
    names.emplace_back(kernel->name());
  }
  throw ConfigError(mark, unknown_name("kernel of " + std::string(name_of(kind)), name, names));
}

struct EngineField {
  std::string_view name;
  bool EngineKernels::*member;
};
constexpr std::array<EngineField, 8> kEngineFields{{
    {"rotary_in_attention", &EngineKernels::rotary_in_attention},
    {"attention_writes_nvfp4", &EngineKernels::attention_writes_nvfp4},
    {"launched_from_cpp", &EngineKernels::launched_from_cpp},
    {"exchange_by_mode", &EngineKernels::exchange_by_mode},
    {"flash_mla", &EngineKernels::flash_mla},
    {"flash_attention_2", &EngineKernels::flash_attention_2},
    {"fuses_by_own_all_reduce", &EngineKernels::fuses_by_own_all_reduce},
    {"copies_absorbed_weights", &EngineKernels::copies_absorbed_weights},
}};

KernelRule parse_rule(KernelKind kind, const ConfigTree& node) {
  ConfigReader in(node, "a rule");
  KernelRule rule;
  rule.kernel = &parse_kernel(kind, in.text("kernel"), in.mark_of("kernel"));
  rule.source = in.text("source");
  for (auto [bound, key] : {std::pair(&rule.since, "since"), std::pair(&rule.until, "until")}) {
    *bound = in.text(key, "");
    if (!bound->empty() && version_numbers(*bound).empty())
      in.fail(key, fmt::format("must be a version such as \"0.15.0\", got '{}'", *bound));
  }
  if (std::optional<ConfigReader> when = in.optional_child("when")) {
    for (const ConfigNode::Entry& entry : when->whole()->entries) rule.when.push_back(parse_condition(entry));
    when->ignore_rest();
  }
  in.finish();
  return rule;
}

}  // namespace

CallTraits::CallTraits(Architecture architecture) {
  (*this)[Trait::kArchitecture] = static_cast<double>(architecture);
  (*this)[Trait::kMatrixUnits] = static_cast<double>(traits_of(architecture).matrix_units);
}

bool CallCondition::holds(const CallTraits& call) const {
  const double value = call[trait];
  if (std::find(except.begin(), except.end(), value) != except.end()) return false;
  if (values.empty()) return value >= at_least && value <= at_most;
  return std::find(values.begin(), values.end(), value) != values.end();
}

bool KernelRule::applies(const CallTraits& call) const {
  return std::all_of(when.begin(), when.end(), [&](const CallCondition& condition) { return condition.holds(call); });
}

namespace {

std::shared_ptr<const KernelRules> read_rules(const std::string& name, std::string_view release, const Mark& named_at,
                                              int chain) {
  static std::recursive_mutex mutex;  // recursive, because a file may extend another
  static std::map<std::pair<std::string, std::string>, std::shared_ptr<const KernelRules>> known;
  const std::vector<std::string>& sets = kernel_sets();
  if (sets.empty())
    throw ConfigError(named_at, fmt::format("unknown set of kernels '{}': {}", name, no_specs("kernels")));
  if (std::find(sets.begin(), sets.end(), name) == sets.end())
    throw ConfigError(named_at, unknown_name("set of kernels", name, sets));
  const std::lock_guard lock(mutex);
  std::shared_ptr<const KernelRules>& rules = known[{name, std::string(release)}];
  if (!rules) rules = std::make_shared<const KernelRules>(load_named("kernels", name, named_at), name, release, chain);
  return rules;
}

}  // namespace

KernelRules::KernelRules(const ConfigTree& document, std::string set, std::string_view release, int chain)
    : name_(std::move(set)) {
  constexpr int kLongestChain = 4;  ///< of files that extend each other; stops at a circle
  ConfigReader in(document, "rules of kernels");
  if (std::find(kEfficiencyKeys.begin(), kEfficiencyKeys.end(), name_) != kEfficiencyKeys.end())
    throw ConfigError(in.mark(),
                      fmt::format("'{}' is a key of a GPU's 'efficiency': give the set another name", name_));
  if (in.text("name", name_) != name_)
    in.fail("name", fmt::format("must be '{}', the name of the file, or left out", name_));
  const std::string extended = in.text("extends", "");
  if (!extended.empty()) {
    if (chain >= kLongestChain) in.fail("extends", "sets of kernels extend each other in a circle");
    base_ = read_rules(extended, "", in.mark_of("extends"), chain + 1);
  }
  decode_rows_ = in.number("decode_rows", base_ ? base_->decode_rows_ : 0.0, kAtLeastZero);
  if (base_) engine_ = base_->engine_;
  if (std::optional<ConfigReader> engine = in.optional_child("engine")) {
    for (const EngineField& field : kEngineFields)
      engine_.*field.member = engine->boolean(field.name, engine_.*field.member);
    engine->finish();
  }
  const auto holds = [&](const KernelRule& rule) {
    return release.empty() ? rule.until.empty() : in_force(release, rule.since, rule.until);
  };
  for (std::size_t i = 1; i < kKernelKindCount; ++i) {  // 0 is kOther
    const auto kind = static_cast<KernelKind>(i);
    const std::string_view key = name_of(kind);
    std::vector<KernelRule> rules;
    for (const ConfigTree& node : in.list(key)) rules.push_back(parse_rule(kind, node));
    if (base_) rules.insert(rules.end(), base_->rules_[i].begin(), base_->rules_[i].end());
    if (rules.empty()) in.fail(key, "needs at least one rule");
    const KernelRule& last = rules.back();
    if (!last.when.empty() || !last.since.empty() || !last.until.empty())
      in.fail(key, "must end with a rule without 'when', 'since' and 'until'");
    std::copy_if(rules.begin(), rules.end(), std::back_inserter(rules_[i]), holds);
  }
  in.finish();
  for (const ArchitectureTraits& row : architectures()) {
    auto& of_one = products_.emplace_back();
    CallTraits call(row.architecture);
    for (std::size_t i = 0; i < kDtypeCount; ++i) {
      call[Trait::kFormat] = static_cast<double>(i);
      of_one[i] = &pick(KernelKind::kGemm, call);
    }
  }
}

const Kernel& KernelRules::pick(KernelKind kind, const CallTraits& call) const {
  for (const KernelRule& rule : of(kind)) {
    if (rule.applies(call)) return *rule.kernel;
  }
  fail_check("rule", __FILE__, __LINE__, "the last rule has no conditions");
}

std::shared_ptr<const KernelRules> kernel_rules(const std::string& name, std::string_view release) {
  return read_rules(name, release, Mark{"kernels", 0, 0}, 0);
}

const std::vector<std::string>& kernel_sets() {
  static const std::vector<std::string> names = names_of("kernels");
  return names;
}

std::vector<std::shared_ptr<const KernelRules>> all_kernel_rules() {
  std::vector<std::shared_ptr<const KernelRules>> all;
  for (const std::string& name : kernel_sets()) all.push_back(kernel_rules(name));
  std::stable_partition(all.begin(), all.end(), [](const auto& rules) { return rules->base() == nullptr; });
  return all;
}

}  // namespace roofcast
