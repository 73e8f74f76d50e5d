#pragma once
// Parsed models, GPUs and engines, shared by many scenarios of one run.

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "base/config_node.h"
#include "hw/efficiency.h"
#include "sim/model/model_spec.h"
#include "sim/step/engine_spec.h"

namespace roofcast {

/// `value` is what a scenario contains: a name, a file, or a map that overrides parts of what it names. Thread-safe;
/// references stay valid as long as the cache. Invalid values throw the same ConfigError every time without being read
/// again.
class SpecCache {
 public:
  const ModelSpec& model(const ConfigTree& value);
  const CalibratedGpu& gpu(const ConfigTree& value, const std::string& kernels);
  const EngineSpec& engine(const ConfigTree& value);

  /// A hash that changes whenever the meaning of the scenario does: it covers the documents and tables that it names,
  /// its defaults, and what these name in turn.
  std::uint64_t fingerprint(const ConfigTree& scenario);

 private:
  std::uint64_t fingerprint(std::string_view kind, const ConfigTree& value);
  template <class Map, class Key, class Read>
  auto& remembered(Map& map, const Key& key, const std::string& name, Read read);
  std::mutex mutex_;
  std::map<std::string, std::string> failures_;
  std::map<std::string, ModelSpec> models_;
  std::map<std::pair<std::string, std::string>, CalibratedGpu> gpus_;
  std::map<std::string, EngineSpec> engines_;
  std::map<std::string, std::uint64_t> fingerprints_;
};

/// FNV-1a of the text, starting from `state` (Fowler, Noll, Vo; constants of the 64-bit variant).
std::uint64_t hash_text(std::string_view text, std::uint64_t state = 14695981039346656037ULL);

}  // namespace roofcast
