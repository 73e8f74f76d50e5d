#include "sim/plan/search/sweep_shard.h"

#include <charconv>
#include <filesystem>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace roofcast {
namespace {

/// Throws ConfigError unless all shards of one count are present, such as 1/4 to 4/4.
void check_complete(const std::map<std::uint64_t, std::set<std::uint64_t>>& given) {
  std::vector<std::string> missing;  // of the last count
  for (const auto& [count, indices] : given) {
    missing.clear();
    for (std::uint64_t i = 1; i <= count; ++i) {
      if (indices.count(i) == 0) missing.push_back(Shard{i, count}.text());
    }
    if (missing.empty()) return;
  }
  constexpr std::size_t kNamed = 8;
  const std::size_t more = missing.size() > kNamed ? missing.size() - kNamed : 0;
  missing.resize(missing.size() - more);
  throw ConfigError(fmt::format("--merge: the stores of these shards are missing: {}{}", join(missing, ", "),
                                more > 0 ? fmt::format(" and {} more", more) : ""));
}

}  // namespace

std::string Shard::text() const { return fmt::format("{}/{}", index, count); }

Shard parse_shard(const std::string& text, const std::string& origin) {
  Shard shard{.index = 0, .count = 0};
  const char* const end = text.data() + text.size();
  const auto index = std::from_chars(text.data(), end, shard.index);
  bool valid = index.ec == std::errc() && index.ptr != end && *index.ptr == '/';
  if (valid) {
    const auto count = std::from_chars(index.ptr + 1, end, shard.count);
    valid = count.ec == std::errc() && count.ptr == end && shard.index >= 1 && shard.index <= shard.count;
  }
  if (valid) return shard;
  throw ConfigError(fmt::format("{}: must be i/n, shard i of n, with i from 1 to {}; got '{}'", origin,
                                shard.count > 0 ? std::to_string(shard.count) : "n", text));
}

void merge_stores(const StoredSweep& sweep, const std::vector<std::string>& hashes,
                  const std::vector<std::string>& paths, SweepStore& store) {
  const std::unordered_set<std::string> wanted(hashes.begin(), hashes.end());
  std::map<std::uint64_t, std::set<std::uint64_t>> given;  // indices of shards, by their count
  for (const std::string& path : paths) {
    std::error_code error;
    if (!std::filesystem::exists(path, error)) throw ConfigError(fmt::format("--merge: no such store '{}'", path));
    bool same = true;
    const StoredSweep found = read_store(
        path, [&](StoredPoint&& point) { same = same && wanted.count(point.hash) > 0; }, "--merge: ");
    if (!same || found.run != sweep.run || found.keys != sweep.keys) {
      throw ConfigError(fmt::format(
          "--merge: '{}' is the store of another sweep, a file that it names has changed, or another build ran it",
          path));
    }
    const Shard shard = parse_shard(found.shard, path);
    given[shard.count].insert(shard.index);
  }
  check_complete(given);
  for (const std::string& path : paths)
    read_store(
        path, [&](StoredPoint&& point) { store.add(point.hash, point.result, 0.0); }, "--merge: ");
  store.commit();
}

}  // namespace roofcast
