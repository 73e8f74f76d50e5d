#include "base/output_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/read_file.h"
#include "tests/base/messages.h"
#include "tests/base/temporary_folder.h"

using namespace roofcast;
namespace fs = std::filesystem;

namespace {

std::size_t files_in(const TemporaryFolder& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()));
}

}  // namespace

TEST_CASE("output file: what stood there stays until the new file is whole") {
  const TemporaryFolder folder;
  const std::string path = folder.write("a.json", "old");
  {
    OutputFile file("--out", path);
    file.write("new");
    CHECK(read_file(path, 100) == "old");
  }
  CHECK(read_file(path, 100) == "old");  // never closed
  CHECK(files_in(folder) == 1);
  write_file("--out", path, "new");
  CHECK(read_file(path, 100) == "new");
  CHECK(files_in(folder) == 1);
}

TEST_CASE("output file: links and permissions stay as they are") {
  const TemporaryFolder folder;
  const std::string path = folder.write("a.json", "old"), link = folder.path() + "/link";
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("a.json", link);
  write_file("--out", link, "new");
  CHECK(fs::is_symlink(link));
  CHECK(read_file(path, 100) == "new");
  CHECK(fs::status(path).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
}

TEST_CASE("output file: a handler of signals removes what is not whole") {
  const TemporaryFolder folder;
  OutputFile file("--out", folder.path() + "/a.json");
  CHECK(files_in(folder) == 1);
  remove_unfinished_files();
  CHECK(files_in(folder) == 0);
}

TEST_CASE("output file: errors name the flag, the file and the reason") {
  const TemporaryFolder folder;
  const std::string missing = folder.path() + "/none/a.json";
  CHECK(message_of([&] { write_file("--out", missing, "x"); }) ==
        "--out: cannot write '" + missing + "': No such file or directory");
  CHECK(message_of([&] { write_file("--out", "/dev/full", "x"); }) ==
        "--out: cannot write '/dev/full': No space left on device");
}

TEST_CASE("output file: a link that waits at the name it writes to is not followed") {
  const TemporaryFolder folder;
  const std::string others = folder.write("others", "theirs"), path = folder.path() + "/a.json";
  fs::create_symlink(others, fmt::format("{}.{}.unfinished", path, ::getpid()));
  write_file("--out", path, "new");
  CHECK(read_file(others, 100) == "theirs");
  CHECK(read_file(path, 100) == "new");
}
