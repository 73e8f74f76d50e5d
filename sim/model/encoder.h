#pragma once
// The tokens that the encoders of a model make of pictures and sounds, and the work it takes.

#include <vector>

#include "sim/model/hf_config.h"
#include "sim/model/operators.h"

namespace roofcast {

EncoderWork picture_work(const EncoderSpec& encoder, double items, double width, double height);
/// `frames` of a video that are looked at, of equal size. The encoder must take videos.
EncoderWork video_work(const EncoderSpec& encoder, double items, double width, double height, double frames);
EncoderWork sound_work(const EncoderSpec& encoder, double items, Seconds length);

/// The encoders of a config, `hidden` of whose language model is this wide.
Encoders read_encoders(HfConfig& in, double hidden);

/// Its matrices, and its norms, biases and positions where they are known.
double encoder_parameters(const EncoderSpec& encoder);

/// One pass over `work` on one GPU, sharded like the language model.
std::vector<Operator> encoder_operators(const OperatorContext& context, const EncoderSpec& encoder,
                                        const EncoderWork& work);
/// Buffers of that pass on one GPU.
Bytes encoder_activations(const EncoderSpec& encoder, const EncoderWork& work, const Sharding& sharding);

}  // namespace roofcast
