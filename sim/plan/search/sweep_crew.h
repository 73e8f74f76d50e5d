#pragma once
// The points of a sweep, spread over processes: rank 0 hands them out and keeps the store, all compute.

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "sim/plan/search/ranks.h"
#include "sim/plan/search/sweep.h"

namespace roofcast {

/// What came of one point: its metrics as text, or why it cannot be read.
struct PointResult {
  std::uint64_t point = 0;  ///< of the grid
  std::string result, error;
  double seconds = 0;
};
PointResult run_one_point(const SweepSpec& sweep, std::uint64_t point, Fidelity fidelity, SpecCache& specs);

struct CrewOptions {
  std::chrono::milliseconds heartbeat{1000};  ///< a rank at work says so this often
  std::chrono::milliseconds silence{20000};   ///< a rank that says nothing for so long is given up
  double chunk_seconds = 0.2;                 ///< of work that a rank is handed at once
};

/// Rank 0's side. While it lives the others wait for work; its end sends them home.
class SweepCrew {
 public:
  explicit SweepCrew(Ranks& ranks, CrewOptions options = {});
  ~SweepCrew();
  SweepCrew(const SweepCrew&) = delete;
  SweepCrew& operator=(const SweepCrew&) = delete;

  using Compute = std::function<PointResult(std::uint64_t point)>;
  using OnResult = std::function<void(PointResult&&)>;
  /// Runs every point once, here and there, and hands each result to `on_result`, in this thread. What a rank that fell
  /// silent had been given goes to others. `stop` ends it after what is under way here; what others have is left.
  void run(const std::vector<std::uint64_t>& points, const Compute& compute, const OnResult& on_result,
           const std::atomic<bool>& stop);
  int lost() const;  ///< ranks given up

 private:
  struct State;
  void call(State& state);
  bool listen(State& state, const OnResult& on_result);
  void hand_out(State& state, int rank);
  void give_up_silent(State& state);

  Ranks& ranks_;
  CrewOptions options_;
  int lost_ = 0;
};

/// Every other rank's side, until it is sent home: `read` is called once, when there is work at all. Points are
/// computed in a second thread, so that this one can answer.
void serve_sweep(Ranks& ranks, const std::function<SweepSpec()>& read, Fidelity fidelity,
                 const CrewOptions& options = {});

}  // namespace roofcast
