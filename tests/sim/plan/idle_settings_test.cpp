#include "sim/plan/idle_settings.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/config_library.h"
#include "sim/model/model_spec.h"
#include "sim/plan/search/idle_in_run.h"
#include "sim/plan/search/plan_answer.h"
#include "sim/plan/search/sweep.h"
#include "tests/base/messages.h"

using namespace roofcast;

namespace {

std::vector<std::string> idle(const std::string& engine, const std::string& rest = "model: llama-3.1-8b") {
  const ConfigTree tree = parse_config_text(
      rest + "\ngpu: h100-sxm\nengine: {name: vllm" + engine +
          "}\nworkload: {arrivals: {process: all_at_once}, requests: 1, prompt_tokens: 8, output_tokens: 8}\n",
      "s.yaml");
  return idle_settings(tree, read_scenario(tree, Fidelity::kCalibrated));
}

}  // namespace

TEST_CASE("idle settings: what changes nothing in a deployment is told with the reason") {
  CHECK(idle("").empty());  // a release's own settings are not judged
  CHECK(idle(", max_num_seqs: 8").empty());
  CHECK(
      idle(", fused_all_reduce: true") ==
      std::vector<std::string>{"engine.fused_all_reduce changes nothing here: nothing is reduced across GPUs (tp 1)"});
  CHECK(idle(", fused_all_reduce: false").size() == 1);  // there was nothing to turn off
  CHECK(idle(", fused_all_reduce: true", "model: llama-3.1-8b\nparallelism: {tp: 2}").empty());
  CHECK(idle(", moe_kernel: marlin").size() == 1);
  CHECK(idle(", moe_kernel: marlin", "model: mixtral-8x7b\nparallelism: {tp: 4}").empty());
  CHECK(idle(", cuda_graphs: {dependent_launch: true}").size() == 1);  // vLLM's graphs have no gaps
  CHECK(idle(", cuda_graphs: {plain_prefill: true}").size() == 1);     // a text model of plain attention
  CHECK(idle(", shared_query_heads: 4").size() == 1);                  // 32 heads over 8
  CHECK(idle(", shared_query_heads: 8").empty());
  const std::string deepseek =
      "model: deepseek-v3\nparallelism: {tp: 8}\nforce_unsupported: true\nprecision: {weights: ";
  CHECK(idle("", deepseek + "fp8}").front() ==
        "precision.weights changes nothing here: the model's own weights are fp8 in blocks already");
  CHECK(idle("", "model: llama-3.1-8b\nprecision: {expert_weights: int4}").size() == 1);
  CHECK(idle("", "model: llama-3.1-8b\nprecision: {group_size: 32}").size() == 1);
  CHECK(idle("", "model: llama-3.1-8b\nprecision: {weights: int4, group_size: 32}").empty());
  CHECK(idle("", "model: llama-3.1-8b\nprecision: {static_activations: true}").size() == 1);
  CHECK(idle("", "model: llama-3.1-8b\nprecision: {activations: fp8}").size() == 1);
  CHECK(idle("", "model: llama-3.1-8b\nprecision: {weights: fp8, activations: fp8}").empty());
  CHECK(idle(", kv_offload: 10 GB").size() == 1);  // no prompt shares a prefix
  CHECK(idle("", "model: llama-3.1-8b\nrouter: least_loaded").size() == 1);
  CHECK(idle("", "model: llama-3.1-8b\nrouter: least_loaded\nparallelism: {replicas: 2}").empty());
  const std::string apart =
      "model: llama-3.1-8b\nrouter: kv_aware\ndisaggregation: {prefill: {parallelism: {replicas: ";
  CHECK(idle("", apart + "1}}}").size() == 1);
  CHECK(idle("", apart + "2}}}").empty());
  CHECK(idle("", "model: llama-3.1-8b\nrouting: {distribution: uniform}").size() == 1);
  CHECK(idle("", "model: {name: deepseek-v2-lite, num_key_value_heads: 1}").size() == 1);
  CHECK(idle("", "model: {name: llama-3.1-8b, num_key_value_heads: 1}").empty());
  CHECK(idle(", kv_cache: false, block_size: 32").size() == 1);
  CHECK(idle(", cuda_graphs: {enabled: false}").empty());
  CHECK(idle(", cuda_graphs: {enabled: false}", "model: llama-3.1-8b\nprecision: llm_int8").size() == 1);
  CHECK(idle(", scheduler: prefill_first", "model: llama-3.1-8b\ndisaggregation: {prefill: {parallelism: {tp: 1}}}")
            .size() == 1);
  const auto adapters = [](const std::string& more) {
    return idle("", "model: llama-3.1-8b\nadapters: {count: 4, rank: 8, slots: 2" + more + "}");
  };
  CHECK(adapters(", disk_bandwidth: 1 GB/s").size() == 1);  // all four are in host memory
  CHECK(adapters(", host: 2, disk_bandwidth: 1 GB/s").empty());
}

TEST_CASE("idle settings: the day of a client that is the same on all days") {
  const auto lines = [](const std::string& client) {
    const ConfigTree tree = parse_config_text(
        "model: llama-3.1-8b\ngpu: h100-sxm\nengine: vllm@0.19\nworkload: {client_date: 2026-01-01, client: " + client +
            ", concurrency: 4, prompt_tokens: 100, output_tokens: 10}\n",
        "s.yaml");
    return idle_settings(tree, read_scenario(tree, Fidelity::kCalibrated));
  };
  CHECK(lines("vllm-bench") ==
        std::vector<std::string>{"workload.client_date changes nothing here: client 'vllm-bench' is "
                                 "the same on all days"});
  CHECK(lines("inferencex").empty());
}

TEST_CASE("idle settings: a leaf is passed by replicas of either role, and by caches between the most there may be") {
  const auto said = [](const std::string& leaf, const std::string& rest) {
    const ConfigTree tree = parse_config_text(
        "model: llama-3.1-8b\nengine: vllm\ngpu: {name: h100-sxm, node: {leaf_gpus: " + leaf +
            ", oversubscription: 2}}\n" + rest +
            "\nworkload: {arrivals: {process: poisson, rate: 1/s}, requests: 4, prompt_tokens: 8, output_tokens: 8}\n",
        "s.yaml");
    for (const std::string& line : idle_settings(tree, read_scenario(tree, Fidelity::kCalibrated)))
      if (line.starts_with("gpu.node.leaf_gpus")) return true;
    return false;
  };
  const std::string apart = "parallelism: {tp: 8}\ndisaggregation: {prefill: {parallelism: {tp: 8}}";
  CHECK(said("16", apart + "}"));
  CHECK_FALSE(said("8", apart + "}"));
  CHECK(said("8", apart + ", bandwidth: 10 GB/s}"));  // each replica is below one leaf
  CHECK_FALSE(said("16", apart + "}\nautoscaling: {max: 2}"));
  CHECK_FALSE(said("8",
                   "parallelism: {tp: 8}\ndisaggregation: {bandwidth: 10 GB/s, prefill: {parallelism: {tp: 8, "
                   "pp: 2}}}"));
}

TEST_CASE("idle settings: keys of a load that do nothing in it") {
  const auto lines = [](const std::string& load) {
    const ConfigTree tree = parse_config_text(
        "model: llama-3.1-8b\ngpu: h100-sxm\nengine: vllm\nworkload: {prompt_tokens: "
        "8, output_tokens: 8, " +
            load + "}\n",
        "s.yaml");
    return idle_settings(tree, read_scenario(tree, Fidelity::kCalibrated));
  };
  const std::string arrivals = "arrivals: {process: poisson, rate: 10 /s";
  CHECK(lines(arrivals + "}, requests: 100").empty());
  CHECK(
      lines(arrivals + ", think_time: 2 s}, requests: 100") ==
      std::vector<std::string>{"workload.arrivals.think_time changes nothing here: a session has one turn ('turns')"});
  CHECK(lines(arrivals + ", think_time: 2 s}, requests: 100, turns: 2").empty());
  const std::string judged = arrivals + "}, requests: 100, objectives: {ttft_p99: 1 s}";
  CHECK(lines(judged) == std::vector<std::string>{"workload.objectives changes nothing here: plans take them; a run "
                                                  "needs 'objectives' outside of the workload"});
  CHECK(lines(judged + "}\nobjectives: {ttft_p99: 2 s") ==
        std::vector<std::string>{"workload.objectives changes nothing here: the scenario has its own 'objectives'"});
  const std::string law = "think_time: {distribution: uniform, min: 1 s, max: 3 s}}, requests: 100, turns: 2";
  CHECK(lines(arrivals + ", " + law) ==
        std::vector<std::string>{
            "workload.arrivals.think_time.distribution changes nothing here: under a 'rate' the next turn goes to the "
            "session that waited longest, and only the mean of the pauses counts"});
  CHECK(lines("arrivals: {process: closed_loop, concurrency: 4, " + law).empty());
  // 100 requests at 10 /s take ten seconds
  CHECK(lines(arrivals + "}, requests: 100, duration: 1000 s") ==
        std::vector<std::string>{"workload.duration changes nothing here: all 'requests' have arrived before"});
  CHECK(lines(arrivals + "}, requests: 100, duration: 11 s").empty());  // it may end before the last of them comes
  CHECK(lines(arrivals + "}, requests: 100, duration: 1 s") ==
        std::vector<std::string>{"workload.requests changes nothing here: 'duration' ends before so many arrive"});
}

TEST_CASE("idle settings: prompts that share what no engine keeps, and a time of day that is like all others") {
  const auto said = [](const std::string& engine, const std::string& load, const std::string& rest = "") {
    const ConfigTree tree = parse_config_text("model: llama-3.1-8b\ngpu: h100-sxm\nengine: {name: vllm, " + engine +
                                                  "}\n" + rest + "workload: {requests: 9, " + load + "}\n",
                                              "s.yaml");
    return idle_settings(tree, read_scenario(tree, Fidelity::kCalibrated)).size();
  };
  const std::string off = "prefix_caching: false", on = "prefix_caching: true",
                    load =
                        "arrivals: {process: poisson, rate: 1 /s}, prompt_tokens: 64, output_tokens: 8, "
                        "shared_prefix_tokens: 32";
  CHECK(said(off, load) == 1);
  CHECK(said(on, load) == 0);
  CHECK(said(off, load + ", turns: 2") == 0);  // the prefix lengthens a session
  const std::string by_prefix = "router: prefix_aware\nparallelism: {replicas: 2}\n";
  CHECK(said(on, load, by_prefix) == 0);
  CHECK(said(off, load, by_prefix) == 1);  // which of the replicas caches a prefix: none
  const std::string unshared = "arrivals: {process: poisson, rate: 1 /s}, prompt_tokens: 64, output_tokens: 8";
  CHECK(said("max_num_seqs: 8", unshared, by_prefix) == 1);
  CHECK(said("max_num_seqs: 8", unshared, "router: least_loaded\nparallelism: {replicas: 2}\n") == 0);
  const auto clients = [](const std::string& profile) {
    return "start: 1 h, clients: [{name: a, arrivals: {process: poisson, rate: 1 /s" + profile +
           "}, prompt_tokens: 64, output_tokens: 8}]";
  };
  CHECK(said("max_num_seqs: 8", clients("")) == 1);
  CHECK(said("max_num_seqs: 8", clients(", profile: [0.5, 1.5]")) == 0);
}

TEST_CASE("idle settings: keys of a load and of a search that a plan does without") {
  const ConfigTree plan = parse_config_text(
      "model: llama-3.1-8b\nparallelism: {tp: 2}\nworkload: {arrivals: {process: poisson, rate: 2 /s}, requests: 50, "
      "prompt_tokens: 64, output_tokens: 8}\nobjectives: {ttft_p90: 500 ms}\nsearch: {gpus: [h100-sxm], max_gpus: 1, "
      "tp: [1], confidence: "
      "0, load_uncertainty: 0.2, power_usage_effectiveness: 1.3, announced: true}\n",
      "p.yaml");
  const std::vector<std::string> notes = answer_plan(plan, {}, PlanDetail::kAll).result.notes;
  REQUIRE(notes.size() == 5);
  CHECK(notes[0] == "parallelism.tp changes nothing here: the search varies it");
  CHECK(notes[1].starts_with("search.announced changes nothing here"));
  CHECK(notes[2].starts_with("search.load_uncertainty changes nothing here"));
  CHECK(notes[3].starts_with("search.power_usage_effectiveness changes nothing here"));
  CHECK(notes[4].starts_with("workload.requests changes nothing here"));
}

TEST_CASE("idle settings: a tier without room for one block is told") {
  // 16 tokens of 2 x 8 x 128 x 32 values of 2 bytes: 2.1 MB.
  const auto lines = [](const std::string& engine) {
    const ConfigTree tree = parse_config_text("model: llama-3.1-8b\ngpu: h100-sxm\nengine: {name: vllm, " + engine +
                                                  "}\nworkload: {arrivals: {process: all_at_once}, requests: 2, "
                                                  "prompt_tokens: 64, output_tokens: 8, shared_prefix_tokens: 32}\n",
                                              "s.yaml");
    return idle_settings(tree, read_scenario(tree, Fidelity::kCalibrated));
  };
  REQUIRE(lines("kv_tiers: [{name: nvme, capacity: 1 MB, bandwidth: 6 GB/s}]").size() == 1);
  CHECK(lines("kv_tiers: [{name: nvme, capacity: 1 MB, bandwidth: 6 GB/s}]").front() ==
        "engine.kv_tiers: tier 'nvme' keeps nothing here: a block of 16 tokens takes 2.1 MB per GPU, its room is 1 MB");
  CHECK(lines("kv_tiers: [{name: nvme, capacity: 3 MB, bandwidth: 6 GB/s}]").empty());
  CHECK(lines("kv_offload: 1 MB").size() == 1);
}

namespace {

/// Twice a number, in its unit; the other of true and false; nothing for other words.
std::string other_value(const ConfigNode& node) {
  if (node.kind != ConfigNode::Kind::kScalar || node.quoted) return "";
  if (node.scalar == "true") return "false";
  if (node.scalar == "false") return "true";
  const char* const begin = node.scalar.c_str();
  char* end = nullptr;
  const double value = std::strtod(begin, &end);
  if (end == begin) return "";
  return fmt::format("{}{}", value == 0 ? 3 : 2 * value, end);
}

void flips_of(const ConfigNode& map, const std::string& prefix, std::vector<std::pair<std::string, std::string>>& out) {
  for (const ConfigNode::Entry& entry : map.entries) {
    const std::string key = prefix + entry.key;
    if (entry.value->kind == ConfigNode::Kind::kMap) {
      flips_of(*entry.value, key + ".", out);
    } else if (const std::string other = other_value(*entry.value); !other.empty()) {
      out.emplace_back(key, other);
    }
  }
}

/// Whether a line says of the key, or of a map around it or a key in it, that it has no effect in this scenario.
bool is_named(const ConfigTree& tree, const std::string& key, SpecCache& specs) {
  const auto named_in = [&](const std::vector<std::string>& lines) {
    return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
      const std::string named = line.substr(0, line.find_first_of(" :"));
      return (named + ".").starts_with(key + ".") || key.starts_with(named + ".");
    });
  };
  const Scenario read = read_scenario(tree, Fidelity::kCalibrated, specs);
  if (named_in(idle_settings(tree, read))) return true;
  const ServingMetrics metrics = simulate(read.deployment, *read.workload, read.serving);
  return named_in(idle_in_run(tree, read, Fidelity::kCalibrated, metrics));
}

std::string numbers_of(const ConfigTree& tree, SpecCache& specs) {
  return to_text(PointRunner(true, Fidelity::kCalibrated, specs).run(tree));
}

/// Whether a limit, a rate or a host time acts only if it is larger still: then the run says nothing, since it varies
/// what is written by two.
bool acts_beyond(const ConfigTree& tree, const std::string& key, const std::string& value, const std::string& before,
                 SpecCache& specs) {
  static const std::set<std::string> kThresholds{"engine.max_num_seqs", "engine.host.launch_time", "gpu.l2_cache",
                                                 "gpu.dense.fp16"};
  if (kThresholds.count(key) == 0) return false;
  const std::string larger = other_value(*make_scalar(value));
  std::string after = before;
  return !larger.empty() &&
         message_of([&] { after = numbers_of(with_value(tree, key, make_scalar(larger), "flip"), specs); }).empty() &&
         after != before;
}

}  // namespace

TEST_CASE("silent settings: each setting of each engine acts, is refused, or is said to change nothing") {
  const std::string workload =
      "workload:\n  arrivals: {process: poisson, rate: 8 /s}\n  requests: 60\n"
      "  prompt_tokens: {distribution: lognormal, mean: 900, p50: 500, max: 8000}\n  output_tokens: 100\n";
  SpecCache specs;
  int acting = 0;
  for (const char* setup :
       {"model: llama-3.1-8b\ngpu: h100-sxm\n", "model: deepseek-v3\ngpu: h200-sxm\nparallelism: {tp: 8, ep: 8}\n"}) {
    for (const std::string& engine : names_of("engines")) {
      const ConfigTree plain = parse_config_text(setup + workload + "engine: {name: " + engine + "}\n", "s.yaml");
      std::string before;
      if (!message_of([&] { before = numbers_of(plain, specs); }).empty()) continue;  // it does not run this model
      std::vector<std::pair<std::string, std::string>> flips;
      flips_of(*load_named("engines", engine, {}), "engine.", flips);
      for (const auto& [key, value] : flips) {
        const bool named = key == "engine.help" || key.starts_with("engine.version") || key == "engine.released";
        if (named) continue;
        INFO(std::string(setup) << engine << ": " << key << " = " << value);
        std::string after;
        const ConfigTree tree = with_value(plain, key, make_scalar(value), "flip");
        const bool refused = !message_of([&] { after = numbers_of(tree, specs); }).empty();
        const bool acts = !refused && after != before;
        acting += acts ? 1 : 0;
        CHECK((refused || acts || is_named(tree, key, specs) || acts_beyond(tree, key, value, before, specs)));
      }
    }
  }
  CHECK(acting > 50);
}

namespace {

/// Numbers doubled, switches turned, and of words the first letters doubled: a word is one of a closed set.
void all_flips_of(const ConfigNode& node, const std::string& key,
                  std::vector<std::pair<std::string, std::string>>& out) {
  if (node.kind == ConfigNode::Kind::kMap) {
    for (const ConfigNode::Entry& entry : node.entries)
      all_flips_of(*entry.value, key.empty() ? entry.key : key + "." + entry.key, out);
  } else if (node.kind == ConfigNode::Kind::kList) {
    for (std::size_t i = 0; i < node.items.size(); ++i) all_flips_of(*node.items[i], fmt::format("{}.{}", key, i), out);
  } else if (node.kind == ConfigNode::Kind::kScalar) {
    const std::string other = other_value(node);
    out.emplace_back(key, other.empty() ? "no-" + node.scalar : other);
  }
}

/// Names, sources and remarks.
bool is_text(const std::string& key) {
  const std::string last = key.substr(key.rfind('.') + 1);
  static const std::set<std::string> kTexts{"name", "published", "source", "help", "hugging_face", "chat", "date"};
  return kTexts.count(last) > 0;
}

/// Flips that change nothing, are not refused, and of which nothing is said: "KEY = VALUE, ...".
std::string silent_flips(const ConfigTree& plain, const std::string& under, const ConfigNode& keys,
                         const std::set<std::string>& exempt, SpecCache& specs, int& acting) {
  std::string silent, before;
  if (const std::string why = message_of([&] { before = numbers_of(plain, specs); }); !why.empty()) return why;
  std::vector<std::pair<std::string, std::string>> flips;
  all_flips_of(keys, "", flips);
  for (const auto& [key, value] : flips) {
    if (is_text(key) || exempt.count(key) > 0) continue;
    std::string after;
    const ConfigTree tree = with_value(plain, under + key, make_scalar(value), "flip");
    if (!message_of([&] { after = numbers_of(tree, specs); }).empty()) continue;
    acting += after != before ? 1 : 0;
    if (after == before && !is_named(tree, under + key, specs) && !acts_beyond(tree, under + key, value, before, specs))
      silent += key + " = " + value + ", ";
  }
  return silent;
}

const char* const kSmallLoad =
    "force_unsupported: true\n"
    "workload:\n  arrivals: {process: poisson, rate: 8 /s}\n  requests: 12\n"
    "  prompt_tokens: {distribution: uniform, min: 100, max: 900}\n"
    "  output_tokens: {distribution: fixed, value: 12}\n";

}  // namespace

TEST_CASE("silent settings: each key of each GPU acts, is refused, or is said to change nothing") {
  const std::set<std::string> exempt{"announced"};  // a remark
  int acting = 0;
  for (const std::string& gpu : names_of("hardware")) {
    SpecCache specs;
    const ConfigTree plain = parse_config_text(
        fmt::format("model: llama-3.2-1b\ngpu: {{name: {}, node: {{launch_speed: 8}}}}\nengine: vllm\n{}", gpu,
                    kSmallLoad),
        "s.yaml");  // not bound by launches
    INFO(gpu);
    CHECK(silent_flips(plain, "gpu.", *load_document("hardware", gpu, {}), exempt, specs, acting) == "");
  }
  CHECK(acting > 300);
}

TEST_CASE("silent settings: each key of each model acts, is refused, or is said to change nothing") {
  const std::set<std::string> exempt{
      // limits that these prompts do not reach
      "max_position_embeddings", "max_seq_len", "seq_length", "n_positions", "attention_chunk_size",
      // names, of which the layers stand in the file
      "model_type", "hugging_face.0", "hugging_face.1", "hugging_face.2",
      // experts are not spread over GPUs, and no drafts are made
      "n_group", "topk_group", "topk_method", "num_nextn_predict_layers", "num_mtp_modules", "mtp_num_hidden_layers",
      // what other keys of the same file say in full
      "num_key_value_heads", "head_dim", "full_attention_interval", "block_multiple_of", "intermediate_size",
      "n_shared_experts", "expand", "num_hidden_layers",
      // what costs nothing: how values are normalized, biases, chunks of a scan, and heads of as many values in all
      "qk_norm_type", "attention_bias", "chunk_size", "n_head", "mamba_ssm_dtype", "mamba_ssm_cache_dtype",
      "mlp_hidden_act", "multimodal"};
  // These prompts are text: of towers it is the weights that act.
  const std::set<std::string> towers{"vision_config.image_size",
                                     "vision_config.hidden_act",
                                     "vision_config.num_heads",
                                     "vision_config.window_size",
                                     "vision_config.fullatt_block_indexes.0",
                                     "vision_config.fullatt_block_indexes.1",
                                     "vision_config.fullatt_block_indexes.2",
                                     "vision_config.fullatt_block_indexes.3",
                                     "audio_config.encoder_attention_heads"};
  int acting = 0;
  std::set<std::string> seen;  // one of each family's sets of keys
  for (const std::string& model : names_of("models")) {
    const ConfigTree document = load_document("models", model, {});
    std::string keys;
    for (const ConfigNode::Entry& entry : document->entries) keys += entry.key + " ";
    if (!seen.insert(keys).second) continue;
    SpecCache specs;
    const ModelSpec spec = parse_model(document);
    // Longer than windows, and than what indexers choose; an encoder-decoder takes them whole, Whisper after its sound.
    const double context = spec.max_context, most = spec.attends_to_encoder() ? 900.0 : 12000.0;
    const bool hears = spec.encoded_tokens > 0;
    const ConfigTree plain = parse_config_text(
        fmt::format("model: {{name: {}}}\ngpu: {{name: b300-sxm, memory_capacity: 20 TB}}\nengine: vllm\n"
                    "force_unsupported: true\nworkload: {{arrivals: {{process: all_at_once}}, requests: 2, {}\n"
                    "  prompt_tokens: {{distribution: fixed, value: {:.0f}}},\n"
                    "  output_tokens: {{distribution: fixed, value: {}}}}}\n",
                    model, hears ? "audio: {length: 30 s}," : "",
                    hears         ? 4.0
                    : context > 0 ? std::clamp(context - 64, 100.0, most)
                                  : most,
                    spec.encoder_only ? 1 : 12),
        "s.yaml");
    INFO(model);
    std::set<std::string> here = exempt;
    here.insert(towers.begin(), towers.end());
    if (spec.encoder_only)  // rows of the embedding are memory, of which there is enough, and heads share the width
      here.insert({"num_attention_heads", "n_heads", "vocab_size", "type_vocab_size", "pad_token_id"});
    if (spec.attends_to_encoder())  // heads of as many values in all; either 16-bit format
      here.insert({"encoder_attention_heads", "decoder_attention_heads", "torch_dtype"});
    CHECK(silent_flips(plain, "model.", *document, here, specs, acting) == "");
  }
  CHECK(acting > 300);
}

TEST_CASE("silent settings: each key of each shipped scenario acts, is refused, or is said to change nothing") {
  // Objectives judge; users beyond the requests, and caches and lengths beyond what these ask for, are limits.
  const std::set<std::string> exempt{
      "objectives.ttft_p99",          "objectives.tpot_p99", "workload.arrivals.concurrency", "engine.kv_offload",
      "workload.arrivals.think_time", "workload.turns",      "workload.output_tokens.min"};
  // What so few requests do not reach or overflow; tests of each technique do.
  const std::set<std::string> kLimits{"engine.max_num_batched_tokens",
                                      "workload.prompt_tokens.max",
                                      "engine.max_num_seqs",
                                      "workload.duration",
                                      "workload.clients.0.objectives.ttft",
                                      "workload.clients.0.objectives.tpot",
                                      "workload.clients.1.objectives.e2el",
                                      "workload.clients.1.turns",
                                      "workload.clients.1.thinking.budget",
                                      "workload.clients.2.rate_limit.requests",
                                      "workload.clients.2.rate_limit.burst",
                                      "engine.kv_tiers.0.capacity",
                                      "engine.kv_tiers.0.bandwidth",
                                      "engine.kv_tiers.0.latency",
                                      "engine.kv_tiers.1.capacity",
                                      "engine.kv_tiers.1.bandwidth",
                                      "engine.kv_tiers.1.latency",
                                      "engine.kv_tiers.1.shared"};
  int acting = 0;
  for (const std::string& name : names_of("scenarios")) {
    if (name == "diurnal-chat-70b") continue;  // a whole day
    const ConfigTree document = load_document("scenarios", name, {});
    SpecCache specs;
    const ConfigTree plain = with_value(document, "workload.requests", make_scalar("24"), "test");
    INFO(name);
    std::set<std::string> here = exempt;
    here.insert(kLimits.begin(), kLimits.end());
    CHECK(silent_flips(plain, "", *document, here, specs, acting) == "");
  }
  CHECK(acting > 50);
}
