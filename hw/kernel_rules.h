#pragma once
// Which kernel an engine runs for a call. The rules are data: configs/kernels/*.yaml. Each file names a set of kernels,
// and the map of a GPU's file that has their constants (hw/efficiency.h).

#include <array>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/config_node.h"
#include "hw/gpu_spec.h"
#include "hw/kernel.h"

namespace roofcast {

/// What a rule may ask of a call. Names in the file: hw/kernel_rules.cpp.
enum class Trait {
  kArchitecture,
  kMatrixUnits,
  kProductsBits,  ///< of the format that the matrix units multiply: 8 or 16
  kCacheBits,     ///< of a stored key or value
  kHeadDim,
  kWindow,       ///< 1: the layer sees the last tokens alone
  kGroup,        ///< query heads per key-value head
  kQueryLen,     ///< new tokens per sequence
  kSharedReads,  ///< 1: there are kernels that read the cache once for all heads of a group
  kAlwaysSplit,  ///< 1: the engine asked for kernels that split every context
  kWeights,      ///< format of the weights
  kActivationBits,
  kGated,        ///< 1: experts have a gate
  kExpertRanks,  ///< GPUs that share the experts
  kAsked,        ///< the kernel that the engine was told to take
  kLayout,       ///< of experts: how their tokens lie
  kFormat,       ///< of a product: that of its constants (gemm_block)
  kMixer,        ///< of a convolution or recurrence: kind of its mixer
  kBlocksPerSm,  ///< thread blocks per SM if every context is cut into parts of 128 tokens
};
inline constexpr std::size_t kTraitCount = 19;

/// The traits of one call; those that its operator does not have stay 0.
class CallTraits {
 public:
  explicit CallTraits(const GpuSpec& gpu) : CallTraits(gpu.architecture) {}
  explicit CallTraits(Architecture architecture);
  double& operator[](Trait trait) { return values_[static_cast<std::size_t>(trait)]; }
  double operator[](Trait trait) const { return values_[static_cast<std::size_t>(trait)]; }

 private:
  std::array<double, kTraitCount> values_{};
};

/// One line of `when`: the trait has one of the values or, where none are listed, lies within the bounds; none of
/// `except`.
struct Condition {
  Trait trait{};
  std::vector<double> values, except;
  double at_least = -std::numeric_limits<double>::infinity(), at_most = std::numeric_limits<double>::infinity();
  bool holds(const CallTraits& call) const;
};

struct KernelRule {
  const Kernel* kernel = nullptr;
  std::vector<Condition> when;
  std::string since, until;  ///< releases of the engine, `until` not included; empty: no bound
  std::string source;
  bool applies(const CallTraits& call) const;
};

/// What an engine's kernels do beside their own work. The operators of a step depend on it.
struct EngineKernels {
  bool rotary_in_attention = false;      ///< attention rotates queries and keys itself
  bool attention_writes_nvfp4 = false;   ///< and writes nvfp4 for an output projection in it (Blackwell, fp8 cache)
  bool launched_from_cpp = false;        ///< operators of several kernels start from C++, not from Python
  bool exchange_by_mode = true;          ///< DeepEP: its normal mode where a step has prompts, else low latency
  bool flash_mla = true;                 ///< FlashMLA's kernels attend to what an indexer chose
  bool flash_attention_2 = true;         ///< FlashAttention-2 where matrix units are those of an Ampere GPU
  bool fuses_by_own_all_reduce = false;  ///< norms wherever its own kernel reduces; else up to a size by ranks
  bool copies_absorbed_weights = false;  ///< decode of latent attention holds its up-projections once more
};

/// The rules of one file that hold at one release of its engine, operator by operator.
class KernelRules {
 public:
  /// {name: NAME, extends: NAME, decode_rows: 64, engine: {launched_from_cpp: true, ...}, attention_decode: [{kernel,
  /// when: {TRAIT: value | [values] | {at_least, at_most, except}}, since, until, source}, ...]}: its rules stand
  /// before those of the newest release of the file that it extends. An empty release is the newest. `set` is its name,
  /// which the file may repeat; `chain` counts the files that extend this one, each the next. Throws ConfigError at
  /// what is unknown, at another name or one of kEfficiencyKeys, at files that extend each other in a circle, at a rule
  /// without a source and at a list whose last rule has conditions.
  KernelRules(const ConfigTree& document, std::string set, std::string_view release = "", int chain = 0);

  const std::string& name() const { return name_; }
  /// The set that it extends, whose rules stand behind its own and whose constants lie beneath; null: none.
  const KernelRules* base() const { return base_.get(); }
  /// The kernel of the first rule that applies. The result is of that kind.
  const Kernel& pick(KernelKind kind, const CallTraits& call) const;
  /// The kernel of a product whose constants are those of `block`. It is asked for most often, so a table has it.
  const Kernel& pick_product(Architecture architecture, Dtype block) const {
    return *products_[static_cast<std::size_t>(architecture)][static_cast<std::size_t>(block)];
  }
  const EngineKernels& engine() const { return engine_; }
  /// Query rows up to which a chunk after a prefix, or a prompt of one token, runs as decode; 0: none does.
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
/// The names of all sets, sorted.
const std::vector<std::string>& kernel_sets();
/// All sets, those that extend none first.
std::vector<std::shared_ptr<const KernelRules>> all_kernel_rules();

}  // namespace roofcast
