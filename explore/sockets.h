#pragma once
// Socket differences between Linux and macOS.

#include <sys/socket.h>

namespace roofcast::explore {

/// A flag of send() that prevents SIGPIPE after a disconnect. macOS sets this on the socket instead.
#ifdef MSG_NOSIGNAL
inline constexpr int kNoSignal = MSG_NOSIGNAL;
#else
inline constexpr int kNoSignal = 0;
#endif

/// Accepts a client as a socket that is non-blocking, closes on exec and raises no SIGPIPE; negative with errno on
/// failure.
int accept_client(int listener);

}  // namespace roofcast::explore
