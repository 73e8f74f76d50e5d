#include "hw/ampere_kernels.h"

#include <vector>

#include "hw/efficiency.h"
#include "hw/kernels/benchmark_loops.h"
#include "hw/kernels/decode/decode_kernel.h"
#include "hw/kernels/experts/experts_kernel.h"
#include "hw/kernels/gemm/gemm_kernel.h"
#include "hw/kernels/prefill/prefill_kernel.h"

namespace roofcast {
namespace {

/// The extra or saved time of vLLM's one-row fp8 GEMMs was measured with the constants of the other source.
void take_one_row(Efficiency& mine) {
  const ConstantsBlock own = mine.block(cutlass_mma_sync_fp8(), Dtype::kFp8);
  const ConstantsBlock& other = mine.block(cutlass_fp8(), Dtype::kFp8);
  if (!own) return;
  GemmParameters values = cutlass_mma_sync_fp8().parameters(own);
  values.gemv_us = other ? cutlass_fp8().parameters(other).gemv_us : 0.0;
  mine.put_block(cutlass_mma_sync_fp8(), Dtype::kFp8, cutlass_mma_sync_fp8().with_parameters(values, *own.record));
}

/// MMHA's constants for fp8 caches were fitted together with those of the wgmma XQA kernel. Without wgmma, MMHA reads
/// fp8 caches as it reads 16-bit ones.
void take_wide_reads(Efficiency& mine) {
  const Kernel& mmha = attention::mmha_decode();
  const ConstantsBlock wide = mine.block(mmha, Dtype::kBf16), narrow = mine.block(mmha, Dtype::kFp8);
  if (!wide || !narrow) return;
  const std::vector<FieldFacts> fields = mmha.fields();
  const std::vector<double> from = mmha.numbers(wide);
  std::vector<double> values = mmha.numbers(narrow);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    for (const char* shared : {"launch_head_dim_us", "bandwidth_fraction"}) {
      if (fields[i].name == shared) values[i] = from[i];
    }
  }
  mine.put_block(mmha, Dtype::kFp8, mmha.from_numbers(values, *narrow.record));
  const Kernel& loop = *attention_loop_of(mmha);
  mine.put_block(loop, Dtype::kFp8, mine.block(loop, Dtype::kBf16));
}

/// Takes kernels that the other source lacks. XQA runs fp8 caches in its 16-bit kernel, so those constants apply.
void take_missing_kernels(Efficiency& mine, const Efficiency& ampere) {
  const Kernel& xqa = attention::xqa_decode();
  for (const Kernel* kernel : kernels()) {
    if (kernel->kind() == KernelKind::kOther || mine.has(*kernel)) continue;
    if (kernel == &xqa) {
      mine.put_block(xqa, Dtype::kBf16, ampere.block(xqa, Dtype::kBf16));
    } else {
      mine.take(*kernel, ampere);
    }
    if (const Kernel* loop = attention_loop_of(*kernel)) mine.take(*loop, ampere);
  }
}

/// Ampere's experts were measured under TensorRT-LLM 1.0, whose router took 4 us per choice (top k). Times other than
/// those of the GEMMs come from the other source's release.
void take_release(Efficiency& mine) {
  const ExpertsKernel &newer = cutlass_experts(), &ampere = cutlass_mma_sync_experts();
  const ConstantsBlock &beside = mine.block(newer, Dtype::kBf16), products = mine.block(ampere, Dtype::kBf16);
  if (!beside || !products) return;
  MoeParameters values = ampere.parameters(products);
  const MoeParameters from = newer.parameters(beside);
  for (double MoeParameters::*field :
       {&MoeParameters::launch_us, &MoeParameters::launch_us_per_expert, &MoeParameters::ns_per_assignment,
        &MoeParameters::expert_map_us, &MoeParameters::router_us_per_choice})
    values.*field = from.*field;
  mine.put_block(ampere, Dtype::kBf16, ampere.with_parameters(values, *products.record));
}

}  // namespace

void lend_to_fp8(Efficiency& ampere) {
  const auto lend = [&](const Kernel& kernel, Dtype narrow) {
    const ConstantsBlock wide = ampere.block(kernel, Dtype::kBf16);
    if (wide) ampere.put_block(kernel, narrow, wide);
  };
  if (const ConstantsBlock wide = ampere.block(cublaslt_mma_sync(), Dtype::kBf16)) {
    for (const MatmulKernel* narrow : {&cublaslt_mma_sync_fp8(), &cutlass_mma_sync_fp8()})
      ampere.put_block(*narrow, Dtype::kFp8, narrow->borrowed(cublaslt_mma_sync(), wide));
  }
  lend(attention::fmha_v2_prefill(), Dtype::kFp8);
  for (const Dtype narrow : {Dtype::kFp8, Dtype::kFp8Block}) lend(triton_mma_sync_experts(), narrow);
}

void take_ampere_kernels(Efficiency& mine, const Efficiency& ampere) {
  mine.ampere_kernels = true;
  take_missing_kernels(mine, ampere);
  for (const Kernel* kernel : kernels()) {
    if (kernel->kind() != KernelKind::kGemm && kernel != &plain_gemm_loop()) continue;
    for (const Dtype dtype : {Dtype::kInt8, Dtype::kInt4}) {
      if (const ConstantsBlock own = ampere.block(*kernel, dtype)) mine.put_block(*kernel, dtype, own);
    }
  }
  take_one_row(mine);
  take_release(mine);
  take_wide_reads(mine);
}

}  // namespace roofcast
