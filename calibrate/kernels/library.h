#pragma once
// A shared library that is loaded when it is first needed, so that nothing depends on it earlier.

#include <string>
#include <vector>

namespace roofcast::calibrate::cuda {

class Library {
 public:
  /// Loads the first of `names` that can be loaded, by the loader's rules or from the toolkit's folder. If none can,
  /// all functions are missing.
  explicit Library(const std::vector<std::string>& names);
  bool loaded() const { return handle_ != nullptr; }
  /// Null if the library or the function is missing.
  void* find(const char* function) const;
  template <class Function>
  void find(const char* name, Function*& into) const {
    into = reinterpret_cast<Function*>(find(name));
  }

 private:
  void* handle_ = nullptr;  ///< never closed: CUDA libraries cannot be unloaded safely
};

}  // namespace roofcast::calibrate::cuda
