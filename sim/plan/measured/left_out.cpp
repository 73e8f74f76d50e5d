#include "sim/plan/measured/left_out.h"

#include <array>
#include <set>

#include "base/error.h"
#include "sim/plan/measured/population_fit.h"

namespace roofcast {
namespace {

struct ClassName {
  std::string_view name;
  std::string RunClasses::*member;
};
constexpr std::array kClasses{ClassName{"version", &RunClasses::version}, ClassName{"harness", &RunClasses::harness},
                              ClassName{"host", &RunClasses::host}, ClassName{"gpu", &RunClasses::gpu},
                              ClassName{"model", &RunClasses::model}};

}  // namespace

std::span<const std::string_view> class_names() {
  static constexpr std::array<std::string_view, 5> kNames{"version", "harness", "host", "gpu", "model"};
  return kNames;
}

std::string class_of(const MeasuredRun& run, const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    for (const ClassName& c : kClasses) {
      if (c.name == name) text += (text.empty() ? "" : ", ") + run.classes.*c.member;
    }
  }
  return text;
}

void leave_out(std::span<const MeasuredTable> tables, const std::vector<std::string>& classes) {
  PopulationFit fit;
  std::set<std::string> values;
  for (const MeasuredTable& t : tables) {
    fit.add(*t.runs, *t.table);
    for (const MeasuredRun& run : t.runs->runs) {
      if (in_population(run)) values.insert(class_of(run, classes));
    }
  }
  if (values.empty()) throw ConfigError("--leave-out: no scored closed loop of these tables can be predicted");
  for (const std::string& value : values) {
    const PopulationCosts costs = fit.fit([&](const MeasuredRun& run) { return class_of(run, classes) != value; });
    for (const MeasuredTable& t : tables) {
      for (MeasuredRun& run : t.runs->runs) {
        if (in_population(run) && class_of(run, classes) == value) set_costs(run, costs);
      }
    }
  }
}

std::vector<AccuracyLine> accuracy_by_class(const MeasuredRuns& runs, const CsvTable& table,
                                            const std::vector<RowPrediction>& rows,
                                            const std::vector<std::string>& classes) {
  return accuracy_by(
      runs, table, rows, [&](const MeasuredRun& run) { return class_of(run, classes); }, "all classes");
}

}  // namespace roofcast
