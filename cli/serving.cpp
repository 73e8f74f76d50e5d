#include "cli/serving.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <future>

#include <fmt/format.h>

namespace roofcast::cli {
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
  /// A second signal ends the program immediately.
  void wait() const {
    int signal = 0;
    sigwait(&set_, &signal);
    for (const int each : {SIGINT, SIGTERM}) std::signal(each, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &set_, nullptr);
  }

 private:
  sigset_t set_{};
};

/// Ends EndSignals::wait() if the server fails.
struct EndsWaitOnFailure {
  EndsWaitOnFailure() = default;
  EndsWaitOnFailure(const EndsWaitOnFailure&) = delete;
  EndsWaitOnFailure& operator=(const EndsWaitOnFailure&) = delete;
  ~EndsWaitOnFailure() {
    if (std::uncaught_exceptions() > 0) ::kill(::getpid(), SIGTERM);
  }
};

}  // namespace

void serve_until_interrupted(const explore::ServerOptions& options, const char* what,
                             const std::function<void()>& begins) {
  const EndSignals signals;
  explore::ServerOptions logged = options;
  logged.log = [what](const std::string& line) { std::fputs(fmt::format("{}: {}\n", what, line).c_str(), stderr); };
  explore::ExploreServer server(logged);
  if (begins) begins();
  fmt::print("{}\n", server.url());
  std::fflush(stdout);
  fmt::print(stderr, "{} is running; Ctrl-C ends it\n", what);
  std::future<void> serving = std::async(std::launch::async, [&] {
    const EndsWaitOnFailure failure;
    server.run();
  });
  signals.wait();
  server.stop();
  serving.get();
}

}  // namespace roofcast::cli
