#include "sim/plan/measured/run_scenario.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "base/config_library.h"
#include "base/read_file.h"
#include "base/text.h"
#include "sim/model/recipes.h"
#include "sim/plan/measured/bench_reader.h"

namespace roofcast {
namespace {

constexpr std::size_t kFileLimit = std::size_t{1} << 30;

class Draft {
 public:
  void set(const std::string& key, const std::string& value) {
    out_.tree = with_value(out_.tree, key, make_scalar(value), "import");
  }
  void assume(std::string what) { out_.assumed.push_back(std::move(what)); }
  RunScenario take() && { return std::move(out_); }

 private:
  RunScenario out_{make_map(), {}};
};

void set_model(Draft& draft, const std::string& model) {
  if (model.empty()) return;
  const std::string shipped = shipped_name("models", model);
  draft.set("model", shipped.empty() ? model : shipped);
}

/// Equal lengths: that length. Otherwise a lognormal with their mean and standard deviation, between their extremes.
/// Without single lengths only the mean is known.
void set_lengths(Draft& draft, const std::string& key, const std::vector<int>& lengths, double mean) {
  if (mean <= 0) {
    draft.assume(fmt::format("the file does not say how many {}; set workload.{}", key, key));
    return;
  }
  const auto [low, high] =
      lengths.empty() ? std::pair{lengths.end(), lengths.end()} : std::minmax_element(lengths.begin(), lengths.end());
  if (lengths.size() < 2 || *low == *high) {
    if (lengths.size() < 2) draft.assume(fmt::format("every request has the mean number of {}", key));
    draft.set("workload." + key + ".distribution", "fixed");
    draft.set("workload." + key + ".value", fmt::format("{:.0f}", std::max(1.0, std::round(mean))));
    return;
  }
  double sum = 0, squares = 0;
  for (const double tokens : lengths) sum += tokens, squares += tokens * tokens;
  const double n = static_cast<double>(lengths.size()), own = sum / n;
  draft.set("workload." + key + ".distribution", "lognormal");
  draft.set("workload." + key + ".mean", fmt::format("{:.6g}", own));
  draft.set("workload." + key + ".cv", fmt::format("{:.4g}", std::sqrt(std::max(0.0, squares / n - own * own)) / own));
  draft.set("workload." + key + ".min", fmt::format("{}", *low));
  draft.set("workload." + key + ".max", fmt::format("{}", *high));
}

void set_arrivals(Draft& draft, const BenchRun& run) {
  const auto rate = run.request_rate ? run.request_rate : run.observed_rate;
  const std::string arrivals = "workload.arrivals.";
  if (rate) {
    const bool gamma = run.burstiness && *run.burstiness > 0 && *run.burstiness != 1;
    draft.set(arrivals + "process", run.constant_rate ? "constant" : gamma ? "gamma" : "poisson");
    draft.set(arrivals + "rate", fmt::format("{:.6g} /s", *rate));
    if (gamma) draft.set(arrivals + "cv", fmt::format("{:.4g}", 1 / std::sqrt(*run.burstiness)));
    if (!run.request_rate) draft.assume("requests arrive as a Poisson process at the rate at which they ended");
    return;
  }
  if (run.max_concurrency && *run.max_concurrency >= 1 && *run.max_concurrency < run.requests()) {
    draft.set(arrivals + "process", "closed_loop");
    draft.set(arrivals + "concurrency", fmt::format("{:.0f}", *run.max_concurrency));
    return;
  }
  draft.set(arrivals + "process", "all_at_once");
  if (!run.unlimited_rate && !run.max_concurrency)
    draft.assume("all requests arrive at once: the file does not say how they were sent");
}

bool holds_run(const std::string& text) {
  if (is_scrape(text) || text.find(":::MLLOG") != std::string::npos ||
      text.find("MLPerf Results Summary") != std::string::npos || text.starts_with("build_commit,"))
    return true;
  constexpr std::array kKeys{"\"avg_ts\"",          "\"completed\"",           "\"total_output_tokens\"",
                             "\"request_latency\"", "\"time_to_first_token\"", "\"benchmarks\""};
  return std::any_of(kKeys.begin(), kKeys.end(), [&](const char* key) { return text.find(key) != std::string::npos; });
}

}  // namespace

RunScenario scenario_of_run(const BenchRun& run) {
  Draft draft;
  set_model(draft, run.model);
  const bool sglang = run.tool.starts_with("SGLang"), vllm = run.tool.starts_with("v");
  draft.set("engine", sglang ? "sglang" : "vllm");
  if (!sglang && !vllm) draft.assume("engine vllm; --engine names another");
  set_arrivals(draft, run);
  set_lengths(draft, "prompt_tokens", run.prompt_lengths, run.mean_prompt());
  set_lengths(draft, "output_tokens", run.output_lengths, run.mean_output());
  constexpr double kEnough = 2000;  // for a live server, whose requests are not counted
  draft.set("workload.requests",
            fmt::format("{:.0f}", run.window ? std::min(run.completed, kEnough) : std::max(1.0, run.requests())));
  return std::move(draft).take();
}

RunScenario scenario_of_run(const LlamaBench& bench) {
  Draft draft;
  // models/Qwen2.5-7B-Instruct-Q4_K_M.gguf: the model, and behind the last "-" or "." its format.
  std::string name = bench.model.substr(bench.model.rfind('/') == std::string::npos ? 0 : bench.model.rfind('/') + 1);
  if (name.ends_with(".gguf")) name.erase(name.size() - 5);
  const std::size_t cut = name.find_last_of("-.");
  const std::string format = cut == std::string::npos ? "" : "gguf_" + lower(name.substr(cut + 1));
  const auto known = recipes();
  if (std::any_of(known.begin(), known.end(), [&](const Recipe& recipe) { return recipe.name == format; })) {
    set_model(draft, name.substr(0, cut));
    draft.set("precision", format);
  } else {
    set_model(draft, name);
    draft.assume("the checkpoint's own format: the file's name has none; --weights names one, such as gguf_q4_k_m");
  }
  draft.set("engine", "llama-cpp");
  return std::move(draft).take();
}

std::optional<RunScenario> read_run_scenario(const std::string& path, std::optional<std::int64_t> which,
                                             std::optional<Seconds> window) {
  if (std::filesystem::is_directory(path) || !holds_run(read_file(path, kFileLimit))) return std::nullopt;
  if (const auto llama = read_llama_bench(path)) return scenario_of_run(*llama);
  if (is_scrape(read_file(path, kFileLimit))) return scenario_of_run(read_scrapes({path}, window));
  return scenario_of_run(read_bench_run(path, which));
}

}  // namespace roofcast
