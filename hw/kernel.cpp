#include "hw/kernel.h"

#include "base/error.h"

namespace roofcast {

std::string_view name_of(KernelKind kind) {
  switch (kind) {
    case KernelKind::kOther:
      return "other";
    case KernelKind::kGemm:
      return "gemm";
    case KernelKind::kAttentionPrefill:
      return "attention_prefill";
    case KernelKind::kAttentionDecode:
      return "attention_decode";
    case KernelKind::kLatentPrefill:
      return "latent_prefill";
    case KernelKind::kLatentDecode:
      return "latent_decode";
    case KernelKind::kExperts:
      return "experts";
    case KernelKind::kConvolution:
      return "convolution";
    case KernelKind::kState:
      return "state";
  }
  fail_check("kind", __FILE__, __LINE__, "no such kind of kernel");
}

ConstantsBlock Kernel::borrowed(const Kernel& lender, const ConstantsBlock& lent) const {
  const std::vector<FieldFacts> mine = fields(), theirs = lender.fields();
  const std::vector<double> values = lender.numbers(lent);
  std::vector<double> out = numbers(defaults());
  FitRecord record = *lent.record;
  const std::vector<double> errors = std::move(record.standard_errors);
  record.standard_errors.assign(errors.empty() ? 0 : mine.size(), 0.0);
  for (std::size_t i = 0; i < mine.size(); ++i) {
    for (std::size_t j = 0; j < theirs.size(); ++j) {
      if (mine[i].name != theirs[j].name) continue;
      out[i] = values[j];
      if (j < errors.size()) record.standard_errors[i] = errors[j];
    }
  }
  ConstantsBlock block = from_numbers(out, std::move(record));
  if (lent.carried) {
    const CarriedFrom& before = *lent.carried;
    block.carried =
        std::make_shared<const CarriedFrom>(CarriedFrom{before.gpu, borrowed(lender, before.measured), before.how});
  }
  return block;
}

}  // namespace roofcast
