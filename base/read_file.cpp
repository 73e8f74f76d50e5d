#include "base/read_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/error.h"

namespace roofcast {
namespace {

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int number() const { return fd_; }

 private:
  int fd_;
};

[[noreturn]] void fail_read(const std::string& path, int error_number) {
  throw ConfigError(SourceLocation{path}, error_number == ENOENT
                                              ? std::string("no such file")
                                              : "cannot read: " + std::generic_category().message(error_number));
}

}  // namespace

std::string read_file(const std::string& path, std::size_t limit_bytes) {
  if (path.find('\0') != std::string::npos) fail_read(path, ENOENT);
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.number() < 0) fail_read(path, errno);
  struct stat status {};
  if (::fstat(file.number(), &status) != 0) fail_read(path, errno);
  const bool device = S_ISBLK(status.st_mode) || (S_ISCHR(status.st_mode) && ::isatty(file.number()) == 0);
  if (device && path != "/dev/null") throw ConfigError(SourceLocation{path}, "is a device, not a file");
  if (S_ISDIR(status.st_mode)) throw ConfigError(SourceLocation{path}, "is a directory, not a file");

  // The size is a hint only: pipes have none, and a file may grow while it is read.
  std::string text;
  std::size_t used = 0;
  text.resize(std::min(limit_bytes, static_cast<std::size_t>(std::max<off_t>(status.st_size, 4095))) + 1);
  while (true) {
    const ssize_t got = ::read(file.number(), text.data() + used, text.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_read(path, errno);
    if (got == 0) break;
    used += static_cast<std::size_t>(got);
    if (used > limit_bytes) {
      throw ConfigError(SourceLocation{path}, fmt::format("is larger than {} MB", limit_bytes / 1000000));
    }
    if (used == text.size()) text.resize(std::min(limit_bytes + 1, 2 * used));
  }
  text.resize(used);
  return text;
}

}  // namespace roofcast
