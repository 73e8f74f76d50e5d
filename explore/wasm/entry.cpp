// The explorer's API for a browser: one question at a time, as text.

#include <string>

#include "explore/api.h"

namespace {

roofcast::explore::ApiAnswer& last() {
  static roofcast::explore::ApiAnswer answer;
  return answer;
}

}  // namespace

extern "C" {

/// Asks /api/v1/ENDPOINT with a JSON object of keys. The text is the answer's body and lives until the next question.
const char* roofcast_ask(const char* endpoint, const char* keys) {
  last() = roofcast::explore::answer({.method = "POST",
                                      .path = std::string("/api/v1/") + endpoint,
                                      .parameters = {},
                                      .content_type = "application/json",
                                      .body = keys});
  return last().body.c_str();
}

/// Status of the last answer: 200, or what was wrong as the server says it (docs/explorer.md).
int roofcast_status() { return last().status; }

/// The command that prints the last answer; empty where there is none.
const char* roofcast_command() {
  for (const auto& [name, value] : last().headers) {
    if (name == "Roofcast-Command") return value.c_str();
  }
  return "";
}
}
