#pragma once
// Serving pages until the user has seen enough.

#include <functional>

#include "explore/server.h"

namespace roofcast::cli {

/// Prints the address and serves until SIGINT or SIGTERM; a second one ends the program at once. `what` runs, for
/// people: "the explorer". `begins` is called once the port is had. Throws ConfigError where it cannot be had.
void serve_until_interrupted(const explore::ServerOptions& options, const char* what,
                             const std::function<void()>& begins = {});

}  // namespace roofcast::cli
