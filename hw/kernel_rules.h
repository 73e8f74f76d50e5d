#pragma once
// Which kernel an engine runs for a call. The rules are data: configs/kernels/*.yaml. Each file is a named set of
// kernels; a GPU's file keeps their constants under the same name (hw/efficiency.h).

#include <array>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/config_node.h"
#include "hw/gpu_spec.h"
#include "hw/kernel.h"
#include "hw/kernel_sets.h"

namespace roofcast {

/// Properties of a call that rules can test. Their names in the files: hw/kernel_rules.cpp.
enum class Trait {
  kArchitecture,
  kMatrixUnits,
  kProductsBits,  ///< 8 or 16: the format that the matrix units multiply
  kCacheBits,     ///< of a stored key or value
  kHeadDim,
  kWindow,       ///< 1: the layer sees only the last tokens
  kGroup,        ///< query heads per key-value head
  kQueryLen,     ///< new tokens per sequence
  kSharedReads,  ///< 1: some kernels read the cache once for all heads of a group
  kAlwaysSplit,  ///< 1: the engine was told to use kernels that split every context
  kWeights,      ///< format of the weights
  kActivationBits,
  kGated,        ///< 1: experts have a gate
  kExpertRanks,  ///< GPUs that share the experts
  kAsked,        ///< kernel that the engine was told to use
  kLayout,       ///< how the tokens of experts are laid out
  kFormat,       ///< format of a product's constants (gemm_block)
  kMixer,        ///< kind of mixer, for convolutions and recurrences
  kBlocksPerSm,  ///< thread blocks per SM if every context is cut into parts of 128 tokens
};
inline constexpr std::size_t kTraitCount = 19;

/// The traits of one call; those that its operator lacks are 0.
class CallTraits {
 public:
  explicit CallTraits(const GpuSpec& gpu) : CallTraits(gpu.architecture) {}
  explicit CallTraits(Architecture architecture);
  double& operator[](Trait trait) { return values_[static_cast<std::size_t>(trait)]; }
  double operator[](Trait trait) const { return values_[static_cast<std::size_t>(trait)]; }

 private:
  std::array<double, kTraitCount> values_{};
};

/// One condition under `when`: the trait has one of the listed values or, if none are listed, lies within the bounds;
/// and it has no value of `except`.
struct CallCondition {
  Trait trait{};
  std::vector<double> values, except;
  double at_least = -std::numeric_limits<double>::infinity(), at_most = std::numeric_limits<double>::infinity();
  bool holds(const CallTraits& call) const;
};

struct KernelRule {
  const Kernel* kernel = nullptr;
  std::vector<CallCondition> when;
  std::string since, until;  ///< releases of the engine, `until` excluded; empty: no bound
  std::string source;
  bool applies(const CallTraits& call) const;
};

/// What else an engine's kernels do. The operators of a step depend on it.
struct EngineKernels {
  bool rotary_in_attention = false;      ///< attention rotates queries and keys itself
  bool attention_writes_nvfp4 = false;   ///< and writes nvfp4 for an output projection in nvfp4 (Blackwell, fp8 cache)
  bool launched_from_cpp = false;        ///< operators of several kernels are launched from C++, not Python
  bool exchange_by_mode = true;          ///< DeepEP: normal mode for steps with prompts, else low latency
  bool flash_mla = true;                 ///< FlashMLA's kernels attend to the tokens that an indexer chose
  bool flash_attention_2 = true;         ///< FlashAttention-2 on GPUs whose matrix units are Ampere's
  bool fuses_by_own_all_reduce = false;  ///< also norms wherever its own kernel reduces; else up to a size by ranks
  bool copies_absorbed_weights = false;  ///< decode of latent attention keeps a second copy of its up-projections
};

/// The rules of one file at one release of its engine, by operator.
class KernelRules {
 public:
  /// {name: NAME, extends: NAME, decode_rows: 64, engine: {launched_from_cpp: true, ...}, attention_decode: [{kernel,
  /// when: {TRAIT: value | [values] | {at_least, at_most, except}}, since, until, source}, ...]}. Its rules come before
  /// those of the newest release of the file that it extends. An empty release is the newest. `set` is its name, which
  /// the file may repeat; `chain` counts the files that extend this one. Throws ConfigError for unknown keys and names,
  /// for another name in the file or a name in kEfficiencyKeys, for files that extend each other in a circle, for a
  /// rule without a source, and for a list whose last rule has conditions.
  KernelRules(const ConfigTree& document, std::string set, std::string_view release = "", int chain = 0);

  const std::string& name() const { return name_; }
  /// The set that it extends: its rules come after this set's, its constants lie beneath; null: none.
  const KernelRules* base() const { return base_.get(); }
  /// The kernel of the first rule that applies; it is of the kind asked for.
  const Kernel& pick(KernelKind kind, const CallTraits& call) const;
  /// The kernel of a product that uses the constants of `block`. Asked most often, so it is looked up in a table.
  const Kernel& pick_product(Architecture architecture, Dtype block) const {
    return *products_[static_cast<std::size_t>(architecture)][static_cast<std::size_t>(block)];
  }
  const EngineKernels& engine() const { return engine_; }
  /// Most query rows for which a chunk after a prefix, or a one-token prompt, runs as decode; 0: never.
  double decode_rows() const { return decode_rows_; }
  const std::vector<KernelRule>& of(KernelKind kind) const { return rules_[static_cast<std::size_t>(kind)]; }

 private:
  std::string name_;
  std::shared_ptr<const KernelRules> base_;
  std::array<std::vector<KernelRule>, kKernelKindCount> rules_;
  std::vector<std::array<const Kernel*, kDtypeCount>> products_;  ///< by architecture
  double decode_rows_ = 0;
  EngineKernels engine_;
};

/// configs/kernels/NAME.yaml at a release of its engine, read once. Throws ConfigError for an unknown name.
std::shared_ptr<const KernelRules> kernel_rules(const std::string& name, std::string_view release = "");
/// All sets; those that extend none come first.
std::vector<std::shared_ptr<const KernelRules>> all_kernel_rules();

}  // namespace roofcast
