#include "sim/model/mixer_model.h"

namespace roofcast {

std::unique_ptr<const MixerModel> model_of(const Mixer& mixer) {
  return std::visit([](const auto& kind) { return make_model(kind); }, mixer);
}

}  // namespace roofcast
