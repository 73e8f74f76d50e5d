#pragma once
// What a sweep says: how many points can be run, and the best of those that can.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reports/result_schema.h"
#include "reports/verdict.h"

namespace roofcast::reports {

/// False for a point that does not fit, is saturated or misses its objectives: never the best of anything.
bool is_usable(const Json& metrics);

/// Whether a key says what is asked (the model, the tokens of a request), not how it is served: points that differ in
/// it do different work, so none is cheaper or quicker than the other.
bool is_work_key(std::string_view dotted_key);

/// Fed point by point: a large sweep is never held whole.
class SweepVerdict {
 public:
  using Keys = std::vector<std::pair<std::string, std::string>>;

  /// The names that every point has; empty where they vary or are not known.
  explicit SweepVerdict(std::string model = "", std::string gpu = "")
      : model_(std::move(model)), gpu_(std::move(gpu)) {}

  /// `metrics` is null where the combination is not possible.
  void add(const Keys& keys, const Json& metrics);
  ResultVerdict verdict() const;

 private:
  /// The point with the least of a measure so far.
  struct Best {
    std::optional<double> value{};
    Keys keys{};
    void take(std::optional<double> other, const Keys& of);
  };
  /// The best points of those that do the same work.
  struct Bests {
    Keys keys{};                             ///< of the first of them
    Best cheapest{}, quickest{}, busiest{};  ///< USD per million output tokens, TPOT, minus tokens/s per GPU
  };
  /// The keys that vary: those of the work, or the others.
  std::string label(const Keys& keys, bool work) const;

  std::string model_, gpu_;
  std::size_t points_ = 0, impossible_ = 0, unfit_ = 0, saturated_ = 0, missed_ = 0;
  bool objectives_ = false;
  std::map<std::string, Bests> bests_;  ///< by the values of the work's keys
  std::vector<std::string> works_;      ///< those values, as they came
  Keys first_;
  std::vector<bool> varies_;
};

}  // namespace roofcast::reports
