#include "calibrate/kernels/library.h"

#include <dlfcn.h>

namespace roofcast::calibrate::cuda {

Library::Library(const std::vector<std::string>& names) {
  for (const char* folder : {"", "/usr/local/cuda/lib64/", "/usr/local/cuda/lib/", "/usr/local/nvidia/lib64/"}) {
    for (const std::string& name : names) {
      if (!handle_) handle_ = dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL);
    }
  }
}

void* Library::find(const char* function) const { return handle_ ? dlsym(handle_, function) : nullptr; }

}  // namespace roofcast::calibrate::cuda
