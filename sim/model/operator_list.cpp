#include "sim/model/operator_list.h"

#include <algorithm>
#include <cmath>

namespace roofcast {
namespace {

/// Kernels: row and column statistics, search and sort of outlier columns, their removal, gather of inputs and weights,
/// scaling, addition.
constexpr double kDecompositionLaunches = 10.0;

/// Dependent reads of a quantization kernel in which a warp handles 512 columns of a row, 128 at a time, and the warps
/// of `at_once` rows process all rows in turn.
double quantization_chain(double rows, double columns, int at_once) {
  return at_once > 0 ? std::ceil(rows / at_once) * std::min(4.0, std::ceil(columns / 128.0)) : 0.0;
}

bool same(const Scales& a, const Scales& b) {
  return a.group_size == b.group_size && a.bits == b.bits && a.zero_point_bits == b.zero_point_bits;
}
bool same(const GemmShape& a, const GemmShape& b) {
  return a.m == b.m && a.n == b.n && a.k == b.k && a.weights == b.weights && a.activations == b.activations &&
         a.output_bytes == b.output_bytes && a.row_scales == b.row_scales && same(a.weight_scales, b.weight_scales);
}
bool same(const ElementwiseWork& a, const ElementwiseWork& b) {
  return a.bytes == b.bytes && a.indexing == b.indexing && a.launches == b.launches && a.chain == b.chain;
}
bool same(const CollectiveWork& a, const CollectiveWork& b) {
  return a.kind == b.kind && a.bytes == b.bytes && a.gpus == b.gpus && a.library == b.library && a.norms == b.norms &&
         a.stages == b.stages;
}
/// Compares only what differs within one model and step.
bool same(const ExchangeShape& a, const ExchangeShape& b) {
  return a.combine == b.combine && a.tokens == b.tokens && a.hidden == b.hidden && a.top_k == b.top_k &&
         a.experts == b.experts;
}
bool same(const MoeShape& a, const MoeShape& b) {
  return a.tokens == b.tokens && a.hidden == b.hidden && a.inter == b.inter && a.top_k == b.top_k &&
         a.experts == b.experts && a.gated == b.gated;
}
bool same(const AttentionHeads& a, const AttentionHeads& b) {
  return a.heads == b.heads && a.kv_heads == b.kv_heads && a.head_dim == b.head_dim && a.value_dim == b.value_dim &&
         a.window == b.window && a.kv == b.kv && a.shared_reads == b.shared_reads;
}
bool same(const PrefillWork& a, const PrefillWork& b) { return same(a.heads, b.heads); }
bool same(const DecodeWork& a, const DecodeWork& b) { return same(a.heads, b.heads); }
/// Latent and state mixers have one entry per layer kind.
bool same(const LatentPrefillWork&, const LatentPrefillWork&) { return false; }
bool same(const LatentDecodeWork&, const LatentDecodeWork&) { return false; }
bool same(const StatePrefillWork&, const StatePrefillWork&) { return false; }
bool same(const StateDecodeWork&, const StateDecodeWork&) { return false; }
bool same(const AdapterShape&, const AdapterShape&) { return false; }

bool same_work(const Work& a, const Work& b) {
  return std::visit(
      [&b](const auto& mine) {
        const auto* other = std::get_if<std::decay_t<decltype(mine)>>(&b);
        return other != nullptr && same(mine, *other);
      },
      a);
}

/// Time of a value that a kernel of PyTorch finds by its index, where operands are broadcast, transposed or of two
/// types: some fifty instructions, as operations in fp32 (two an instruction). Of three operands in three dimensions: a
/// division by multiplication, a remainder and an offset for each (ATen/cuda/detail/IntegerDivider.cuh and
/// OffsetCalculator.cuh: 8 a dimension), addresses and bounds of each operand, conversions, the operation
/// (ATen/native/cuda/CUDALoops.cuh, elementwise_kernel and unrolled_elementwise_kernel). On an H200 that is 3.0 ps;
/// 2.7 to 3.3 were measured of such kernels, and 1.9 where one streams 8 bytes.
constexpr double kIndexOperations = 100.0;
/// torch.cat divides by each dimension in integers, some 20 instructions each (ATen/native/cuda/Shape.cu,
/// CatArrIndexToOffset): twice as long.
constexpr double kCopyOperations = 2.0 * kIndexOperations;

/// What the modules of Hugging Face Transformers take in place of one fused kernel where PyTorch runs them operation by
/// operation, in models/llama/modeling_llama.py. Kernels that stream, and those that find values by their index, each
/// with its bytes of a value of 16 bit:
///   LlamaRMSNorm: square 8, mean 4, add and rsqrt of a row 0, to 16 bit 6: 18; by index to fp32 6, mul of a row's
///     factor 8, mul of weights 4: 18
///   the residual's sum before it: 6; fused with the norm 8 in all; LayerNorm of PyTorch: 4
///   apply_rotary_pos_emb by index: neg of a half 2, cat 4, mul 4, mul 4, add 6: 20, for queries and keys separately;
///   fused 4 LlamaMLP: silu 4, mul 6: 10; fused 6
struct Kernels {
  double launches = 0, bytes = 0;
};
struct Unfused {
  double fused_bytes;
  Kernels streams, by_index;
  double operations;  ///< of the latter's indices, for a value
};
Unfused unfused(Module which) {
  switch (which) {
    case Module::kRmsNorm:
      return {8, {6, 24}, {3, 18}, 3 * kIndexOperations};
    case Module::kLayerNorm:
      return {8, {2, 10}, {}, 0};
    case Module::kQueryKeyNorms:
      return {4, {10, 18}, {6, 18}, 3 * kIndexOperations};
    case Module::kRotary:
      return {4, {}, {10, 20}, 3.5 * kIndexOperations + kCopyOperations};
    case Module::kGatedActivation:
      return {6, {2, 10}, {}, 0};
  }
  SIM_CHECK(false, "a module");
  return {};
}

}  // namespace

Flops indexed_copy(double values) { return Flops(values * kCopyOperations); }

void OperatorList::add(const std::string& name, double count, Work work) {
  if (count <= 0) return;
  for (Operator& known : list_) {
    if (known.name == name && known.stage == stage_ && same_work(known.work, work)) {
      known.count += count;
      return;
    }
  }
  list_.push_back({name, count, std::move(work), stage_});
}

void OperatorList::stream(const std::string& name, double count, double bytes, double launches) {
  add(name, count, ElementwiseWork{Bytes(bytes), Flops(0), launches});
}

void OperatorList::add_module(Module which, const std::string& name, double count, double bytes, double launches) {
  if (context_.fused_elementwise) return stream(name, count, bytes, launches);
  const Unfused kernels = unfused(which);
  const double values = bytes / kernels.fused_bytes;
  if (kernels.streams.launches > 0)
    stream(name, count, values * kernels.streams.bytes, launches * kernels.streams.launches);
  if (kernels.by_index.launches > 0)
    add(name + "_by_index", count,
        ElementwiseWork{.bytes = Bytes(values * kernels.by_index.bytes),
                        .indexing = Flops(values * kernels.operations),
                        .launches = launches * kernels.by_index.launches});
}

void OperatorList::exchange(Collective kind, const std::string& name, double count, double bytes, int gpus) {
  if (gpus > 1) add(name, count, CollectiveWork{kind, Bytes(bytes), gpus, !context_.own_all_reduce});
}

/// LLM.int8() (Dettmers et al. 2022, section 3.2) multiplies the outlier columns separately, in 16 bit. Around the two
/// products the columns of the input are searched for outliers and gathered (2 k per row), the int8 product leaves as
/// int32 and is scaled to 16 bit (4 + 4 + 2 n), and the outliers' product is added (2 + 2 n, 2 n of it the product's
/// own write). It is not one fused kernel: bitsandbytes (MatMul8bitLt.forward) launches about ten more, among them
/// the search for outlier columns whose number the host waits for. They are why it is slower than 16 bit where launches
/// or activations count, and faster where weights do.
void OperatorList::product(const std::string& name, double count, double rows, double k, double n, WeightRole role,
                           bool quantize_input) {
  const Precision& p = context_.precision;
  const Dtype weights = dtype_of(role, p);
  const Dtype activations = activations_for(role, p);
  const bool quantized = element_bits(weights) < 16.0;
  // With static scales the kernel before it quantizes, except an attention kernel that the compiler cannot change.
  const bool already = p.static_activations && !(context_.compiled_quantization && name == "o_proj");
  if (quantize_input && quantized && element_bits(activations) < 16.0 && !already) {
    const double bytes = rows * k * (2.0 + element_bits(activations) / 8.0);
    const double chain = weights == Dtype::kFp8Block ? quantization_chain(rows, k, context_.rows_quantized_at_once) : 0;
    add("quantize", count, ElementwiseWork{.bytes = Bytes(bytes), .chain = chain});
  }
  GemmShape shape{.m = rows, .n = n, .k = k, .weights = weights, .activations = activations};
  shape.row_scales = !p.static_activations;
  if (weights == Dtype::kFp8Block) shape.asked = context_.block_products;
  if (quantized) shape.weight_scales = role == WeightRole::kHead ? p.head_scales : p.weight_scales;
  if (quantized && p.outlier_fraction > 0) {
    const double outliers = std::max(1.0, k * p.outlier_fraction);
    add(name + "_outliers", count, GemmShape{.m = rows, .n = n, .k = outliers});
    shape.k = std::max(1.0, k - outliers);
    stream("outlier_decomposition", count, rows * (2.0 * k + 12.0 * n), kDecompositionLaunches);
  }
  if (is_two_of_four(role, p)) {
    // Sparse matrix units skip the zeros: half of the products, and half of the weights, each with 2 bits of its place.
    // Reading all inputs is left out: they come from the previous kernel through L2.
    Scales& scales = shape.weight_scales;
    if (scales.group_size <= 0) scales = native_scales(weights);
    scales = scales.group_size > 0 ? Scales{.group_size = scales.group_size / 2,
                                            .bits = scales.bits + scales.group_size,
                                            .zero_point_bits = scales.zero_point_bits}
                                   : Scales{.group_size = 4, .bits = 8};
    shape.k = std::max(1.0, shape.k / 2);
  }
  add(name, count, shape);
}

}  // namespace roofcast
