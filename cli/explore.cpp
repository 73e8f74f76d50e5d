// roofcast explore: the page in the browser, and the API behind it.

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <future>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/options.h"
#include "explore/api.h"
#include "explore/server.h"

namespace roofcast::cli {
namespace po = boost::program_options;
namespace {

/// Blocks the signals that end the program in this thread and those it starts; wait() takes them one by one.
class EndSignals {
 public:
  EndSignals() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGINT);
    sigaddset(&set_, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  }
  /// Another one ends the program at once.
  void wait() const {
    int signal = 0;
    sigwait(&set_, &signal);
    for (const int each : {SIGINT, SIGTERM}) std::signal(each, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &set_, nullptr);
  }

 private:
  sigset_t set_{};
};

/// Ends EndSignals::wait() where the server fails.
struct EndsWaitOnFailure {
  EndsWaitOnFailure() = default;
  EndsWaitOnFailure(const EndsWaitOnFailure&) = delete;
  EndsWaitOnFailure& operator=(const EndsWaitOnFailure&) = delete;
  ~EndsWaitOnFailure() {
    if (std::uncaught_exceptions() > 0) ::kill(::getpid(), SIGTERM);
  }
};

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1" || address == "localhost";
}

}  // namespace

int run_explore(std::span<const std::string> arguments) {
  Options options("roofcast explore [--port N] [--bind ADDRESS]",
                  "A page in the browser on which every slider moves every chart, and the JSON API behind it\n"
                  "(docs/explorer.md). Runs until interrupted.");
  options.add().add_options()("port", po::value<std::string>()->default_value("8377"), "N: port; 0 picks a free one")(
      "bind", po::value<std::string>()->default_value("127.0.0.1"),
      "ADDRESS: address to listen on; with any but 127.0.0.1 other machines can connect");
  if (!options.parse(arguments)) return kDone;
  const EndSignals signals;
  explore::ExploreServer server(
      {.address = options.text("bind"), .port = static_cast<int>(options.integer("port", 0, 65535))});
  if (!is_loopback(options.text("bind")))
    fmt::print(stderr, "--bind {}: whoever reaches this machine can use the explorer\n", options.text("bind"));
  explore::warm_up();
  fmt::print("{}\n", server.url());
  std::fflush(stdout);
  fmt::print(stderr, "the explorer is running; Ctrl-C ends it\n");
  std::future<void> serving = std::async(std::launch::async, [&] {
    const EndsWaitOnFailure failure;
    server.run();
  });
  signals.wait();
  server.stop();
  serving.get();
  return kDone;
}

}  // namespace roofcast::cli
