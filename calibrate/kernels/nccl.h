#pragma once
// NCCL's all-reduce between the GPUs of one process. The functions that it needs are declared here, because not every
// toolkit has NCCL's header (NCCL API reference, version 2).

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
  /// Creates communicators for devices 0 ... gpus - 1. Throws Unsupported if the library is missing, Failed if it
  /// reports an error.
  explicit Nccl(int gpus);
  Nccl(const Nccl&) = delete;
  Nccl& operator=(const Nccl&) = delete;
  ~Nccl();

  std::string version() const;  ///< "2.28.9"
  /// Sums `count` bf16 elements over all ranks; one entry per rank in each argument.
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

/// Communicators by number of GPUs, created at first use and kept.
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
