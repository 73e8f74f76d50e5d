#pragma once
// The parameters of an explorer request: flat keys, from the URL or from a JSON body.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/plan/estimate.h"
#include "sim/plan/scenario.h"
#include "sim/step/deployment.h"

namespace roofcast::explore {

/// Keys and values as text, each key once.
using Query = std::map<std::string, std::string, std::less<>>;

/// A key of a request. It is a flag of `roofcast estimate` with '_' for '-', or a choice that `Setup::command`
/// expresses with
/// --set.
struct QueryKey {
  std::string name, help;
};
/// The keys of a deployment and of the batch it serves.
const std::vector<QueryKey>& setup_keys();
/// Drafting methods for autoregressive models, in the order of the enumeration.
std::vector<std::string> drafting_methods();

/// A JSON object of strings, numbers and booleans. Throws ConfigError for anything else, and for a key given twice.
Query query_of_json(std::string_view body);

/// Throws ConfigError for keys that are neither in setup_keys() nor in `more`, and for values that are too long.
void check_keys(const Query& query, const std::vector<QueryKey>& more);

/// An integer within bounds, or `default_value`.
int integer_of(const Query& query, std::string_view key, int default_value, int low, int high);

/// A number from 0 to 1, if the key is there.
std::optional<double> fraction_of(const Query& query, std::string_view key);

/// The inputs of `roofcast estimate` for a query.
struct Setup {
  ConfigTree tree;
  Fidelity fidelity = Fidelity::kCalibrated;
  Scenario scenario;
  EstimateRequest request;
  std::string command;  ///< the line that prints the same estimate

  const Deployment& deployment() const { return *scenario.deployment; }
};

/// Reads only what ships with the program: models, GPUs and engines are names, never files. Throws ConfigError; a
/// deployment that does not fit is a valid Setup.
Setup read_setup(const Query& query);

/// Limits per request, so that answers stay fast: prefill steps, and decode steps times tokens.
inline constexpr double kMostPrefillSteps = 1024;
inline constexpr double kMostSteppedTokens = 2e5;  ///< outputs simulated one step at a time
inline constexpr int kMostBatch = 16384, kMostTokens = 1 << 24;

/// Steps that `estimate` prices for the prompts of `request`.
double prefill_steps(const Deployment& deployment, const EstimateRequest& request);
/// Throws ConfigError for more than kMostPrefillSteps.
void check_prefill_steps(const Deployment& deployment, const EstimateRequest& request);

}  // namespace roofcast::explore
