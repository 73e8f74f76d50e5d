#pragma once
// Finished points of a sweep in a crash-safe SQLite file.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

namespace roofcast {

/// The sweep that a store was last used for.
struct StoredSweep {
  std::string name, run;          ///< run: estimate | simulate
  std::vector<std::string> keys;  ///< dotted, in the order of the grid
  std::string shard = "1/1";      ///< the shard of the sweep in this store
  std::string model{}, gpu{};     ///< common to all points; empty if it varies
};

/// For one process at a time. A damaged file, or one of another version, is refused and left unchanged. Writes go to a
/// write-ahead log, so that a killed process loses at most what it had not committed.
class SweepStore {
 public:
  explicit SweepStore(const std::string& path);  ///< ":memory:" is not persistent; throws ConfigError
  ~SweepStore();
  SweepStore(const SweepStore&) = delete;
  SweepStore& operator=(const SweepStore&) = delete;

  std::unordered_set<std::string> hashes() const;
  std::optional<std::string> find(const std::string& hash) const;
  /// Slow points are committed immediately, fast ones by the hundred. Not thread-safe.
  void add(const std::string& hash, const std::string& result, double seconds_taken);
  void commit();
  /// Stores the description of the sweep and the values of its points, by hash and in order, so that the file describes
  /// itself. Points of earlier sweeps stay for later use.
  void describe(const StoredSweep& sweep, const std::vector<std::string>& hashes,
                const std::function<std::vector<std::string>(std::size_t)>& values);

  struct Handle;  ///< the open file

 private:
  std::unique_ptr<Handle> handle_;
  std::string path_;
  int pending_ = 0;
  std::chrono::steady_clock::time_point committed_;
};

/// One finished point of the sweep that a store was last used for.
struct StoredPoint {
  std::vector<std::string> values;  ///< per key
  std::string hash;
  std::string result;  ///< for metrics_from_text()
};

/// Reads a store without changing it, in the order of the grid. Throws ConfigError for a damaged file, another
/// version's, and one without a description of its sweep; the message starts with `origin`.
StoredSweep read_store(const std::string& path, const std::function<void(StoredPoint&&)>& point,
                       const std::string& origin = "");

}  // namespace roofcast
