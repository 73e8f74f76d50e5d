#pragma once
// The library's functions in terms of plain values. The public headers and the internal ones use the same names
// (Scenario, Seconds, estimate), so no source file can include both: this header is between them. The Python module
// uses it, too. Each function may run under a watch (base/watch.h).

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/config_node.h"

namespace roofcast {

class Observer;
class SpecCache;
struct MeasuredSource;
struct SweepSpec;

namespace library {

struct Answer {
  nlohmann::ordered_json json{};     ///< as the program prints it; null if there are no numbers
  std::string reason{};              ///< why there is no answer; empty if there is one
  std::vector<std::string> notes{};  ///< what the program prints as notes
  std::string text{};                ///< JSON of a sweep, which has one line per point
};
/// The JSON as the program prints it; empty if there is none.
std::string text_of(const Answer& answer);

struct EstimateQuestion {
  int batch = 1, prompt_tokens = 1, output_tokens = 1;
  int context = 0;  ///< 0: the default
};
struct SimulationQuestion {
  Observer* observer = nullptr;
  bool intervals = false;                          ///< add 90 % intervals, and means over time
  std::atomic<std::uint64_t>* requests = nullptr;  ///< receives the expected number of requests, if known
};
struct PlanQuestion {
  bool prune = true;  ///< false: simulate every candidate
};
struct SweepQuestion {
  std::string store = ":memory:";
  std::function<void(std::uint64_t done, std::uint64_t of)> progress{};  ///< called on any thread, but not concurrently
};
struct ValidationQuestion {
  std::string data{};          ///< a table of runs, or the requests of one run
  std::string gpu{}, model{};  ///< for a file of requests that does not name them
  bool intervals = false;
};

/// `specs` may be shared by many estimates; null: all specs are read again.
Answer answer_estimate(const ConfigTree& scenario, bool ideal, const EstimateQuestion& question,
                       SpecCache* specs = nullptr);
Answer answer_simulation(const ConfigTree& scenario, bool ideal, const SimulationQuestion& question = {});
Answer answer_plan(const ConfigTree& scenario, bool ideal, const PlanQuestion& question = {});
Answer answer_ladder(const ConfigTree& scenario, bool ideal, int concurrency, int requests);
Answer answer_sweep(const SweepSpec& sweep, bool ideal, const SweepQuestion& question);
/// Compares the measured run of `source` with its prediction.
Answer answer_comparison(const ConfigTree& scenario, bool ideal, const MeasuredSource& source);
/// Errors of a table of serving runs, or of one run, request by request.
Answer answer_validation(const ValidationQuestion& question);

}  // namespace library
}  // namespace roofcast
