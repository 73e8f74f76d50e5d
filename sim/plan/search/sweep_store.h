#pragma once
// Finished points of a sweep in a SQLite file that survives a kill.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

namespace roofcast {

/// The sweep that a store was last used for: what its points vary.
struct StoredSweep {
  std::string name, run;          ///< run: estimate | simulate
  std::vector<std::string> keys;  ///< dotted, in the order of the grid
  std::string shard = "1/1";      ///< the part of the sweep that the store is for
  std::string model{}, gpu{};     ///< of every point; empty where it varies
};

/// One process at a time. A file of another version, or one that is damaged, is refused and left as it is.
/// Writes go to a write-ahead log: a process that is killed loses at most what it had not committed.
class SweepStore {
 public:
  explicit SweepStore(const std::string& path);  ///< ":memory:" keeps nothing; throws ConfigError
  ~SweepStore();
  SweepStore(const SweepStore&) = delete;
  SweepStore& operator=(const SweepStore&) = delete;

  std::unordered_set<std::string> hashes() const;
  std::optional<std::string> find(const std::string& hash) const;
  /// Slow points are committed at once, quick ones by the hundred. Not thread-safe.
  void add(const std::string& hash, const std::string& result, double seconds_taken);
  void commit();
  /// Remembers the sweep and the values of its points, by hash and in order, so that the file tells by itself what it
  /// holds. Points of earlier sweeps stay; their results serve whoever asks for the same again.
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
  std::vector<std::string> values;  ///< of each key
  std::string hash;
  std::string result;  ///< for metrics_from_text()
};

/// Reads a store without changing it, in the order of the grid. Throws ConfigError for a damaged file, another
/// version's, and one whose sweep never said what it varies; the message begins with `origin`.
StoredSweep read_store(const std::string& path, const std::function<void(StoredPoint&&)>& point,
                       const std::string& origin = "");

}  // namespace roofcast
