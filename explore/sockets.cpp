#include "explore/sockets.h"

#include <fcntl.h>

namespace roofcast::explore {

int accept_client(int listener) {
#ifdef __APPLE__
  const int fd = ::accept(listener, nullptr, nullptr);
  if (fd < 0) return fd;
  const int yes = 1;
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  ::setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &yes, sizeof yes);
  return fd;
#else
  return ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
#endif
}

}  // namespace roofcast::explore
