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

namespace roofcast {
namespace {

using Trait = std::variant<Architecture CallTraits::*, MatrixUnits CallTraits::*, Dtype CallTraits::*,
                           RequestedExperts CallTraits::*, ExpertLayout CallTraits::*, StateMixer::Kind CallTraits::*,
                           bool CallTraits::*, double CallTraits::*>;

struct NamedTrait {
  std::string_view name;
  Trait trait;
};
constexpr std::array<NamedTrait, 19> kTraits{{
    {"architecture", &CallTraits::architecture},
    {"matrix_units", &CallTraits::matrix_units},
    {"products_bits", &CallTraits::products_bits},
    {"cache_bits", &CallTraits::cache_bits},
    {"head_dim", &CallTraits::head_dim},
    {"window", &CallTraits::window},
    {"group", &CallTraits::group},
    {"query_len", &CallTraits::query_len},
    {"shared_reads", &CallTraits::shared_reads},
    {"always_split", &CallTraits::always_split},
    {"weights", &CallTraits::weights},
    {"activation_bits", &CallTraits::activation_bits},
    {"gated", &CallTraits::gated},
    {"expert_ranks", &CallTraits::expert_ranks},
    {"asked", &CallTraits::asked},
    {"layout", &CallTraits::layout},
    {"format", &CallTraits::format},
    {"mixer", &CallTraits::mixer},
    {"blocks_per_sm", &CallTraits::blocks_per_sm},
}};

void parse(const ConfigNode& node, Architecture& out) { out = parse_architecture(node.scalar, node.location); }
void parse(const ConfigNode& node, MatrixUnits& out) { out = parse_matrix_units(node.scalar, node.location); }
void parse(const ConfigNode& node, Dtype& out) { out = parse_dtype(node.scalar, node.location); }
void parse(const ConfigNode& node, RequestedExperts& out) { out = parse_requested_experts(node.scalar, node.location); }
void parse(const ConfigNode& node, ExpertLayout& out) { out = parse_expert_layout(node.scalar, node.location); }
void parse(const ConfigNode& node, StateMixer::Kind& out) { out = parse_state_mixer(node.scalar, node.location); }

template <class E>
CallCondition condition_on(E CallTraits::*trait, const ConfigNode::Entry& entry) {
  OneOf<E> out{trait, {}};
  const ConfigNode& node = *entry.value;
  if (node.kind == ConfigNode::Kind::kMap)
    throw ConfigError(node.location, fmt::format("'{}' must be a name or a list of names", entry.key));
  if (node.kind != ConfigNode::Kind::kList) parse(node, out.values.emplace_back());
  for (const ConfigTree& item : node.items) parse(*item, out.values.emplace_back());
  return out;
}

CallCondition condition_on(bool CallTraits::*trait, const ConfigNode::Entry& entry) {
  return IsSwitched{trait, ConfigReader(make_map({entry})).boolean(entry.key)};
}

CallCondition condition_on(double CallTraits::*trait, const ConfigNode::Entry& entry) {
  IsWithin out{.trait = trait};
  ConfigReader in(make_map({entry}));
  if (entry.value->kind == ConfigNode::Kind::kList) {
    out.values = in.numbers(entry.key);
  } else if (entry.value->kind == ConfigNode::Kind::kMap) {
    ConfigReader bounds(entry.value, "the bounds of a condition");
    out.at_least = bounds.number("at_least", out.at_least);
    out.at_most = bounds.number("at_most", out.at_most);
    out.except = bounds.numbers("except");
    bounds.finish();
  } else {
    out.values.push_back(in.number(entry.key));
  }
  return out;
}

CallCondition parse_condition(const ConfigNode::Entry& entry) {
  std::vector<std::string> names;
  for (const NamedTrait& row : kTraits) {
    if (row.name == entry.key && entry.value->kind == ConfigNode::Kind::kList && entry.value->items.empty())
      throw ConfigError(entry.value->location, fmt::format("'{}' lists nothing", entry.key));
    if (row.name == entry.key) return std::visit([&](auto trait) { return condition_on(trait, entry); }, row.trait);
    names.emplace_back(row.name);
  }
  throw ConfigError(entry.key_location, unknown_name("condition", entry.key, names));
}

const Kernel& parse_kernel(KernelKind kind, const std::string& name, const SourceLocation& location) {
  std::vector<std::string> names;
  for (const Kernel* kernel : kernels()) {
    if (kernel->kind() != kind) continue;
    if (kernel->name() == name) return *kernel;
    names.emplace_back(kernel->name());
  }
  throw ConfigError(location, unknown_name("kernel of " + std::string(name_of(kind)), name, names));
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
  rule.kernel = &parse_kernel(kind, in.text("kernel"), in.location_of("kernel"));
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

CallTraits::CallTraits(Architecture gpu) : architecture(gpu), matrix_units(traits_of(gpu).matrix_units) {}

bool IsWithin::holds(const CallTraits& call) const {
  const double value = call.*trait;
  if (std::find(except.begin(), except.end(), value) != except.end()) return false;
  if (values.empty()) return value >= at_least && value <= at_most;
  return std::find(values.begin(), values.end(), value) != values.end();
}

bool KernelRule::applies(const CallTraits& call) const {
  return std::all_of(when.begin(), when.end(), [&](const CallCondition& condition) {
    return std::visit([&](const auto& one) { return one.holds(call); }, condition);
  });
}

namespace {

std::shared_ptr<const KernelRules> read_rules(const std::string& name, std::string_view release,
                                              const SourceLocation& named_at, int chain) {
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
    throw ConfigError(in.location(),
                      fmt::format("'{}' is a key of a GPU's 'efficiency': give the set another name", name_));
  if (in.text("name", name_) != name_)
    in.fail("name", fmt::format("must be '{}', the name of the file, or left out", name_));
  const std::string extended = in.text("extends", "");
  if (!extended.empty()) {
    if (chain >= kLongestChain) in.fail("extends", "sets of kernels extend each other in a circle");
    base_ = read_rules(extended, "", in.location_of("extends"), chain + 1);
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
      call.format = static_cast<Dtype>(i);
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
  return read_rules(name, release, SourceLocation{"kernels", 0, 0}, 0);
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
