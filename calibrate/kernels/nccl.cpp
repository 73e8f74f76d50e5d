#include "calibrate/kernels/nccl.h"

#include <fmt/format.h>

#include <numeric>

#include "calibrate/backend.h"

namespace roofcast::calibrate::cuda {
namespace {
constexpr int kSum = 0, kBfloat16 = 9;  // ncclRedOp_t, ncclDataType_t
}

Nccl::Nccl(int gpus) : library_({"libnccl.so.2"}), ranks_(static_cast<std::size_t>(gpus), nullptr) {
  library_.find("ncclCommInitAll", init_all_);
  library_.find("ncclCommDestroy", destroy_);
  library_.find("ncclGetVersion", get_version_);
  library_.find("ncclGroupStart", group_start_);
  library_.find("ncclGroupEnd", group_end_);
  library_.find("ncclAllReduce", all_reduce_);
  if (!init_all_ || !destroy_ || !get_version_ || !group_start_ || !group_end_ || !all_reduce_)
    throw Unsupported("libnccl.so.2 was not found");
  check(get_version_(&version_), "asking for its version");
  std::vector<int> devices(ranks_.size());
  std::iota(devices.begin(), devices.end(), 0);
  const int joined = init_all_(ranks_.data(), gpus, devices.data());
  if (joined != 0) ranks_.assign(ranks_.size(), nullptr);  // nothing to destroy
  check(joined, "creating the communicators");
}

Nccl::~Nccl() {
  for (const Communicator rank : ranks_) {
    if (rank) (void)destroy_(rank);
  }
}

void Nccl::check(int result, const char* what) const {
  if (result != 0) throw Failed(fmt::format("NCCL: {}: error {}", what, result));
}

std::string Nccl::version() const {
  return fmt::format("{}.{}.{}", version_ / 10000, version_ / 100 % 100, version_ % 100);
}

void Nccl::all_reduce(const std::vector<const void*>& in, const std::vector<void*>& out, std::size_t count,
                      const std::vector<cudaStream_t>& streams) const {
  check(group_start_(), "beginning a group");
  int result = 0;
  for (std::size_t i = 0; i < ranks_.size() && result == 0; ++i)
    result = all_reduce_(in[i], out[i], count, kBfloat16, kSum, ranks_[i], streams[i]);
  const int ended = group_end_();  // a group must be ended even after an error
  check(result, "all-reduce");
  check(ended, "ending a group");
}

}  // namespace roofcast::calibrate::cuda
