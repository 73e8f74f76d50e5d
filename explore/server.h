#pragma once
// The explorer's HTTP server for the page and the API; local only by default.

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace roofcast::explore {

struct ServerOptions {
  std::string address = "127.0.0.1";
  int port = 8377;  ///< 0: any free one
  double requests_per_s = 500, burst = 1000;
  std::string page{};  ///< HTML served at / instead of the explorer and its API; empty: the explorer
  std::function<void(const std::string&)> log{};  ///< takes lines about what was refused
  double answer_s = 120;                          ///< an answer that takes longer is given up
};

class ExploreServer {
 public:
  /// Binds; throws ConfigError("--port: ...") if the address is not available.
  explicit ExploreServer(const ServerOptions& options);
  ~ExploreServer();
  ExploreServer(const ExploreServer&) = delete;
  ExploreServer& operator=(const ExploreServer&) = delete;

  int port() const;
  std::string url() const;  ///< "http://127.0.0.1:8377/"
  /// Serves until another thread calls stop(). Answers in progress are finished unless the client stops reading.
  void run();
  void stop();

  /// The complete response to these bytes, for tests without a socket. Empty if the request is incomplete.
  static std::string reply_to(std::string_view bytes);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace roofcast::explore
