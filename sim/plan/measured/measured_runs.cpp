#include "sim/plan/measured/measured_runs.h"

#include <fmt/format.h>

#include "base/text.h"
#include "sim/plan/measured/plausibility.h"
#include "sim/plan/measured/row_scenario.h"
#include "sim/plan/rules.h"
#include "sim/step/deployment.h"

namespace roofcast {
namespace {

/// What step prices depend on, except host costs.
std::string pricing_key(const Deployment& d, const std::string& model) {
  const Precision& p = d.precision;
  return fmt::format("{}|{}|{:x}|{}.{}.{}.{}|{}.{}.{}.{}.{}.{}", model, d.gpu.name, d.engine.settings_id, d.sharding.tp,
                     d.sharding.pp, d.sharding.attention_dp, d.sharding.ep, name_of(p.weights),
                     name_of(p.attention_weights), name_of(p.expert_weights), name_of(p.activations),
                     name_of(p.kv_cache), p.static_activations);
}

/// A row before its prediction: its classes, and whether its error counts.
MeasuredRun describe(RunKind kind, const RunColumns& c, std::size_t row) {
  MeasuredRun run;
  run.row = row;
  run.id = c.text(row, "id").empty() ? fmt::format("row-{}", row + 1) : c.text(row, "id");
  const std::string engine = c.text(row, "engine"), gpu = c.text(row, "gpu"),
                    model = c.text(row, c.text(row, "model").empty() ? "hf_id" : "model");
  run.group = model + " " + gpu + (engine.empty() ? "" : " " + engine);
  std::optional<LaunchRecipe> recipe;
  try {
    recipe = recipe_of_row(c, row);
  } catch (const ConfigError& error) {
    run.note = error.what();
  }
  const std::string source = c.text(row, "source").substr(0, 60);
  const std::string harness = recipe ? recipe->name : !source.empty() ? source : "unknown";
  run.classes = {.version = engine + "@" + release_of_row(kind, c, row, recipe),
                 .harness = harness,
                 .host = harness + " " + gpu,
                 .gpu = gpu,
                 .model = model};
  const std::string speculation = c.text(row, "speculation");
  if (c.text(row, "suspect") == "1") run.doubt = "marked suspect in the table";
  run.scored = (speculation.empty() || speculation == "none") && run.doubt.empty();
  run.metric = c.text(row, "metric");
  return run;
}

void read_run(MeasuredRun& run, RunKind kind, const RunColumns& c, SpecCache& specs) {
  run.scenario = scenario_of_row(kind, c, run.row, specs);
  Scenario s = read_scenario(run.scenario, Fidelity::kCalibrated, specs);
  run.deployment = std::make_shared<Deployment>(*s.deployment);
  run.classes.version = run.deployment->engine.name + "@" + run.deployment->engine.version;
  if (kind == RunKind::kSubmission) {
    run.group =
        fmt::format("{} {} {}", run.deployment->model.name, run.deployment->gpu.name, run.deployment->engine.name);
    run.classes.gpu = run.deployment->gpu.name;
    run.metric = "tokens_per_s";
  }
  run.dense = !has_experts(s.deployment->model);
  run.workload = *std::move(s.workload);
  run.serving = std::move(s.serving);
  run.deployment_key = pricing_key(*run.deployment, run.deployment->model.name + "|" + c.text(run.row, "model"));
  if (run.deployment->memory.infeasible) run.note = run.deployment->memory.infeasible->reason;
}

}  // namespace

MeasuredRuns read_measured_runs(const CsvTable& table) {
  MeasuredRuns out{.kind = kind_of(table), .runs = {}};
  for (std::string_view name : {"model", "gpu", "engine", "isl", "osl"}) {
    const bool needed = name == "model" || out.kind != RunKind::kSubmission;
    if (needed && (name == "gpu" || out.kind != RunKind::kSteady)) (void)table.column(name);  // or throw
  }
  static const std::vector<std::string> kSaysHow{"protocol", "recipe"};
  for (const std::string& column : table.columns()) {
    const std::string nearest = nearest_name(column, kSaysHow);
    if (column.size() > 4 && !nearest.empty() && nearest != column && !table.find(nearest))
      throw ConfigError(SourceLocation{table.path(), 1, 1},
                        fmt::format("unknown column '{}'; nearest is '{}'", column, nearest));
  }
  const RunColumns columns(table);
  SpecCache specs;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    MeasuredRun run = describe(out.kind, columns, row);
    try {
      if (run.note.empty()) read_run(run, out.kind, columns, specs);
    } catch (const ConfigError& error) {
      run.note = error.what();
    }
    out.runs.push_back(std::move(run));
  }
  mark_implausible(out, table);
  return out;
}

}  // namespace roofcast
