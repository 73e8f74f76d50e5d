#pragma once
// Which kernel an engine runs for a call. The rules are data: each file configs/kernels/*.yaml is a named kernel set.
// GPU files have the constants of a set under the same name (hw/efficiency.h).

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/config_node.h"
#include "hw/gpu_spec.h"
#include "hw/kernel.h"
#include "hw/kernel_sets.h"
#include "hw/kernels/requested_experts.h"
#include "hw/kernels/state.h"

namespace roofcast {

enum class ExpertLayout;

/// Properties of a call that rules can test. Those that the call's operator lacks keep their defaults.
/// hw/kernel_rules.cpp has their names in the files.
struct CallTraits {
  explicit CallTraits(const GpuSpec& gpu) : CallTraits(gpu.architecture) {}
  explicit CallTraits(Architecture gpu);

  Architecture architecture;
  MatrixUnits matrix_units;
  double products_bits = 0;  ///< 8 or 16: the format that the matrix units multiply
  double cache_bits = 0;     ///< of a stored key or value
  double head_dim = 0;
  bool window = false;        ///< the layer sees only the last tokens
  double group = 0;           ///< query heads per key-value head
  double query_len = 0;       ///< new tokens per sequence
  bool shared_reads = false;  ///< a kernel exists that reads the cache once for all heads of a group
  bool always_split = false;  ///< the engine is configured to use kernels that split every context
  double blocks_per_sm = 0;   ///< thread blocks per SM if every context is split into parts of 128 tokens
  Dtype weights{};            ///< format of the weights
  double activation_bits = 0;
  bool gated = false;        ///< experts have a gate
  double expert_ranks = 0;   ///< GPUs that share the experts
  RequestedExperts asked{};  ///< kernel that the engine is configured to use
  ExpertLayout layout{};     ///< layout of the experts' tokens
  Dtype format{};            ///< format of a GEMM's constants (gemm_block)
  StateMixer::Kind mixer{};  ///< for convolutions and recurrences
};

/// A name under `when`: the trait is one of the listed ones.
template <class E>
struct OneOf {
  E CallTraits::*trait;
  std::vector<E> values;
  bool holds(const CallTraits& call) const {
    return std::find(values.begin(), values.end(), call.*trait) != values.end();
  }
};
/// A switch under `when`.
struct IsSwitched {
  bool CallTraits::*trait;
  bool value;
  bool holds(const CallTraits& call) const { return call.*trait == value; }
};
/// A number under `when`: one of the listed ones, or within the bounds if none are listed, and none of `except`.
struct IsWithin {
  double CallTraits::*trait;
  std::vector<double> values{}, except{};
  double at_least = -std::numeric_limits<double>::infinity(), at_most = std::numeric_limits<double>::infinity();
  bool holds(const CallTraits& call) const;
};
using CallCondition = std::variant<OneOf<Architecture>, OneOf<MatrixUnits>, OneOf<Dtype>, OneOf<RequestedExperts>,
                                   OneOf<ExpertLayout>, OneOf<StateMixer::Kind>, IsSwitched, IsWithin>;

struct KernelRule {
  const Kernel* kernel = nullptr;
  std::vector<CallCondition> when;
  std::string since, until;  ///< releases of the engine, `until` excluded; empty: unbounded
  std::string source;
  bool applies(const CallTraits& call) const;
};

/// Other properties of an engine's kernels that the operators of a step depend on.
struct EngineKernels {
  bool rotary_in_attention = false;      ///< attention applies RoPE to queries and keys itself
  bool attention_writes_nvfp4 = false;   ///< attention writes nvfp4 for nvfp4 output projections (Blackwell, fp8 cache)
  bool launched_from_cpp = false;        ///< multi-kernel operators are launched from C++, not from Python
  bool exchange_by_mode = true;          ///< DeepEP: normal mode for steps with prompts, else low-latency mode
  bool flash_mla = true;                 ///< FlashMLA's kernels attend to the tokens chosen by an indexer
  bool flash_attention_2 = true;         ///< FlashAttention-2 runs on GPUs whose matrix units are Ampere's
  bool fuses_by_own_all_reduce = false;  ///< its own all-reduce always fuses the norm; else up to a size by ranks
  bool copies_absorbed_weights = false;  ///< decode of latent attention keeps a second copy of the up-projections
};

/// The rules of one file at one release of its engine, by operator.
class KernelRules {
 public:
  /// Parses {name: NAME, extends: NAME, decode_rows: 64, engine: {launched_from_cpp: true, ...}, attention_decode:
  /// [{kernel, when: {TRAIT: value | [values] | {at_least, at_most, except}}, since, until, source}, ...]}.
  /// The rules of this file come before those of the file that it extends, at that file's newest release. An empty
  /// `release` is the newest. `set` is the name of the set; `chain` counts the files that extend this one.
  /// Throws ConfigError for: unknown keys and names, a `name` other than `set`, a name in kEfficiencyKeys, files that
  /// extend each other in a circle, a rule without a source, a list whose last rule has conditions.
  KernelRules(const ConfigTree& document, std::string set, std::string_view release = "", int chain = 0);

  const std::string& name() const { return name_; }
  /// The set that this one extends, or null. Its rules come later, and its constants are used where this set has none.
  const KernelRules* base() const { return base_.get(); }
  /// The kernel of the first rule that applies. It has the requested kind.
  const Kernel& pick(KernelKind kind, const CallTraits& call) const;
  /// The kernel of a GEMM with the constants of `block`. Called most often, so it is a table look-up.
  const Kernel& pick_product(Architecture architecture, Dtype block) const {
    return *products_[static_cast<std::size_t>(architecture)][static_cast<std::size_t>(block)];
  }
  const EngineKernels& engine() const { return engine_; }
  /// Most query rows with which a chunk after a prefix, or a one-token prompt, runs as decode; 0: never.
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

/// The rules of configs/kernels/NAME.yaml at a release of its engine. Cached. Throws ConfigError for an unknown name.
std::shared_ptr<const KernelRules> kernel_rules(const std::string& name, std::string_view release = "");
/// All kernel sets; those that extend none come first.
std::vector<std::shared_ptr<const KernelRules>> all_kernel_rules();

}  // namespace roofcast
