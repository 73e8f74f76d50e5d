#pragma once
// The explorer's HTTP server: the page and the API, for this machine unless told otherwise.

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace roofcast::explore {

struct ServerOptions {
  std::string address = "127.0.0.1";
  int port = 8377;  ///< 0: any free one
  double requests_per_s = 500, burst = 1000;
  std::string page{};  ///< HTML that is served at / in place of the explorer and its API; empty: these
  std::function<void(const std::string&)> log{};  ///< takes lines about what was refused
  double answer_s = 120;                          ///< an answer that takes longer is given up
};

class ExploreServer {
 public:
  /// Binds; throws ConfigError("--port: ...") when the address cannot be had.
  explicit ExploreServer(const ServerOptions& options);
  ~ExploreServer();
  ExploreServer(const ExploreServer&) = delete;
  ExploreServer& operator=(const ExploreServer&) = delete;

  int port() const;
  std::string url() const;  ///< "http://127.0.0.1:8377/"
  /// Serves until stop() is called, from another thread; answers under way are finished, unless a client does not take
  /// them.
  void run();
  void stop();

  /// What the server sends for these bytes, whole: for tests without a socket. Empty where more has to come.
  static std::string reply_to(std::string_view bytes);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace roofcast::explore
