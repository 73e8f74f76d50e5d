#include "calibrate/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "calibrate/kernel_rows.h"

namespace roofcast::calibrate {
namespace {

struct Pairs {
  std::vector<double> predicted, measured;
  std::size_t covered = 0;
  void add(const Prediction& p, Seconds m) {
    predicted.push_back(p.time.in(kMicrosecond));
    measured.push_back(m.in(kMicrosecond));
    if (std::abs(std::log(p.time / m)) <= kNinetyPercent * p.discrepancy) ++covered;
  }
  ErrorGroup group(const std::string& name) const {
    return {name, summarize(predicted, measured), static_cast<double>(covered) / static_cast<double>(measured.size())};
  }
};

std::string group_name(const CsvTable& table, std::size_t row, const KernelOperator& op) {
  std::string name(table.at(row, table.column("engine")));
  for (const std::string_view column : op.groups) {
    const std::optional<std::size_t> index = table.find(column);
    if (index && !table.at(row, *index).empty()) name += " " + std::string(table.at(row, *index));
  }
  return name;
}

/// Predictions of the rows of `table`, 0 for faulty rows. Rows are predicted in parts, so that a fault repeats only one
/// part.
std::vector<Prediction> predict_rows(const CsvTable& table, const BenchmarkedGpu& gpu, const KernelOperator& op,
                                     std::vector<ConfigError>& faults) {
  constexpr std::size_t kPart = 512;
  std::vector<Prediction> out;
  std::size_t end = 0;
  while (out.size() < table.rows()) {
    const std::size_t begin = out.size();
    if (end <= begin) end = std::min(begin + kPart, table.rows());
    try {
      const std::vector<Prediction> part = op.predict(table.slice(begin, end), gpu);
      SIM_CHECK(part.size() == end - begin, "one prediction per row");
      out.insert(out.end(), part.begin(), part.end());
    } catch (const ConfigError& error) {
      std::size_t bad = begin;
      while (bad < end && table.location(bad, 0).line != error.location().line) ++bad;
      if (bad == end) throw;  // not the fault of a single row
      if (bad > begin) {
        end = bad;
        continue;
      }
      faults.push_back(error);
      out.emplace_back();
    }
  }
  if (!faults.empty() && faults.size() == table.rows()) throw faults.front();
  return out;
}

}  // namespace

KernelValidation validate_kernels(const CsvTable& table, const BenchmarkedGpu& gpu, const KernelOperator* op) {
  KernelValidation out;
  out.op = op ? op : &operator_of(table);
  const KernelTable checked(table, out.op->columns);
  const std::vector<Prediction> predictions = predict_rows(table, gpu, *out.op, out.faults);
  for (const Prediction& one : predictions) out.predicted.push_back(one.time);
  std::map<std::string, Pairs> groups;
  Pairs all;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    if (!(predictions[row].time > Seconds(0))) continue;  // skipped
    const Seconds measured = checked.header(row).latency;
    if (!(measured > Seconds(0))) continue;  // not timed
    groups[group_name(table, row, *out.op)].add(predictions[row], measured);
    all.add(predictions[row], measured);
  }
  for (const auto& [name, pairs] : groups) out.groups.push_back(pairs.group(name));
  if (!all.measured.empty()) out.groups.push_back(all.group("all"));
  return out;
}

std::string with_predictions(const CsvTable& table, const std::vector<Seconds>& predicted) {
  SIM_CHECK(predicted.size() == table.rows(), "one prediction per row");
  const std::optional<std::size_t> earlier = table.find("predicted_us");  // of an earlier validation: replaced
  std::string text;
  for (const std::string& column : table.columns()) text += column == "predicted_us" ? "" : csv_field(column) + ",";
  text += "predicted_us\n";
  for (std::size_t row = 0; row < table.rows(); ++row) {
    for (std::size_t i = 0; i < table.columns().size(); ++i) {
      if (i != earlier) text += csv_field(table.at(row, i)) + ",";
    }
    if (predicted[row] > Seconds(0)) text += fmt::format("{:.6g}", predicted[row].in(kMicrosecond));
    text += "\n";
  }
  return text;
}

}  // namespace roofcast::calibrate
