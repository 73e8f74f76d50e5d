#include "explore/http.h"

#include <doctest/doctest.h>

using namespace roofcast;
using namespace roofcast::explore;
using State = HttpProgress::State;

namespace {

constexpr std::size_t kMost = 100;

HttpProgress progress(std::string_view bytes) {
  HttpRequest request;
  return read_http(bytes, kMost, request);
}
int refusal_of(std::string_view bytes) {
  const HttpProgress p = progress(bytes);
  return p.state == State::kRefused ? p.status : 0;
}

}  // namespace

TEST_CASE("http: a request is read when complete, in whatever pieces it arrives") {
  const std::string whole = "POST /a%20b?x=1+2&y=%41&z HTTP/1.1\r\nHost:  h \r\ncontent-LENGTH: 3\r\n\r\nabcd";
  HttpRequest r;
  const std::size_t head = whole.find("abcd");
  for (std::size_t n = 0; n < whole.size(); ++n) {
    const State state = read_http(whole.substr(0, n), kMost, r).state;
    CHECK(state == (n < head ? State::kMore : n < head + 3 ? State::kHead : State::kDone));
  }
  CHECK(r.method == "POST");
  CHECK(r.path == "/a b");
  REQUIRE(r.parameters.size() == 3);
  CHECK(r.parameters[0] == std::pair<std::string, std::string>("x", "1 2"));
  CHECK(r.parameters[1].second == "A");
  CHECK(r.parameters[2].second.empty());
  CHECK(r.header("host") == "h");
  CHECK(r.body == "abc");  // what follows is no second request
}

TEST_CASE("http: ambiguous requests are refused") {
  const std::string line = "POST / HTTP/1.1\r\n";
  CHECK(refusal_of(line + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n") == 400);
  CHECK(refusal_of(line + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n") == 415);
  CHECK(refusal_of(line + "Content-Length: +1\r\n\r\n") == 400);
  CHECK(refusal_of(line + "Content-Length: 0x1\r\n\r\n") == 400);
  CHECK(refusal_of(line + "Content-Length: 1, 1\r\n\r\n") == 400);
  CHECK(refusal_of(line + "Content-Length : 1\r\n\r\n") == 400);  // a space before the colon
  CHECK(refusal_of(line + "A: b\r\n c\r\n\r\n") == 400);          // one header in two lines
  CHECK(refusal_of(line + "A: b\nContent-Length: 5\r\n\r\n") == 400);
  CHECK(refusal_of(line + "A: b\rc\r\n\r\n") == 400);
}

TEST_CASE("http: requests that are too long are refused before they are read") {
  CHECK(refusal_of("GET /" + std::string(9000, 'a') + " HTTP/1.1\r\n\r\n") == 414);
  CHECK(refusal_of("GET / HTTP/1.1\r\nA: " + std::string(kMostHead, 'a')) == 431);
  CHECK(refusal_of("POST / HTTP/1.1\r\nContent-Length: 101\r\n\r\n") == 413);
  CHECK(refusal_of("POST / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n") == 413);
  CHECK(progress("POST / HTTP/1.1\r\nContent-Length: 100\r\n\r\n").state == State::kHead);
}

TEST_CASE("http: invalid requests are refused") {
  for (const char* line : {"GET /", "GET", "", " / HTTP/1.1", "GET http://x/ HTTP/1.1", "GET /\x01 HTTP/1.1",
                           "G{T / HTTP/1.1", "GET /%zz HTTP/1.1", "GET /%00 HTTP/1.1", "GET /% HTTP/1.1"}) {
    CAPTURE(line);
    CHECK(refusal_of(std::string(line) + "\r\n\r\n") == 400);
  }
  CHECK(refusal_of("GET / HTTP/2.0\r\n\r\n") == 400);
}
