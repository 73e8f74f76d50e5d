#pragma once
// Where the sockets of Linux and macOS differ.

#include <sys/socket.h>

namespace roofcast::explore {

/// A flag of send(): no SIGPIPE where the client has gone. macOS sets that on the socket instead.
#ifdef MSG_NOSIGNAL
inline constexpr int kNoSignal = MSG_NOSIGNAL;
#else
inline constexpr int kNoSignal = 0;
#endif

/// The next client, as a socket that does not block, closes on exec and raises no SIGPIPE; below 0 with errno where
/// there is none.
int accept_client(int listener);

}  // namespace roofcast::explore
