// roofcast estimate: one deployment in closed form.

#include <unistd.h>

#include <cstdio>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/options.h"
#include "reports/estimate_report.h"
#include "reports/idle_estimate.h"
#include "reports/question.h"
#include "sim/plan/estimate.h"
#include "sim/plan/idle_settings.h"
#include "sim/plan/parallel_hint.h"
#include "sim/plan/scenario.h"
#include "sim/plan/steady_load.h"
#include "sim/plan/usual_lengths.h"
#include "sim/serve/media.h"
#include "sim/step/deployment.h"

namespace roofcast::cli {
namespace po = boost::program_options;

namespace {

constexpr const char* kUsualImage = "1024x768";

/// `--images N --image-size 1024x768`.
std::vector<MediaSpec> media_of(const Options& options) {
  if (!options.has("images")) {
    if (options.has("image-size")) throw ConfigError("--image-size: needs --images, the number of images");
    return {};
  }
  MediaSpec pictures;
  pictures.count = static_cast<int>(options.integer("images", 1, 1000));
  pictures.location = SourceLocation{"--images", 0, 0};
  const std::string size = options.has("image-size") ? options.text("image-size") : std::string(kUsualImage);
  unsigned width = 0, height = 0;
  char rest = 0;
  if (std::sscanf(size.c_str(), "%5ux%5u%c", &width, &height, &rest) != 2 || width < 1 || height < 1)
    throw ConfigError("--image-size: must be pixels as in 1024x768; got '" + size + "'");
  pictures.width = width;
  pictures.height = height;
  return {pictures};
}

/// `parallelism.replicas` and the flags of the request.
EstimateRequest request_of(const Options& options, const Scenario& scenario) {
  EstimateRequest r;
  if (scenario.serving.disaggregation)
    throw ConfigError(
        "estimate: separate prefill and decode workers need 'roofcast simulate'; or leave 'disaggregation' out");
  if (scenario.deployment->model.encoder_only)
    throw ConfigError("estimate: prices answers token by token, and " + scenario.deployment->model.name +
                      " is an encoder; 'roofcast simulate' simulates requests of one output token each");
  r.batch = static_cast<int>(options.integer("batch", 1, 1000000));
  const auto tokens = [&](const char* flag) -> std::optional<int> {
    if (!options.has(flag)) return std::nullopt;
    return static_cast<int>(options.integer(flag, 1, 100000000));
  };
  const RequestLengths lengths = usual_lengths(*scenario.deployment, tokens("prompt-tokens"), tokens("output-tokens"));
  r.prompt_tokens = lengths.prompt_tokens;
  r.output_tokens = lengths.output_tokens;
  r.context = tokens("context");
  if (r.context && options.has("prompt-tokens") && *r.context < r.prompt_tokens)
    fmt::print(stderr,
               "--context: the decode step is priced with {} tokens in the cache, fewer than the {} of the prompt\n",
               *r.context, r.prompt_tokens);
  r.replicas = scenario.serving.replicas;
  r.speculation = scenario.serving.speculation;
  const ModelSpec& model = scenario.deployment->model;
  r.media = encoder_work(media_of(options), model);
  if (r.media.empty()) r.media = usual_media(model);
  r.prompt_tokens += media_tokens(r.media);
  return r;
}

/// What a workload such as `--set workload.guided=1` leaves out is that of the estimate.
ConfigTree with_request(ConfigTree tree, const Options& options) {
  const ConfigTree* found = tree->find("workload");
  if (found == nullptr || !*found || (*found)->kind != ConfigNode::Kind::kMap) return tree;
  const ConfigTree workload = *found;
  for (const char* whole : {"name", "clients", "arrivals"})
    if (workload->find(whole) != nullptr) return tree;
  const auto fill = [&](const char* key, const std::string& value) {
    if (workload->find(key) == nullptr)
      tree =
          with_value(tree, std::string("workload.") + key, make_scalar(value, workload->location), workload->location);
  };
  if (workload->find("duration") == nullptr) fill("requests", options.text("batch"));
  fill("arrivals.process", "closed_loop");
  fill("arrivals.concurrency", options.text("batch"));
  const auto length = [&](const char* flag, int usual) {
    return options.has(flag) ? options.text(flag) : std::to_string(usual);
  };
  const ConfigTree incomplete = tree;
  const auto fill_lengths = [&](const RequestLengths& usual) {
    fill("prompt_tokens", length("prompt-tokens", usual.prompt_tokens));
    fill("output_tokens", length("output-tokens", usual.output_tokens));
  };
  fill_lengths({.prompt_tokens = 1, .output_tokens = 1});
  const auto deployment = read_scenario(std::exchange(tree, incomplete), options.fidelity()).deployment;
  fill_lengths(usual_lengths(*deployment, std::nullopt, std::nullopt));
  return tree;
}

}  // namespace

int run_estimate(std::span<const std::string> arguments) {
  Options options("roofcast estimate --model NAME --gpu NAME [options]",
                  "TTFT, TPOT, memory and cost of a batch of equal requests, operator by operator.");
  options.add_deployment_flags();
  options.add_output_flags();
  options.add().add_options()("batch", po::value<std::string>()->default_value("1"), "sequences per replica")(
      "prompt-tokens", po::value<std::string>(),
      "tokens of each prompt (default: 1024, less where the model has fewer positions)")(
      "output-tokens", po::value<std::string>(), "tokens of each output (default: 128, or less)")(
      "context", po::value<std::string>(),
      "tokens in the cache at the decode step (default: prompt + half of the output)")(
      "images", po::value<std::string>(), "N: images in each prompt, besides its tokens")(
      "image-size", po::value<std::string>(), fmt::format("pixels of each (default: {})", kUsualImage).c_str())(
      "no-kv-cache", "every token recomputes the whole sequence");
  if (!options.parse(arguments)) return kDone;
  for (const auto& [flag, word] : {std::pair{"model", "model"}, {"gpu", "GPU"}}) {
    if (!options.has(flag) && !options.has("set"))
      throw ConfigError(fmt::format("--{}: missing; which {}?", flag, word));
  }
  ConfigTree tree = options.scenario(make_map({}, SourceLocation{"command line", 0, 0}));
  if (options.has("no-kv-cache")) tree = with_assignment(tree, "engine.kv_cache=false", "--no-kv-cache");
  tree = with_request(std::move(tree), options);
  const Scenario scenario = read_scenario(tree, options.fidelity());
  for (const std::string& line : idle_settings(tree, scenario)) fmt::print(stderr, "{}\n", line);
  for (const std::string& doubt : scenario.doubts) fmt::print(stderr, "{}\n", doubt);
  if (const std::string hint = parallel_hint(*scenario.deployment); !hint.empty()) fmt::print(stderr, "{}\n", hint);
  const EstimateRequest request = request_of(options, scenario);
  Estimate e = estimate(scenario.deployment, request);
  e.steady = steady_load(scenario.deployment, request);
  for (const std::string& line : reports::idle_in_estimate(tree, scenario, options.fidelity(), request, e))
    fmt::print(stderr, "{}\n", line);
  const bool refused = !e.memory.fits && options.fidelity() != Fidelity::kIdeal;
  options.write_report([&](const std::string& format) {
    return reports::estimate_report(e, *scenario.deployment, format,
                                    reports::question_json(tree, options.fidelity(), request));
  });
  if (options.format() != "table" || options.has("out") || isatty(STDOUT_FILENO) == 0) {  // else they were just shown
    for (const std::string& warning : reports::warnings_of(e, *scenario.deployment))
      fmt::print(stderr, "{}\n", warning);
  }
  return refused ? kNoAnswer : kDone;
}

}  // namespace roofcast::cli
