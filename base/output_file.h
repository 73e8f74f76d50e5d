#pragma once
// Files of results: whole, or as they were before.

#include <cstdio>
#include <string>
#include <string_view>

namespace roofcast {

/// A file that is written beside its place and moved there by close(). Until then, and for good when the program ends
/// before, the file that stood there stays. Devices and pipes are written as they are.
class OutputFile {
 public:
  /// Throws ConfigError `origin: cannot write 'path': reason`, as the other calls do.
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
  std::string beside_;  ///< empty: written in place
  std::FILE* file_ = nullptr;
  int slot_ = -1;
};

void write_file(const std::string& origin, const std::string& path, std::string_view text);

/// Removes what is written beside and not moved yet. For handlers of signals that end the program.
void remove_unfinished_files() noexcept;

}  // namespace roofcast
