#pragma once
// The JSON API of the explorer without its transport: docs/explorer.md.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "explore/query.h"

namespace roofcast::explore {

struct ApiRequest {
  std::string method;                                             ///< GET | POST, anything else is answered with 405
  std::string path;                                               ///< "/api/v1/estimate"
  std::vector<std::pair<std::string, std::string>> parameters{};  ///< of the address, decoded
  std::string content_type{}, body{};                             ///< of a POST
};

struct ApiAnswer {
  int status = 200;
  std::string type = "application/json";
  std::string body{};
  std::vector<std::pair<std::string, std::string>> headers{};  ///< Allow, Roofcast-Command
};

/// The maximum body size: a trace of some ten thousand requests.
inline constexpr std::size_t kMostBody = std::size_t{2} << 20;

/// Answers only from files that ship with the program. Never throws: invalid requests return 400 with {"error": "..."},
/// an unknown path 404, a wrong method 405, a body 413 or 415, our bug 500. Thread-safe.
ApiAnswer answer(const ApiRequest& request);

/// Whether an answer may take long: plans and simulations.
bool takes_long(std::string_view path);

/// {"error": message}
ApiAnswer refusal(int status, const std::string& message);

/// Reads the catalog in advance, so that the first visitor does not wait for it.
void warm_up();

}  // namespace roofcast::explore
