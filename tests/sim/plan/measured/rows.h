#pragma once
// Tables of measured runs made of cells.

#include <doctest/doctest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/csv.h"
#include "sim/plan/measured/measured_runs.h"
#include "sim/serve/step_pricer.h"

namespace roofcast::rows {

using Cells = std::map<std::string, std::string>;

/// `changes` over `base`. An empty cell is a blank one, but its column is there.
inline Cells with(Cells base, const Cells& changes) {
  for (const auto& [column, cell] : changes) base[column] = cell;
  return base;
}

inline CsvTable table(const std::vector<Cells>& runs) {
  std::set<std::string> columns;
  for (const Cells& run : runs) {
    for (const auto& [column, cell] : run) columns.insert(column);
  }
  std::string text;
  for (const std::string& column : columns) text += (text.empty() ? "" : ",") + column;
  for (const Cells& run : runs) {
    text += "\n";
    for (const std::string& column : columns) {
      const auto cell = run.find(column);
      text += (column == *columns.begin() ? "\"" : ",\"") + (cell != run.end() ? cell->second : "") + "\"";
    }
  }
  return CsvTable::parse(text + "\n", "runs.csv");
}

inline MeasuredRun read(const Cells& run) { return read_measured_runs(table({run})).runs.at(0); }

inline std::string scenario(const Cells& run) {
  const MeasuredRun read_run = read(run);
  CHECK(read_run.note == "");
  return read_run.scenario ? to_yaml(*read_run.scenario) : "";
}

/// One closed loop of Llama 3.1 8B on an H100, with `changes`.
inline Cells closed_loop(const Cells& changes = {}) {
  return with({{"model", "llama-3.1-8b"},
               {"gpu", "h100-sxm"},
               {"engine", "vllm"},
               {"engine_version", "0.19.0"},
               {"weight_dtype", "bf16"},
               {"isl", "256"},
               {"osl", "64"},
               {"concurrency", "4"},
               {"tp", "1"},
               {"ttft_ms", ""},
               {"tpot_ms", ""}},
              changes);
}

/// The same with workers for prefill and decode.
inline Cells apart(const Cells& changes = {}) {
  Cells cells = with(closed_loop({{"prefill_num_workers", "1"},
                                  {"prefill_batch_size", "1"},
                                  {"prefill_tp_size", "1"},
                                  {"decode_num_workers", "1"},
                                  {"decode_batch_size", "4"},
                                  {"decode_tp_size", "1"}}),
                     changes);
  cells.erase("tp");
  return cells;
}

/// Runs that measure one figure: a static batch where `changes` have a batch, online with a request rate.
inline Cells figure(const Cells& changes = {}) {
  return with({{"model", "llama-3.1-8b"},
               {"gpu", "h100-sxm"},
               {"engine", "trtllm"},
               {"version", "0.18.0"},
               {"weight_dtype", "bf16"},
               {"kv_dtype", "bf16"},
               {"tp", "1"},
               {"isl", "256"},
               {"osl", "64"},
               {"metric", "output_tokens_per_s"},
               {"value", "1"}},
              changes);
}

inline RunPrediction predict(const MeasuredRun& run) {
  REQUIRE(run.note == "");
  const auto pricer = make_model_pricer(run.deployment);
  return predict_run(run, *pricer);
}

}  // namespace roofcast::rows
