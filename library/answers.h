#pragma once
// Questions and answers as plain values. The public headers and the internal ones use the same names (Scenario,
// Seconds, estimate), so no source file includes both: this header stands between them. The Python module asks here,
// too. A question may run under a watch (base/watch.h).

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
  nlohmann::ordered_json json{};     ///< as the program prints it; null where there are no numbers
  std::string reason{};              ///< where no answer exists
  std::vector<std::string> notes{};  ///< what the program says beside it
  std::string text{};                ///< of a sweep, which is laid out a line a point
};
/// The JSON as the program prints it; empty where there is none.
std::string text_of(const Answer& answer);

struct EstimateQuestion {
  int batch = 1, prompt_tokens = 1, output_tokens = 1;
  int context = 0;  ///< 0: its default
};
struct SimulationQuestion {
  Observer* observer = nullptr;
  bool intervals = false;                          ///< 90 % intervals, and means over time
  std::atomic<std::uint64_t>* requests = nullptr;  ///< takes the number of requests to come, where it is known
};
struct PlanQuestion {
  bool prune = true;  ///< false: simulate every candidate
};
struct SweepQuestion {
  std::string store = ":memory:";
  std::function<void(std::uint64_t done, std::uint64_t of)> progress{};  ///< on any thread, one at a time
};
struct ValidationQuestion {
  std::string data{};          ///< a table of runs, or the requests of one
  std::string gpu{}, model{};  ///< of a file of requests, where it does not say
  bool intervals = false;
};

/// `specs` may be shared by many estimates; null: everything is read anew.
Answer answer_estimate(const ConfigTree& scenario, bool ideal, const EstimateQuestion& question,
                       SpecCache* specs = nullptr);
Answer answer_simulation(const ConfigTree& scenario, bool ideal, const SimulationQuestion& question = {});
Answer answer_plan(const ConfigTree& scenario, bool ideal, const PlanQuestion& question = {});
Answer answer_ladder(const ConfigTree& scenario, bool ideal, int concurrency, int requests);
Answer answer_sweep(const SweepSpec& sweep, bool ideal, const SweepQuestion& question);
/// The measured run of the file `bench` beside its prediction.
Answer answer_comparison(const ConfigTree& scenario, bool ideal, const MeasuredSource& source);
/// Errors of a table of serving runs, or of one run request by request.
Answer answer_validation(const ValidationQuestion& question);

}  // namespace library
}  // namespace roofcast
