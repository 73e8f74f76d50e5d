#pragma once
// The subset of HTTP/1.1 that the explorer needs: one request per connection, with a Content-Length.

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace roofcast::explore {

struct HttpRequest {
  std::string method, path;                                     ///< path: decoded, without parameters
  std::vector<std::pair<std::string, std::string>> parameters;  ///< decoded, in the order written
  std::vector<std::pair<std::string, std::string>> headers;     ///< names in lower case
  std::string body;

  std::size_t count(std::string_view name) const;
  std::string header(std::string_view name) const;  ///< the first of that name; empty without
};

inline constexpr std::size_t kMostHead = 16384;  ///< bytes of request line and headers

/// How much of a request has been read.
struct HttpProgress {
  enum class State { kMore, kHead, kDone, kRefused };
  State state = State::kMore;
  int status = 0;  ///< kRefused: 400, 413, 414, 415 or 431
  const char* reason = "";
};

/// Parses the bytes of a request received so far. kHead: the head is complete, the body is not. A body longer than
/// `most_body` is refused as soon as its length is known. Lines end in CR LF. Folded headers, duplicate lengths and
/// Transfer-Encoding are refused, so that all parsers agree on where a request ends.
HttpProgress read_http(std::string_view bytes, std::size_t most_body, HttpRequest& out);

std::string_view reason_phrase(int status);

/// Decodes "%41+b" to "A b"; false for invalid encodings and for NUL.
bool decode_percent(std::string_view text, bool plus_is_space, std::string& out);

}  // namespace roofcast::explore
