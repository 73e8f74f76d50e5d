// Which layers are equal, and what they are called.

#include "sim/model/feed_forward_model.h"
#include "sim/model/hf_config.h"
#include "sim/model/mixer_model.h"

namespace roofcast {
namespace {

bool same_kind(const LayerKind& a, const LayerKind& b) {
  return a.mixer == b.mixer && a.feed_forward == b.feed_forward && a.weight_sets == b.weight_sets &&
         a.norms == b.norms && a.norm_bias == b.norm_bias && a.parallel_block == b.parallel_block &&
         a.streams == b.streams && a.extra_parameters == b.extra_parameters;
}

}  // namespace

void append_layer(ModelSpec& model, LayerKind kind) {
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    if (same_kind(model.layers[i], kind)) {
      model.layers[i].count += 1;
      model.order.push_back(static_cast<int>(i));
      return;
    }
  }
  kind.name = model_of(kind.mixer)->name() + "; " + model_of(kind.feed_forward)->name();
  kind.count = 1;
  model.order.push_back(static_cast<int>(model.layers.size()));
  model.layers.push_back(std::move(kind));
}

}  // namespace roofcast
