#pragma once
// Result files that are replaced as a whole or not at all.

#include <cstdio>
#include <string>
#include <string_view>

namespace roofcast {

/// A file that is written to a temporary name and renamed to its place by close(). If the program ends earlier, the
/// previous file is kept. Devices and pipes are written directly.
class OutputFile {
 public:
  /// Throws ConfigError `origin: cannot write 'path': reason`, as do write() and close().
  OutputFile(std::string origin, std::string path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::string_view text);
  void close();

 private:
  [[noreturn]] void fail(int error_number);
  void give_up();

  std::string origin_, path_;
  std::string beside_;  ///< path of the temporary file; empty: written directly
  std::FILE* file_ = nullptr;
  int slot_ = -1;
};

void write_file(const std::string& origin, const std::string& path, std::string_view text);

/// Removes temporary files that were not renamed yet. For signal handlers that end the program.
void remove_unfinished_files() noexcept;

}  // namespace roofcast
