#include "sim/plan/spec_cache.h"

#include <array>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/config_library.h"
#include "base/read_file.h"
#include "hw/changed_gpu.h"
#include "hw/efficiency.h"
#include "sim/model/model_spec.h"
#include "sim/step/engine_spec.h"

namespace roofcast {
namespace {

namespace fs = std::filesystem;

/// Equal keys mean equal documents: file names are relative to the file that contains them.
std::string key_of(std::string_view kind, const ConfigTree& value) {
  std::string key(kind);
  key += '\n';
  if (!value) return key;
  key += value->location.path.str() + '\n';
  return key + (value->kind == ConfigNode::Kind::kScalar ? value->scalar : to_yaml(*value));
}

/// Keys whose value names a document, wherever they occur.
constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kNamed{{{"model", "models"},
                                                                                {"base", "models"},
                                                                                {"gpu", "hardware"},
                                                                                {"carried_over_from", "hardware"},
                                                                                {"pooled_with", "hardware"},
                                                                                {"ampere_kernels_from", "hardware"},
                                                                                {"like", "hardware"},
                                                                                {"engine", "engines"},
                                                                                {"recipe", "recipes"},
                                                                                {"workload", "workloads"},
                                                                                {"client", "clients"},
                                                                                {"front_end", "front-ends"}}};

/// Folders of which any document may matter, named or not: defaults, recipes that are searched, spreads.
constexpr std::array kWholeFolders{"engines", "recipes",   "clients",    "front-ends",
                                   "kernels", "rooflines", "uncertainty"};

std::string_view kind_of(std::string_view key) {
  for (const auto& [name, kind] : kNamed) {
    if (name == key) return kind;
  }
  return "";
}

/// A document, the documents that it names, and the files.
class DocumentHasher {
 public:
  std::uint64_t hash(const ConfigNode& node, std::uint64_t state) {
    if (node.kind == ConfigNode::Kind::kScalar) {
      state = hash_text(node.scalar, state);
      return has_ending(node.scalar) ? file_of(node, state) : state;
    }
    for (const ConfigTree& item : node.items) state = hash(*item, hash_text("- ", state));
    for (const ConfigNode::Entry& entry : node.entries) {
      state = hash_text(": ", hash_text(entry.key, state));
      if (!entry.value) continue;
      state = hash(*entry.value, state);
      if (entry.key == "file" || entry.key == "counts") state = file_of(*entry.value, state);  // whatever it ends in
      if (entry.key == "servegen") state = folder(folder_named(*entry.value), state);
      if (const std::string_view kind = kind_of(entry.key); !kind.empty()) state = named(kind, entry.value, state);
    }
    return state;
  }
  static std::uint64_t folder(const fs::path& path, std::uint64_t state) {
    std::set<fs::path> files;
    std::error_code fault;  // an unreadable folder fails when parsed
    for (const auto& entry : fs::directory_iterator(path, fault))
      if (entry.is_regular_file(fault)) files.insert(entry.path());
    for (const fs::path& file : files)
      state = hash_text(read_file(file.string(), kFileLimit), hash_text(file.filename().string(), state));
    return state;
  }

 private:
  static constexpr std::size_t kFileLimit = std::size_t{1} << 30;  // no reader takes more

  /// An unknown name fails when used.
  std::uint64_t named(std::string_view kind, const ConfigTree& value, std::uint64_t state) {
    const bool names = value->kind == ConfigNode::Kind::kScalar || value->find("name") != nullptr;
    if (!names || !seen_.insert(key_of(kind, value)).second) return state;
    try {
      return hash(*resolve_named(kind, value), state);
    } catch (const ConfigError&) {
      return state;
    }
  }
  static fs::path folder_named(const ConfigNode& node) {
    return fs::path(node.location.path.str()).parent_path() / node.scalar;
  }
  /// True for "trace.csv", false for "3.35 TB/s".
  static bool has_ending(const std::string& text) {
    const std::size_t dot = text.rfind('.');
    return dot != std::string::npos && dot + 1 < text.size() && text.find_first_of("0123456789 /", dot) != dot + 1;
  }
  static std::uint64_t file_of(const ConfigNode& node, std::uint64_t state) {
    const fs::path name(node.scalar);
    std::error_code ignored;
    for (const fs::path& path : {fs::path(node.location.path.str()).parent_path() / name, name}) {
      if (fs::is_regular_file(path, ignored)) return hash_text(read_file(path.string(), kFileLimit), state);
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

struct SpecCache::State {
  std::mutex mutex;
  std::map<std::string, std::string> failures;
  std::map<std::string, ModelSpec> models;
  std::map<std::pair<std::string, std::string>, CalibratedGpu> gpus;
  std::map<std::string, EngineSpec> engines;
  std::map<std::string, std::uint64_t> fingerprints;

  template <class Map, class Key, class Read>
  auto& remembered(Map& map, const Key& key, const std::string& name, Read read) {
    const std::lock_guard lock(mutex);
    if (const auto at = map.find(key); at != map.end()) return at->second;
    if (const auto failed = failures.find(name); failed != failures.end()) throw ConfigError(failed->second);
    try {
      return map.emplace(key, read()).first->second;
    } catch (const ConfigError& error) {
      failures.emplace(name, error.what());
      throw;
    }
  }
};

SpecCache::SpecCache() : state_(std::make_unique<State>()) {}
SpecCache::~SpecCache() = default;

const ModelSpec& SpecCache::model(const ConfigTree& value) {
  const std::string key = key_of("models", value);
  return state_->remembered(state_->models, key, key, [&] { return parse_model(resolve_named("models", value)); });
}

const CalibratedGpu& SpecCache::gpu(const ConfigTree& value, const std::string& kernels) {
  const std::string key = key_of("hardware", value);
  return state_->remembered(state_->gpus, std::pair{key, kernels}, key + kernels, [&] {
    return load_gpu(with_changed_figures(value, resolve_named("hardware", value)), kernels);
  });
}

const EngineSpec& SpecCache::engine(const ConfigTree& value) {
  const std::string key = key_of("engines", value);
  return state_->remembered(state_->engines, key, key, [&] {
    const ConfigTree settings = resolve_named("engines", value);
    EngineSpec engine = parse_engine_spec(ConfigReader(settings, "an engine"));
    engine.settings_id = hash_text(to_yaml(*settings));
    return engine;
  });
}

std::uint64_t SpecCache::fingerprint(std::string_view kind, const ConfigTree& value) {
  const std::string key = key_of(kind, value);
  return state_->remembered(state_->fingerprints, key, "fingerprint " + key, [&] {
    return DocumentHasher().hash(kind.empty() ? *value : *resolve_named(kind, value), hash_text(kind));
  });
}

std::uint64_t SpecCache::fingerprint(const ConfigTree& scenario) {
  std::uint64_t state = state_->remembered(state_->fingerprints, std::string("folders"), "folders", [] {
    std::uint64_t folders = hash_text("folders");
    for (const char* kind : kWholeFolders) folders = DocumentHasher::folder(fs::path(config_root()) / kind, folders);
    return folders;
  });
  for (const ConfigNode::Entry& entry : scenario->entries) {
    state = hash_text(entry.key, state);
    if (!entry.value || entry.value->kind == ConfigNode::Kind::kNull) continue;
    const std::string_view kind = kind_of(entry.key);
    const bool plain = kind.empty() && entry.value->kind == ConfigNode::Kind::kScalar;
    state = plain ? hash_text(entry.value->scalar, state)
                  : hash_text(fmt::format("{:016x}", fingerprint(kind, entry.value)), state);
  }
  return state;
}

}  // namespace roofcast
