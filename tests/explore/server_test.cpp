#include "explore/server.h"

#include "explore/api.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.h"
#include "base/random.h"

using namespace roofcast;
using namespace roofcast::explore;

namespace {

/// A server that runs while the test does.
class Running {
 public:
  explicit Running(const ServerOptions& options = {.port = 0}) : server(options), thread_([this] { server.run(); }) {
    while (ask("GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n").empty()) std::this_thread::yield();
  }
  ~Running() {
    server.stop();
    thread_.join();
  }

  /// A socket to the server; -1 when nobody listens.
  int connected() const {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(server.port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
    close(fd);
    return -1;
  }
  /// Sends bytes as they are and returns all that comes back; empty when nobody listens. A client that hangs up tells
  /// the server that nothing follows, and may go unanswered.
  std::string ask(const std::string& bytes, bool hang_up = false) const {
    const int fd = connected();
    std::string reply;
    if (fd >= 0) {
      (void)!send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (hang_up) shutdown(fd, SHUT_WR);
      std::array<char, 65536> buffer;
      for (ssize_t n; (n = recv(fd, buffer.data(), buffer.size(), 0)) > 0;)
        reply.append(buffer.data(), static_cast<std::size_t>(n));
    }
    close(fd);
    return reply;
  }
  std::string get(const std::string& path, const std::string& headers = "") const {
    return ask("GET " + path + " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(server.port()) + "\r\n" + headers +
               "\r\n");
  }
  std::string post(const std::string& path, const std::string& body, const std::string& headers = "") const {
    return ask("POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " +
               std::to_string(body.size()) + "\r\n" + headers + "\r\n" + body);
  }

  ExploreServer server;

 private:
  std::thread thread_;
};

std::string status_of(const std::string& reply) { return reply.substr(0, reply.find("\r\n")); }
bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

const char* const kBody = R"({"model": "gpt-2", "gpu": "l4"})";

}  // namespace

TEST_CASE("the server serves the page, its files and the API") {
  const Running running;
  const std::string page = running.get("/");
  CHECK(status_of(page) == "HTTP/1.1 200 OK");
  CHECK(holds(page, "<title>roofcast: plan</title>"));
  CHECK(holds(page, "Content-Security-Policy: default-src 'none'; script-src 'self';"));
  CHECK(holds(page, "X-Content-Type-Options: nosniff"));
  CHECK_FALSE(holds(page, "unsafe-inline"));
  CHECK_FALSE(holds(page, " style=\""));
  CHECK_FALSE(holds(page, "<script>"));
  for (const char* file : {"/explore.css", "/explore.js", "/plot.js", "/charts.js", "/canvases.js"})
    CHECK(status_of(running.get(file)) == "HTTP/1.1 200 OK");
  CHECK(holds(running.get("/api/v1/estimate?model=gpt-2&gpu=l4"), "Roofcast-Command: roofcast estimate --model gpt-2"));
  const std::string posted = running.post("/api/v1/estimate", kBody),
                    got = running.get("/api/v1/estimate?model=gpt-2&gpu=l4");
  CHECK(posted.substr(posted.find("\r\n\r\n")) == got.substr(got.find("\r\n\r\n")));
  const std::string head = running.ask("HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  CHECK(status_of(head) == "HTTP/1.1 200 OK");
  CHECK(head.substr(head.find("\r\n\r\n")) == "\r\n\r\n");
}

TEST_CASE("a server of one page has nothing else") {
  const Running running({.port = 0, .page = "<!doctype html><title>a report</title>"});
  const std::string page = running.get("/");
  CHECK(status_of(page) == "HTTP/1.1 200 OK");
  CHECK(holds(page, "frame-ancestors 'none'\r\n"));
  CHECK_FALSE(holds(page, "default-src"));  // the page has the rest of its policy
  CHECK(page.ends_with("\r\n\r\n<!doctype html><title>a report</title>"));
  for (const char* path : {"/explore.js", "/api/v1/models"})
    CHECK(status_of(running.get(path)) == "HTTP/1.1 404 Not Found");
  CHECK(status_of(running.post("/", "{}")) == "HTTP/1.1 405 Method Not Allowed");
  CHECK(status_of(running.get("/", "Origin: http://evil.example\r\n")) == "HTTP/1.1 403 Forbidden");
}

TEST_CASE("the server answers to its address alone, and to no page of another origin") {
  const Running running;
  const auto with = [&](const std::string& headers) {
    return status_of(running.ask("GET / HTTP/1.1\r\n" + headers + "\r\n"));
  };
  CHECK(with("Host: localhost\r\n") == "HTTP/1.1 200 OK");
  CHECK(with("Host: localhost:1\r\nOrigin: http://localhost:1\r\n") == "HTTP/1.1 200 OK");
  for (const char* headers :
       {"", "Host: evil.example\r\n", "Host: localhost\r\nHost: evil.example\r\n",
        "Host: localhost\r\nOrigin: null\r\n", "Host: localhost\r\nOrigin: http://evil.example\r\n",
        "Host: localhost:1\r\nOrigin: http://localhost:2\r\n"}) {
    INFO(headers);
    CHECK(with(headers) == "HTTP/1.1 403 Forbidden");
  }
  CHECK(holds(running.post("/api/v1/estimate", kBody, "Origin: http://evil.example\r\n"), "403 Forbidden"));
}

TEST_CASE("hostile requests get an error and leave the server well") {
  const Running running;
  CHECK(status_of(running.post("/api/v1/estimate", std::string(kMostBody + 1, ' '))) ==
        "HTTP/1.1 413 Payload Too Large");
  CHECK(status_of(running.ask("POST /api/v1/estimate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                              "Content-Length: 99999999999\r\n\r\n")) == "HTTP/1.1 413 Payload Too Large");
  for (const char* header : {"Transfer-Encoding: chunked", "Content-Encoding: gzip"}) {
    INFO(header);  // a body of no stated length, or of another one once it is unpacked
    CHECK(status_of(
              running.ask("POST /api/v1/estimate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" +
                          std::string(header) + "\r\nContent-Length: 2\r\n\r\n{}"))
              .starts_with("HTTP/1.1 415"));
  }
  CHECK(status_of(running.post("/elsewhere", kBody)) == "HTTP/1.1 404 Not Found");
  CHECK(status_of(running.ask("DELETE /api/v1/estimate HTTP/1.1\r\nHost: localhost\r\n\r\n")) ==
        "HTTP/1.1 405 Method Not Allowed");
  CHECK(status_of(running.ask("PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx")) ==
        "HTTP/1.1 405 Method Not Allowed");
  for (const char* path : {"/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/explore.css/../../etc/passwd",
                           "/api/v1/../../x", "/configs/models/gpt-2.yaml", "/%00", "//etc/passwd", "/index.html"}) {
    INFO(path);
    const std::string reply = running.get(path);
    CHECK((status_of(reply) == "HTTP/1.1 404 Not Found" || status_of(reply) == "HTTP/1.1 400 Bad Request"));
    CHECK_FALSE(holds(reply, "root:"));
  }
  CHECK(status_of(running.get("/" + std::string(20000, 'a'))).starts_with("HTTP/1.1 4"));
  CHECK(status_of(running.get("/api/v1/" + std::string(8000, 'a'))).starts_with("HTTP/1.1 4"));
  CHECK(status_of(running.post("/api/v1/" + std::string(8000, 'a'), kBody)).starts_with("HTTP/1.1 4"));
  CHECK(running.get("/", "Range: bytes=0-3,5-9,0-,-1\r\n").starts_with("HTTP/1.1 "));
  CHECK(running.get("/api/v1/models", "Range: bytes=99999999-\r\n").starts_with("HTTP/1.1 "));
  Random random(7);
  for (int i = 0; i < 60; ++i) {
    std::string bytes =
        "POST /api/v1/estimate?model=gpt-2 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "Content-Length: 31\r\n\r\n" +
        std::string(kBody);
    for (int n = 0; n < 1 + i / 4; ++n)
      bytes[static_cast<std::size_t>(random.uniform_integer(0, static_cast<std::int64_t>(bytes.size()) - 1))] =
          static_cast<char>(random.uniform_integer(0, 255));
    const std::string reply = running.ask(bytes, true);
    INFO(bytes << " -> " << reply);
    CHECK((reply.empty() || reply.starts_with("HTTP/1.1 ")));
    CHECK_FALSE(reply.starts_with("HTTP/1.1 5"));
  }
  CHECK(status_of(running.get("/")) == "HTTP/1.1 200 OK");
}

TEST_CASE("more requests than the rate allows are sent away") {
  const Running running({.port = 0, .requests_per_s = 0.001, .burst = 5});  // one of them is the server's start
  int refused = 0;
  std::string last;
  for (int i = 0; i < 8; ++i) {
    const std::string reply = running.get("/api/v1/choices");
    if (status_of(reply) == "HTTP/1.1 429 Too Many Requests") ++refused, last = reply;
  }
  CHECK(refused >= 4);
  CHECK(holds(last, "Retry-After: 1"));
}

TEST_CASE("many concurrent requests are all answered") {
  const Running running;
  const std::string expected = running.get("/api/v1/throughput?model=gpt-2&gpu=l4&batch=4");
  REQUIRE(status_of(expected) == "HTTP/1.1 200 OK");
  std::array<std::string, 5> replies;
  std::vector<std::thread> clients;
  for (std::string& reply : replies)
    clients.emplace_back([&] { reply = running.get("/api/v1/throughput?model=gpt-2&gpu=l4&batch=4"); });
  for (std::thread& client : clients) client.join();
  for (const std::string& reply : replies) CHECK(reply == expected);
}

TEST_CASE("slow clients delay neither other clients nor the end of the server") {
  std::vector<int> slow;
  {
    const Running running;
    for (int i = 0; i < 700; ++i) {  // more than there is room for
      const int fd = running.connected();
      if (fd < 0) break;
      (void)!send(fd, "GET / HTTP/1.1\r\nX: ", 19, MSG_NOSIGNAL);
      slow.push_back(fd);
    }
    CHECK(slow.size() > 100);
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 20; ++i) {
      CHECK(status_of(running.get("/")) == "HTTP/1.1 200 OK");
      (void)!send(slow[static_cast<std::size_t>(i)], "a", 1, MSG_NOSIGNAL);
    }
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));  // as long as one may take to ask
  }                                                                             // ends while they are still there
  for (const int fd : slow) close(fd);
}

TEST_CASE("a client that takes no answer, or sends without end, is left") {
  const Running running;
  const int deaf = running.connected(), endless = running.connected();
  const std::string ask = "GET /chart.min.js HTTP/1.1\r\nHost: localhost\r\n\r\n";
  (void)!send(deaf, ask.data(), ask.size(), MSG_NOSIGNAL);
  const std::string head = "POST /api/v1/estimate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999999\r\n\r\n",
                    more(1 << 16, ' ');
  ssize_t sent = send(endless, head.data(), head.size(), MSG_NOSIGNAL);
  for (int i = 0; i < 1000 && sent > 0; ++i) sent = send(endless, more.data(), more.size(), MSG_NOSIGNAL);
  CHECK(sent < 0);  // 65 MB are not taken
  CHECK(status_of(running.get("/")) == "HTTP/1.1 200 OK");
  close(deaf);
  close(endless);
}

TEST_CASE("a port in use, or a foreign address, is reported") {
  const Running running;
  const int port = running.server.port();
  CHECK(running.server.url() == "http://127.0.0.1:" + std::to_string(port) + "/");
  const std::string taken =
      "--port: " + std::to_string(port) + " on 127.0.0.1 is taken; choose another one, or 0 for any free one";
  CHECK_THROWS_WITH_AS(ExploreServer({.port = port}), taken.c_str(), ConfigError);
  CHECK_THROWS_AS(ExploreServer({.address = "", .port = 0}), ConfigError);  // not every address of this machine
  CHECK_THROWS_WITH_AS(ExploreServer({.address = "192.0.2.1", .port = 0}),
                       "--bind: cannot listen on '192.0.2.1'; give an address of this machine, such as 127.0.0.1",
                       ConfigError);
}

TEST_CASE("a server stops whenever requested, even before it serves") {
  for (int i = 0; i < 20; ++i) {
    ExploreServer server({.port = 0});
    std::thread thread([&] { server.run(); });
    if (i % 2) std::this_thread::yield();
    server.stop();
    thread.join();
  }
  ExploreServer never({.port = 0});
  never.stop();
  never.run();  // told before it began: returns at once
  CHECK(never.port() > 0);
}

namespace {

/// A day of 24 simulated hours: far longer than any client would wait here.
std::string long_plan(const std::string& header = "") {
  const std::string body =
      R"({"document": "model: llama-3.1-8b\nworkload: {arrivals: {process: poisson, rate: 40 /s, profile: [1, 2], )"
      R"(profile_period: 24 h}, prompt_tokens: 512, output_tokens: 64}\nobjectives: {ttft_p99: 2 s}\n)"
      R"(search: {gpus: [h100-sxm], max_gpus: 8, tp: [1]}"})";
  return "POST /api/v1/plan HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + header +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

}  // namespace

TEST_CASE("the server cancels an answer if its client requested that and disconnected") {
  const Running running;
  const std::string reply = running.ask(long_plan("Roofcast-While-Connected: 1\r\n"), true);
  CHECK(status_of(reply) == "HTTP/1.1 503 Service Unavailable");
  CHECK(holds(reply, "given up: the client hung up"));
}

TEST_CASE("plans that take long leave room for other questions, and the server ends under them") {
  std::vector<int> planners;
  std::size_t refused = 0;
  const auto start = std::chrono::steady_clock::now();
  {
    const Running running;
    for (int i = 0; i < 40; ++i) {  // more than may wait
      planners.push_back(running.connected());
      const std::string request = long_plan();
      (void)!send(planners.back(), request.data(), request.size(), MSG_NOSIGNAL);
    }
    for (int i = 0; i < 5; ++i) CHECK(status_of(running.get("/api/v1/choices")) == "HTTP/1.1 200 OK");
    std::array<char, 4096> buffer;
    for (const int fd : planners) {
      const ssize_t got = recv(fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (got > 0) refused += holds({buffer.data(), static_cast<std::size_t>(got)}, "HTTP/1.1 429") ? 1 : 0;
    }
  }
  CHECK(refused >= 6);  // two are made, 32 wait
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));
  for (const int fd : planners) close(fd);
}

TEST_CASE("an answer that takes too long is given up, and the owner reads so") {
  std::vector<std::string> lines;
  {
    const Running running({.port = 0, .log = [&](const std::string& line) { lines.push_back(line); }, .answer_s = 0.2});
    const std::string reply = running.ask(long_plan());
    CHECK(status_of(reply) == "HTTP/1.1 503 Service Unavailable");
    CHECK(holds(reply, "no answer within 0.2 s, waiting included"));
    for (int i = 0; i < 5; ++i) (void)running.get("/", "Origin: http://elsewhere.example\r\n");
  }
  REQUIRE(lines.size() == 2);  // at once, and of the five others when ten seconds are over, or the server ends
  CHECK(lines[0] == "1 x refused: no answer within 0.2 s, waiting included; the command line has no such limit");
  CHECK(lines[1] == "5 x refused: requests from pages of other origins are not answered");
}
