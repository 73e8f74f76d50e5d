#include "explore/api.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/random.h"
#include "tests/base/temporary_folder.h"
#include "tests/cli/run_program.h"

using namespace roofcast;
using namespace roofcast::explore;
using Json = nlohmann::json;

namespace {

ApiAnswer get(const std::string& endpoint, std::vector<std::pair<std::string, std::string>> parameters = {}) {
  return answer({.method = "GET", .path = "/api/v1/" + endpoint, .parameters = std::move(parameters)});
}
ApiAnswer post(const std::string& endpoint, const std::string& body, const std::string& type = "application/json") {
  return answer({.method = "POST", .path = "/api/v1/" + endpoint, .content_type = type, .body = body});
}
std::string header(const ApiAnswer& answer, const std::string& name) {
  for (const auto& [key, value] : answer.headers) {
    if (key == name) return value;
  }
  return "";
}
Json json_of(const ApiAnswer& answer) {
  INFO(answer.body);
  REQUIRE(answer.status == 200);
  return Json::parse(answer.body);
}
/// The text of a 400.
std::string error_of(const ApiAnswer& answer) {
  INFO(answer.body);
  REQUIRE(answer.status == 400);
  return Json::parse(answer.body)["error"].get<std::string>();
}

const char* const kSmall = R"({"model": "llama-3.1-8b", "gpu": "h100-sxm", "batch": 16, "output_tokens": 64})";
const char* const kSetupEndpoints[] = {"estimate",   "timeline",    "roofline", "breakdown", "tiles",   "memory",
                                       "throughput", "speculation", "rounds",   "cache",     "formats", "attention",
                                       "costs",      "batching",    "limits",   "paging",    "prefix",  "integers"};

}  // namespace

TEST_CASE("an estimate equals the command line's output, byte for byte") {
  for (const char* body :
       {kSmall,
        R"({"model": "llama-3.1-70b", "gpu": "h100-sxm", "tp": 4, "dp": 2, "weights": "fp8", "kv_cache_dtype": "fp8", )"
        R"("batch": 32})",
        R"({"model": "llama-2-13b", "gpu": "a100-sxm", "engine": "trtllm", "weights": "awq", "fidelity": "ideal", )"
        R"("context": 777})",
        R"({"model": "deepseek-v3", "gpu": "h200-sxm", "tp": 8, "batch": 64, "speculation": "mtp", )"
        R"("num_speculative_tokens": 2, "acceptance": 0.9})",
        R"({"model": "llama-3.1-70b", "gpu": "h200-sxm", "tp": 2, "speculation": "draft_model", )"
        R"("draft_model": "llama-3.1-8b"})",
        R"({"model": "qwen3-14b", "gpu": "h100-sxm", "engine": "sglang", "attention": "mla", "batch": 8})",
        R"({"model": "falcon-40b", "gpu": "h200-sxm", "attention": "mqa", "prompt_tokens": 3000})",
        R"({"model": "whisper-large-v3", "gpu": "h100-sxm", "prompt_tokens": 4, "output_tokens": 100})",
        R"({"model": "bart-large-cnn", "gpu": "l40s", "prompt_tokens": 600, "output_tokens": 60})",
        R"({"model": "mistral-7b", "gpu": "l40s", "attention": "window", "window": 512, "kv_cache": true})",
        R"({"model": "llama-2-7b", "gpu": "h100-sxm", "engine": "vllm", "kv_cache": false, "output_tokens": 32})",
        R"({"model": "llama-2-70b", "gpu": "rtx-4090"})"}) {
    INFO(body);
    const ApiAnswer answered = post("estimate", body);
    CHECK(answered.status == 200);
    const std::string command = header(answered, "Roofcast-Command");
    REQUIRE(command.starts_with("roofcast estimate "));
    const auto printed = testing::run_roofcast(command.substr(9) + " --format json");
    CHECK(printed.out == answered.body);
  }
}

TEST_CASE("a URL query gives the same answer as a body") {
  const ApiAnswer a =
      get("estimate", {{"model", "llama-3.1-8b"}, {"gpu", "h100-sxm"}, {"batch", "16"}, {"output_tokens", "64"}});
  CHECK(a.body == post("estimate", kSmall).body);
  CHECK(a.body == post("estimate", kSmall, "application/json; charset=utf-8").body);
}

TEST_CASE("every endpoint answers every kind of model, and what does not fit") {
  for (const char* body :
       {kSmall, R"({"model": "mamba-2.8b", "gpu": "a100-sxm", "batch": 3, "output_tokens": 1})",
        R"({"model": "jamba-1.5-mini", "gpu": "h200-sxm", "tp": 2, "fidelity": "ideal"})",
        R"({"model": "minimax-01", "gpu": "gb300", "tp": 8, "prompt_tokens": 1, "output_tokens": 1})",
        R"({"model": "llama-3.1-405b", "gpu": "l4"})", R"({"model": "gpt-2", "gpu": "mi300x", "speculation": "ngram"})",
        R"({"model": "llama-2-7b", "gpu": "h100-sxm", "kv_cache": "false", "output_tokens": 8, "context": 50})"}) {
    for (const char* endpoint : kSetupEndpoints) {
      INFO(std::string(endpoint) << " " << body);
      const Json json = json_of(post(endpoint, body));
      CHECK(json.is_object());
    }
  }
}

TEST_CASE("encoder-only models are priced where possible, and refused with a reason elsewhere") {
  const std::string body =
      R"({"model": "bart-large-cnn", "gpu": "h100-sxm", "prompt_tokens": 400, "output_tokens": 40})";
  for (const char* endpoint :
       {"timeline", "roofline", "breakdown", "memory", "throughput", "formats", "costs", "limits"}) {
    INFO(endpoint);
    CHECK(post(endpoint, body).status == 200);
  }
  for (const char* endpoint :
       {"tiles", "speculation", "rounds", "cache", "attention", "paging", "prefix", "stack", "batching"}) {
    CHECK(error_of(post(endpoint, body)) ==
          std::string(endpoint) + ": bart-large-cnn: not for a model whose input is read by an encoder");
  }
  CHECK(error_of(post("estimate", R"({"model": "bge-m3", "gpu": "h100-sxm"})"))
            .starts_with("model: bge-m3 is an encoder"));
}

TEST_CASE("the catalogs list what ships") {
  const Json models = json_of(get("models")), gpus = json_of(get("gpus")), engines = json_of(get("engines"));
  const auto has = [](const Json& list, const char* name) {
    return std::any_of(list.begin(), list.end(), [&](const Json& entry) { return entry["name"] == name; });
  };
  CHECK(has(models, "deepseek-v3"));
  CHECK(has(gpus, "h100-sxm"));
  CHECK(has(engines, "vllm"));
  const Json choices = json_of(get("choices"));
  CHECK(choices["formats"].size() == 13);
  CHECK(choices["attention"].size() == 6);
  const Json index = json_of(get(""));
  CHECK(index["endpoints"].size() == 4 + 4 + 1 + std::size(kSetupEndpoints));
  for (const Json& entry : index["endpoints"]) CHECK(entry["path"].get<std::string>().starts_with("/api/v1/"));
}

TEST_CASE("an estimate of a document is the same, and contains its question") {
  const Json flat = json_of(post("estimate", kSmall));
  const Json& question = flat["question"];
  CHECK(question["batch"] == 16);
  const Json body{{"document", question["document"].dump()}, {"batch", "16"}, {"output_tokens", "64"}};
  CHECK(json_of(post("estimate_document", body.dump())) == flat);
  CHECK(
      error_of(post("estimate_document", R"({"document": "{model: llama-3.1-8b, gpu: h100-sxm}", "batch": "many"})")) ==
      "batch: must be an integer from 1 to 16384, got 'many'");
}

TEST_CASE("sizes of one's own: layers, heads, width, memory of a GPU") {
  const auto of = [](std::vector<std::pair<std::string, std::string>> keys) {
    keys.insert(keys.end(), {{"model", "llama-3.1-8b"}, {"gpu", "h100-sxm"}});
    return get("memory", keys);
  };
  // K and V of 16 layers with 8 key-value heads of 64 values in 16 bit: 2 x 16 x 8 x 64 x 2 = 32768 B a token.
  const Json small = json_of(of({{"layers", "16"}, {"head_dim", "64"}, {"gpu_memory_gb", "24"}}));
  CHECK(small["kv_cache_bytes_per_token"] == 32768);
  CHECK(small["capacity_bytes"] == 24e9);
  // Width 2048: embedding and head 2 x 128256 x 2048; a layer with 32 heads of 128: q and o 2 x 2048 x 4096, k and v
  // 2 x 2048 x 1024, three matrices of 2048 x 7168, two norms of 2048; the last norm.
  const double layer = 2.0 * 2048 * 4096 + 2.0 * 2048 * 1024 + 3.0 * 2048 * 7168 + 2 * 2048;
  CHECK(json_of(of({{"width", "2048"}}))["parameters"].get<double>() == 2.0 * 128256 * 2048 + 32 * layer + 2048);
  CHECK(error_of(of({{"heads", "4"}})) == "heads: must be a multiple of its 8 key-value heads, got 4");
  CHECK(error_of(of({{"layers", "0"}})) == "layers: must be an integer from 1 to 1024, got '0'");
  const ApiAnswer estimate = get("estimate", {{"model", "llama-3.1-8b"}, {"gpu", "h100-sxm"}, {"layers", "2"}});
  CHECK(header(estimate, "Roofcast-Command") ==
        "roofcast estimate --gpu h100-sxm --set 'model={name: llama-3.1-8b, num_hidden_layers: 2}'");
}

TEST_CASE("every cell of a map of limits equals an estimate") {
  const Json map = json_of(get("limits", {{"model", "llama-3.1-8b"}, {"gpu", "h100-sxm"}, {"max_tpot_ms", "12"}}));
  CHECK(map["cells"].size() == map["batches"].size() * map["contexts"].size());
  for (const Json& cell : map["cells"]) {
    if (cell["context_tokens"] != 4096) continue;
    const Json e = json_of(get("estimate", {{"model", "llama-3.1-8b"},
                                            {"gpu", "h100-sxm"},
                                            {"batch", std::to_string(cell["batch"].get<int>())},
                                            {"prompt_tokens", "4095"},
                                            {"output_tokens", "1"},
                                            {"context", "4096"}}));
    INFO(cell.dump());
    CHECK(cell["fits"] == e["memory"]["fits"]);
    if (!cell["fits"].get<bool>()) continue;
    CHECK(cell["tpot_ms"].get<double>() == doctest::Approx(e["decode"]["step_ms"].get<double>()).epsilon(1e-6));
    CHECK(cell["verdict"] == (cell["tpot_ms"].get<double>() <= 12 ? "meets" : "misses"));
  }
}

TEST_CASE("memory in blocks: what is reserved fits by division, blocks waste less than one each") {
  const Json p = json_of(get(
      "paging", {{"model", "llama-3.1-8b"}, {"gpu", "h100-sxm"}, {"prompt_tokens", "100"}, {"output_tokens", "900"}}));
  const double room = p["capacity_tokens"].get<double>();
  CHECK(p["reserving"]["sequences"].get<double>() == std::floor(room / 1000));
  CHECK(p["sequences"].size() == 24);
  for (const Json& s : p["sequences"]) CHECK(s["blocks"].get<int>() == (s["tokens"].get<int>() + 15) / 16);
  // Outputs end anywhere from 1 to 900: 550 tokens on average, 55 % of what is reserved.
  CHECK(p["reserving"]["used_share"].get<double>() == doctest::Approx(0.55).epsilon(0.06));
  CHECK(p["paging"]["used_share"].get<double>() > 1 - 16.0 / 550);
  CHECK(p["gain"].get<double>() == doctest::Approx(1 / 0.55).epsilon(0.06));
  CHECK(json_of(get("paging", {{"model", "mamba-2.8b"}, {"gpu", "h100-sxm"}}))["reason"].is_string());
}

TEST_CASE("a prompt with a cached prefix: less work with every block, never none") {
  const Json p = json_of(get("prefix", {{"model", "llama-3.1-8b"}, {"gpu", "h100-sxm"}, {"prompt_tokens", "1024"}}));
  CHECK(p["points"][0]["prefill_ms"] == p["prefill_ms"]);
  double last = 1e300;
  for (const Json& point : p["points"]) {
    CHECK(point["cached_tokens"].get<int>() % 16 == 0);
    CHECK(point["prefill_ms"].get<double>() <= last);
    last = point["prefill_ms"].get<double>();
  }
  CHECK(p["points"].back()["cached_tokens"] == 1008);  // the last block holds the last token, which is computed
}

TEST_CASE("the techniques one after another are those of the command") {
  const TemporaryFolder folder;
  const std::string path = folder.write("s.yaml", R"(model: llama-3.1-8b
gpu: h100-sxm
workload: {arrivals: {process: closed_loop, concurrency: 16}, prompt_tokens: 1024, output_tokens: 64, requests: 32}
)");
  const auto printed = testing::run_roofcast("ladder " + path + " --concurrency 16 --requests 32 --format json");
  Json ladder = Json::parse(printed.out);
  ladder.erase("question");  // of the scenario, which the canvas does not ask by
  CHECK(json_of(post("stack", kSmall)) == ladder);
  CHECK(error_of(post("stack", R"({"model": "gpt-2", "gpu": "h100-sxm"})")).find("beyond the context of gpt-2") !=
        std::string::npos);
  CHECK(error_of(post("stack", R"({"model": "llama-3.1-8b", "gpu": "h100-sxm", "batch": 64, "output_tokens": 8192})"))
            .starts_with("batch: 64 requests of 1024 + 8192 tokens are too much to play"));
}

TEST_CASE("integers by channel: no weight is off by more than half a step") {
  const Json e = json_of(get("integers", {{"model", "llama-3.1-8b"}, {"gpu", "h100-sxm"}, {"seed", "7"}}));
  REQUIRE(e["rows"].size() == 4);
  for (const Json& row : e["rows"]) {
    for (const char* kind : {"by_tensor", "by_channel"}) {
      const double scale = row[kind]["scale"].get<double>();
      for (std::size_t i = 0; i < row["weights"].size(); ++i) {
        const double w = row["weights"][i].get<double>(), q = row[kind]["integers"][i].get<double>();
        CHECK(std::abs(q) <= 127);
        CHECK(std::abs(w - q * scale) <= scale / 2 * (1 + 1e-9));
      }
    }
    CHECK(row["by_channel"]["error"].get<double>() <= row["by_tensor"]["error"].get<double>() * (1 + 1e-9));
  }
}

TEST_CASE("a draft's cost can be given: the textbook's speed-up") {
  const Json s = json_of(get("speculation", {{"model", "llama-3.1-8b"},
                                             {"gpu", "h100-sxm"},
                                             {"draft_cost", "0.1"},
                                             {"speculation", "draft_model"},
                                             {"draft_model", "llama-3.2-1b"},
                                             {"acceptance", "0.8"}}));
  const double plain = s["plain_step_ms"].get<double>();
  for (const Json& point : s["points"]) {
    // E = (1 - a^(k+1)) / (1 - a) tokens for k drafts of a tenth of a step and a verifying step.
    const double k = point["num_speculative_tokens"].get<double>(), tokens = (1 - std::pow(0.8, k + 1)) / 0.2;
    CHECK(point["draft_ms"].get<double>() == doctest::Approx(0.1 * k * plain));
    CHECK(point["speedup"].get<double>() ==
          doctest::Approx(tokens * plain / (0.1 * k * plain + point["verify_ms"].get<double>())));
  }
  CHECK(error_of(get("speculation", {{"model", "llama-3.1-8b"}, {"gpu", "h100-sxm"}, {"draft_cost", "2"}})) ==
        "draft_cost: must be a number from 0 to 1, got '2'");
}

TEST_CASE("a timeline is of one request alone, and ends when it does") {
  const char* one = R"({"model": "llama-3.1-8b", "gpu": "h100-sxm", "batch": 1, "output_tokens": 64})";
  const Json e = json_of(post("estimate", one)), t = json_of(post("timeline", kSmall));
  CHECK(t["ttft_ms"] == e["ttft_ms"]);
  CHECK(t["tokens"].size() == 64);
  CHECK(t["tokens"][0]["at_ms"] == e["ttft_ms"]);
  CHECK(t["tokens"][63]["token"] == 64);
  CHECK(t["tokens"][63]["at_ms"].get<double>() ==
        doctest::Approx(e["request_latency_ms"].get<double>()).epsilon(1e-12));
  for (std::size_t i = 1; i < 64; ++i) CHECK(t["tokens"][i]["at_ms"] > t["tokens"][i - 1]["at_ms"]);
}

TEST_CASE("a throughput curve goes through the estimate, and its knee has the most throughput a latency") {
  const Json e = json_of(post("estimate", kSmall)), curve = json_of(post("throughput", kSmall));
  double best = 0;
  int knee = 0;
  bool found = false;
  for (const Json& p : curve["points"]) {
    if (p["batch"] == 16) {
      found = true;
      CHECK(p["tpot_ms"] == e["tpot_ms"]);
      CHECK(p["output_tokens_per_s"] == e["output_tokens_per_s"]);
      CHECK(p["tpot_ms_low"] == e["tpot_ms_low"]);
      CHECK(p["tpot_ms_high"] == e["tpot_ms_high"]);
    }
    const double power = p["output_tokens_per_s"].get<double>() / p["tpot_ms"].get<double>();
    if (p["fits"].get<bool>() && power > best) best = power, knee = p["batch"].get<int>();
  }
  CHECK(found);
  CHECK(curve["knee_batch"] == knee);
}

TEST_CASE("a throughput curve has no batch beyond max_num_seqs, unless it is ideal") {
  const char* const asked =
      R"({"model": "llama-3.1-8b", "gpu": "h100-sxm", "engine": "llama-cpp", "batch": 64, "output_tokens": 64})";
  const Json e = json_of(post("estimate", asked)), curve = json_of(post("throughput", asked));
  const int running = e["batch"].get<int>() - e["waiting"].get<int>();
  CHECK(running < 64);
  CHECK(curve["batch"] == running);
  std::vector<int> batches;
  for (const Json& p : curve["points"]) batches.push_back(p["batch"].get<int>());
  CHECK(std::adjacent_find(batches.begin(), batches.end(), std::greater_equal<>()) == batches.end());  // each once
  CHECK(batches.back() == running);
  CHECK(std::count(batches.begin(), batches.end(), curve["knee_batch"].get<int>()) == 1);
  Json ideal = Json::parse(asked);
  ideal["fidelity"] = "ideal";
  const Json free = json_of(post("throughput", ideal.dump()));
  CHECK(free["batch"] == 64);
  CHECK(free["points"].back()["batch"] > 64);
}

TEST_CASE("the cache is full where one more token of each sequence does not fit") {
  const Json m = json_of(post("memory", kSmall));
  // Llama-3.1-8B keeps 2 x 32 layers x 8 heads x 128 x 2 B = 131 072 B a token; 16 sequences.
  const double room =
      m["usable_bytes"].get<double>() - m["weight_bytes"].get<double>() - m["activation_bytes"].get<double>();
  CHECK(m["full_at_tokens"].get<double>() == std::floor(room / (16 * 131072.0)));
  CHECK(m["kv_cache_bytes"].get<double>() == 16 * 131072.0 * (1024 + 64));
}

TEST_CASE("kinds of attention cache what their formulas state") {
  // 32 layers of 32 heads of 128 in bf16: MHA 2 x 32 x 32 x 128 x 2 B; GQA 8 of 32 heads; MQA one; MLA 512 + 64 values;
  // CLA half of its own, as every second layer reads the one before it.
  const Json rows = json_of(post("attention", kSmall))["rows"];
  const auto bytes = [&](std::size_t i, const char* name) {
    CHECK(rows[i]["attention"] == name);
    return rows[i]["kv_cache_bytes_per_token"].get<double>();
  };
  CHECK(bytes(0, "own") == 131072);
  CHECK(bytes(1, "mha") == 524288);
  CHECK(bytes(2, "gqa") == 131072);
  CHECK(bytes(3, "mqa") == 16384);
  CHECK(bytes(4, "mla") == 32 * 576 * 2);
  CHECK(bytes(5, "cla") == 65536);
  CHECK(bytes(6, "window") == 131072);
  // Of 32 layers those at 0, 3, ..., 30 keep theirs: 11 x 2 x 8 x 128 x 2 B.
  const Json three =
      json_of(post("memory", R"({"model": "llama-3.1-8b", "gpu": "h100-sxm", "batch": 1, "prompt_tokens": 100,
      "output_tokens": 28, "attention": "cla", "cla_share_factor": 3})"));
  CHECK(three["kv_cache_bytes"].get<double>() == 128 * 11 * 4096.0);
  const Json latent = json_of(post("attention", R"({"model": "deepseek-v2-lite", "gpu": "h100-sxm"})"))["rows"];
  CHECK(latent[1]["error"] == "attention: deepseek-v2-lite cannot become mha: it keeps latents");
  // A state-space model has no attention to change: its reader knows neither key.
  const Json none = json_of(post("attention", R"({"model": "mamba-2.8b", "gpu": "h100-sxm"})"))["rows"];
  CHECK(none[5]["error"] == "attention: mamba-2.8b cannot become cla: its architecture has no such key");
  CHECK(none[6]["error"] == "attention: mamba-2.8b cannot become window: its architecture has no such key");
  // Latents can be shared: 14 of its 27 layers keep them.
  CHECK(27 * latent[5]["kv_cache_bytes_per_token"].get<double>() ==
        14 * latent[0]["kv_cache_bytes_per_token"].get<double>());
}

TEST_CASE("tiles never write the matrix of scores") {
  const Json t = json_of(get("tiles", {{"model", "llama-3.1-8b"}, {"gpu", "h100-sxm"}, {"prompt_tokens", "8192"}}));
  CHECK(t["score_matrix_bytes"].get<double>() == 2.0 * 8192 * 8192);  // 16 bit a score
  const Json &naive = t["kernels"][0], &flash = t["kernels"][1];
  // 32 layers of 32 heads write and read scores and weights: more than 4 matrices each.
  CHECK(naive["attention_bytes"].get<double>() > 4.0 * 32 * 32 * 2 * 8192 * 8192);
  CHECK(flash["attention_bytes"].get<double>() < 0.02 * naive["attention_bytes"].get<double>());
  CHECK(t["gain"].get<double>() > 2);
  CHECK(json_of(get("tiles", {{"model", "mamba-2.8b"}, {"gpu", "l4"}}))["reason"].is_string());
}

TEST_CASE("speculation's point at the requested k equals the estimate") {
  const char* const body = R"({"model": "llama-3.1-70b", "gpu": "h100-sxm", "tp": 4, "batch": 4, "speculation": "eagle",
                               "num_speculative_tokens": 3, "acceptance": 0.7})";
  const Json e = json_of(post("estimate", body))["speculation"], s = json_of(post("speculation", body));
  CHECK(s["points"][2]["speedup"] == e["speedup"]);
  CHECK(s["points"][2]["draft_ms"] == e["draft_ms"]);
  CHECK(s["acceptances"][2] == 0.7);
  CHECK(s["points"][2]["speedup_by_acceptance"][2] == e["speedup"]);
  CHECK_FALSE(s["assumed"].get<bool>());
}

TEST_CASE("each drafting method of the page works, with the requested number of drafts") {
  const Json methods = json_of(get("choices"))["speculation"];
  CHECK(methods.size() == 9);
  for (const Json& method : methods) {
    CAPTURE(method);
    Json asked{{"model", "deepseek-v3"}, {"gpu", "h200-sxm"}, {"tp", 8},
               {"speculation", method},  {"acceptance", 0.5}, {"num_speculative_tokens", 3}};
    if (method == "lookahead") asked["model"] = "llama-3.1-70b", asked["engine"] = "trtllm@0.19";  // vLLM has it not
    if (method == "draft_model") asked["model"] = "llama-3.1-70b", asked["draft_model"] = "llama-3.1-8b";
    const Json points = json_of(post("speculation", asked.dump()))["points"];
    CHECK(points.size() == 8);
    CHECK(json_of(post("estimate", asked.dump()))["speculation"]["num_speculative_tokens"] == 3);
  }
}

TEST_CASE("the cost on every GPU states the provenance of its constants") {
  const auto constants = [](const char* fidelity) {
    std::map<std::string, Json> of;
    const Json costs = json_of(get("costs", {{"model", "llama-3.1-8b"}, {"gpu", "h100-sxm"}, {"fidelity", fidelity}}));
    for (const Json& row : costs["rows"])
      if (!row.contains("error")) of[row["gpu"]] = row["constants"];
    return of;
  };
  const auto calibrated = constants("calibrated");
  CHECK(calibrated.at("h100-sxm") == "measured");
  CHECK(calibrated.at("gh200") == "carried_over");
  CHECK(constants("ideal").at("h100-sxm") == "datasheet");
}

TEST_CASE("rounds of speculation are drawn anew with another seed, and alike with the same") {
  const auto with_seed = [](const char* seed) {
    return get("rounds", {{"model", "llama-3.1-8b"}, {"gpu", "h100-sxm"}, {"rounds", "64"}, {"seed", seed}});
  };
  CHECK(with_seed("5").body == with_seed("5").body);
  CHECK(with_seed("5").body != with_seed("6").body);
  const Json json = json_of(with_seed("5"));
  // 64 rounds of k = 4 at a = 0.75: E = (1 - a^5) / (1 - a) = 3.051 tokens; s.d. of the mean about 1.7 / 8.
  const double mean = json["rounds"][63]["total_tokens"].get<double>() / 64;
  CHECK(mean == doctest::Approx(json["tokens_per_step"].get<double>()).epsilon(0.25));
  for (const Json& round : json["rounds"]) {
    const auto accepted = std::count(round["drafts"].begin(), round["drafts"].end(), "accepted");
    CHECK(round["tokens"] == accepted + 1);
  }
}

TEST_CASE("the cache saves what recomputing every step costs") {
  const Json points = json_of(post("cache", kSmall))["points"];
  CHECK(points.size() == 32);
  CHECK(points[0]["saved_share"] == 0);  // the prefill is the same
  CHECK(points[5]["tokens_with"] == 1);
  CHECK(points[5]["tokens_without"] == 1024 + 5);
  CHECK(points[5]["kv_cache_bytes"] == (1024 + 5) * 131072.0);
  for (std::size_t i = 1; i < 32; ++i) CHECK(points[i]["saved_share"] > points[i - 1]["saved_share"]);
}

TEST_CASE("continuous batching ends sooner, and never runs more requests at a time than it has slots") {
  const Json b =
      json_of(post("batching", R"({"model": "llama-3.1-8b", "gpu": "h100-sxm", "slots": 3, "requests": 20})"));
  CHECK(b["gain"].get<double>() > 1.1);
  for (const Json& run : b["runs"]) {
    CHECK(run["requests"].size() == 20);
    for (const Json& r : run["requests"]) {
      CHECK(r["slot"].get<int>() < 3);
      const auto at_once = std::count_if(run["requests"].begin(), run["requests"].end(), [&](const Json& other) {
        return other["start_ms"] <= r["start_ms"] && other["end_ms"] > r["start_ms"];
      });
      CHECK(at_once <= 3);
    }
  }
  CHECK(b["runs"][0]["slot_use"] < b["runs"][1]["slot_use"]);
  CHECK(b["runs"][1]["slot_use"].get<double>() <= 1.0);
}

TEST_CASE("invalid requests get an explanation") {
  const auto error = [](const char* body) { return error_of(post("estimate", body)); };
  CHECK(error("{}") == "model: missing; which model?");
  CHECK(error(R"({"model": "llama-3.1-8b"})") == "gpu: missing; which GPU?");
  CHECK(error(R"({"model": "llama-3.1-8", "gpu": "h100-sxm"})").find("nearest is 'llama-3.1-8b'") != std::string::npos);
  CHECK(error(R"({"modell": 1})").find("unknown key 'modell'; nearest is 'model'") != std::string::npos);
  CHECK(error(R"({"model": ["a"]})") == "model: must be a string, a number or true or false");
  CHECK(error(R"({"model": null})") == "model: must be a string, a number or true or false");
  CHECK(error(R"({"model": {"name": "llama-3.1-8b"}})") == "model: must be a string, a number or true or false");
  CHECK(error(R"({"model": "a", "model": "b"})") == "a key of the body is given twice");
  CHECK(error(("{\"model\": [" + std::string(1001, ',') + "]}").c_str()) == "the body holds too many values");
  CHECK(error("[1]").find("must be a JSON object") != std::string::npos);
  CHECK(error("").find("must be a JSON object") != std::string::npos);
  CHECK(error("{").find("must be a JSON object") != std::string::npos);
  CHECK(error_of(get("estimate", {{"model", "a"}, {"model", "b"}})) == "model: given twice");
  const auto with = [](const std::string& more) {
    return error_of(post("estimate", R"({"model": "llama-3.1-8b", "gpu": "h100-sxm", )" + more + "}"));
  };
  CHECK(with(R"("batch": 0)") == "batch: must be an integer from 1 to 16384, got '0'");
  CHECK(with(R"("batch": 1.5)") == "batch: must be an integer from 1 to 16384, got '1.5'");
  CHECK(with(R"("batch": true)") == "batch: must be an integer from 1 to 16384, got 'true'");
  CHECK(with(R"("batch": "16 ")") == "batch: must be an integer from 1 to 16384, got '16 '");
  CHECK(with(R"("batch": "")") == "batch: empty; leave the key out for its default");
  CHECK(with(R"("tp": 3)").find("3") != std::string::npos);
  CHECK(with(R"("weights": "fp9")").find("unknown number format 'fp9'") != std::string::npos);
  CHECK(with(R"("fidelity": "best")") == "fidelity: must be ideal or calibrated, got 'best'");
  CHECK(with(R"("kv_cache": "maybe")") == "kv_cache: must be true or false, got 'maybe'");
  CHECK(with(R"("speculation": "mtp")").find("'mtp' needs a multi-token-prediction layer") != std::string::npos);
  CHECK(with(R"("speculation": "luck")").find("unknown method 'luck'") != std::string::npos);
  CHECK(with(R"("speculation": "draft_model")") == "draft_model: missing; which model drafts?");
  CHECK(with(R"("speculation": "eagle", "acceptance": 1.01)") ==
        "acceptance: must be a number from 0 to 1, got '1.01'");
  CHECK(with(R"("attention": "linear")").find("unknown attention 'linear'") != std::string::npos);
  CHECK(with(R"("attention": "gqa", "kv_heads": 5)").find("must divide its 32 heads, got 5") != std::string::npos);
  CHECK(with(R"("slots": 4)").find("unknown key 'slots'") != std::string::npos);  // of /batching alone
  CHECK(with(R"("engine": ")" + std::string(65, 'x') + "\"") == "engine: longer than 64 characters");
}

TEST_CASE("no name reaches a file") {
  for (const char* name : {"/etc/passwd", "../models/llama-3.1-8b", "../../../../etc/passwd", "llama-3.1-8b.yaml",
                           "configs/models/gpt-2.yaml", "%2e%2e%2fetc%2fpasswd", "llama-3.1-8b\\u0000",
                           "file:///etc/passwd", "/dev/zero", ".", "..", "~"}) {
    for (const char* key : {"model", "gpu", "engine", "draft_model"}) {
      nlohmann::json body = {
          {"model", "llama-3.1-8b"}, {"gpu", "h100-sxm"}, {"speculation", "draft_model"}, {"draft_model", "llama-68m"}};
      body[key] = name;
      INFO(key << ": " << name);
      const std::string error = error_of(post("estimate", body.dump()));
      CHECK(error.find("unknown ") != std::string::npos);
    }
  }
  for (const char* value : {"{file: /etc/passwd}", "[1, 2]", "{name: fp8}", "*alias", "!!binary x"}) {
    for (const char* key : {"weights", "activations", "kv_cache_dtype", "tp", "acceptance", "window"}) {
      nlohmann::json body = {
          {"model", "llama-3.1-8b"}, {"gpu", "h100-sxm"}, {"speculation", "eagle"}, {"attention", "window"}};
      body[key] = value;
      INFO(key << ": " << value);
      CHECK(post("estimate", body.dump()).status == 400);
    }
  }
}

TEST_CASE("work is bounded before it is begun") {
  for (const char* endpoint : kSetupEndpoints) {
    INFO(endpoint);
    CHECK(error_of(post(endpoint, R"({"model": "llama-4-scout", "gpu": "h200-sxm", "tp": 8, "batch": 16384,
                                     "prompt_tokens": 16777216})"))
              .find("at most 1024 a request") != std::string::npos);
  }
  CHECK(error_of(get("batching", {{"model", "llama-4-scout"},
                                  {"gpu", "h200-sxm"},
                                  {"tp", "8"},
                                  {"requests", "64"},
                                  {"prompt_tokens", "5000000"}}))
            .find("too much to simulate") != std::string::npos);
  CHECK(error_of(get("batching", {{"model", "gpt-2"}, {"gpu", "l4"}, {"requests", "65"}})).find("from 1 to 64") !=
        std::string::npos);
}

TEST_CASE("methods, types and paths are distinguished") {
  const ApiAnswer put = answer({.method = "PUT", .path = "/api/v1/estimate"});
  CHECK(put.status == 405);
  CHECK(header(put, "Allow") == "GET, HEAD, POST");
  CHECK(post("estimate", kSmall, "text/plain").status == 415);
  CHECK(post("estimate", kSmall, "").status == 415);
  CHECK(post("estimate", std::string(kMostBody + 1, ' ')).status == 413);
  CHECK(get("estimat").status == 404);
  CHECK(get("estimat").body.find("nearest is 'estimate'") != std::string::npos);
  CHECK(answer({.method = "GET", .path = "/etc/passwd"}).status == 404);
  CHECK(answer({.method = "GET", .path = ""}).status == 404);
}

TEST_CASE("every answer is JSON and never status 500") {
  Random random(20260101);
  const auto pick = [&](const auto& list) -> const auto& {
    return list[static_cast<std::size_t>(random.uniform_integer(0, static_cast<std::int64_t>(std::size(list)) - 1))];
  };
  const std::string words[] = {"llama-3.1-8b", "h100-sxm", "vllm",     "-1",     "0",     "1e308",
                               "NaN",          "true",     "mla",      "window", "eagle", "fp8",
                               "ternary",      "a b",      "\xff\xfe", "{}",     "[",     "99999999999999999999",
                               "0x10",         "1 GB",     "💥",        ""};
  std::vector<std::string> keys{"slots", "requests", "seed", "rounds", "steps", "points", "nonsense", ""};
  for (const QueryKey& key : setup_keys()) keys.emplace_back(key.name);
  for (int i = 0; i < 400; ++i) {
    std::vector<std::pair<std::string, std::string>> parameters;
    if (random.uniform() < 0.8) parameters = {{"model", random.uniform() < 0.7 ? "gpt-2" : pick(words)}, {"gpu", "l4"}};
    for (int n = static_cast<int>(random.uniform_integer(0, 5)); n > 0; --n)
      parameters.emplace_back(pick(keys), pick(words));
    std::string body = kSmall;
    for (int n = static_cast<int>(random.uniform_integer(0, 12)); n > 0; --n)
      body[static_cast<std::size_t>(random.uniform_integer(0, static_cast<std::int64_t>(body.size()) - 1))] =
          static_cast<char>(random.uniform_integer(0, 255));
    const std::string endpoint = pick(kSetupEndpoints);
    for (const ApiAnswer& a : {get(endpoint, parameters), post("estimate", body)}) {
      INFO(a.body);
      CHECK((a.status == 200 || a.status == 400));
      CHECK(Json::accept(a.body));
    }
  }
  CHECK(post("estimate", std::string(16000, '[')).status == 400);
  CHECK(post("estimate", "{\"a\":" + std::string(8000, '{')).status == 400);
}

namespace {

const char* const kPlan =
    "model: llama-3.1-8b\nworkload: {arrivals: {process: poisson, rate: 4 /s}, prompt_tokens: 500, output_tokens: 100, "
    "requests: 2000}\nobjectives: {ttft_p99: 2 s, tpot_p99: 100 ms}\nsearch: {gpus: [h100-sxm, l40s], max_gpus: 2, tp: "
    "[1], confidence: 0}\n";
const char* const kScenario =
    "model: llama-3.1-8b\ngpu: h100-sxm\nworkload: {arrivals: {process: poisson, rate: 4 /s}, prompt_tokens: 500, "
    "output_tokens: 100, requests: 200}\nobjectives: {ttft_p99: 2 s}\n";

std::string document(const std::string& text, const std::string& more_key = "", const std::string& more = "") {
  Json body{{"document", text}};
  if (!more_key.empty()) body[more_key] = more;
  return body.dump();
}

}  // namespace

TEST_CASE("a document is answered as the command line answers its file, byte for byte") {
  const TemporaryFolder folder;
  const std::string plan = folder.write("plan.yaml", kPlan), scenario = folder.write("scenario.yaml", kScenario);
  CHECK(post("plan", document(kPlan)).body == testing::run_roofcast("plan " + plan + " --format json").out);
  CHECK(post("simulate", document(kScenario)).body ==
        testing::run_roofcast("simulate " + scenario + " --format json").out);
  const std::string trace = "arrival_s,prompt_tokens,output_tokens\n0,100,20\n1,200,30\n2,100,40\n";
  const Json played = json_of(post("simulate", document(kScenario, "trace", trace)));
  CHECK(played["completed"] == 3);
  CHECK(played["total_output_tokens"] == 90);
  const std::string config = R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096,
    "intermediate_size": 14336, "num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 32,
    "vocab_size": 128256, "max_position_embeddings": 131072, "tie_word_embeddings": false, "torch_dtype": "bfloat16"})";
  const Json dropped = json_of(post("simulate", document(kScenario, "config", config)));
  CHECK(dropped["model"] == "your-model");
  CHECK(dropped["median_tpot_ms"] == json_of(post("simulate", document(kScenario)))["median_tpot_ms"]);  // Llama-3.1-8B
  const std::string bench = R"({"num_prompts": 200, "duration": 50.0, "completed": 200,
    "total_input_tokens": 100000, "total_output_tokens": 20000, "request_throughput": 4.0,
    "output_throughput": 400.0, "mean_ttft_ms": 30.0, "mean_tpot_ms": 8.0, "p99_ttft_ms": 60.0})";
  const Json compared = json_of(post("compare", document(kScenario, "bench", bench)));
  CHECK(compared["kind"] == "comparison");
  CHECK(compared["bench"]["file"] == "bench.json");
}

TEST_CASE("a plan of several services is answered as the command line answers it") {
  const TemporaryFolder folder;
  const std::string load =
      "workload: {arrivals: {process: poisson, rate: 2 /s}, prompt_tokens: 500, output_tokens: 20, "
      "requests: 300}, objectives: {ttft_p99: 1 s}}\n";
  const std::string text = "services:\n  - {name: one, model: llama-3.1-8b, " + load +
                           "  - {name: two, model: qwen3-8b, " + load +
                           "search: {gpus: [h100-sxm], max_gpus: 4, tp: [1], confidence: 0}\n";
  const std::string path = folder.write("plan.yaml", text);
  const Json plan = json_of(post("plan", Json{{"document", text}}.dump()));
  CHECK(plan["kind"] == "services_plan");
  CHECK(plan == Json::parse(testing::run_roofcast("plan " + path + " --format json").out));
}

TEST_CASE("a document may not name files, and errors have their location") {
  for (const char* text : {"model: ./model.yaml\ngpu: h100-sxm\n", "model: /etc/passwd\n", "model: 1/../x.json\n",
                           "model: llama-3.1-8b\nworkload: {arrivals: {process: trace, file: azure}}\n",
                           "model: llama-3.1-8b\nworkload: {prompt_tokens: {file: a}}\n"}) {
    INFO(text);
    CHECK(error_of(post("simulate", document(text))).starts_with("document:"));
  }
  // Keys that take files, whatever their values are called: this folder has a file of that name.
  for (const char* text :
       {"routing: {counts: README.md}", "routing: {counts: README}", "workload: {servegen: docs}",
        "workload: {arrivals: {process: trace, file: README}}", "speculation: {acceptance: {file: a}}"}) {
    INFO(text);
    const std::string scenario = std::string("model: qwen3-235b-a22b\ngpu: h100-sxm\n") + text + "\n";
    for (const char* endpoint : {"estimate_document", "simulate", "plan"})
      CHECK(error_of(post(endpoint, document(scenario))).find("cannot be named here; give the ") != std::string::npos);
  }
  CHECK(error_of(post("plan", document("model: [\n"))).starts_with("document:2:"));
  CHECK(error_of(post("plan", document("model: llama-3.1-8b\nsearch: {gpu: [h100-sxm]}\n"))).find("gpus") !=
        std::string::npos);
  CHECK(error_of(post("plan", R"({"documents": "x"})")) ==
        "unknown key 'documents'; nearest is 'document' (valid: document, trace, config, bench, fidelity, batch, "
        "prompt_tokens, output_tokens, context)");
  CHECK(error_of(post("plan", R"({"document": 3})")) == "document: must be a text");
  CHECK(error_of(post("compare", document(kScenario))).starts_with("bench: missing"));
  CHECK(error_of(post("simulate", document(kScenario, "trace", "no trace"))).starts_with("trace.csv:1: "));
  CHECK(get("plan").status == 405);
}
