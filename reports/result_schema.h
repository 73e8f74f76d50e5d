#pragma once
// The kinds of results, and the pair of functions that write and read them. Every result starts with `kind` and
// `schema`, the version of its keys, which is raised when a key is renamed or dropped.

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "reports/catalog_keys.h"
#include "reports/services_keys.h"

namespace roofcast::reports {

using Json = nlohmann::ordered_json;

/// The last three are tables (CSV), recognised by their columns.
enum class ResultKind {
  kEstimate,
  kSimulation,
  kSweep,
  kPlan,
  kLadder,
  kComparison,
  kValidation,
  kCalibration,
  kServicesPlan,
  kLecture,
  kImport,
  kCatalog,
  kCatalogEntry,
  kKernelRows,
  kServingRows,
  kRequestRows
};
std::string_view name_of(ResultKind kind);

struct ResultSchema {
  ResultKind kind;
  std::string_view name, article;
  int version;
  std::span<const result_keys::KeyGroup> groups;
  std::string_view points = "";  ///< the list that charts and tables show point by point
};
inline constexpr std::array kResultSchemas{
    ResultSchema{ResultKind::kEstimate, "estimate", "an", 1, result_keys::kEstimateGroups},
    ResultSchema{ResultKind::kSimulation, "simulation", "a", 1, result_keys::kSimulationGroups},
    ResultSchema{ResultKind::kSweep, "sweep", "a", 1, result_keys::kSweepGroups, "points"},
    ResultSchema{ResultKind::kPlan, "plan", "a", 1, result_keys::kPlanGroups, "deployments"},
    ResultSchema{ResultKind::kLadder, "ladder", "a", 2, result_keys::kLadderGroups, "rungs"},
    ResultSchema{ResultKind::kComparison, "comparison", "a", 1, result_keys::kComparisonGroups},
    ResultSchema{ResultKind::kValidation, "validation", "a", 1, result_keys::kValidationGroups},
    ResultSchema{ResultKind::kCalibration, "calibration", "a", 1, result_keys::kCalibrationGroups},
    ResultSchema{ResultKind::kServicesPlan, "services_plan", "a", 1, result_keys::kServicesGroups},
    ResultSchema{ResultKind::kLecture, "lecture", "a", 1, result_keys::kLectureGroups},
    ResultSchema{ResultKind::kImport, "import", "an", 1, result_keys::kImportGroups},
    ResultSchema{ResultKind::kCatalog, "catalog", "a", 1, result_keys::kCatalogGroups},
    ResultSchema{ResultKind::kCatalogEntry, "catalog_entry", "a", 1, result_keys::kCatalogEntryGroups}};
constexpr const ResultSchema& schema_of(ResultKind kind) { return kResultSchemas[static_cast<std::size_t>(kind)]; }

/// The head of a result of this kind: {kind, schema}. Other keys follow.
Json result_head(ResultKind kind);
/// The same for a kind with an `of`: {kind, schema, of}.
Json result_head(ResultKind kind, std::string_view of);
/// The JSON text of a result that starts with its head, with `question` unless null. A missing declared key is a bug of
/// ours.
std::string result_text(const Json& result, const Json& question = nullptr);
/// The kind of a result. Throws ConfigError naming the key if `kind` or `schema` is missing or unknown, or a declared
/// key is missing.
ResultKind read_kind(const Json& json, const std::string& path);

/// The first declared key that a result lacks, as "operators[2].time_us"; empty when none is missing.
std::string missing_key(const Json& json, const ResultSchema& schema);

/// A key that some kind of result declares, relative to its place; any other string does not compile.
class ResultKey {
 public:
  consteval ResultKey(const char* path) : path_(path) {
    if (!declared(path_)) throw "no kind of result declares this key: see reports/result_keys.h";
  }
  constexpr std::string_view path() const { return path_; }

 private:
  static constexpr bool declared(std::string_view path) {
    for (const ResultSchema& schema : kResultSchemas) {
      for (const result_keys::KeyGroup& group : schema.groups) {
        for (const std::string_view key : group.keys) {
          if (key == path) return true;
          const std::size_t in = group.place.size();  // "provenance.source" as well as "source" there
          if (path.size() == in + key.size() && path.starts_with(group.place) && path.ends_with(key)) return true;
        }
      }
    }
    return false;
  }
  std::string_view path_;
};

/// A figure that an estimate has as one value, a simulation as a median and a ladder as a mean.
struct Headline {
  ResultKey of_estimate, of_simulation, of_ladder;
};
inline constexpr Headline kTtft{"ttft_ms", "median_ttft_ms", "mean_ttft_ms"};
inline constexpr Headline kTpot{"tpot_ms", "median_tpot_ms", "mean_tpot_ms"};
inline constexpr Headline kThroughput{"output_tokens_per_s", "output_throughput", "output_tokens_per_s"};

/// A finite number, if there is one.
std::optional<double> number_at(const Json& json, ResultKey key);
std::optional<double> number_at(const Json& json, const Headline& headline);
/// A string, empty if absent; malformed UTF-8 is replaced.
std::string text_at(const Json& json, ResultKey key);
/// GPUs of all replicas; for an estimate those of one replica.
double gpus_of(const Json& json);

}  // namespace roofcast::reports
