#pragma once
// The verdict of a sweep: how many points are usable, and the best of these.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reports/result_schema.h"
#include "reports/verdict.h"

namespace roofcast::reports {

/// False for a point that does not fit, is saturated or misses its objectives.
bool is_usable(const Json& metrics);

/// Whether a key describes the work (the model, the tokens of a request), not how it is served. Points that differ in
/// it do different work, so they are not compared.
bool is_work_key(std::string_view dotted_key);

/// Receives points one by one, so that a large sweep is never held in memory.
class SweepVerdict {
 public:
  using Keys = std::vector<std::pair<std::string, std::string>>;

  /// `model` and `gpu` are common to all points; empty if they vary or are unknown.
  explicit SweepVerdict(std::string model = "", std::string gpu = "")
      : model_(std::move(model)), gpu_(std::move(gpu)) {}

  /// `metrics` is null if the combination is not possible.
  void add(const Keys& keys, const Json& metrics);
  ResultVerdict verdict() const;

 private:
  /// The point with the least of a measure so far.
  struct Best {
    std::optional<double> value{};
    Keys keys{};
    void take(std::optional<double> other, const Keys& of);
  };
  /// The best points among those that do the same work.
  struct Bests {
    Keys keys{};                             ///< keys of the first one
    Best cheapest{}, quickest{}, busiest{};  ///< USD per million output tokens, TPOT, minus tokens/s per GPU
  };
  /// The keys that vary: those of the work, or the others.
  std::string label(const Keys& keys, bool work) const;

  std::string model_, gpu_;
  std::size_t points_ = 0, impossible_ = 0, unfit_ = 0, saturated_ = 0, missed_ = 0;
  bool objectives_ = false;
  std::map<std::string, Bests> bests_;  ///< by the values of the work's keys
  std::vector<std::string> works_;      ///< those values in order of occurrence
  Keys first_;
  std::vector<bool> varies_;
};

}  // namespace roofcast::reports
