#include "sim/plan/launch_recipe.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/config_library.h"
#include "base/config_release.h"
#include "sim/plan/scenario.h"
#include "sim/step/deployment.h"
#include "tests/base/messages.h"

using namespace roofcast;

namespace {

const SourceLocation kOrigin{"s.yaml", 2, 9};

LaunchRecipe recipe(const std::string& rules, const std::string& keys = "") {
  return parse_launch_recipe(parse_config_text("name: mine\n" + keys + "rules:\n" + rules, "mine.yaml"));
}

/// An engine at a release, and a load of which these are known.
DeploymentFacts running(const std::string& engine, const std::string& version = "", double prompt_tokens = 0,
                        double users = 0) {
  DeploymentFacts facts;
  facts.engine = engine;
  facts.version = version;
  facts.prompt_tokens = prompt_tokens;
  facts.concurrency = users;
  return facts;
}

std::string engine_of(const LaunchRecipe& recipe, const DeploymentFacts& facts, double max_num_seqs = 256) {
  const ConfigTree engine = settings_of(recipe, facts, {.max_num_seqs = max_num_seqs}, kOrigin).engine;
  return engine ? to_yaml(*engine) : "";
}

Scenario read(const std::string& keys, const std::string& model = "llama-3.1-8b") {
  return read_scenario(parse_config_text("model: " + model + "\ngpu: h100-sxm\n" + keys, "s.yaml"),
                       Fidelity::kCalibrated);
}

std::string load(int users, int prompt) {
  return "\nworkload: {arrivals: {process: closed_loop, concurrency: " + std::to_string(users) +
         "}, requests: 8, prompt_tokens: " + std::to_string(prompt) + ", output_tokens: 64}";
}

}  // namespace

TEST_CASE("formats assumed by a checkpoint's name are not told where others take their place") {
  const auto told = [](const std::string& precision) {
    int count = 0;
    const Scenario scenario = read(precision, "Qwen/Qwen3-8B-FP8");
    for (const std::string& one : scenario.deployment->model.assumptions)
      count += one.find("checkpoints named '-FP8'") != std::string::npos;
    return count;
  };
  CHECK(told("") == 1);
  CHECK(told("precision: {kv_cache: fp8}") == 1);
  CHECK(told("precision: {weights: bf16}") == 0);
  CHECK(told("precision: awq") == 0);
}

TEST_CASE("recipe: later rules go over earlier ones, key by key") {
  const LaunchRecipe r = recipe(
      "  - {when: {}, source: a, engine: {block_size: 16, cuda_graphs: {max_batch: 8, enabled: true}}}\n"
      "  - {when: {engine: vllm}, source: b, engine: {cuda_graphs: {max_batch: 64}}}\n"
      "  - {when: {engine: sglang}, source: c, engine: {block_size: 1}}\n");
  CHECK(engine_of(r, running("vllm")) == "block_size: 16\ncuda_graphs:\n  max_batch: 64\n  enabled: true\n");
  CHECK(engine_of(r, running("sglang")) == "block_size: 1\ncuda_graphs:\n  max_batch: 8\n  enabled: true\n");
  CHECK(settings_of(r, running("vllm"), {.max_num_seqs = 256}, kOrigin).precision == nullptr);
  CHECK(engine_of(recipe("  - {when: {engine: trtllm}, source: a, engine: {block_size: 64}}\n"), running("vllm")) ==
        "");
}

TEST_CASE("recipe: amounts are numbers, and those with something unknown are left out") {
  const LaunchRecipe r = recipe(
      "  - {when: {}, source: a, engine: {max_num_seqs: \"max(512, concurrency)\","
      " max_num_batched_tokens: max_num_seqs + prompt_tokens + 1500}}\n");
  // 512 sequences and 1000 + 1500 tokens beside them
  CHECK(engine_of(r, running("vllm", "", 1000, 8)) == "max_num_seqs: 512\nmax_num_batched_tokens: 3012\n");
  CHECK(engine_of(r, running("vllm", "", 1000, 600)) == "max_num_seqs: 600\nmax_num_batched_tokens: 3100\n");
  // Of an open load the users are not known: the release's sequences stay, and the budget is theirs.
  CHECK(engine_of(r, running("vllm", "", 1000), 256) == "max_num_batched_tokens: 2756\n");
  CHECK(engine_of(r, running("vllm")) == "{}\n");
  // Never less than one.
  CHECK_THROWS_WITH(engine_of(recipe("  - {when: {}, source: a, engine: {max_num_seqs: 1 - 2}}\n"), running("vllm")),
                    "mine.yaml:3:50: 'max_num_seqs' comes out at -1; it must be from 1 to 16777216");
  // Too deep a nest of max(...) is refused, and no crash.
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "max(";
  CHECK_THROWS_AS(
      engine_of(recipe("  - {when: {}, source: a, engine: {max_num_seqs: \"" + deep + "\"}}\n"), running("vllm")),
      ConfigError);
  CHECK_THROWS_AS(engine_of(recipe("  - {when: {}, source: a, engine: {max_num_seqs: 1abc}}\n"), running("vllm")),
                  ConfigError);
}

TEST_CASE("recipe: a rule may ask about the release, and a later one counts on what an earlier one set") {
  const LaunchRecipe r = recipe(
      "  - {when: {since: \"1.0\"}, source: a, engine: {max_num_seqs: 64}}\n"
      "  - {when: {}, source: b, engine: {max_num_batched_tokens: max_num_seqs + 36}}\n");
  CHECK(engine_of(r, running("trtllm", "1.2.0"), 256) == "max_num_seqs: 64\nmax_num_batched_tokens: 100\n");
  CHECK(engine_of(r, running("trtllm", "0.20.0"), 256) == "max_num_batched_tokens: 292\n");
}

TEST_CASE("recipe: formats are set as engine settings are") {
  const LaunchRecipe r = recipe("  - {when: {weights: fp8}, source: a, precision: {kv_cache: fp8}}\n");
  Precision fp8, bf16;
  fp8.weights = Dtype::kFp8;
  const auto formats = [&](const Precision& p) {
    DeploymentFacts facts = running("vllm");
    facts.precision = &p;
    const ConfigTree tree = settings_of(r, facts, {.max_num_seqs = 256}, kOrigin).precision;
    return tree ? to_yaml(*tree) : "";
  };
  CHECK(formats(fp8) == "kv_cache: fp8\n");
  CHECK(formats(bf16) == "");
}

TEST_CASE("recipe: what is wrong with one is answered where it stands") {
  const auto refused = [](const std::string& rules) { return message_of([&] { recipe(rules); }); };
  CHECK(refused("  - {when: {}, engine: {block_size: 1}}\n").find("missing key 'source'") != std::string::npos);
  CHECK(refused("  - {when: {engin: x}, source: a, engine: {block_size: 1}}\n").find("unknown key 'engin'") !=
        std::string::npos);
  CHECK(refused("  - {when: {}, source: a, engine: 3}\n") == "mine.yaml:3:35: what a rule sets must be a map");
  CHECK(refused("  - {when: {}, source: a, engines: {block_size: 1}}\n").find("unknown key 'engines'") !=
        std::string::npos);
  const LaunchRecipe one = recipe("  - {when: {}, source: a}\n", "engines: [vllm, trtllm]\n");
  CHECK(message_of([&] { engine_of(one, running("sglang")); }) ==
        "s.yaml:2:9: recipe 'mine' does not launch sglang (it launches vllm, trtllm); sglang is launched by "
        "aiconfigurator, dynamo, inferencex, mlperf, static-batch");
  CHECK(engine_of(one, running("trtllm")) == "");
}

TEST_CASE("recipe: columns that were not read are named for the runs in question alone") {
  const LaunchRecipe r =
      recipe("  - {when: {engine: vllm, client_until: 2025-11-03}, unread: [kv_dtype], source: a}\n");
  DeploymentFacts facts = running("vllm");
  CHECK(unread_columns(r, facts).empty());  // the newest client
  facts.client_date = "2025-11-02";
  CHECK(unread_columns(r, facts) == std::vector<std::string>{"kv_dtype"});
  facts.engine = "sglang";
  CHECK(unread_columns(r, facts).empty());
  CHECK(message_of([] {
          recipe("  - {when: {}, unread: [kv_dtypes], source: a}\n");
        }).find("unknown launch column 'kv_dtypes'; nearest is 'kv_dtype'") != std::string::npos);
}

TEST_CASE("recipe: found by its name, and by others of the same") {
  CHECK(find_launch_recipe("aiconfigurator", kOrigin).name == "aiconfigurator");
  CHECK(find_launch_recipe("nvidia", kOrigin).name == "aiconfigurator");
  CHECK(known_launch_recipe("trtllm_perf_overview")->name == "trtllm-perf-overview");
  CHECK_FALSE(known_launch_recipe("a paper of 2024"));
  CHECK_FALSE(known_launch_recipe(""));
  CHECK(message_of([] {
          find_launch_recipe("inferencx", kOrigin);
        }).starts_with("s.yaml:2:9: unknown recipe 'inferencx'; nearest is 'inferencex'"));
}

TEST_CASE("recipe: every shipped one can be read, and names what there is") {
  const std::vector<std::string> engines = names_of("engines"), clients = names_of("clients");
  const auto among = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  CHECK(names_of("recipes").size() >= 9);
  for (const std::string& name : names_of("recipes")) {
    INFO(name);
    const LaunchRecipe r = parse_launch_recipe(load_named("recipes", name, kOrigin));
    CHECK(r.name == name);
    CHECK_FALSE(r.help.empty());
    CHECK_FALSE(r.source.empty());
    if (!r.client.empty()) CHECK(among(clients, r.client));
    if (r.clients) {
      for (const ConfigNode::Entry& of_task : r.clients->entries) CHECK(among(clients, of_task.value->scalar));
    }
    for (const std::string& engine : r.engines) CHECK(among(engines, engine));
    for (const LaunchRule& rule : r.rules) CHECK_FALSE(rule.source.empty());
    for (const std::string& other : r.also) CHECK(known_launch_recipe(other)->name == name);
    // What ran on a day is a release that there is, in the order of the days.
    if (r.images) {
      for (const ConfigNode::Entry& image : r.images->entries) {
        const std::string engine = image.key.substr(0, image.key.find("-workers"));
        std::string day;
        for (const ConfigTree& item : image.value->items) {
          const std::string since = (*item->find("since"))->scalar, version = (*item->find("version"))->scalar;
          CHECK(is_date(since));
          CHECK(day < since);
          day = since;
          CHECK_FALSE(find_release(load_document("engines", engine, kOrigin), version, kOrigin).beyond_known);
        }
      }
    }
    if (r.parts) {
      for (const ConfigNode::Entry& part : r.parts->entries)
        CHECK_NOTHROW(load_named("hardware", part.value->scalar, kOrigin));
    }
  }
}

TEST_CASE("recipe: every setting of every shipped one is one that its engines take") {
  // With lengths and users known, and for models with experts and without, every rule that can be in force is.
  for (const std::string& name : names_of("recipes")) {
    const LaunchRecipe r = find_launch_recipe(name, kOrigin);
    for (const std::string& engine : r.engines.empty() ? std::vector<std::string>{"vllm", "trtllm"} : r.engines) {
      for (const char* model : {"llama-3.1-8b", "mixtral-8x7b"}) {
        INFO(name << " " << engine << " " << model);
        const Scenario s =
            read("engine: " + engine + "\nrecipe: " + name + "\nprecision: {weights: fp8}" + load(8, 1000), model);
        CHECK(s.deployment->engine.name == engine);
      }
    }
    for (const LaunchRule& rule : r.rules) {
      INFO(name << ": " << rule.source);
      if (!rule.engine) continue;
      for (const std::string& engine : r.engines) {
        auto settings = std::make_shared<ConfigNode>(*rule.engine);
        std::erase_if(settings->entries, [](const ConfigNode::Entry& e) { return e.key.starts_with("max_num_"); });
        const ConfigTree whole = overlay(load_named("engines", engine, kOrigin), settings);
        CHECK_NOTHROW(parse_engine_spec(ConfigReader(whole, "an engine")));
      }
    }
  }
}

TEST_CASE("recipe: a scenario's own settings go over the recipe's, and those over the release's") {
  const std::string engine = "engine: {name: vllm, version: \"0.12.0\"";
  const auto utilization = [&](const std::string& own, const std::string& recipe) {
    return read(engine + own + "}\n" + recipe).deployment->engine.gpu_memory_utilization;
  };
  const double of_release = utilization("", "");
  REQUIRE(of_release != 0.95);
  CHECK(utilization("", "recipe: mlperf") == 0.95);
  CHECK(utilization(", gpu_memory_utilization: 0.5", "recipe: mlperf") == 0.5);
  CHECK(read("engine: vllm@0.12.0\nrecipe: mlperf").deployment->engine.gpu_memory_utilization == 0.95);
  CHECK(read("engine: vllm@0.12.0\nrecipe: mlperf").deployment->engine.version == "0.12.0");
  // The engine is called in its process: no front end costs time.
  const EngineSpec called = read("engine: vllm@0.12.0\nrecipe: mlperf").deployment->engine;
  CHECK(called.front_end == "none");
  for (const Seconds cost :
       {called.host.request_time, called.host.request_latency, called.host.token_time, called.host.prompt_token_time})
    CHECK(cost == Seconds(0));
  CHECK(read(engine + ", front_end: dynamo}\nrecipe: mlperf").deployment->engine.front_end == "dynamo");
}

TEST_CASE("recipe: a scenario without a version takes the release of the client's day") {
  const auto version = [](const std::string& engine, const char* day) {
    return read_scenario(
        parse_config_text(
            fmt::format("model: llama-3.1-8b\ngpu: h100-sxm\nrecipe: inferencex\n{}\nworkload: {{client: inferencex, "
                        "client_date: {}, concurrency: 4, prompt_tokens: 100, output_tokens: 10}}",
                        engine, day),
            "s.yaml"),
        Fidelity::kCalibrated);
  };
  const Scenario dated = version("engine: vllm", "2025-12-01");
  CHECK(dated.deployment->engine.version == "0.11.0");
  CHECK(dated.doubts.front() == "engine: no version is given; recipe 'inferencex' ran vllm 0.11.0 on that day");
  CHECK(version("engine: {name: sglang, max_num_seqs: 64}", "2026-03-01").deployment->engine.version == "0.5.9");
  CHECK(version("engine: vllm@0.19", "2025-12-01").deployment->engine.version == "0.19.0");
  CHECK(version("engine: {name: vllm, version: 0.19.0}", "2025-12-01").deployment->engine.version == "0.19.0");
  CHECK(version("", "2025-09-01").deployment->engine.version == "0.10.2");  // vllm is the default
  // A patch that is not listed says so.
  CHECK(version("engine: vllm@0.12.7", "2026-03-01").doubts.front() ==
        "engine: vllm 0.12.7 is not listed; taken as 0.12.0 of 2025-12-03");
}

TEST_CASE("recipe: its formats go under those that the scenario writes") {
  const auto cache = [](const std::string& precision, const std::string& recipe) {
    return read("engine: trtllm\nprecision: " + precision + "\n" + recipe).deployment->precision.kv_cache;
  };
  CHECK(cache("fp8", "") == Dtype::kBf16);
  CHECK(cache("fp8", "recipe: mlperf") == Dtype::kFp8);
  CHECK(cache("{weights: fp8}", "recipe: mlperf") == Dtype::kFp8);
  CHECK(cache("{weights: fp8, kv_cache: bf16}", "recipe: mlperf") == Dtype::kBf16);
  CHECK(cache("bf16", "recipe: mlperf") == Dtype::kBf16);
}

TEST_CASE("recipe: amounts know the load of the scenario, of workers apart as well") {
  const std::string keys = "engine: {name: trtllm, version: 1.2.0}\nrecipe: aiconfigurator";
  // 512 sequences or as many as are in flight; a prompt, a token of each, and 1500 more
  const EngineSpec few = read(keys + load(8, 1000)).deployment->engine;
  CHECK(few.max_num_seqs == 512);
  CHECK(few.max_num_batched_tokens == 512 + 1000 + 1500);
  CHECK_FALSE(few.chunked_prefill);
  CHECK(few.front_end == "dynamo");
  CHECK(read(keys + load(1024, 1000)).deployment->engine.max_num_batched_tokens == 1024 + 1000 + 1500);
  CHECK(read("engine: {name: trtllm, version: 1.2.0, max_num_seqs: 16}\nrecipe: aiconfigurator" + load(8, 1000))
            .deployment->engine.max_num_seqs == 16);
  const Scenario apart = read(keys + load(8, 1000) + "\ndisaggregation: {prefill: {parallelism: {tp: 1}}}");
  REQUIRE(apart.serving.disaggregation);
  CHECK(apart.serving.disaggregation->prefill->engine.max_num_seqs == 512);
  CHECK(apart.serving.disaggregation->prefill->engine.front_end == "dynamo");
}

TEST_CASE("recipe: what aiconfigurator generated for TensorRT-LLM before 1.1") {
  const auto engine = [](const char* model, const char* precision = "{weights: fp8}", int users = 8) {
    return read(std::string("engine: {name: trtllm, version: 1.0.0}\nparallelism: {tp: 4}\nrecipe: "
                            "aiconfigurator\nprecision: ") +
                    precision + load(users, 1000),
                model)
        .deployment->engine;
  };
  // Without experts the budget is the prompt and a token of each of the others, less Llama's begin-of-sequence token.
  CHECK(engine("llama-3.1-8b").max_num_batched_tokens == 1000 + 8 - 2);
  CHECK(engine("llama-3.1-8b", "{weights: fp8}", 1).max_num_batched_tokens == 1000);  // the prompt, at least
  CHECK(engine("qwen3-32b").max_num_batched_tokens == 1000 + 8 - 1);
  CHECK(engine("mixtral-8x7b").max_num_batched_tokens == 512 + 1000 + 1500);
  CHECK_FALSE(engine("qwen3-32b").async_scheduling);
  CHECK_FALSE(engine("mixtral-8x7b").async_scheduling);
  CHECK(engine("qwen3-32b").graphs.max_batch == 2048);
}
