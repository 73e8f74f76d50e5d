#include "sim/model/stored_format.h"

#include "base/checkpoint_name.h"

namespace roofcast {

Dtype stored_format(const ModelSpec& model, Dtype named) {
  const Dtype own = model.precision.weights;
  if (named != Dtype::kFp8 || own == Dtype::kFp8) return named;
  return own == Dtype::kFp8Block || has_block_fp8(model.model_type) ? Dtype::kFp8Block : named;
}

}  // namespace roofcast
