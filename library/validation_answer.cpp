#include <fmt/format.h>

#include "base/read_file.h"
#include "library/answers.h"
#include "reports/result_schema.h"
#include "reports/validation_report.h"
#include "sim/plan/measured/published_runs.h"

namespace roofcast::library {
namespace {

void add(std::vector<AccuracyLine>& lines, const std::vector<AccuracyLine>& more) {
  lines.insert(lines.end(), more.begin(), more.end());
}

void validate_requests(const ValidationQuestion& question, Answer& answer) {
  RequestRun run = read_request_run(question.data, question.gpu, question.model);
  if (run.left_out > 0) answer.notes.push_back(fmt::format("{} requests without times left out", run.left_out));
  predict_requests(run);
  answer.json["of"] = "requests";
  answer.json["statistics"] = reports::statistics_json(request_statistics(run));
}

void validate_published(const CsvTable& table, bool intervals, Answer& answer) {
  const std::vector<PublishedRun> runs = predict_published(table, intervals);
  answer.json["groups"] = reports::accuracy_json(accuracy_of_published(table, runs));
  if (intervals) answer.json["coverage"] = reports::coverage_json(coverage(covered_published(table, runs)));
}

void validate_runs(const CsvTable& table, bool intervals, Answer& answer) {
  const MeasuredRuns runs = read_measured_runs(table);
  const std::vector<RowPrediction> rows = predict_all(runs);
  std::vector<AccuracyLine> lines = accuracy_by_group(runs, table, rows);
  add(lines, accuracy_by_load(runs, table, rows));
  answer.json["groups"] = reports::accuracy_json(lines);
  if (intervals)
    answer.json["coverage"] = reports::coverage_json(coverage(covered_runs(runs, table, run_intervals(runs))));
}

}  // namespace

Answer answer_validation(const ValidationQuestion& question) {
  Answer answer{.json = reports::result_head(reports::ResultKind::kValidation)};
  constexpr std::size_t kMost = std::size_t{1} << 30;
  const std::string text = read_file(question.data, kMost);
  const std::size_t start = text.find_first_not_of(" \t\r\n");
  if (start != std::string::npos && text[start] == '{') {  // JSON lines
    validate_requests(question, answer);
    return answer;
  }
  const CsvTable table = CsvTable::parse(text, question.data);
  answer.json["of"] = "serving";
  if (holds_scenarios(table))
    validate_published(table, question.intervals, answer);
  else
    validate_runs(table, question.intervals, answer);
  return answer;
}

}  // namespace roofcast::library
