#pragma once
// Benchmark clients as data (configs/clients): how they send their load.

#include <string>

#include "base/config_node.h"
#include "sim/plan/rules.h"

namespace roofcast {

/// Expands a workload that names a client,
///   {client: NAME, client_date: DAY, concurrency: N | rate: R, prompt_tokens, output_tokens, ...}
/// to the plain workload that this client sends: arrivals, number of requests, warm-up, length distributions, distinct
/// prompts. Keys of plain workloads override the client. A workload without a client is returned unchanged. `facts`:
/// the engine, the model and the date of the client are used. Throws ConfigError for an unknown client, and for a load
/// or lengths that the client does not support.
ConfigTree expand_client(const ConfigTree& workload, const DeploymentFacts& facts);

/// Whether a rule of that client depends on its date (client_since, client_until).
bool changes_by_day(const std::string& client, const SourceLocation& origin);

/// Checks a document of configs/clients.
void check_client(const ConfigTree& document);

/// The client with that name or alias (`also`).
std::string find_client(const std::string& name, const SourceLocation& origin);

}  // namespace roofcast
