#include "sim/plan/measured/local_runs.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/config_library.h"
#include "sim/plan/scenario.h"
#include "sim/step/deployment.h"

namespace roofcast {
namespace {

constexpr int kMostTokens = 1 << 20;

LocalRun read_row(const CsvTable& table, std::size_t row) {
  const auto text = [&](const char* column) { return std::string(table.at(row, table.column(column))); };
  const auto scalar = [&](const char* column) {
    return make_scalar(text(column), table.location(row, table.column(column)));
  };
  const SourceLocation location = table.location(row, table.column("test"));
  const std::string test = text("test");
  LocalRun run;
  run.prompt = test.starts_with("pp");
  const char* const end = test.data() + test.size();
  const bool kind = run.prompt || test.starts_with("tg");
  if (!kind || std::from_chars(test.data() + 2, end, run.tokens).ptr != end || run.tokens < 1 ||
      run.tokens > kMostTokens)
    throw ConfigError(location,
                      "a test is 'pp' or 'tg' and a number of tokens, such as pp512 or tg128; got '" + test + "'");
  const auto whole = [&](const char* column, int least, int usual) {
    const std::optional<std::size_t> at = table.find(column);
    if (!at) return usual;
    const double value = table.number(row, *at, usual);
    if (value < least || value > kMostTokens || value != std::floor(value))
      throw ConfigError(table.location(row, *at),
                        fmt::format("{} must be a whole number from {} to {}", column, least, kMostTokens));
    return static_cast<int>(value);
  };
  run.depth = whole("depth", 0, 0);
  run.sequences = whole("sequences", 1, 1);
  run.tokens_per_s = table.number(row, table.column("tokens_per_s"));
  if (run.tokens_per_s <= 0)
    throw ConfigError(table.location(row, table.column("tokens_per_s")), "a speed must be above 0");
  ConfigTree scenario = make_map({}, location);
  for (const auto& [key, column] :
       {std::pair{"model", "model"}, {"gpu", "gpu"}, {"engine", "engine"}, {"precision", "weights"}})
    scenario = with_value(scenario, key, scalar(column), table.path());
  // Several GPUs have a slice of the layers each: what llama.cpp does by itself (--split-mode layer).
  const std::optional<std::size_t> gpus = table.find("gpus");
  if (gpus && !table.at(row, *gpus).empty())
    scenario = with_value(scenario, "parallelism.pp",
                          make_scalar(std::string(table.at(row, *gpus)), table.location(row, *gpus)), table.path());
  ConfigReader in(scenario, "a row");
  run.deployment = read_deployment(in, Fidelity::kCalibrated);
  if (run.deployment->roofline() == nullptr)
    throw ConfigError(location, "the kernels of '" + text("engine") +
                                    "' are priced one by one; this table is for engines of configs/rooflines");
  return run;
}

/// The free constants: those that are neither 0 nor a share of 1.
std::vector<double*> free_constants(RooflineBackend& backend) {
  std::vector<double*> out;
  for (double RooflineShares::*member :
       {&RooflineShares::memory, &RooflineShares::compute, &RooflineShares::flops_per_cycle}) {
    for (RooflineShares& shares : backend.wide) {
      const bool share = member != &RooflineShares::flops_per_cycle;
      if (shares.*member > 0.0 && !(share && shares.*member >= 1.0)) out.push_back(&(shares.*member));
    }
  }
  for (UnpackRates* rates : {&backend.few, &backend.many}) {
    for (double* rate : {&rates->values_per_cycle, &rates->flops_per_cycle}) {
      if (*rate > 0.0) out.push_back(rate);
    }
  }
  return out;
}

double mean_error(const RooflineBackend& backend, const std::vector<const LocalRun*>& runs) {
  double sum = 0;
  for (const LocalRun* run : runs) sum += std::abs(std::log(predicted_speed(*run, &backend) / run->tokens_per_s));
  return sum / static_cast<double>(std::max<std::size_t>(1, runs.size()));
}

/// Moves one constant as long as that helps; returns whether it did.
template <class Set>
bool search(const Set& set, double value, double most, double step, double& best, const RooflineBackend& backend,
            const std::vector<const LocalRun*>& runs) {
  bool moved = false;
  for (const double factor : {1 + step, 1 / (1 + step)}) {
    for (double next = std::min(most, value * factor); next != value; next = std::min(most, value * factor)) {
      set(next);
      const double error = mean_error(backend, runs);
      if (error >= best) break;
      best = error, value = next, moved = true;
    }
    set(value);
  }
  return moved;
}

}  // namespace

std::vector<LocalRun> read_local_runs(const CsvTable& table) {
  std::vector<LocalRun> runs;
  for (std::size_t row = 0; row < table.rows(); ++row) runs.push_back(read_row(table, row));
  return runs;
}

Seconds prompt_time(StepModel& model, int tokens, int depth) {
  const std::vector<PrefillChunk> chunks{{.tokens = tokens, .context_before = depth}};
  return model.time({.prefills = chunks});
}

Seconds token_time(StepModel& model, double context) {
  return model.time({.decodes = 1, .decode_context = context, .prefills = {}});
}

double predicted_speed(const LocalRun& run, const RooflineBackend* backend) {
  auto d = run.deployment;
  if (backend != nullptr) {
    auto own = std::make_shared<Deployment>(*d);
    auto rooflines = std::make_shared<Rooflines>();
    rooflines->backends = {*backend};
    rooflines->backends.front().architectures = {d->gpu.architecture};
    own->engine.rooflines = std::move(rooflines);
    d = std::move(own);
  }
  StepModel model(d);
  if (run.prompt) return run.tokens / prompt_time(model, run.tokens, run.depth).base();  // one prompt after the other
  const double context = run.depth + (run.tokens + 1) / 2.0;                             // of the step halfway
  const Seconds step =
      model.time({.decodes = run.sequences, .decode_context = run.sequences * context, .prefills = {}});
  return run.sequences / step.base();
}

RooflineBackend fit_backend(const RooflineBackend& start, const std::vector<const LocalRun*>& runs) {
  RooflineBackend backend = start;
  const std::vector<double*> constants = free_constants(backend);
  double best = mean_error(backend, runs);
  for (double step = 0.2; step > 0.009; step /= 2) {
    for (bool moved = true; moved;) {
      moved = search([&](double us) { backend.operator_time = Seconds(us * 1e-6); },
                     backend.operator_time.in(kMicrosecond), 1e3, step, best, backend, runs);
      for (double* constant : constants) {
        const auto set = [&](double value) { *constant = value; };
        const bool share = *constant <= 1.0;
        moved |= search(set, *constant, share ? 1.0 : 1e6, step, best, backend, runs);
      }
    }
  }
  return backend;
}

std::vector<BackendScore> score_backends(const std::vector<LocalRun>& runs, bool refit, bool leave_out) {
  std::vector<BackendScore> out;
  std::set<const RooflineBackend*> seen;
  for (const LocalRun& first : runs) {
    const RooflineBackend* backend = first.deployment->roofline();
    if (!seen.insert(backend).second) continue;
    std::vector<const LocalRun*> rows;
    for (const LocalRun& run : runs) {
      if (run.deployment->roofline() == backend) rows.push_back(&run);
    }
    BackendScore score;
    score.name = first.deployment->engine.rooflines->name + " " + backend->name;
    score.backend = refit ? fit_backend(*backend, rows) : *backend;
    std::set<std::string> gpus;
    for (const LocalRun* run : rows) gpus.insert(run->deployment->gpu.name);
    score.gpus.assign(gpus.begin(), gpus.end());
    const auto error = [&](const LocalRun& run, const RooflineBackend& by) {
      return std::log(predicted_speed(run, &by) / run.tokens_per_s);
    };
    for (const LocalRun* run : rows) score.logs.push_back(error(*run, score.backend));
    for (const std::string& gpu : leave_out ? score.gpus : std::vector<std::string>{}) {
      std::vector<const LocalRun*> others;
      for (const LocalRun* run : rows) {
        if (run->deployment->gpu.name != gpu) others.push_back(run);
      }
      const RooflineBackend without = fit_backend(score.backend, others);
      for (const LocalRun* run : rows) {
        if (run->deployment->gpu.name == gpu) score.left_out.push_back(error(*run, without));
      }
    }
    out.push_back(std::move(score));
  }
  return out;
}

}  // namespace roofcast
