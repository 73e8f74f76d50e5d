#pragma once
// HTTP/1.1 as far as the explorer needs it: one request a connection, its body whole and of a stated length.

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

/// How far a request has come.
struct HttpProgress {
  enum class State { kMore, kHead, kDone, kRefused };
  State state = State::kMore;
  int status = 0;  ///< kRefused: 400, 413, 414, 415 or 431
  const char* reason = "";
};

/// Reads what has come of a request so far. kHead: the head is there, the body is not. A body longer than `most_body`
/// is refused as soon as its length is known. Lines end in CR LF; a header in two lines, a length given twice, and
/// Transfer-Encoding are refused: no two readers may disagree on where a request ends.
HttpProgress read_http(std::string_view bytes, std::size_t most_body, HttpRequest& out);

std::string_view reason_phrase(int status);

/// "%41+b" as "A b"; false where the text is no encoding, or of a NUL.
bool decode_percent(std::string_view text, bool plus_is_space, std::string& out);

}  // namespace roofcast::explore
