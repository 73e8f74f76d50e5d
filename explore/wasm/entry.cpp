// The explorer's API in a browser: one request at a time, as text.

#include <string>

#include "explore/api.h"

namespace {

roofcast::explore::ApiAnswer& last() {
  static roofcast::explore::ApiAnswer answer;
  return answer;
}

}  // namespace

extern "C" {

/// Calls /api/v1/ENDPOINT with a JSON object of keys. Returns the body, valid until the next call.
const char* roofcast_ask(const char* endpoint, const char* keys) {
  last() = roofcast::explore::answer({.method = "POST",
                                      .path = std::string("/api/v1/") + endpoint,
                                      .parameters = {},
                                      .content_type = "application/json",
                                      .body = keys});
  return last().body.c_str();
}

/// Status of the last answer: 200, or the server's error status (docs/explorer.md).
int roofcast_status() { return last().status; }

/// The command that prints the last answer; empty if there is none.
const char* roofcast_command() {
  for (const auto& [name, value] : last().headers) {
    if (name == "Roofcast-Command") return value.c_str();
  }
  return "";
}
}
