#pragma once
// How a benchmark client sends its load, as data: configs/clients.

#include <string>

#include "base/config_node.h"
#include "sim/plan/rules.h"

namespace roofcast {

/// A workload that names a client,
///   {client: NAME, client_date: DAY, concurrency: N | rate: R, prompt_tokens, output_tokens, ...}
/// as the plain workload that the client would send: arrivals, number of requests, warm-up, laws of lengths, distinct
/// prompts. Keys of plain workloads go before what the client does. A workload without a client is returned as it is.
/// Of `facts`, the engine, the model and the client's day count. Throws ConfigError for an unknown client, for a load
/// that the client does not send, and for lengths that it does not draw.
ConfigTree expand_client(const ConfigTree& workload, const DeploymentFacts& facts);

/// Whether a rule of that client asks for its day (client_since, client_until).
bool changes_by_day(const std::string& client, const Mark& origin);

/// Checks a document of configs/clients.
void check_client(const ConfigTree& document);

/// The client of that name or other name (`also`).
std::string find_client(const std::string& name, const Mark& origin);

}  // namespace roofcast
