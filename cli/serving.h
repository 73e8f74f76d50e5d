#pragma once
// Serves pages until interrupted.

#include <functional>

#include "explore/server.h"

namespace roofcast::cli {

/// Prints the address and serves until SIGINT or SIGTERM; a second one ends the program immediately. `what` names the
/// service, such as "the explorer". `begins` is called once the port is open. Throws ConfigError if it cannot be
/// opened.
void serve_until_interrupted(const explore::ServerOptions& options, const char* what,
                             const std::function<void()>& begins = {});

}  // namespace roofcast::cli
