#include "sim/plan/support.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>

#include <fmt/format.h>

#include "base/config_library.h"
#include "base/config_reader.h"
#include "sim/plan/rules.h"

namespace roofcast {
namespace {

/// Conditions beside those of sim/plan/rules.h.
constexpr std::array<std::string_view, 12> kOwnKeys{"method", "activations",      "kv_cache",  "tp",       "pp",
                                                    "ep",     "attention_copies", "not_model", "adapters", "media",
                                                    "beams",  "encoder"};

bool is_own(const std::string& key) { return std::find(kOwnKeys.begin(), kOwnKeys.end(), key) != kOwnKeys.end(); }

ConfigTree part_of(const ConfigTree& when, bool own) {
  auto part = std::make_shared<ConfigNode>(*when);
  std::erase_if(part->entries, [&](const ConfigNode::Entry& entry) { return is_own(entry.key) != own; });
  return part;
}

std::vector<SupportRule> read_rules(const std::string& name) {
  ConfigReader in(load_named("support", name, Mark{"support", 0, 0}), "a support table");
  in.ignore("name");
  std::vector<SupportRule> rules;
  for (const ConfigTree& item : in.list("rules")) {
    ConfigReader rule(item, "a rule");
    rules.push_back({.when = rule.tree("when"),
                     .runs = rule.text("runs", "no") == "unknown",
                     .reason = rule.text("reason"),
                     .source = rule.text("source")});
    rule.finish();
    (void)holds(part_of(rules.back().when, false), {});  // names the keys that are wrong
  }
  in.finish();
  return rules;
}

const std::vector<SupportRule>& rules_of(const std::string& engine) {
  static std::mutex mutex;
  static std::map<std::string, std::vector<SupportRule>> read;
  const std::lock_guard lock(mutex);
  const auto known = read.find(engine);
  if (known != read.end()) return known->second;
  const std::vector<std::string> names = names_of("support");
  const bool shipped = std::find(names.begin(), names.end(), engine) != names.end();
  return read[engine] = shipped ? read_rules(engine) : std::vector<SupportRule>{};
}

bool within(ConfigReader& in, std::string_view key, double value) {
  if (!in.has(key)) return true;
  const std::vector<double> range = in.numbers(key, kAtLeastZero);
  if (range.size() != 2) in.fail(key, "must be [least, most]");
  return value >= range[0] && value <= range[1];
}

bool among(ConfigReader& in, std::string_view key, std::string_view value) {
  if (!in.has(key)) return true;
  const std::vector<std::string> names = in.texts(key);
  return std::find(names.begin(), names.end(), value) != names.end();
}

bool has_beams(const Scenario& s) {
  if (!s.workload) return false;
  const auto beams = [](const WorkloadSpec& w) { return w.samples.beams && w.samples.several(); };
  return beams(*s.workload) || std::any_of(s.workload->clients.begin(), s.workload->clients.end(), beams);
}

bool own_conditions_hold(const ConfigTree& when, const Scenario& s, const Deployment& d, const DeploymentFacts& facts) {
  ConfigReader in(part_of(when, true), "a condition");
  const SpeculationSpec& drafts = s.serving.speculation;
  bool all = among(in, "method", drafts.active() ? name_of(drafts.method) : "none");
  all = among(in, "activations", name_of(d.precision.activations)) && all;
  all = among(in, "kv_cache", name_of(d.precision.kv_cache)) && all;
  all = within(in, "tp", d.sharding.tp) && all;
  all = within(in, "pp", d.sharding.pp) && all;
  all = within(in, "ep", d.sharding.ep) && all;
  all = within(in, "attention_copies", d.sharding.attention_dp) && all;
  if (in.has("adapters")) all = in.boolean("adapters") == d.adapters.has_value() && all;
  if (in.has("media")) all = in.boolean("media") == !d.media.empty() && all;
  if (in.has("encoder")) all = in.boolean("encoder") == d.model.encoder_only && all;
  if (in.has("beams")) all = in.boolean("beams") == has_beams(s) && all;
  if (in.has("not_model")) {
    const ConfigTree models = make_map({{"model", in.mark(), in.tree("not_model")}}, in.mark());
    all = !holds(models, facts) && all;
  }
  in.finish();
  return all;
}

void add_rules(std::vector<SupportRule>& out, const std::string& table, const Scenario& s, const Deployment& d) {
  const DeploymentFacts facts{.engine = d.engine.name,
                              .version = d.engine.version,
                              .client_date = "",
                              .gpu = &d.gpu,
                              .model = &d.model,
                              .sharding = &d.sharding,
                              .precision = &d.precision,
                              .disaggregated = s.serving.disaggregation.has_value()};
  for (const SupportRule& rule : rules_of(table)) {
    if (holds(part_of(rule.when, false), facts) && own_conditions_hold(rule.when, s, d, facts)) out.push_back(rule);
  }
}

}  // namespace

std::vector<SupportRule> support_rules(const Scenario& s) {
  std::vector<SupportRule> out;
  for (const auto& d : {s.deployment, s.serving.disaggregation ? s.serving.disaggregation->prefill : nullptr}) {
    if (!d) continue;
    add_rules(out, "all-engines", s, *d);
    add_rules(out, d->engine.name, s, *d);
  }
  return out;
}

std::vector<std::string> check_support(const Scenario& s, bool forced, const Mark& mark) {
  std::vector<std::string> doubts;
  if (s.deployment->fidelity == Fidelity::kIdeal) return doubts;  // the datasheet's arithmetic needs no engine
  for (const SupportRule& rule : support_rules(s)) {
    const std::string text = fmt::format("{} ({})", rule.reason, rule.source);
    if (!rule.runs && !forced)
      throw CannotRun(mark, "cannot run: " + text + "; --force-unsupported prices it all the same");
    const std::string doubt = (rule.runs ? "not known to run: " : "cannot run, priced all the same: ") + text;
    if (std::find(doubts.begin(), doubts.end(), doubt) == doubts.end()) doubts.push_back(doubt);
  }
  return doubts;
}

}  // namespace roofcast
