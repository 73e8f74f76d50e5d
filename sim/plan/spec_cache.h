#pragma once
// Parsed models, GPUs and engines, shared by many scenarios of one run.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/config_node.h"

namespace roofcast {

struct CalibratedGpu;
struct EngineSpec;
struct ModelSpec;

/// `value` is what a scenario contains: a name, a file, or a map that overrides parts of what it names. Thread-safe;
/// references stay valid as long as the cache. Invalid values throw the same ConfigError every time without being read
/// again.
class SpecCache {
 public:
  SpecCache();
  ~SpecCache();

  const ModelSpec& model(const ConfigTree& value);
  const CalibratedGpu& gpu(const ConfigTree& value, const std::string& kernels);
  const EngineSpec& engine(const ConfigTree& value);

  /// A hash that changes whenever the meaning of the scenario does: it covers the documents and tables that it names,
  /// its defaults, and what these name in turn.
  std::uint64_t fingerprint(const ConfigTree& scenario);

 private:
  struct State;
  std::uint64_t fingerprint(std::string_view kind, const ConfigTree& value);
  std::unique_ptr<State> state_;
};

/// FNV-1a of the text, starting from `state` (Fowler, Noll, Vo; constants of the 64-bit variant).
std::uint64_t hash_text(std::string_view text, std::uint64_t state = 14695981039346656037ULL);

}  // namespace roofcast
