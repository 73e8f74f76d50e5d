// Operators that depend on contexts: attention and the scans of state layers.

#include "sim/model/mixer_model.h"

namespace roofcast {

std::vector<Operator> prefill_mixing(const OperatorContext& context, const PrefillShape& shape) {
  if (shape.batch <= 0 || shape.query_len <= 0) return {};
  OperatorList list(context);
  for (const LayerKind& kind : context.model->layers) model_of(kind.mixer)->add_prefill(list, kind.count, shape);
  return list.take();
}

std::vector<Operator> decode_mixing(const OperatorContext& context, const DecodeShape& shape) {
  if (shape.batch <= 0) return {};
  OperatorList list(context);
  for (const LayerKind& kind : context.model->layers) model_of(kind.mixer)->add_decode(list, kind.count, shape);
  return list.take();
}

std::vector<Operator> encoded_operators(const OperatorContext& context, double tokens) {
  if (tokens <= 0) return {};
  OperatorList list(context);
  for (const LayerKind& kind : context.model->layers) model_of(kind.mixer)->add_encoded(list, kind.count, tokens);
  return list.take();
}

}  // namespace roofcast
