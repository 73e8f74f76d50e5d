#include "cli/mpi_ranks.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"
#include "cli/mpi/module.h"

namespace roofcast {
namespace {

namespace fs = std::filesystem;

class MpiRanks final : public Ranks {
 public:
  explicit MpiRanks(const RoofcastMpi& mpi) : mpi_(mpi) {}
  int rank() const override { return mpi_.rank; }
  int size() const override { return mpi_.size; }
  /// A rank that is gone cannot be told; its silence will show.
  void send(int to, const std::string& text) override {
    static_cast<void>(mpi_.send(to, text.data(), static_cast<long>(text.size())));
  }
  std::optional<RankMessage> poll() override {
    RankMessage message;
    const long bytes = mpi_.poll(&message.from);
    if (bytes < 0) return std::nullopt;
    message.text.resize(static_cast<std::size_t>(bytes));
    if (mpi_.receive(message.from, message.text.data(), bytes) != 0 || bytes == 0) return std::nullopt;
    return message;
  }
  void leave(bool clean) override { mpi_.leave(clean ? 1 : 0); }

 private:
  const RoofcastMpi& mpi_;
};

/// Beside the program, or where it is installed.
void* open_module() {
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const fs::path& path : {folder / "roofcast_mpi.so", folder / "../lib/roofcast/roofcast_mpi.so"}) {
    if (void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL)) return module;
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<Ranks> ranks_of_mpirun() {
  const char* size = std::getenv("OMPI_COMM_WORLD_SIZE");
  if (size == nullptr || std::atoi(size) <= 1) return nullptr;
  void* module = open_module();
  using Join = decltype(&roofcast_mpi_join);
  const auto join = module != nullptr ? reinterpret_cast<Join>(dlsym(module, "roofcast_mpi_join")) : nullptr;
  const RoofcastMpi* mpi = join != nullptr ? join() : nullptr;
  if (mpi == nullptr) {
    throw ConfigError(fmt::format(
        "mpirun: {} processes were started, but this roofcast was built without Open MPI (libopenmpi-dev)", size));
  }
  return std::make_unique<MpiRanks>(*mpi);
}

}  // namespace roofcast
