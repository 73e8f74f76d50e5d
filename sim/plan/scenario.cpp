#include "sim/plan/scenario.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/config_library.h"
#include "base/text.h"
#include "sim/model/recipes.h"
#include "sim/plan/disaggregation.h"
#include "sim/plan/speculation.h"

namespace roofcast {
namespace {

int count_of(ConfigReader& in, std::string_view key, int otherwise) {
  return static_cast<int>(in.integer(key, otherwise, {1, 65536}));
}

Sharding parse_parallelism(std::optional<ConfigReader> in, int& replicas, ShardingMarks& marks) {
  Sharding s;
  if (!in) return s;
  marks.tp = in->mark_of("tp");
  marks.pp = in->mark_of("pp");
  marks.attention_dp = in->mark_of("attention_dp");
  marks.ep = in->mark_of("ep");
  s.tp = count_of(*in, "tp", 1);
  s.pp = count_of(*in, "pp", 1);
  s.attention_dp = count_of(*in, "attention_dp", 1);
  s.ep = count_of(*in, "ep", 1);
  if (in->has("dp") && in->has("replicas")) in->fail("dp", "'dp' and 'replicas' are two names of one thing; give one");
  replicas = in->has("dp") ? count_of(*in, "dp", 1) : count_of(*in, "replicas", 1);
  in->finish();
  return s;
}

Routing parse_routing(std::optional<ConfigReader> in) {
  static constexpr std::array<std::string_view, 4> kKinds{"balanced", "uniform", "power_law", "popularity"};
  Routing routing;
  if (!in) return routing;
  routing.kind = static_cast<Routing::Kind>(in->choice("distribution", kKinds));
  if (routing.kind == Routing::Kind::kPowerLaw) routing.exponent = in->number("exponent", routing.exponent, {0.0, 8.0});
  if (routing.kind == Routing::Kind::kPopularity) routing.skew = in->number("skew", routing.skew, {0.0, 4.0});
  in->finish();
  return routing;
}

/// A name of one of the tables of sim/serve.
template <class Table>
std::string checked_name(ConfigReader& in, std::string_view key, const std::string& otherwise, const Table& table) {
  const std::string name = in.text(key, otherwise);
  std::vector<std::string> valid;
  for (const auto& entry : table) valid.emplace_back(entry.name);
  if (std::find(valid.begin(), valid.end(), name) == valid.end()) in.fail(key, unknown_name(key, name, valid));
  return name;
}

void check_scheduler(const EngineSpec& engine, const ConfigTree& tree) {
  const auto same = [&](const auto& entry) { return entry.name == engine.scheduler; };
  if (std::any_of(schedulers().begin(), schedulers().end(), same)) return;
  ConfigReader in(resolve_named("engines", tree), "an engine");
  (void)checked_name(in, "scheduler", engine.scheduler, schedulers());
}

/// The default engine is vllm; settings without a name change the default's, unless they are a whole profile.
ConfigTree engine_tree(ConfigReader& in) {
  if (!in.has("engine")) return make_scalar("vllm");
  const ConfigTree tree = in.tree("engine");
  const bool settings =
      tree->kind == ConfigNode::Kind::kMap && tree->find("name") == nullptr && tree->find("kernels") == nullptr;
  return settings ? with_value(tree, "name", make_scalar("vllm", tree->mark), "engine") : tree;
}

/// Formats that the GPU has units for, as words.
std::string computable(const GpuSpec& gpu) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kDtypeCount; ++i) {
    if (gpu.dense[i] > FlopsPerSecond(0)) names.emplace_back(dtype_names()[i]);
  }
  return join(names, ", ");
}

/// Asking by name for activations that the GPU cannot compute with is an error; a checkpoint's own are adapted.
void fit_precision_to_gpu(Precision& precision, const GpuSpec& gpu, bool asked, const Mark& mark) {
  if (!asked) return choose_activations(precision, gpu);
  for (Dtype weights : {precision.weights, precision.attention_weights, precision.expert_weights}) {
    if (gpu.compute_dtype(weights, precision.activations)) continue;
    throw ConfigError(mark, fmt::format("{} cannot compute with {} activations; it computes with {}", gpu.name,
                                        name_of(precision.activations), computable(gpu)));
  }
}

}  // namespace

std::shared_ptr<const Deployment> read_deployment(ConfigReader& in, Fidelity fidelity, int& replicas,
                                                  SpecCache& specs) {
  auto d = std::make_shared<Deployment>();
  d->fidelity = fidelity;
  for (const char* key : {"model", "gpu"}) {
    if (!in.has(key)) throw ConfigError(in.mark(), fmt::format("missing key '{}' of a scenario", key));
  }
  const ConfigTree engine = engine_tree(in);
  d->engine = specs.engine(engine);
  check_scheduler(d->engine, engine);
  const CalibratedGpu& gpu = specs.gpu(in.tree("gpu"), d->engine.kernels);
  d->gpu = gpu.spec;
  d->efficiency = gpu.efficiency;
  d->model = specs.model(in.tree("model"));
  ShardingMarks sharding_marks(in.mark_of("parallelism"));
  d->sharding = parse_parallelism(in.optional_child("parallelism"), replicas, sharding_marks);
  check_sharding(d->model, d->sharding, sharding_marks);
  d->engine.settle(d->gpu, d->sharding);
  d->precision = d->model.precision;
  bool asked = false;
  Mark precision_mark = in.mark_of("precision");
  if (in.has("precision")) {
    const ConfigTree precision = in.tree("precision");
    d->precision = parse_precision(d->model, precision, asked);
    const ConfigTree* group = precision->find("group_size");
    check_groups(d->model, d->precision, d->sharding, group != nullptr ? (*group)->mark : precision_mark);
    if (const ConfigTree* activations = precision->find("activations")) precision_mark = (*activations)->mark;
  } else {
    check_groups(d->model, d->precision, d->sharding, sharding_marks.tp);
  }
  fit_precision_to_gpu(d->precision, d->gpu, asked, precision_mark);
  d->precision.scaled_latents = d->engine.scaled_latents;
  // The number of outlier columns is known at run time only: no graph holds it, and vLLM falls back to eager steps.
  if (d->precision.outlier_fraction > 0) d->engine.graphs.enabled = false;
  d->routing = parse_routing(in.optional_child("routing"));
  d->memory = plan_memory(*d);
  return d;
}

std::shared_ptr<const Deployment> read_deployment(ConfigReader& in, Fidelity fidelity) {
  int replicas = 1;
  SpecCache specs;
  return read_deployment(in, fidelity, replicas, specs);
}

Scenario read_scenario(const ConfigTree& tree, Fidelity fidelity) {
  SpecCache specs;
  return read_scenario(tree, fidelity, specs);
}

Scenario read_scenario(const ConfigTree& tree, Fidelity fidelity, SpecCache& specs) {
  ConfigReader in(tree, "a scenario");
  Scenario s;
  in.ignore("name");
  in.ignore("help");
  s.deployment = read_deployment(in, fidelity, s.serving.replicas, specs);
  if (auto speculation = in.optional_child("speculation")) {
    s.serving.speculation = parse_speculation(std::move(*speculation), *s.deployment);
    auto reserved = std::make_shared<Deployment>(*s.deployment);
    reserve_draft(*reserved, s.serving.speculation);
    s.deployment = std::move(reserved);
  }
  if (auto disaggregation = in.optional_child("disaggregation")) {
    s.serving.disaggregation = parse_disaggregation(std::move(*disaggregation), tree, *s.deployment, specs);
    if (const auto& prefill = s.serving.disaggregation->prefill->memory.infeasible) {
      auto infeasible = std::make_shared<Deployment>(*s.deployment);
      infeasible->memory.infeasible = Infeasible{"a prefill worker: " + prefill->reason};
      s.deployment = std::move(infeasible);
    }
  }
  if (in.has("workload")) {
    s.workload = parse_workload(ConfigReader(resolve_named("workloads", in.tree("workload")), "a workload"));
  }
  s.serving.router = checked_name(in, "router", s.serving.router, routers());
  s.serving.policy = checked_name(in, "policy", s.serving.policy, queue_policies());
  s.serving.max_queue = static_cast<int>(in.integer("max_queue", 0, {0, 1e9}));
  s.serving.seed = static_cast<std::uint64_t>(in.integer("seed", 0, {0, 9e15}));
  const Deployment& d = *s.deployment;
  const int all = s.serving.replicas + (s.serving.disaggregation ? s.serving.disaggregation->prefill_replicas : 0);
  s.serving.fleet = parse_fleet(in.optional_child("autoscaling"), in.optional_child("failures"), d.loaded_weights(),
                                d.engine.start_time, all);
  if (const auto& apart = s.serving.disaggregation)
    s.serving.fleet.prefill_cold_start =
        cold_start(apart->prefill->loaded_weights(), apart->prefill->engine.start_time);
  if (s.serving.disaggregation && s.serving.fleet.autoscaling)
    in.fail("autoscaling", "'disaggregation' and 'autoscaling' do not go together: how many of each role is planned");
  if (auto objectives = in.optional_child("objectives")) s.objectives = parse_objectives(std::move(*objectives));
  s.serving.objectives = goodput_limits(s.objectives);
  in.finish();
  return s;
}

}  // namespace roofcast
