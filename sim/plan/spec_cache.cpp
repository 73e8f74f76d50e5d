#include "sim/plan/spec_cache.h"

#include <filesystem>
#include <set>

#include "base/config_library.h"
#include "base/read_file.h"

namespace roofcast {
namespace {

namespace fs = std::filesystem;

/// Equal keys stand for equal documents: file names are relative to the file that writes them.
std::string key_of(std::string_view kind, const ConfigTree& value) {
  std::string key(kind);
  key += '\n';
  if (!value) return key;
  key += value->mark.path + '\n';
  return key + (value->kind == ConfigNode::Kind::kScalar ? value->scalar : to_yaml(*value));
}

/// The files whose names stand in a document, wherever they are looked for.
class FileHasher {
 public:
  std::uint64_t hash(const ConfigNode& node, std::uint64_t state) {
    if (node.kind == ConfigNode::Kind::kScalar) return scalar(node, hash_text(node.scalar, state));
    for (const ConfigTree& item : node.items) state = hash(*item, hash_text("- ", state));
    for (const ConfigNode::Entry& entry : node.entries) {
      state = hash_text(": ", hash_text(entry.key, state));
      if (entry.value) state = hash(*entry.value, state);
      if (entry.key == "servegen" && entry.value) state = folder(*entry.value, state);
      for (const auto& [key, kind] : {std::pair{"client", "clients"}, {"front_end", "front-ends"}}) {
        if (entry.key == key && entry.value && entry.value->kind == ConfigNode::Kind::kScalar)
          state = named(kind, *entry.value, state);
      }
      const bool names_gpu = entry.key == "carried_over_from" || entry.key == "ampere_kernels_from";
      const bool borrowed = names_gpu && entry.value && entry.value->kind == ConfigNode::Kind::kScalar;
      if (borrowed && seen_.insert(entry.value->scalar).second) {
        state = hash(*load_named("hardware", entry.value->scalar, entry.value->mark), state);
      }
    }
    return state;
  }

 private:
  /// A name that stands for nothing fails where it is used.
  std::uint64_t named(const char* kind, const ConfigNode& name, std::uint64_t state) {
    if (!seen_.insert(std::string(kind) + " " + name.scalar).second) return state;
    try {
      return hash(*load_named(kind, name.scalar, name.mark), state);
    } catch (const ConfigError&) {
      return state;
    }
  }
  std::uint64_t folder(const ConfigNode& node, std::uint64_t state) const {
    std::set<fs::path> files;
    std::error_code fault;  // a folder that cannot be read fails where it is parsed
    const fs::path path = fs::path(node.mark.path).parent_path() / node.scalar;
    for (const auto& entry : fs::directory_iterator(path, fault))
      if (entry.is_regular_file(fault)) files.insert(entry.path());
    for (const fs::path& file : files) state = hash_text(read_file(file.string(), std::size_t{1} << 33), state);
    return state;
  }
  std::uint64_t scalar(const ConfigNode& node, std::uint64_t state) const {
    const fs::path name(node.scalar);
    const std::string ending = name.extension().string();
    if (ending != ".yaml" && ending != ".yml" && ending != ".csv" && ending != ".json" && ending != ".jsonl")
      return state;
    std::error_code ignored;
    for (const fs::path& path : {fs::path(node.mark.path).parent_path() / name, name}) {
      if (fs::is_regular_file(path, ignored)) return hash_text(read_file(path.string(), std::size_t{1} << 33), state);
    }
    return state;
  }
  std::set<std::string> seen_;
};

}  // namespace

std::uint64_t hash_text(std::string_view text, std::uint64_t state) {
  for (const char c : text) state = (state ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return state;
}

template <class Map, class Key, class Read>
auto& SpecCache::remembered(Map& map, const Key& key, const std::string& name, Read read) {
  const std::lock_guard lock(mutex_);
  if (const auto at = map.find(key); at != map.end()) return at->second;
  if (const auto failed = failures_.find(name); failed != failures_.end()) throw ConfigError(failed->second);
  try {
    return map.emplace(key, read()).first->second;
  } catch (const ConfigError& error) {
    failures_.emplace(name, error.what());
    throw;
  }
}

const ModelSpec& SpecCache::model(const ConfigTree& value) {
  const std::string key = key_of("models", value);
  return remembered(models_, key, key, [&] { return parse_model(resolve_named("models", value)); });
}

const CalibratedGpu& SpecCache::gpu(const ConfigTree& value, KernelFamily family) {
  const std::string key = key_of("hardware", value);
  return remembered(gpus_, std::pair{key, family}, key + std::string(name_of(family)),
                    [&] { return load_gpu(resolve_named("hardware", value), family); });
}

const EngineSpec& SpecCache::engine(const ConfigTree& value) {
  const std::string key = key_of("engines", value);
  return remembered(engines_, key, key, [&] {
    const ConfigTree settings = resolve_named("engines", value);
    EngineSpec engine = parse_engine_spec(ConfigReader(settings, "an engine"));
    engine.settings_id = hash_text(to_yaml(*settings));
    return engine;
  });
}

std::uint64_t SpecCache::fingerprint(std::string_view kind, const ConfigTree& value) {
  const std::string key = key_of(kind, value);
  return remembered(fingerprints_, key, "fingerprint " + key,
                    [&] { return FileHasher().hash(*resolve_named(kind, value), hash_text(kind)); });
}

}  // namespace roofcast
