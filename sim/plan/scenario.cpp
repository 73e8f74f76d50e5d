#include "sim/plan/scenario.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "base/checkpoint_name.h"
#include "base/config_library.h"
#include "base/config_release.h"
#include "base/quoted_switches.h"
#include "base/text.h"
#include "hw/efficiency.h"
#include "hw/kernels/flash_generations.h"
#include "sim/model/mixer_model.h"
#include "sim/model/recipes.h"
#include "sim/model/stored_format.h"
#include "sim/plan/check_samples.h"
#include "sim/plan/client.h"
#include "sim/plan/disaggregation.h"
#include "sim/plan/engine_release.h"
#include "sim/plan/expert_counts.h"
#include "sim/plan/launch_limits.h"
#include "sim/plan/launch_recipe.h"
#include "sim/plan/prices.h"
#include "sim/plan/speculation.h"
#include "sim/plan/support.h"
#include "sim/serve/overlaid.h"
#include "sim/step/deployment.h"

namespace roofcast {
namespace {

int count_of(ConfigReader& in, std::string_view key, int default_value) {
  return static_cast<int>(in.integer(key, default_value, {1, 65536}));
}

Sharding parse_parallelism(std::optional<ConfigReader> in, int& replicas, ShardingLocations& locations) {
  Sharding s;
  if (!in) return s;
  locations.tp = in->location_of("tp");
  locations.pp = in->location_of("pp");
  locations.dcp = in->location_of("dcp");
  locations.attention_dp = in->location_of("attention_dp");
  locations.ep = in->location_of("ep");
  s.tp = count_of(*in, "tp", 1);
  s.pp = count_of(*in, "pp", 1);
  s.dcp = count_of(*in, "dcp", 1);
  s.attention_dp = count_of(*in, "attention_dp", 1);
  s.ep = count_of(*in, "ep", 1);
  if (in->has("dp") && in->has("replicas")) in->fail("dp", "'dp' and 'replicas' mean the same; give one of them");
  replicas = in->has("dp") ? count_of(*in, "dp", 1) : count_of(*in, "replicas", 1);
  in->finish();
  return s;
}

/// What `routing.counts` names, or `skew`.
double parse_skew(ConfigReader& in, const ModelSpec& model, double default_value) {
  if (!in.has("counts")) return in.number("skew", default_value, {0.0, kMostSkew});
  if (in.has("skew")) in.fail("skew", "comes from the 'counts': give one of them");
  const std::string file = beside(in.text("counts"), in.location_of("counts"));
  if (std::error_code unknown; !std::filesystem::exists(file, unknown))
    in.fail("counts", fmt::format("no such file '{}'", file));
  return skew_of_counts(CsvTable::read_file(file), model);
}

Routing parse_routing(std::optional<ConfigReader> in, const ModelSpec& model, Sharding& sharding) {
  static constexpr std::array<std::string_view, 4> kKinds{"balanced", "uniform", "power_law", "popularity"};
  Routing routing;
  if (!in) return routing;
  routing.kind = static_cast<Routing::Kind>(in->choice("distribution", kKinds, static_cast<std::size_t>(routing.kind)));
  sharding.redundant_experts = static_cast<int>(in->integer("redundant_experts", 0, {0, 65536}));
  if (sharding.redundant_experts > 0 && routing.kind == Routing::Kind::kPowerLaw) {
    in->fail(
        "redundant_experts",
        "power_law is how a benchmark draws loads, without redundant experts; use popularity, uniform or balanced");
  }
  if (routing.kind == Routing::Kind::kPowerLaw) routing.exponent = in->number("exponent", routing.exponent, {0.0, 8.0});
  if (routing.kind == Routing::Kind::kPopularity) routing.skew = parse_skew(*in, model, routing.skew);
  in->finish();
  return routing;
}

/// A name from one of the tables of sim/serve.
template <class Table>
std::string checked_name(ConfigReader& in, std::string_view key, const std::string& default_value, const Table& table) {
  const std::string name = in.text(key, default_value);
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

/// Only some GPUs have matrix units that skip zeros.
void check_sparsity(const Deployment& d, const SourceLocation& location) {
  const Architecture a = d.gpu.architecture;
  const bool skips = a == Architecture::kAmpere || a == Architecture::kAda || a == Architecture::kHopper ||
                     a == Architecture::kBlackwell || a == Architecture::kBlackwellGeforce;
  if (d.precision.two_of_four && !skips)
    throw ConfigError(location,
                      fmt::format("2:4 weights need sparse matrix units, which NVIDIA's GPUs have from Ampere on; "
                                  "{} has none",
                                  d.gpu.name));
}

/// Refuses a published generation of FlashAttention on a GPU, or for heads, that it was not written for.
void check_generation(const FlashGeneration& generation, const Deployment& d, const SourceLocation& location) {
  const std::string kernel = fmt::format("'attention_kernel: {}'", generation.name);
  if (const auto why = cannot_run(generation, d.gpu))
    throw ConfigError(location, fmt::format("{} {}; {} cannot run it", kernel, *why, d.gpu.name));
  for (const LayerKind& layer : d.model.layers) {
    const auto mixer = model_of(layer.mixer);
    const MixerFacts facts = mixer->facts();
    if (facts.indexer || facts.cache == TokenCache::kLatent)
      throw ConfigError(location, fmt::format("{} needs attention with keys per head; {} has {}", kernel, d.model.name,
                                              mixer->name()));
    const auto heads = mixer->cached_heads();
    if (!heads) continue;
    if (heads->head_dim > generation.most_head_dim)
      throw ConfigError(location, fmt::format("{} takes heads of at most {} values; those of {} have {}", kernel,
                                              generation.most_head_dim, d.model.name, heads->head_dim));
    if (heads->window > 0 && generation.outputs_in_memory)
      throw ConfigError(location, fmt::format("{} has no sliding windows (they came with FlashAttention 2.3); {} has "
                                              "one of {} tokens",
                                              kernel, d.model.name, heads->window));
  }
}

/// Refuses attention kernels that the model's layers cannot use.
void check_attention_kernel(const Deployment& d, const ConfigTree& engine) {
  const std::string& kernel = d.engine.attention_kernel;
  const ConfigTree* written = engine->kind == ConfigNode::Kind::kMap ? engine->find("attention_kernel") : nullptr;
  const SourceLocation location = written != nullptr ? (*written)->location : engine->location;
  if (const FlashGeneration* generation = generation_of(d.attention_kernel()))
    check_generation(*generation, d, location);
  for (const LayerKind& layer : d.model.layers) {
    const auto mixer = model_of(layer.mixer);
    const MixerFacts facts = mixer->facts();
    const bool latent = facts.cache == TokenCache::kLatent;
    if (kernel == "flash_unsplit" && latent)
      throw ConfigError(location,
                        "'attention_kernel: flash_unsplit' needs attention with keys per head; kernels that "
                        "decode latents always split the context (FlashMLA)");
    if (kernel == "naive" && (facts.indexer || (latent && !mixer->absorbed())))
      throw ConfigError(location,
                        fmt::format("'attention_kernel: naive' computes the score of every token, but {} of {} "
                                    "attends to chosen or compressed ones",
                                    mixer->name(), d.model.name));
  }
}

/// The default engine is vllm. Settings without a name change the default's, unless they are a whole profile.
ConfigTree written_engine(ConfigReader& in) {
  if (!in.has("engine")) return make_scalar("vllm");
  const ConfigTree tree = in.tree("engine");
  const bool settings =
      tree->kind == ConfigNode::Kind::kMap && tree->find("name") == nullptr && tree->find("kernels") == nullptr;
  return settings ? with_value(tree, "name", make_scalar("vllm", tree->location), "engine") : tree;
}

ConfigTree engine_tree(ConfigReader& in, bool disaggregated) {
  const ConfigTree engine = written_engine(in);
  const std::string version = image_of_day(in.whole(), engine, disaggregated);
  if (version.empty()) return engine;
  const ConfigTree map = engine->kind == ConfigNode::Kind::kScalar
                             ? make_map({{"name", engine->location, engine}}, engine->location)
                             : engine;
  return with_value(map, "version", make_scalar(version, engine->location), "recipe");
}

/// The formats that the GPU has units for, as words.
std::string computable(const GpuSpec& gpu) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kDtypeCount; ++i) {
    if (gpu.dense[i] > FlopsPerSecond(0)) names.emplace_back(dtype_names()[i]);
  }
  return join(names, ", ");
}

/// Position of the key that sets the format of a group of weights.
SourceLocation location_of_groups(ConfigReader& in) {
  const ConfigTree precision = in.tree("precision");
  const ConfigTree* group = precision->find("group_size");
  return group != nullptr ? (*group)->location : in.location_of("precision");
}

/// Activations that the GPU cannot compute with are an error if the user named them; a checkpoint's own are adapted.
void fit_precision_to_gpu(Precision& precision, const GpuSpec& gpu, bool asked, const SourceLocation& location) {
  if (!asked) {
    choose_activations(precision, gpu);
    if (element_bits(precision.activations) > 8) precision.static_activations = false;
    return;
  }
  for (Dtype weights : {precision.weights, precision.attention_weights, precision.expert_weights}) {
    if (gpu.compute_dtype(weights, precision.activations)) continue;
    throw ConfigError(location, fmt::format("{} cannot compute with {} activations; it computes with {}", gpu.name,
                                            name_of(precision.activations), computable(gpu)));
  }
}

/// A recipe's front end as host costs, so that the scenario's own `host` is laid over it.
ConfigTree front_end_as_host(const ConfigTree& recipe) {
  const ConfigTree* front_end = recipe->find("front_end");
  if (front_end == nullptr || !*front_end) return recipe;
  const ConfigTree named = resolve_named("front-ends", *front_end);
  ConfigTree out = recipe;
  for (const char* key : {"request_time", "request_latency", "token_time", "prompt_token_time"}) {
    if (const ConfigTree* cost = named->find(key)) out = with_value(out, std::string("host.") + key, *cost, "recipe");
  }
  out = with_value(out, "front_end_name", *front_end, "recipe");
  auto without = std::make_shared<ConfigNode>(*out);
  std::erase_if(without->entries, [](const ConfigNode::Entry& entry) { return entry.key == "front_end"; });
  return without;
}

/// A release's settings, then the recipe's, then the scenario's own: later ones win.
ConfigTree with_recipe(const ConfigTree& engine, const ConfigTree& written) {
  if (!written) return engine;
  const ConfigTree recipe = front_end_as_host(written);
  if (engine->kind == ConfigNode::Kind::kScalar) return overlay(resolve_named("engines", engine), recipe);
  const ConfigTree* name = engine->find("name");
  if (name == nullptr) return overlay(recipe, engine);
  std::vector<ConfigNode::Entry> release{{"name", (*name)->location, *name}}, changes;
  for (const ConfigNode::Entry& entry : engine->entries) {
    if (entry.key == "version") release.push_back(entry);
    if (entry.key != "name" && entry.key != "version") changes.push_back(entry);
  }
  const ConfigTree base = overlay(resolve_named("engines", make_map(release, engine->location)), recipe);
  return overlay(base, make_map(changes, engine->location));
}

void no_front_end(HostCosts& host) {
  host.request_time = host.request_latency = host.token_time = host.prompt_token_time = Seconds(0);
}

/// Engines give each encoder prompt a step of its own, because every token sees all others, and keep none of its cache
/// (vllm/config/vllm.py: pooling models without causal attention have neither chunked prefill nor prefix caching).
void encode_whole(EngineSpec& engine) {
  engine.chunked_prefill = false;
  engine.prefix_caching = false;
  engine.kv_offload = Bytes(0);
  engine.kv_tiers.clear();
}

/// vLLM and TensorRT-LLM encode prompts of encoder-decoders whole and share none of their caches
/// (vllm/config/vllm.py; NVIDIA/TensorRT-LLM, docs/source/models/encoder-decoder.md).
void check_encoder_decoder(const Deployment& d, const SourceLocation& engine) {
  if (!d.engine.kv_cache)
    throw ConfigError(engine,
                      fmt::format("{} is an encoder-decoder: without a KV cache it would read its input again for "
                                  "every token, which is not priced",
                                  d.model.name));
}

/// The mean request of several kinds of clients.
double guided_share(const WorkloadSpec& workload) {
  if (workload.clients.empty()) return workload.guided;
  double guided = 0, all = 0;
  for (const WorkloadSpec& client : workload.clients) {
    guided += client.guided * client.arrivals.rate.base();
    all += client.arrivals.rate.base();
  }
  return all > 0 ? guided / all : 0.0;
}

/// What the scenario's recipe sets for this deployment; empty without a recipe.
LaunchSettings recipe_settings(ConfigReader& in, const DeploymentFacts& facts, const EngineSpec& engine) {
  const ConfigTree recipe = in.tree("recipe");
  if (!recipe) return {};
  if (recipe->kind != ConfigNode::Kind::kScalar)
    throw ConfigError(recipe->location, "'recipe' must be the name of a recipe or a file");
  EngineSpec settled = engine;
  settled.settle(*facts.gpu, *facts.sharding);
  const ConfigTree written = in.has("engine") ? in.tree("engine") : nullptr;
  const bool told = written && written->find("max_num_seqs") != nullptr;
  return settings_of(find_launch_recipe(recipe->scalar, recipe->location), facts,
                     {static_cast<double>(settled.max_num_seqs), told}, recipe->location);
}

/// The longest request and the number of users of a workload, where known.
void take_load(DeploymentFacts& facts, const DeploymentUse& use) {
  const WorkloadSpec* workload = use.workload;
  if (workload == nullptr || !workload->clients.empty() || workload->arrivals.process == ArrivalSpec::Process::kTrace)
    return;
  facts.prompt_tokens = workload->prompt_tokens.longest();
  facts.output_tokens = workload->output_tokens.longest();
  if (workload->arrivals.process == ArrivalSpec::Process::kClosedLoop && use.load == LoadIs::kFixed)
    facts.concurrency = workload->arrivals.concurrency;
}

/// Whether a precision takes the place of the checkpoint's.
bool names_weights(const ConfigNode& precision) {
  return precision.kind == ConfigNode::Kind::kScalar || precision.find("name") != nullptr ||
         precision.find("weights") != nullptr || precision.find("recipe") != nullptr;
}

/// The scenario's formats, laid over the recipe's. What was assumed of formats that they replace is dropped.
Precision read_precision(ConfigReader& in, Deployment& d, const ConfigTree& recipe, bool& asked,
                         SourceLocation& location) {
  asked = false;
  ConfigTree written = in.has("precision") ? in.tree("precision") : nullptr;
  if (recipe && written && written->kind == ConfigNode::Kind::kScalar)
    written = make_map({{"weights", written->location, written}}, written->location);
  const ConfigTree precision = recipe ? (written ? overlay(recipe, written) : recipe) : written;
  if (!precision) return d.model.precision;
  const Precision read = parse_precision(d.model, precision, asked);
  if (names_weights(*precision)) std::erase_if(d.model.assumptions, are_assumed_formats);
  if (const ConfigTree* activations = precision->find("activations")) location = (*activations)->location;
  return read;
}

/// Whether the scenario changes figures of a named GPU, other than its price and count.
bool changes_figures(const ConfigTree& gpu) {
  if (gpu->kind != ConfigNode::Kind::kMap || gpu->find("architecture") != nullptr)
    return false;  // a GPU defined in the scenario
  return std::any_of(gpu->entries.begin(), gpu->entries.end(), [](const ConfigNode::Entry& e) {
    return e.key != "name" && e.key != "price" && e.key != "available";
  });
}

/// Whether the scenario itself, or a GPU file of the user's, gives the price.
bool writes_price(const ConfigTree& gpu) {
  const ConfigTree* name = gpu->kind == ConfigNode::Kind::kMap ? gpu->find("name") : &gpu;
  if (gpu->find("price") != nullptr) return true;
  const bool file =
      name != nullptr && ((*name)->scalar.find('/') != std::string::npos || (*name)->scalar.ends_with(".yaml"));
  return file && load_document("hardware", (*name)->scalar, (*name)->location)->find("price") != nullptr;
}

}  // namespace

std::shared_ptr<const Deployment> read_deployment(ConfigReader& in, Fidelity fidelity, int& replicas, SpecCache& specs,
                                                  const DeploymentUse& use) {
  auto d = std::make_shared<Deployment>();
  d->fidelity = fidelity;
  for (const char* key : {"model", "gpu"}) {
    if (!in.has(key)) throw ConfigError(in.location(), fmt::format("missing key '{}' of a scenario", key));
  }
  const ConfigTree engine = engine_tree(in, use.disaggregated);
  d->engine = specs.engine(engine);
  const CalibratedGpu& gpu = specs.gpu(in.tree("gpu"), d->engine.kernels);
  d->gpu = gpu.spec;
  d->gpu_changed = changes_figures(in.tree("gpu"));
  auto efficiency = std::make_shared<Efficiency>(gpu.efficiency);
  if (d->engine.name == d->engine.kernels) efficiency->at_release(d->engine.version);
  d->efficiency = std::move(efficiency);
  d->model = specs.model(in.tree("model"));
  ShardingLocations sharding_locations(in.location_of("parallelism"));
  d->sharding = parse_parallelism(in.optional_child("parallelism"), replicas, sharding_locations);
  d->routing = parse_routing(in.optional_child("routing"), d->model, d->sharding);
  check_sharding(d->model, d->sharding, sharding_locations);
  bool asked = false;
  SourceLocation precision_location = in.location_of("precision");
  d->precision = read_precision(in, *d, nullptr, asked, precision_location);
  DeploymentFacts facts = facts_of(*d);
  facts.disaggregated = use.disaggregated;
  take_load(facts, use);
  const LaunchSettings recipe = recipe_settings(in, facts, d->engine);
  if (in.has("recipe")) d->recipe = in.tree("recipe")->scalar;
  if (recipe.precision) d->precision = read_precision(in, *d, recipe.precision, asked, precision_location);
  const ConfigTree launched = with_recipe(engine, recipe.engine);
  if (recipe.engine) d->engine = specs.engine(launched);
  check_scheduler(d->engine, launched);
  d->engine.settle(d->gpu, d->sharding);
  check_attention_kernel(*d, launched);
  if (d->model.encoder_only || d->model.attends_to_encoder()) encode_whole(d->engine);
  if (d->model.attends_to_encoder()) check_encoder_decoder(*d, in.location_of("engine"));
  check_launch(*d, engine, in.boolean("force_unsupported", false));
  if (fidelity == Fidelity::kIdeal) no_front_end(d->engine.host);
  check_groups(d->model, d->precision, d->sharding,
               in.has("precision") ? location_of_groups(in) : sharding_locations.tp);
  fit_precision_to_gpu(d->precision, d->gpu, asked, precision_location);
  check_sparsity(*d, in.location_of("model"));
  // Libraries for one user unpack narrow weights to 16 bit, or to int8 by themselves, whatever units the GPU has.
  if (d->engine.rooflines != nullptr && !asked && element_bits(d->precision.activations) <= 8)
    d->precision.activations = Dtype::kBf16;
  d->precision.scaled_latents = d->engine.scaled_latents;
  // The number of outlier columns is known only at run time: no graph holds it, and vLLM runs such steps eagerly.
  if (d->precision.outlier_fraction > 0) d->engine.graphs.enabled = false;
  if (auto adapters = in.optional_child("adapters")) d->adapters = parse_adapters(std::move(*adapters), d->model);
  d->media = usual_media(d->model);
  if (use.workload != nullptr) {
    d->media = most_media(*use.workload);
    d->guided = guided_share(*use.workload);
  }
  set_offers(*d, parse_price(in.tree("price")), writes_price(in.tree("gpu")));
  d->memory = plan_memory(*d);
  return d;
}

std::shared_ptr<const Deployment> read_deployment(ConfigReader& in, Fidelity fidelity) {
  int replicas = 1;
  SpecCache specs;
  return read_deployment(in, fidelity, replicas, specs, {});
}

namespace {

/// The scenario's workload, as its client sends it.
std::optional<WorkloadSpec> read_workload(ConfigReader& in, SpecCache& specs) {
  if (!in.has("workload")) return std::nullopt;
  ConfigTree tree = resolve_named("workloads", in.tree("workload"));
  if (tree->find("client") != nullptr) {
    const EngineSpec& engine = specs.engine(engine_tree(in, in.has("disaggregation")));
    DeploymentFacts facts{.engine = engine.name, .version = engine.version, .client_date = ""};
    facts.disaggregated = in.has("disaggregation");
    if (in.has("model")) facts.model = &specs.model(in.tree("model"));
    tree = expand_client(tree, facts);
  }
  WorkloadSpec workload = parse_workload(ConfigReader(tree, "a workload"));
  if (in.has("model")) place_media(workload, specs.model(in.tree("model")));
  return workload;
}

}  // namespace

/// An encoder's result is no token; it counts as one.
void check_encoded(const WorkloadSpec& workload, const std::string& model) {
  const auto check = [&](const WorkloadSpec& w) {
    if (w.output_tokens.longest() > 1 || w.samples.several())
      throw ConfigError(workload.location,
                        fmt::format("{} is an encoder and generates no tokens: 'output_tokens' must be 1, "
                                    "which stands for its vector or score",
                                    model));
  };
  if (workload.clients.empty() && workload.arrivals.process != ArrivalSpec::Process::kTrace) check(workload);
  for (const WorkloadSpec& client : workload.clients) check(client);
}

/// The decoder of an encoder-decoder has a limited number of positions.
void check_positions(const Scenario& s) {
  const auto check = [&](const WorkloadSpec& w) {
    if (w.arrivals.process == ArrivalSpec::Process::kTrace) return;
    const std::string why = beyond_positions(s.deployment->model, w.prompt_tokens.longest(), w.output_tokens.longest());
    if (!why.empty()) throw ConfigError(w.location, why);
  };
  if (s.workload->clients.empty()) check(*s.workload);
  for (const WorkloadSpec& client : s.workload->clients) check(client);
}

/// Refuses several sequences per prompt where they are not simulated.
void check_samples(const Scenario& s, const WorkloadSpec& workload) {
  const auto check = [&](const WorkloadSpec& w) {
    if (!w.samples.several()) return;
    const auto refuse = [&](const char* why) { throw ConfigError(w.samples.location, why); };
    if (s.serving.disaggregation) refuse("several sequences per prompt cannot be combined with 'disaggregation'");
    if (s.serving.fleet.failures) refuse("several sequences per prompt cannot be combined with 'failures'");
    if (s.serving.speculation.diffuses()) refuse("a diffusion model's blocks have one answer");
    if (!make_scheduler(s.deployment->engine.scheduler)->continuous())
      refuse("several sequences per prompt need an engine that batches continuously");
  };
  check(workload);
  for (const WorkloadSpec& client : workload.clients) check(client);
}

/// Weights whose scales are not those of the published checkpoint.
void note_scales(Scenario& s) {
  const ModelSpec& model = s.deployment->model;
  const Dtype published = stored_format(model, Dtype::kFp8);
  if (s.deployment->precision.weights != Dtype::kFp8 || published == Dtype::kFp8) return;
  s.doubts.push_back(fmt::format(
      "{}: its published fp8 checkpoint has scales for blocks of 128 x 128 (weights: {}); these are for whole tensors",
      model.name, name_of(published)));
}

/// Says which release was taken for a day, or for a patch that is not listed.
void note_release(Scenario& s, const ConfigTree& tree) {
  ConfigReader in(tree, "a scenario");
  const EngineSpec& engine = s.deployment->engine;
  if (!image_of_day(tree, written_engine(in), in.has("disaggregation")).empty())
    s.doubts.push_back(fmt::format("engine: no version is given; recipe '{}' ran {} {} on that day",
                                   s.deployment->recipe, engine.name, engine.version));
  if (const std::string listed = release_taken_for(engine); !listed.empty())
    s.doubts.push_back(fmt::format("engine: {} {} is not listed; taken as {} of {}", engine.name, engine.version,
                                   listed, engine.released));
}

void note_quoted(Scenario& s, const ConfigTree& tree) {
  for (const QuotedSwitch& found : quoted_switches(tree))
    s.doubts.emplace_back(ConfigError(found.value->location, text_of(found)).what());
}

/// Lists the unread keys of a foreign config.
void note_unread(Scenario& s) {
  const ModelSpec& model = s.deployment->model;
  if (model.unread.empty()) return;
  constexpr std::size_t kNamed = 12;
  const std::size_t named = std::min(kNamed, model.unread.size());
  s.doubts.push_back(fmt::format(
      "{}: not understood in its config, and left out: {}{}", model.name, join({model.unread.data(), named}, ", "),
      model.unread.size() > named ? fmt::format(" and {} more", model.unread.size() - named) : ""));
}

/// Lists each role whose KV cache holds less than one sequence of the longest context.
void note_contexts(Scenario& s) {
  const auto note = [&](const Deployment& d, const char* role) {
    if (const ServedContext context = served_context(d); context.pool_binds())
      s.doubts.push_back(role + context_text(d, context));
  };
  note(*s.deployment, "");
  if (s.serving.disaggregation) note(*s.serving.disaggregation->prefill, "a prefill worker: ");
}

/// The day on which the model was published, from its file; empty if not given.
std::string day_of_publication(const ConfigTree& scenario) {
  const ConfigTree* named = scenario->find("model");
  if (named == nullptr || !*named) return "";
  const ConfigTree model = resolve_named("models", *named);
  const ConfigTree* day = model->find("published");
  if (day == nullptr || !*day) return "";
  if (!is_date((*day)->scalar))
    throw ConfigError((*day)->location,
                      fmt::format("'published' must be a day (yyyy-mm-dd), got '{}'", (*day)->scalar));
  return (*day)->scalar;
}

Scenario read_scenario(const ConfigTree& tree, Fidelity fidelity) {
  SpecCache specs;
  return read_scenario(tree, fidelity, specs);
}

namespace {

/// Each role has its own autoscaler, and the one that is not given stays as it is.
FleetSpec read_fleet(ConfigReader& in, const Scenario& s) {
  const auto part = [](const Deployment& d, int replicas) {
    return FleetPart{.replicas = replicas, .weights = d.loaded_weights(), .engine_start = d.engine.start_time};
  };
  FleetPart decode = part(*s.deployment, s.serving.replicas);
  decode.autoscaling = in.optional_child("autoscaling");
  std::optional<FleetPart> prefill;
  if (const auto& apart = s.serving.disaggregation) {
    prefill = part(*apart->prefill, apart->prefill_replicas);
    const ConfigTree* at = in.whole()->find("disaggregation");
    for (const char* key : {"prefill", "autoscaling"}) at = at != nullptr && *at ? (*at)->find(key) : nullptr;
    if (at != nullptr && *at && (*at)->kind != ConfigNode::Kind::kNull)
      prefill->autoscaling.emplace(*at, "prefill.autoscaling");
  }
  return parse_fleet(std::move(decode), std::move(prefill), in.optional_child("failures"));
}

}  // namespace

void Scenario::set_objectives(std::vector<Objective> wanted) {
  objectives = std::move(wanted);
  serving.objectives = goodput_limits(objectives);
  serving.client_objectives = client_limits(objectives, workload ? workload->clients.size() : 0);
  // The gaps of a kind of clients limit its single requests alone: they are not kept by kind.
  std::erase_if(objectives, [](const Objective& o) { return o.client >= 0 && o.metric == LatencyMetric::kItl; });
}

Scenario read_scenario(const ConfigTree& tree, Fidelity fidelity, SpecCache& specs, LoadIs load) {
  ConfigReader in(tree, "a scenario");
  Scenario s;
  in.ignore("name");
  in.ignore("help");
  s.workload = read_workload(in, specs);
  const DeploymentUse use{
      .workload = s.workload ? &*s.workload : nullptr, .disaggregated = in.has("disaggregation"), .load = load};
  s.deployment = read_deployment(in, fidelity, s.serving.replicas, specs, use);
  const ConfigTree drafts = in.tree("speculation");
  if (drafts && drafts->scalar == "none") {
    s.serving.speculation = {};
  } else if (drafts && drafts->kind == ConfigNode::Kind::kScalar) {
    in.fail("speculation", fmt::format("'speculation' must be none or a map, such as {{method: {}, acceptance: 0.7}}",
                                       drafts->scalar));
  } else if (auto speculation = in.optional_child("speculation")) {
    s.serving.speculation = parse_speculation(std::move(*speculation), *s.deployment);
    if (s.serving.speculation.active() && s.deployment->model.attends_to_encoder())
      in.fail("speculation",
              fmt::format("drafts for an encoder-decoder, as {} is, are not priced", s.deployment->model.name));
    const bool cached = s.deployment->engine.kv_cache, diffuses = s.serving.speculation.diffuses();
    if (s.serving.speculation.active() && !cached && (!diffuses || s.workload))
      in.fail("speculation", diffuses ? "passes without a KV cache are estimated, not simulated under a workload"
                                      : "speculation without a KV cache is not priced: drop one of them");
    auto reserved = std::make_shared<Deployment>(*s.deployment);
    reserve_draft(*reserved, s.serving.speculation);
    reserved->engine.serial_drafts = drafts_stop_async(reserved->engine, s.serving.speculation);
    s.deployment = std::move(reserved);
  }
  if (auto disaggregation = in.optional_child("disaggregation")) {
    s.serving.disaggregation = parse_disaggregation(std::move(*disaggregation), tree, *s.deployment, specs, use);
    if (const auto& prefill = s.serving.disaggregation->prefill->memory.infeasible) {
      auto infeasible = std::make_shared<Deployment>(*s.deployment);
      infeasible->memory.infeasible = Infeasible{"a prefill worker: " + prefill->reason};
      s.deployment = std::move(infeasible);
    }
  }
  s.serving.router = checked_name(in, "router", s.serving.router, routers());
  s.serving.policy = checked_name(in, "policy", s.serving.policy, queue_policies());
  s.serving.max_queue = static_cast<int>(in.integer("max_queue", 0, {0, 1e9}));
  s.serving.seed = static_cast<std::uint64_t>(in.integer("seed", 0, {0, 9e15}));
  s.serving.fleet = read_fleet(in, s);
  if (s.workload) check_samples(s, *s.workload);
  if (s.workload) check_positions(s);
  if (s.workload && s.deployment->model.encoder_only) check_encoded(*s.workload, s.deployment->model.name);
  std::vector<Objective> objectives;
  if (auto given = in.optional_child("objectives")) objectives = parse_objectives(std::move(*given));
  if (s.workload) {
    const std::vector<Objective> own = objectives_of_clients(*s.workload);
    objectives.insert(objectives.end(), own.begin(), own.end());
  }
  s.set_objectives(std::move(objectives));
  const bool forced = in.boolean("force_unsupported", false);
  const SourceLocation location = in.location_of(in.has("engine") ? "engine" : "gpu");
  if (tree->find("lora") != nullptr)
    in.fail("lora", "unknown key 'lora' of a scenario; LoRA adapters are given by 'adapters'");
  in.finish();
  s.doubts = check_support(s, forced, location);
  note_release(s, tree);
  note_unread(s);
  note_scales(s);
  note_quoted(s, tree);
  const std::vector<std::string> older = older_than_model(s, day_of_publication(tree));
  s.doubts.insert(s.doubts.end(), older.begin(), older.end());
  note_contexts(s);
  return s;
}

}  // namespace roofcast
