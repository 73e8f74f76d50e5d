#include "sim/plan/client.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "base/config_library.h"
#include "base/config_reader.h"
#include "base/config_release.h"
#include "base/text.h"

namespace roofcast {
namespace {

/// A document of configs/clients.
struct Client {
  std::string name;
  std::vector<std::string> also, engines;  ///< `engines`: the only ones that it can load; empty: any
  bool closed_loop = false, open_loop = false, all_at_once = false;  ///< loads that it sends
  int requests_per_user = 0, warmup_per_user = 0;                    ///< of a closed loop
  int requests = 0, warmup = 0;                                      ///< for any load; 0: not stated
  std::vector<std::pair<double, std::string>> requests_by_tokens;  ///< (maximum tokens per request, number of requests)
  std::string duration;                                            ///< of an open load
  double output_cv = 0;                                            ///< of lognormal lengths; 0: constant
  ConfigTree prompt_tokens;                                        ///< default of the workload
  double length_ratio = 1;                                         ///< lengths lie in [ratio L, L]
  ConfigTree drawn_as, distinct_prompts, think_time, send_delay;   ///< keys of a workload
  struct Change {
    ConfigTree when, workload;
  };
  std::vector<Change> changes;
};

Client parse_client_document(const ConfigTree& tree) {
  static constexpr std::array<std::string_view, 3> kLoads{"closed_loop", "open_loop", "all_at_once"};
  ConfigReader in(tree, "a client");
  Client c;
  c.name = in.text("name");
  c.also = in.texts("also");
  c.engines = in.texts("engines");
  for (std::string_view key : {"help", "source"}) in.ignore(key);
  for (const std::string& load : in.texts("loads")) {
    const auto at = std::find(kLoads.begin(), kLoads.end(), load);
    if (at == kLoads.end())
      in.fail("loads", unknown_name("load", load, std::vector<std::string>(kLoads.begin(), kLoads.end())));
    (at == kLoads.begin() ? c.closed_loop : at == kLoads.begin() + 1 ? c.open_loop : c.all_at_once) = true;
  }
  const auto whole = [&](std::string_view key) { return static_cast<int>(in.integer(key, 0, {0.0, 1e9})); };
  c.requests_per_user = whole("requests_per_user");
  c.warmup_per_user = whole("warmup_per_user");
  c.requests = whole("requests");
  c.warmup = whole("warmup_requests");
  for (const ConfigTree& item : in.list("requests_by_tokens")) {
    ConfigReader step(item, "requests by tokens");
    c.requests_by_tokens.emplace_back(step.number("up_to", 1e9, kPositive),
                                      std::to_string(step.integer("requests", kAtLeastOne)));
    step.finish();
  }
  c.duration = in.text("duration", "");
  c.length_ratio = in.number("length_ratio", 1.0, kFraction);
  c.output_cv = in.number("output_cv", 0.0, {0.0, 10.0});
  c.prompt_tokens = in.tree("prompt_tokens");
  c.drawn_as = in.tree("drawn_as");
  c.distinct_prompts = in.tree("distinct_prompts");
  c.think_time = in.tree("think_time");
  c.send_delay = in.tree("send_delay");
  for (const ConfigTree& item : in.list("changes")) {
    ConfigReader change(item, "a change of a client");
    c.changes.push_back({change.tree("when"), change.tree("workload")});
    change.ignore("source");
    change.finish();
    (void)holds(c.changes.back().when, {});
  }
  in.finish();
  return c;
}

std::string loads_of(const Client& c) {
  std::vector<std::string> words;
  if (c.closed_loop) words.emplace_back("'concurrency'");
  if (c.open_loop) words.emplace_back("'rate'");
  if (c.all_at_once) words.emplace_back("all requests at once");
  return join(words, " or ");
}

/// The maximum length of a scalar or a distribution.
double longest_of(const ConfigTree* law) {
  if (law == nullptr || !*law) return 0;
  if ((*law)->kind == ConfigNode::Kind::kScalar) return std::strtod((*law)->scalar.c_str(), nullptr);
  for (const char* key : {"max", "value"}) {
    if (const ConfigTree* value = (*law)->find(key)) return std::strtod((*value)->scalar.c_str(), nullptr);
  }
  return 0;
}

/// Builds the plain workload key by key; the user's own keys are kept.
class Expansion {
 public:
  Expansion(const ConfigTree& workload, const Client& client, const DeploymentFacts& facts)
      : workload_(workload), client_(client), facts_(facts) {}

  ConfigTree run() {
    for (const ConfigNode::Entry& entry : workload_->entries) {
      const bool ours = entry.key == "client" || entry.key == "client_date" || entry.key == "concurrency" ||
                        entry.key == "rate" || entry.key == "send_delay";
      if (!ours) entries_.push_back(entry);
    }
    for (const Client::Change& change : client_.changes) {
      if (!change.workload || !holds(change.when, facts_)) continue;
      for (const ConfigNode::Entry& entry : change.workload->entries) change_to(entry);
    }
    arrivals();
    lengths();
    extent();
    for (const auto& [key, value] :
         {std::pair{"drawn_as", client_.drawn_as}, {"distinct_prompts", client_.distinct_prompts}}) {
      if (value) put(key, value);
    }
    return make_map(std::move(entries_), workload_->location);
  }

 private:
  bool has(std::string_view key) const {
    return std::any_of(entries_.begin(), entries_.end(), [&](const auto& entry) { return entry.key == key; });
  }
  void put(const char* key, ConfigTree value) {
    if (!has(key)) entries_.push_back({key, workload_->location, std::move(value)});
  }
  void put(const char* key, const std::string& text) { put(key, make_scalar(text, workload_->location)); }
  /// A change by the client overrides a plain number of tokens, but nothing else that the user wrote.
  void change_to(const ConfigNode::Entry& change) {
    for (ConfigNode::Entry& entry : entries_) {
      if (entry.key != change.key) continue;
      if (entry.value && entry.value->kind == ConfigNode::Kind::kScalar && entry.key.ends_with("_tokens"))
        entry.value = change.value;
      return;
    }
    put(change.key.c_str(), change.value);
  }
  const ConfigTree* find(const char* key) const { return workload_->find(key); }

  [[noreturn]] void refuse(const ConfigTree& value, const char* what) const {
    throw ConfigError(value->location,
                      fmt::format("client '{}' does not send {} (it takes {})", client_.name, what, loads_of(client_)));
  }

  void arrivals() {
    const ConfigTree *concurrency = find("concurrency"), *rate = find("rate"), *delay = find("send_delay");
    const SourceLocation& location = workload_->location;
    if (concurrency != nullptr && rate != nullptr)
      throw ConfigError((*rate)->location, "'concurrency' and 'rate' are two kinds of load; give one");
    if (concurrency != nullptr && !client_.closed_loop) refuse(*concurrency, "a fixed number of requests in flight");
    if (rate != nullptr && !client_.open_loop) refuse(*rate, "requests at a rate");
    if (has("arrivals")) {
      const ConfigTree* load = concurrency != nullptr ? concurrency : rate != nullptr ? rate : delay;
      if (load != nullptr) throw ConfigError((*load)->location, "'arrivals' says how requests arrive; leave this out");
      return;
    }
    if (concurrency != nullptr) {
      ConfigReader in(workload_, "a workload");
      users_ = static_cast<double>(in.integer("concurrency", Range{1.0, 1e6}));
      std::vector<ConfigNode::Entry> loop{{"process", location, make_scalar("closed_loop", location)},
                                          {"concurrency", location, *concurrency}};
      if (client_.think_time) loop.push_back({"think_time", location, client_.think_time});
      delay_sends(loop);
      put("arrivals", make_map(std::move(loop), location));
    } else if (rate != nullptr && (*rate)->scalar != "inf") {
      std::vector<ConfigNode::Entry> open{{"process", location, make_scalar("poisson", location)},
                                          {"rate", location, *rate}};
      if (delay != nullptr) open.push_back({"send_delay", (*delay)->location, *delay});  // refused where it is read
      put("arrivals", make_map(std::move(open), location));
    } else if (rate != nullptr || client_.all_at_once) {
      std::vector<ConfigNode::Entry> once{{"process", location, make_scalar("all_at_once", location)}};
      delay_sends(once);
      put("arrivals", make_map(std::move(once), location));
    } else {
      throw ConfigError(location, fmt::format("client '{}' needs {}", client_.name, loads_of(client_)));
    }
  }

  void delay_sends(std::vector<ConfigNode::Entry>& arrivals) const {
    const ConfigTree* own = find("send_delay");
    if (own != nullptr || client_.send_delay)
      arrivals.push_back({"send_delay", workload_->location, own != nullptr ? *own : client_.send_delay});
  }

  /// Takes a plain number of output tokens as their mean.
  void spread_outputs() {
    for (ConfigNode::Entry& entry : entries_) {
      const bool plain = entry.value && entry.value->kind == ConfigNode::Kind::kScalar;
      if (client_.output_cv <= 0 || entry.key != "output_tokens" || !plain) continue;
      ConfigReader in(workload_, "a workload");
      const auto mean = in.integer(entry.key, Range{1.0, 1e6});
      const SourceLocation& location = entry.value->location;
      entry.value = make_map({{"distribution", location, make_scalar("lognormal", location)},
                              {"mean", location, make_scalar(std::to_string(mean), location)},
                              {"cv", location, make_scalar(fmt::format("{}", client_.output_cv), location)},
                              {"min", location, make_scalar("1", location)},
                              {"max", location, make_scalar(std::to_string(8 * mean), location)}},
                             location);
    }
  }

  void lengths() {
    if (client_.prompt_tokens) put("prompt_tokens", client_.prompt_tokens);
    spread_outputs();
    if (client_.length_ratio >= 1) return;
    for (ConfigNode::Entry& entry : entries_) {
      if (entry.key != "prompt_tokens" && entry.key != "output_tokens") continue;
      if (!entry.value || entry.value->kind != ConfigNode::Kind::kScalar) continue;
      ConfigReader in(workload_, "a workload");
      const auto most = in.integer(entry.key, Range{1.0, 1e7});
      const auto least =
          std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(most) * client_.length_ratio));
      const SourceLocation& location = entry.value->location;
      entry.value = make_map({{"distribution", location, make_scalar("uniform", location)},
                              {"min", location, make_scalar(std::to_string(least), location)},
                              {"max", location, make_scalar(std::to_string(most), location)}},
                             location);
    }
  }

  void extent() {
    if (!has("requests") && !has("duration")) {
      if (users_ > 0 && client_.requests_per_user > 0)
        put("requests", fmt::format("{:.0f}", users_ * client_.requests_per_user));
      else if (!client_.requests_by_tokens.empty())
        put("requests", by_tokens());
      else if (client_.requests > 0)
        put("requests", std::to_string(client_.requests));
      if (!client_.duration.empty()) put("duration", client_.duration);
    }
    if (users_ > 0 && client_.warmup_per_user > 0)
      put("warmup_requests", fmt::format("{:.0f}", users_ * client_.warmup_per_user));
    else if (client_.warmup > 0)
      put("warmup_requests", std::to_string(client_.warmup));
  }

  std::string by_tokens() const {
    const double tokens = longest_of(find("prompt_tokens")) + longest_of(find("output_tokens"));
    for (const auto& [up_to, requests] : client_.requests_by_tokens) {
      if (tokens <= up_to) return requests;
    }
    return client_.requests_by_tokens.back().second;
  }

  const ConfigTree& workload_;
  const Client& client_;
  const DeploymentFacts& facts_;
  std::vector<ConfigNode::Entry> entries_;
  double users_ = 0;
};

}  // namespace

void check_client(const ConfigTree& document) { (void)parse_client_document(document); }

std::string find_client(const std::string& name, const SourceLocation& origin) {
  const std::vector<std::string> names = names_of("clients");
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    for (const std::string& each : names) {
      const Client client = parse_client_document(load_named("clients", each, origin));
      if (std::find(client.also.begin(), client.also.end(), name) != client.also.end()) return each;
    }
  }
  return name;
}

bool changes_by_day(const std::string& name, const SourceLocation& origin) {
  const Client client = parse_client_document(load_named("clients", find_client(name, origin), origin));
  return std::any_of(client.changes.begin(), client.changes.end(),
                     [](const Client::Change& change) { return asks_for_day(change.when); });
}

ConfigTree expand_client(const ConfigTree& workload, const DeploymentFacts& facts) {
  const ConfigTree* name = workload && workload->kind == ConfigNode::Kind::kMap ? workload->find("client") : nullptr;
  if (name == nullptr || !*name) return workload;
  const std::string client_name = find_client((*name)->scalar, (*name)->location);
  const Client client = parse_client_document(load_named("clients", client_name, (*name)->location));
  if (!client.engines.empty() && !facts.engine.empty() &&
      std::find(client.engines.begin(), client.engines.end(), facts.engine) == client.engines.end())
    throw ConfigError((*name)->location, fmt::format("client '{}' sends its load to {} alone, not to {}", client_name,
                                                     join(client.engines, ", "), facts.engine));
  DeploymentFacts dated = facts;
  if (const ConfigTree* day = workload->find("client_date"); day != nullptr && *day) {
    if (!is_date((*day)->scalar)) throw ConfigError((*day)->location, "'client_date' must be a day as 2025-12-31");
    dated.client_date = (*day)->scalar;
  }
  dated.prompt_tokens = longest_of(workload->find("prompt_tokens"));
  dated.output_tokens = longest_of(workload->find("output_tokens"));
  return Expansion(workload, client, dated).run();
}

}  // namespace roofcast
