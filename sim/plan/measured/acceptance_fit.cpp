#include "sim/plan/measured/acceptance_fit.h"

#include <map>

#include "base/error.h"
#include "base/error_summary.h"
#include "sim/plan/parallel.h"
#include "sim/serve/speculation.h"

namespace roofcast {
namespace {

constexpr int kHalvings = 10;  ///< to a thousandth

RunAcceptance fit_run(const MeasuredRun& measured, double tpot_ms) {
  MeasuredRun run = measured;
  const auto pricer = make_model_pricer(run.deployment);
  const auto tpot_at = [&](double acceptance) {
    run.serving.speculation.acceptance = {acceptance};
    return predict_run(run, *pricer).tpot_ms;
  };
  RunAcceptance out{.row = run.row, .group = run.group, .drafts = run.serving.speculation.num_speculative_tokens};
  if ((out.below = tpot_at(0.0) < tpot_ms)) return out;
  if ((out.above = tpot_at(1.0) > tpot_ms)) {
    out.acceptance = 1.0;
    return out;
  }
  double low = 0.0, high = 1.0;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (tpot_at(middle) > tpot_ms ? low : high) = middle;
  }
  out.acceptance = (low + high) / 2;
  return out;
}

}  // namespace

std::vector<RunAcceptance> fit_acceptance(const MeasuredRuns& runs, const CsvTable& table) {
  const auto tpot = table.find("tpot_ms"), suspect = table.find("suspect");
  std::vector<const MeasuredRun*> drafted;
  for (const MeasuredRun& run : runs.runs) {
    const bool doubted = suspect && table.at(run.row, *suspect) == "1";
    if (run.note.empty() && run.serving.speculation.active() && !doubted) drafted.push_back(&run);
  }
  if (drafted.empty() || !tpot) throw ConfigError("no run with 'speculation: mtp' and a measured TPOT in this table");
  std::vector<RunAcceptance> out(drafted.size());
  parallel_for_each_index(drafted.size(),
                          [&](std::size_t i) { out[i] = fit_run(*drafted[i], table.number(drafted[i]->row, *tpot)); });
  return out;
}

std::vector<GroupAcceptance> acceptance_by_group(const std::vector<RunAcceptance>& runs) {
  std::map<std::pair<std::string, int>, std::vector<const RunAcceptance*>> groups;
  for (const RunAcceptance& run : runs) groups[{run.group, run.drafts}].push_back(&run);
  std::vector<GroupAcceptance> out;
  for (const auto& [key, members] : groups) {
    GroupAcceptance g{.group = key.first, .drafts = key.second, .runs = members.size()};
    std::vector<double> values;
    for (const RunAcceptance* run : members) {
      values.push_back(run->acceptance);
      g.below += run->below ? 1 : 0;
      g.above += run->above ? 1 : 0;
    }
    g.p25 = quantile(values, 0.25), g.median = quantile(values, 0.5), g.p75 = quantile(values, 0.75);
    SpeculationSpec spec{.method = SpeculationSpec::Method::kMtp, .num_speculative_tokens = key.second};
    spec.acceptance = {g.median};
    g.tokens_per_step = AcceptanceLaw(spec).mean_tokens();
    out.push_back(g);
  }
  return out;
}

}  // namespace roofcast
