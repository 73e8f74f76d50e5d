#include "explore/server.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <numeric>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "explore/api.h"
#include "explore/assets.h"
#include "explore/connection.h"
#include "explore/guard.h"
#include "explore/http.h"
#include "explore/job_queue.h"
#include "explore/refusal_log.h"
#include "explore/sockets.h"
#include "reports/embedded.h"

namespace roofcast::explore {
namespace {

using Clock = Connection::Clock;
using ConnectionStage = Connection::Stage;

constexpr std::size_t kWorkers = 4;
/// Of these at most so many make plans and simulations; so many more may wait for them.
constexpr std::size_t kLongWorkers = 2, kMostLongWaiting = 32;
#if defined(POLLRDHUP)
constexpr short kHangUp = POLLRDHUP;
#else
constexpr short kHangUp = POLLHUP;
#endif
/// For a new client beyond these, the one that has taken longest to ask makes room, but not before it had so long.
constexpr std::size_t kMostConnections = 512;
constexpr std::chrono::milliseconds kLeastTime{200};
/// Bytes of all requests that are under way.
constexpr std::size_t kMostReceived = std::size_t{64} << 20;
/// Grace period for answers in progress when the server stops.
constexpr std::chrono::milliseconds kGrace{700};
/// Where there is no room for a client, none is accepted for so long: it waits in the system's queue.
constexpr std::chrono::milliseconds kDeaf{20};

struct Asset {
  std::string_view path, type;
  const std::string_view* text;
};
constexpr std::array kAssets{
    Asset{"/", "text/html; charset=utf-8", &kExplorePage},
    Asset{"/explore.css", "text/css; charset=utf-8", &kExploreStyle},
    Asset{"/explore.js", "text/javascript; charset=utf-8", &kExploreScript},
    Asset{"/plot.js", "text/javascript; charset=utf-8", &reports::kPlotScript},
    Asset{"/charts.js", "text/javascript; charset=utf-8", &kExploreCharts},
    Asset{"/canvases.js", "text/javascript; charset=utf-8", &kExploreCanvases},
    Asset{"/lessons.js", "text/javascript; charset=utf-8", &kExploreLessons},
    Asset{"/ask.js", "text/javascript; charset=utf-8", &kExploreAsk},
    Asset{"/question.js", "text/javascript; charset=utf-8", &kExploreQuestion},
    Asset{"/plan.js", "text/javascript; charset=utf-8", &kExplorePlan},
    Asset{"/chart.min.js", "text/javascript; charset=utf-8", &reports::kChartJs},
};

/// Content security policy: no external content, only our own scripts, no framing.
constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri "
    "'none'; "
    "form-action 'none'; frame-ancestors 'none'";
/// For a report page, which contains its scripts and its own policy.
constexpr std::string_view kPolicyOfPage = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
constexpr std::string_view kSecurityHeaders =
    "X-Content-Type-Options: nosniff\r\n"
    "X-Frame-Options: DENY\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Cross-Origin-Opener-Policy: same-origin\r\n"
    "Cache-Control: no-store\r\n"
    "Connection: close\r\n";

/// Removes line breaks, which would end a header early.
std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  return text;
}

std::string reply(const ApiAnswer& answer, bool head_alone, std::string_view policy = kPolicy) {
  std::string out = fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nContent-Security-Policy: {}\r\n{}", answer.status,
      reason_phrase(answer.status), answer.type, answer.body.size(), policy, kSecurityHeaders);
  for (const auto& [name, value] : answer.headers) out += fmt::format("{}: {}\r\n", name, one_line(value));
  out += "\r\n";
  return head_alone ? out : out + answer.body;
}

/// A file that is only read.
ApiAnswer file(const HttpRequest& request, std::string_view type, std::string_view text) {
  if (request.method == "GET" || request.method == "HEAD")
    return {.status = 200, .type = std::string(type), .body = std::string(text)};
  ApiAnswer no = refusal(405, "use GET");
  no.headers.emplace_back("Allow", "GET, HEAD");
  return no;
}

std::optional<ApiAnswer> asset(const HttpRequest& request) {
  for (const Asset& asset : kAssets) {
    if (request.path == asset.path) return file(request, asset.type, *asset.text);
  }
  return std::nullopt;
}

/// Why a request never reaches the page or the API (403).
std::optional<std::string> stranger(const HttpRequest& request) {
  const std::string host = request.header("host"), origin = request.header("origin");
  if (request.count("host") != 1 || !is_trusted_host(host))
    return "this server answers to its address alone, such as 127.0.0.1 or localhost";
  if (request.count("origin") > 1 || !is_same_origin(origin, host))
    return "requests from pages of other origins are not answered";
  return std::nullopt;
}

/// `page`: served as the only page; empty: the explorer and its API.
std::string reply_of(HttpRequest request, const std::string& page) {
  const bool head_alone = request.method == "HEAD";
  if (!page.empty()) {
    if (request.path != "/") return reply(refusal(404, "this server has one page, /"), head_alone);
    return reply(file(request, "text/html; charset=utf-8", page), head_alone, kPolicyOfPage);
  }
  if (const auto found = asset(request)) return reply(*found, head_alone);
  return reply(answer({.method = request.method,
                       .path = request.path,
                       .parameters = std::move(request.parameters),
                       .content_type = request.header("content-type"),
                       .body = std::move(request.body)}),
               head_alone);
}

std::string cannot_listen(const ServerOptions& options, int error) {
  const std::string where = fmt::format("{} on {}", options.port, options.address);
  if (error == EADDRINUSE) return fmt::format("--port: {} is taken; choose another one, or 0 for any free one", where);
  if (error == EACCES) return fmt::format("--port: {} needs privileges; choose one above 1023", where);
  return fmt::format("--bind: cannot listen on '{}'; give an address of this machine, such as 127.0.0.1",
                     options.address);
}

/// Without SO_REUSEPORT, which would let two servers share a port unnoticed.
int listening_socket(const ServerOptions& options) {
  if (options.address.empty())
    throw ConfigError(cannot_listen(options, 0));  // an empty address would mean all addresses
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(options.port);
  if (getaddrinfo(options.address.c_str(), port.c_str(), &hints, &found) != 0)
    throw ConfigError(cannot_listen(options, 0));
  int error = EADDRNOTAVAIL, fd = -1;
  for (const addrinfo* at = found; at != nullptr && fd < 0; at = at->ai_next) {
    fd = ::socket(at->ai_family, at->ai_socktype, at->ai_protocol);
    if (fd < 0) continue;
    const int yes = 1;
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    ::fcntl(fd, F_SETFL, O_NONBLOCK);
    if (::bind(fd, at->ai_addr, at->ai_addrlen) == 0 && ::listen(fd, 256) == 0) break;
    error = errno;
    ::close(fd);
    fd = -1;
  }
  freeaddrinfo(found);
  if (fd < 0) throw ConfigError(cannot_listen(options, error));
  return fd;
}

/// Answers read files: some of the descriptors that the system allows are for these.
std::size_t connections_allowed() {
  constexpr rlim_t kForFiles = 64, kLeast = 8;
  rlimit allowed{};
  if (::getrlimit(RLIMIT_NOFILE, &allowed) != 0 || allowed.rlim_cur >= kMostConnections + kForFiles)
    return kMostConnections;
  return static_cast<std::size_t>(std::max(allowed.rlim_cur, kForFiles + kLeast) - kForFiles);
}

int port_of(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port
                                             : reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

}  // namespace

/// One thread handles all connections without blocking; worker threads compute the answers.
struct ExploreServer::State {
  ServerOptions options;
  RequestRate limit;
  int listener = -1, port = 0;
  int wake[2] = {-1, -1};  ///< a pipe that signals a finished answer or a stop request
  std::atomic<bool> stopping = false;

  std::vector<std::unique_ptr<Connection>> connections;
  const std::size_t most_connections = connections_allowed();
  JobQueue jobs{kLongWorkers, kMostLongWaiting};
  struct Made {
    Connection* connection;
    std::string bytes;
  };
  std::mutex mutex;  ///< of `made`
  std::vector<Made> made;
  RefusalLog log;
  Clock::duration answer_time;
  std::string too_late;
  Clock::time_point deaf_until{};

  explicit State(const ServerOptions& o)
      : options(o),
        limit(o.requests_per_s, o.burst),
        log(o.log),
        answer_time(std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(o.answer_s))),
        too_late(
            fmt::format("no answer within {:g} s, waiting included; the command line has no such limit", o.answer_s)) {
    listener = listening_socket(options);
    port = port_of(listener);
    if (::pipe(wake) != 0) throw ConfigError("explore: no pipe can be had");
    for (const int fd : wake) ::fcntl(fd, F_SETFL, O_NONBLOCK), ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
  ~State() {
    for (const int fd : {listener, wake[0], wake[1]}) {
      if (fd >= 0) ::close(fd);
    }
  }

  void call() const { static_cast<void>(!::write(wake[1], "x", 1)); }

  void make_answers() {
    while (std::optional<Job> job = jobs.take()) {
      const WatchScope watched(&job->connection->watch());
      std::string bytes = reply_of(std::move(job->request), options.page);
      {
        const std::lock_guard lock(mutex);
        made.push_back({job->connection, std::move(bytes)});
      }
      jobs.done(job->takes_long);
      call();
    }
  }

  void welcome(Clock::time_point now) {
    while (true) {
      if (connections.size() >= most_connections && !make_room(now)) {
        deaf_until = now + kDeaf;
        return;
      }
      const int fd = accept_client(listener);
      if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
        if (make_room(now)) continue;
        deaf_until = now + kDeaf;
      }
      if (fd < 0) return;
      const int yes = 1;
      ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
      connections.push_back(std::make_unique<Connection>(fd, now));
    }
  }

  /// The first is the oldest.
  bool make_room(Clock::time_point now) {
    const auto slow = std::find_if(connections.begin(), connections.end(), [&](const auto& c) {
      return (c->stage() == ConnectionStage::kReading && now - c->began() > kLeastTime) ||
             c->stage() == ConnectionStage::kLeaving;
    });
    if (slow == connections.end()) return false;
    connections.erase(slow);
    log.count("the slowest of too many clients", now);
    return true;
  }

  std::size_t received() const {
    return std::accumulate(connections.begin(), connections.end(), std::size_t{0},
                           [](std::size_t sum, const auto& c) { return sum + c->received().size(); });
  }

  /// `why`: one of few, for the log.
  void refuse(Connection& c, int status, const std::string& why, bool head_alone, Clock::time_point now) {
    log.count(why, now);
    ApiAnswer no = refusal(status, why);
    if (status == 429) no.headers.emplace_back("Retry-After", "1");
    c.answer(reply(no, head_alone), now);
  }

  /// Passes complete requests to the workers; answers refused ones directly.
  void look_at(Connection& c, Clock::time_point now) {
    HttpRequest request;
    const HttpProgress progress = read_http(c.received(), kMostBody, request);
    const bool head_alone = request.method == "HEAD";
    if (progress.state == HttpProgress::State::kRefused) {
      const std::string why = progress.status == 413 ? fmt::format("a body holds at most {} bytes", kMostBody)
                                                     : std::string(progress.reason);
      return refuse(c, progress.status, why, head_alone, now);
    }
    const bool more = progress.state == HttpProgress::State::kMore;
    if (const auto why = more ? std::nullopt : stranger(request)) return refuse(c, 403, *why, head_alone, now);
    if (c.received().size() > kMostHead && received() > kMostReceived)
      return refuse(c, 429, "the requests of all clients hold too many bytes; wait a second", head_alone, now);
    if (more || progress.state == HttpProgress::State::kHead) {
      if (c.hung_up()) c.end();
      return;
    }
    if (!limit.admit(now)) return refuse(c, 429, "too many requests; wait a second", head_alone, now);
    const bool while_connected = request.header("roofcast-while-connected") == "1", is_long = takes_long(request.path);
    if (!jobs.add({&c, std::move(request), is_long}))
      return refuse(c, 429, "too many plans and simulations wait; wait a second", head_alone, now);
    c.answering(while_connected, head_alone, now + answer_time);
  }

  void hand_out(Clock::time_point now) {
    std::array<char, 256> drained;
    while (::read(wake[0], drained.data(), drained.size()) > 0) {
    }
    std::vector<Made> ready;
    {
      const std::lock_guard lock(mutex);
      ready.swap(made);
    }
    for (Made& m : ready) {
      if (m.connection->late())
        refuse(*m.connection, 503, too_late, m.connection->head_alone(), now);
      else
        m.connection->answer(std::move(m.bytes), now);
    }
  }

  void serve(Connection& c, short events, Clock::time_point now) {
    if (events != 0 && c.is_watched()) c.give_up();
    if (events != 0 && c.stage() == ConnectionStage::kWriting) c.write(now);
    if (events != 0 && (c.stage() == ConnectionStage::kReading || c.stage() == ConnectionStage::kLeaving) && c.read())
      look_at(c, now);
    if (now < c.deadline()) return;
    if (c.stage() == ConnectionStage::kAnswering) return c.give_up_late();
    if (c.stage() != ConnectionStage::kReading) return c.end();
    refuse(c, 408, "the request did not come to its end", false, now);
  }

  bool answers_under_way() const {
    return std::any_of(connections.begin(), connections.end(), [](const auto& c) {
      return c->stage() == ConnectionStage::kAnswering || c->stage() == ConnectionStage::kWriting;
    });
  }

  void talk() {
    Clock::time_point last = Clock::time_point::max();
    std::vector<pollfd> watched;
    while (true) {
      Clock::time_point now = Clock::now();
      if (stopping && last == Clock::time_point::max()) last = now + kGrace;
      if (stopping && (now >= last || !answers_under_way())) return;
      log.print_due(now);
      const bool deaf = stopping || now < deaf_until;
      watched.assign({{.fd = deaf ? -1 : listener, .events = POLLIN, .revents = 0},
                      {.fd = wake[0], .events = POLLIN, .revents = 0}});
      Clock::time_point next = std::min(last, log.due());
      if (now < deaf_until) next = std::min(next, deaf_until);
      for (const auto& c : connections) {
        const bool idle = c->stage() == ConnectionStage::kAnswering;
        watched.push_back({.fd = idle && !c->is_watched() ? -1 : c->fd(),
                           .events = idle                                      ? kHangUp
                                     : c->stage() == ConnectionStage::kWriting ? static_cast<short>(POLLOUT)
                                                                               : static_cast<short>(POLLIN),
                           .revents = 0});
        next = std::min(next, c->deadline());
      }
      int wait = -1;
      if (next != Clock::time_point::max())
        wait = std::max(0, static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(next - now).count()));
      if (::poll(watched.data(), watched.size(), wait) < 0 && errno != EINTR) return;
      now = Clock::now();
      for (std::size_t i = 0; i + 2 < watched.size(); ++i) serve(*connections[i], watched[i + 2].revents, now);
      if (watched[1].revents != 0) hand_out(now);
      std::erase_if(connections, [](const auto& c) { return c->stage() == ConnectionStage::kOver; });
      if (watched[0].revents != 0) welcome(now);
    }
  }
};

ExploreServer::ExploreServer(const ServerOptions& options) : state_(std::make_unique<State>(options)) {}

ExploreServer::~ExploreServer() = default;

int ExploreServer::port() const { return state_->port; }

std::string ExploreServer::url() const {
  const std::string& address = state_->options.address;
  const bool six = address.find(':') != std::string::npos;
  const std::string shown = address == "0.0.0.0" || address == "::" ? "127.0.0.1" : six ? "[" + address + "]" : address;
  return fmt::format("http://{}:{}/", shown, state_->port);
}

void ExploreServer::run() {
  std::vector<std::thread> workers;
  while (workers.size() < kWorkers) {
    try {
      workers.emplace_back([this] { state_->make_answers(); });
    } catch (const std::system_error&) {  // no further thread can be started; one is enough
      if (workers.empty()) throw;
      break;
    }
  }
  state_->jobs.set_workers(workers.size());
  state_->talk();
  for (const auto& c : state_->connections) c->give_up();
  state_->jobs.close();
  for (std::thread& worker : workers) worker.join();
  state_->connections.clear();
  state_->log.print_rest();
}

void ExploreServer::stop() {
  state_->stopping = true;
  state_->call();
}

std::string ExploreServer::reply_to(std::string_view bytes) {
  HttpRequest request;
  const HttpProgress progress = read_http(bytes, kMostBody, request);
  if (progress.state == HttpProgress::State::kRefused) return reply(refusal(progress.status, progress.reason), false);
  if (progress.state != HttpProgress::State::kDone) return "";
  if (const auto why = stranger(request)) return reply(refusal(403, *why), false);
  return reply_of(std::move(request), "");
}

}  // namespace roofcast::explore
