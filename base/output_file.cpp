#include "base/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"

namespace roofcast {
namespace {

namespace fs = std::filesystem;

/// Files being written, for remove_unfinished_files(). A signal handler may neither lock nor allocate.
struct Unfinished {
  std::atomic<bool> used{false}, named{false};
  std::array<char, 4096> path{};
};
std::array<Unfinished, 8> g_unfinished;

int remember(const std::string& path) {
  for (std::size_t i = 0; i < g_unfinished.size(); ++i) {
    Unfinished& entry = g_unfinished[i];
    if (path.size() >= entry.path.size() || entry.used.exchange(true)) continue;
    std::memcpy(entry.path.data(), path.c_str(), path.size() + 1);
    entry.named = true;
    return static_cast<int>(i);
  }
  return -1;  // no free slot: the file is written, but not removed by a signal handler
}

void forget(int slot) {
  if (slot < 0) return;
  Unfinished& entry = g_unfinished[static_cast<std::size_t>(slot)];
  entry.named = false;
  entry.used = false;
}

/// The target of a symbolic link, so that the link itself is kept.
std::string target_of(const std::string& path) {
  std::error_code error;
  const fs::path target = fs::weakly_canonical(path, error);
  return error ? path : target.string();
}

}  // namespace

OutputFile::OutputFile(std::string origin, std::string path) : origin_(std::move(origin)), path_(std::move(path)) {
  struct stat status {};
  const bool exists = ::stat(path_.c_str(), &status) == 0;
  const bool stream =
      path_.starts_with("/dev/") || path_.starts_with("/proc/");  // /dev/stdout may be redirected to a plain file
  if (exists && (stream || !S_ISREG(status.st_mode))) {
    file_ = std::fopen(path_.c_str(), "wb");
    if (file_ == nullptr) fail(errno);
    return;
  }
  if (exists && ::access(path_.c_str(), W_OK) != 0) fail(errno);
  const std::string target = target_of(path_);
  beside_ = fmt::format("{}.{}.unfinished", target, ::getpid());
  slot_ = remember(beside_);
  const auto open = [this] { return ::open(beside_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666); };
  int fd = open();
  if (fd < 0 && errno == EEXIST && ::unlink(beside_.c_str()) == 0)
    fd = open();  // O_EXCL: never follow a link that someone else put there
  if (fd < 0) fail(errno);
  if (exists) static_cast<void>(::fchmod(fd, status.st_mode & 07777));
  file_ = ::fdopen(fd, "wb");
  if (file_ == nullptr) fail(errno);
}

OutputFile::~OutputFile() { give_up(); }

void OutputFile::give_up() {
  if (file_ != nullptr) static_cast<void>(std::fclose(std::exchange(file_, nullptr)));
  if (!beside_.empty()) static_cast<void>(::unlink(beside_.c_str()));
  beside_.clear();
  forget(std::exchange(slot_, -1));
}

void OutputFile::fail(int error_number) {
  give_up();
  throw ConfigError(
      fmt::format("{}: cannot write '{}': {}", origin_, path_, std::generic_category().message(error_number)));
}

void OutputFile::write(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), file_) != text.size()) fail(errno);
}

void OutputFile::close() {
  if (std::fclose(std::exchange(file_, nullptr)) != 0) fail(errno);
  if (beside_.empty()) return;
  if (std::rename(beside_.c_str(), target_of(path_).c_str()) != 0) fail(errno);
  beside_.clear();
  forget(std::exchange(slot_, -1));
}

void write_file(const std::string& origin, const std::string& path, std::string_view text) {
  OutputFile file(origin, path);
  file.write(text);
  file.close();
}

void remove_unfinished_files() noexcept {
  for (const Unfinished& entry : g_unfinished) {
    if (entry.named) static_cast<void>(::unlink(entry.path.data()));
  }
}

}  // namespace roofcast
