#pragma once
// NCCL's all-reduce among the GPUs of one process. Its few functions are declared here, for its header does not come
// with every toolkit (NCCL API reference, version 2).

#include <cuda_runtime_api.h>

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "calibrate/kernels/library.h"

namespace roofcast::calibrate::cuda {

class Nccl {
 public:
  /// Joins devices 0 ... gpus - 1. Throws Unsupported where the library is missing, Failed where it refuses.
  explicit Nccl(int gpus);
  Nccl(const Nccl&) = delete;
  Nccl& operator=(const Nccl&) = delete;
  ~Nccl();

  std::string version() const;  ///< "2.28.9"
  /// The sum of `count` bf16 of every rank, to every rank; one entry a rank.
  void all_reduce(const std::vector<const void*>& in, const std::vector<void*>& out, std::size_t count,
                  const std::vector<cudaStream_t>& streams) const;

 private:
  using Communicator = void*;
  void check(int result, const char* what) const;

  Library library_;
  std::vector<Communicator> ranks_;
  int version_ = 0;
  int (*init_all_)(Communicator*, int, const int*) = nullptr;
  int (*destroy_)(Communicator) = nullptr;
  int (*get_version_)(int*) = nullptr;
  int (*group_start_)() = nullptr;
  int (*group_end_)() = nullptr;
  int (*all_reduce_)(const void*, void*, std::size_t, int, int, Communicator, cudaStream_t) = nullptr;
};

/// Communicators by their number of GPUs, each made when it is first asked for and kept.
class NcclGroups {
 public:
  std::shared_ptr<const Nccl> of(int gpus) {
    std::shared_ptr<const Nccl>& group = groups_[gpus];
    if (!group) group = std::make_shared<const Nccl>(gpus);
    return group;
  }

 private:
  std::map<int, std::shared_ptr<const Nccl>> groups_;
};

}  // namespace roofcast::calibrate::cuda
