#include "explore/guard.h"

#include <doctest/doctest.h>

using namespace roofcast;
using namespace roofcast::explore;

TEST_CASE("a Host header is trusted when it is an address or localhost") {
  for (const char* host : {"127.0.0.1", "127.0.0.1:8377", "localhost", "LocalHost:80", "[::1]", "[::1]:8377",
                           "192.168.1.7:8377", "[fe80::1]:1"}) {
    INFO(host);
    CHECK(is_trusted_host(host));
  }
  for (const char* host : {"", ":8377", "evil.example", "evil.example:8377", "localhost.evil.example",
                           "127.0.0.1.nip.io", "127.0.0.1:port", "127.0.0.1:", "[::1", "[evil]", "127.0.0", "1.2.3.4.5",
                           "localhost:123456", "user@127.0.0.1", "127.0.0.1 "}) {
    INFO(host);
    CHECK_FALSE(is_trusted_host(host));
  }
}

TEST_CASE("an origin is the same when it is the page that the host serves") {
  CHECK(is_same_origin("", "127.0.0.1:8377"));
  CHECK(is_same_origin("http://127.0.0.1:8377", "127.0.0.1:8377"));
  for (const char* origin : {"null", "http://127.0.0.1", "https://127.0.0.1:8377", "http://localhost:8377",
                             "http://evil.example", "http://127.0.0.1:8377.evil.example"}) {
    INFO(origin);
    CHECK_FALSE(is_same_origin(origin, "127.0.0.1:8377"));
  }
}

TEST_CASE("a bucket of two requests refills at ten a second") {
  using namespace std::chrono_literals;
  RequestRate limit(10, 2);
  const RequestRate::Clock::time_point start{1h};
  CHECK(limit.admit(start));
  CHECK(limit.admit(start));
  CHECK_FALSE(limit.admit(start));
  CHECK_FALSE(limit.admit(start + 50ms));  // half a request
  CHECK(limit.admit(start + 110ms));
  CHECK(limit.admit(start + 10s));  // full again, and no fuller
  CHECK(limit.admit(start + 10s));
  CHECK_FALSE(limit.admit(start + 10s));
}
