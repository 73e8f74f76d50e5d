#pragma once
// Collects the operators of a step; equal calls of different layers become one entry with a count.

#include <string>
#include <vector>

#include "sim/model/operators.h"
#include "sim/model/weights.h"

namespace roofcast {

/// What it takes to copy so many values one by one, where a tensor's order in memory is not that of its dimensions.
Flops indexed_copy(double values);

/// Modules of a model that engines and compilers run as one kernel, and PyTorch by itself as several.
enum class Module {
  kRmsNorm,          ///< with the sum of residuals before it
  kLayerNorm,        ///< the same; PyTorch has a kernel for the norm
  kQueryKeyNorms,    ///< of queries and of keys
  kRotary,           ///< of queries and of keys
  kGatedActivation,  ///< and the product with the other half
};

class OperatorList {
 public:
  explicit OperatorList(const OperatorContext& context) : context_(context) { list_.reserve(16); }

  void add(const std::string& name, double count, Work work);
  /// Where the calls that follow are; of no interest unless the context asks for it.
  void enter(Stage stage) { stage_ = context_.staged ? stage : Stage::kOutside; }
  /// Kernels that stream `bytes`.
  void stream(const std::string& name, double count, double bytes, double launches = 1.0);
  /// A module in `launches` kernels that stream `bytes`, or in PyTorch's unless the engine fuses.
  void add_module(Module which, const std::string& name, double count, double bytes, double launches = 1.0);
  /// [rows, k] x [k, n] with weights of that role; what feeds it is quantized first where the format needs it
  /// and `quantize_input` says that no earlier product has read the same input.
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
