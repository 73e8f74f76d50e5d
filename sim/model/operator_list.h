#pragma once
// Collects the operators of a step. Equal calls of different layers become one entry with a count.

#include <string>
#include <vector>

#include "sim/model/operators.h"
#include "sim/model/weights.h"

namespace roofcast {

/// The cost of an element-wise copy of `values` values between different memory layouts.
Flops indexed_copy(double values);

/// Modules that engines and compilers run as one kernel and eager PyTorch as several.
enum class Module {
  kRmsNorm,          ///< with the residual addition before it
  kLayerNorm,        ///< the same; PyTorch has a kernel for the norm itself
  kQueryKeyNorms,    ///< of queries and of keys
  kRotary,           ///< of queries and of keys
  kGatedActivation,  ///< and the multiplication with the up projection
};

class OperatorList {
 public:
  explicit OperatorList(const OperatorContext& context) : context_(context) { list_.reserve(16); }

  void add(const std::string& name, double count, Work work);
  /// Sets the stage of the following calls; ignored unless the context is `staged`.
  void enter(Stage stage) { stage_ = context_.staged ? stage : Stage::kOutside; }
  /// Adds kernels that stream `bytes`.
  void stream(const std::string& name, double count, double bytes, double launches = 1.0);
  /// Adds a module as `launches` kernels that stream `bytes`, or as PyTorch's kernels if the engine does not fuse.
  void add_module(Module which, const std::string& name, double count, double bytes, double launches = 1.0);
  /// Adds [rows, k] x [k, n] with weights of that role. If the format needs it and `quantize_input` is set, the input
  /// is quantized first; clear it if an earlier product has read the same input.
  void product(const std::string& name, double count, double rows, double k, double n, WeightRole role,
               bool quantize_input = true);
  void exchange(Collective kind, const std::string& name, double count, double bytes, int gpus);

  const OperatorContext& context() const { return context_; }
  std::vector<Operator> take() { return std::move(list_); }

 private:
  const OperatorContext& context_;
  std::vector<Operator> list_;
  Stage stage_ = Stage::kOutside;
};

}  // namespace roofcast
