#include "explore/server.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

#include <fmt/format.h>
#include <httplib.h>

#include "base/error.h"
#include "explore/api.h"
#include "explore/assets.h"
#include "explore/guard.h"
#include "reports/embedded.h"

namespace roofcast {
namespace {

constexpr int kWorkers = 12;
/// A longer body than the API takes is read and thrown away, so that the client sees the answer; beyond this it is not.
constexpr std::uint64_t kMostDrained = 1 << 20;

std::string too_long() { return fmt::format("a body holds at most {} bytes", kMostBody); }

struct Asset {
  std::string_view path, type;
  const std::string_view* text;
};
constexpr std::array kAssets{
    Asset{"/", "text/html; charset=utf-8", &kExplorePage},
    Asset{"/explore.css", "text/css; charset=utf-8", &kExploreStyle},
    Asset{"/explore.js", "text/javascript; charset=utf-8", &kExploreScript},
    Asset{"/plot.js", "text/javascript; charset=utf-8", &kPlotScript},
    Asset{"/charts.js", "text/javascript; charset=utf-8", &kExploreCharts},
    Asset{"/canvases.js", "text/javascript; charset=utf-8", &kExploreCanvases},
    Asset{"/chart.min.js", "text/javascript; charset=utf-8", &kChartJs},
};

/// Sent with everything. Nothing is loaded from elsewhere, nothing runs that is not a file of ours, nobody frames us.
const httplib::Headers& security_headers() {
  static const httplib::Headers kHeaders{
      {"Content-Security-Policy",
       "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
       "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
      {"X-Content-Type-Options", "nosniff"},
      {"X-Frame-Options", "DENY"},
      {"Referrer-Policy", "no-referrer"},
      {"Cross-Origin-Resource-Policy", "same-origin"},
      {"Cross-Origin-Opener-Policy", "same-origin"},
      {"Cache-Control", "no-store"},
  };
  return kHeaders;
}

/// As it is: compressing costs more than the way to this machine.
void send(httplib::Response& response, int status, std::string text, std::string_view type) {
  response.status = status;
  if (text.empty()) return response.set_content("", std::string(type));
  const std::size_t size = text.size();
  response.set_content_provider(size, std::string(type),
                                [text = std::move(text)](std::size_t at, std::size_t length, httplib::DataSink& sink) {
                                  return sink.write(text.data() + at, std::min(length, text.size() - at));
                                });
}

void send(httplib::Response& response, ApiAnswer answer) {
  for (const auto& [name, value] : answer.headers) response.set_header(name, value);
  send(response, answer.status, std::move(answer.body), answer.type);
}

bool send_asset(const httplib::Request& request, httplib::Response& response) {
  for (const Asset& asset : kAssets) {
    if (request.path != asset.path) continue;
    if (request.method == "GET" || request.method == "HEAD") {
      send(response, 200, std::string(*asset.text), asset.type);
    } else {
      response.set_header("Allow", "GET, HEAD");
      send(response, refusal(405, "use GET"));
    }
    return true;
  }
  return false;
}

ApiRequest api_request(const httplib::Request& request) {
  ApiRequest out{.method = request.method,
                 .path = request.path,
                 .content_type = request.get_header_value("Content-Type"),
                 .body = request.body};
  for (const auto& [key, value] : request.params) out.parameters.emplace_back(key, value);
  return out;
}

/// Without SO_REUSEPORT, with which two servers would share a port and none would notice.
void socket_options(socket_t socket) {
  const int yes = 1;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
}

std::string cannot_listen(const ServerOptions& options, int error) {
  const std::string where = fmt::format("{} on {}", options.port, options.address);
  if (error == EADDRINUSE) return fmt::format("--port: {} is taken; choose another one, or 0 for any free one", where);
  if (error == EACCES) return fmt::format("--port: {} needs privileges; choose one above 1023", where);
  return fmt::format("--bind: cannot listen on '{}'; give an address of this machine, such as 127.0.0.1",
                     options.address);
}

}  // namespace

struct ExploreServer::State {
  ServerOptions options;
  httplib::Server server;
  RateLimit limit;
  int port = 0;
  std::atomic<bool> entered = false, stopping = false, ended = false;  ///< run() begun, stop() asked for, run() over

  explicit State(const ServerOptions& o) : options(o), limit(o.requests_per_s, o.burst) {}

  /// What never reaches the API. The refusals come before the body is read.
  bool refuse(const httplib::Request& request, httplib::Response& response) {
    const std::string host = request.get_header_value("Host"), origin = request.get_header_value("Origin");
    if (request.get_header_value_count("Host") != 1 || !is_trusted_host(host)) {
      send(response, refusal(403, "this server answers to its address alone, such as 127.0.0.1 or localhost"));
    } else if (request.get_header_value_count("Origin") > 1 || !is_same_origin(origin, host)) {
      send(response, refusal(403, "requests from pages of other origins are not answered"));
    } else if (request.get_header_value<std::uint64_t>("Content-Length") > kMostDrained) {
      send(response, refusal(413, too_long()));
    } else if (request.has_header("Transfer-Encoding") || request.has_header("Content-Encoding")) {
      send(response, refusal(415, "a body comes whole and as it is, with its Content-Length"));
    } else if (!limit.admit(RateLimit::Clock::now())) {
      response.set_header("Retry-After", "1");
      send(response, refusal(429, "too many requests; wait a second"));
    } else {
      return false;
    }
    return true;
  }

  void set_up() {
    server.new_task_queue = [] { return new httplib::ThreadPool(kWorkers); };
    server.set_socket_options(socket_options);
    server.set_tcp_nodelay(true);
    server.set_keep_alive_max_count(1);  // a browser's idle connections would each hold a worker
    server.set_keep_alive_timeout(1);
    server.set_read_timeout(5);
    server.set_write_timeout(5);
    server.set_payload_max_length(kMostBody);
    server.set_default_headers(security_headers());
    server.set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      using Next = httplib::Server::HandlerResponse;
      if (refuse(request, response) || send_asset(request, response)) return Next::Handled;
      if (request.method == "POST") return Next::Unhandled;  // its body comes first
      send(response, answer(api_request(request)));
      return Next::Handled;
    });
    server.Post("/api/v1/[a-z]*", [](const httplib::Request& request, httplib::Response& response) {
      send(response, answer(api_request(request)));
    });
    server.set_error_handler([](const httplib::Request&, httplib::Response& response) {
      if (response.content_length_ > 0) return;
      const int status = response.status;
      send(response, refusal(status, status == 413   ? too_long()
                                     : status == 404 ? "no such page; the API is under /api/v1/"
                                                     : "this is not a request that can be read"));
    });
  }
};

ExploreServer::ExploreServer(const ServerOptions& options) : state_(std::make_unique<State>(options)) {
  state_->set_up();
  errno = 0;
  const std::string& address = options.address;
  const int port = options.port == 0                                    ? state_->server.bind_to_any_port(address)
                   : state_->server.bind_to_port(address, options.port) ? options.port
                                                                        : -1;
  if (port <= 0) throw ConfigError(cannot_listen(options, errno));
  state_->port = port;
}

ExploreServer::~ExploreServer() = default;

int ExploreServer::port() const { return state_->port; }

std::string ExploreServer::url() const {
  const std::string& address = state_->options.address;
  const bool six = address.find(':') != std::string::npos;
  const std::string shown = address == "0.0.0.0" || address == "::" ? "127.0.0.1" : six ? "[" + address + "]" : address;
  return fmt::format("http://{}:{}/", shown, state_->port);
}

void ExploreServer::run() {
  state_->entered = true;
  if (!state_->stopping) state_->server.listen_after_bind();
  state_->ended = true;
}

/// httplib forgets a stop() that comes before it listens: that moment is waited for.
void ExploreServer::stop() {
  if (state_->stopping.exchange(true)) return;
  while (state_->entered && !state_->ended) {
    if (state_->server.is_running()) return state_->server.stop();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace roofcast
