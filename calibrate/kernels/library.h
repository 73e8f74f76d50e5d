#pragma once
// A shared library that is looked for when it is first needed, so that nothing depends on it before.

#include <string>
#include <vector>

namespace roofcast::calibrate::cuda {

class Library {
 public:
  /// The first of `names` that loads, as the loader finds it or in the toolkit's folder. Else everything is missing.
  explicit Library(const std::vector<std::string>& names);
  bool loaded() const { return handle_ != nullptr; }
  /// Null when the library or the function is missing.
  void* find(const char* function) const;
  template <class Function>
  void find(const char* name, Function*& into) const {
    into = reinterpret_cast<Function*>(find(name));
  }

 private:
  void* handle_ = nullptr;  ///< never closed: libraries of CUDA do not survive it
};

}  // namespace roofcast::calibrate::cuda
