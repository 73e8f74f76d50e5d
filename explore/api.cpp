#include "explore/api.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/text.h"
#include "base/watch.h"
#include "explore/canvases.h"
#include "explore/catalog.h"
#include "explore/documents.h"
#include "reports/estimate_report.h"
#include "reports/html_text.h"
#include "reports/question.h"
#include "sim/plan/steady_load.h"
#include "sim/step/deployment.h"

namespace roofcast::explore {
namespace {

/// A list that never changes while the program runs.
struct CatalogEntry {
  std::string_view path, help;
  Json (*make)();
};
constexpr std::array kCatalog{
    CatalogEntry{"models", "the models, with parameters and kind of attention", models_json},
    CatalogEntry{"gpus", "the GPUs, with peaks, memory and price", gpus_json},
    CatalogEntry{"engines", "the engine profiles", engines_json},
    CatalogEntry{"choices", "formats, recipes, methods, every key of a request, limits", choices_json},
};

/// A question about one setup.
struct Endpoint {
  std::string_view path, help;
  Json (*make)(const Setup&, const Query&);
  const std::vector<QueryKey>& (*keys)();
  bool of_decoders = false;  ///< only for decoder-only models
};
const std::vector<QueryKey>& no_keys() { return kNoKeys; }
constexpr std::array kEndpoints{
    Endpoint{"timeline", "one request from arrival to its last token", timeline_json, timeline_keys},
    Endpoint{"roofline", "operators and steps under the GPU's ceilings", roofline_json, no_keys},
    Endpoint{"breakdown", "where the time of a step goes", breakdown_json, no_keys},
    Endpoint{"tiles", "attention with and without its matrix in memory", tiles_json, no_keys, true},
    Endpoint{"memory", "memory of a GPU against context", memory_json, no_keys},
    Endpoint{"throughput", "latency and throughput over the batch, with the knee", throughput_json, no_keys},
    Endpoint{"speculation", "speed-up over drafts and acceptance", speculation_json, speculation_keys, true},
    Endpoint{"rounds", "rounds of speculation, drawn", rounds_json, rounds_keys, true},
    Endpoint{"cache", "the KV cache token by token, and the work it saves", cache_steps_json, cache_steps_keys, true},
    Endpoint{"formats", "every number format in place of the weights'", formats_json, no_keys},
    Endpoint{"attention", "every kind of attention in place of the model's", attention_json, no_keys, true},
    Endpoint{"costs", "every GPU in place of this one, at its best batch", costs_json, costs_keys},
    Endpoint{"limits", "batch against context: what is within a time per token, what fits", limits_json, limits_keys},
    Endpoint{"paging", "memory reserved for the longest output, and in blocks", paging_json, paging_keys, true},
    Endpoint{"prefix", "a prompt whose beginning is in the cache", prefix_json, no_keys, true},
    Endpoint{"stack", "the techniques of serving one after another", stack_json, no_keys, true},
    Endpoint{"integers", "weights as 8-bit integers, scaled by tensor and by channel", integers_json, integers_keys},
    Endpoint{"batching", "static and continuous batching over time", batching_json, batching_keys, true},
};

/// A question sent as a document.
struct DocumentEndpoint {
  std::string_view path, help;
  std::string (*make)(std::string_view body);
  bool takes_long = false;
};
constexpr std::array kDocuments{
    DocumentEndpoint{
        "estimate_document",
        "what `roofcast estimate` prints for a document and {batch, prompt_tokens, output_tokens, context}",
        estimate_document},
    DocumentEndpoint{"plan", "what `roofcast plan` prints for a document {document, trace, config, fidelity}",
                     plan_document, true},
    DocumentEndpoint{"simulate", "what `roofcast simulate` prints for a document", simulate_document, true},
    DocumentEndpoint{"compare", "what `roofcast compare` prints for a document and a run {bench}", compare_document,
                     true},
};

constexpr std::string_view kRoot = "/api/v1/";

std::string dumped(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"; }

/// Built by the first caller.
const std::string& catalog_text(std::size_t index) {
  static const std::array<std::string, kCatalog.size()> texts = [] {
    std::array<std::string, kCatalog.size()> made;
    for (std::size_t i = 0; i < made.size(); ++i) made[i] = dumped(kCatalog[i].make());
    return made;
  }();
  return texts[index];
}

std::string index_text() {
  Json out{{"version", ROOFCAST_VERSION}, {"endpoints", Json::array()}};
  const auto add = [&](std::string_view path, std::string_view help, const std::vector<QueryKey>* keys) {
    Json entry{{"path", fmt::format("{}{}", kRoot, path)}, {"help", help}, {"takes_setup", keys != nullptr}};
    if (keys != nullptr)
      for (const QueryKey& key : *keys) entry["keys"][std::string(key.name)] = key.help;
    out["endpoints"].push_back(std::move(entry));
  };
  for (const CatalogEntry& entry : kCatalog) add(entry.path, entry.help, nullptr);
  add("estimate", "what `roofcast estimate --format json` prints", &kNoKeys);
  for (const Endpoint& endpoint : kEndpoints) add(endpoint.path, endpoint.help, &endpoint.keys());
  for (const DocumentEndpoint& endpoint : kDocuments) add(endpoint.path, endpoint.help, nullptr);
  return dumped(out);
}

Query query_of(const ApiRequest& request) {
  Query query;
  if (request.method == "POST") query = query_of_json(request.body);
  for (const auto& [key, value] : request.parameters) {
    if (!query.emplace(key, value).second)
      throw ConfigError(fmt::format("{}: given twice", reports::shortened(reports::clean_utf8(key), 40)));
  }
  return query;
}

ApiAnswer estimate_answer(const Query& query) {
  check_keys(query, kNoKeys);
  const Setup setup = read_setup(query);
  Estimate e = estimate(setup.scenario.deployment, setup.request);
  e.steady = steady_load(setup.scenario.deployment, setup.request);
  const Json question = reports::question_json(setup.tree, setup.fidelity, setup.request);
  return {.body = reports::estimate_report(e, setup.deployment(), "json", question),
          .headers = {{"Roofcast-Command", setup.command}}};
}

ApiAnswer endpoint_answer(const Endpoint& endpoint, Query query) {
  check_keys(query, endpoint.keys());
  const Setup setup = read_setup(query);
  if (const ModelSpec& model = setup.deployment().model; endpoint.of_decoders && model.attends_to_encoder())
    throw ConfigError(
        fmt::format("{}: {}: not for a model whose input is read by an encoder", endpoint.path, model.name));
  return {.body = dumped(endpoint.make(setup, query)), .headers = {{"Roofcast-Command", setup.command}}};
}

ApiAnswer document_answer(const DocumentEndpoint& endpoint, const ApiRequest& request) {
  if (request.method != "POST") {
    ApiAnswer no = refusal(405, fmt::format("{}: use POST; its document is in the body", endpoint.path));
    no.headers.emplace_back("Allow", "POST");
    return no;
  }
  return {.body = endpoint.make(request.body)};
}

ApiAnswer unknown_path(std::string_view path) {
  std::vector<std::string> names{"estimate"};
  for (const CatalogEntry& entry : kCatalog) names.emplace_back(entry.path);
  for (const Endpoint& endpoint : kEndpoints) names.emplace_back(endpoint.path);
  for (const DocumentEndpoint& endpoint : kDocuments) names.emplace_back(endpoint.path);
  return refusal(404, unknown_name("endpoint", reports::shortened(reports::clean_utf8(path), 40), names));
}

ApiAnswer dispatch(const ApiRequest& request, std::string_view path) {
  for (std::size_t i = 0; i < kCatalog.size(); ++i) {
    if (path == kCatalog[i].path) return {.body = catalog_text(i)};
  }
  if (path.empty()) return {.body = index_text()};
  if (path == "estimate") return estimate_answer(query_of(request));
  for (const DocumentEndpoint& endpoint : kDocuments) {
    if (path == endpoint.path) return document_answer(endpoint, request);
  }
  for (const Endpoint& endpoint : kEndpoints) {
    if (path == endpoint.path) return endpoint_answer(endpoint, query_of(request));
  }
  return unknown_path(path);
}

}  // namespace

bool takes_long(std::string_view path) {
  return path.starts_with(kRoot) && std::any_of(kDocuments.begin(), kDocuments.end(), [&](const auto& endpoint) {
           return endpoint.takes_long && path.substr(kRoot.size()) == endpoint.path;
         });
}

ApiAnswer refusal(int status, const std::string& message) {
  return {.status = status, .body = dumped({{"error", message}})};
}

ApiAnswer answer(const ApiRequest& request) {
  if (!request.path.starts_with(kRoot)) return refusal(404, "no such page; the API is under /api/v1/");
  if (request.method != "GET" && request.method != "HEAD" && request.method != "POST") {
    ApiAnswer no = refusal(405, "use GET or POST");
    no.headers.emplace_back("Allow", "GET, HEAD, POST");
    return no;
  }
  if (request.body.size() > kMostBody) return refusal(413, fmt::format("a body holds at most {} bytes", kMostBody));
  if (request.method == "POST" && trim(split(request.content_type, ';').front()) != "application/json")
    return refusal(415, "a POST needs Content-Type: application/json");
  try {
    return dispatch(request, std::string_view(request.path).substr(kRoot.size()));
  } catch (const ConfigError& error) {
    return refusal(400, error.what());
  } catch (const Unavailable& error) {
    return refusal(400, error.what());
  } catch (const Stopped&) {
    return refusal(503, "given up: the client hung up");
  } catch (const std::exception& error) {
    return refusal(500, fmt::format("internal error: {}", error.what()));
  }
}

void warm_up() { (void)catalog_text(0); }

}  // namespace roofcast::explore
