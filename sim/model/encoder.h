#pragma once
// Work of the image and audio encoders of a model, and the tokens that they produce.

#include <vector>

#include "sim/model/hf_config.h"
#include "sim/model/operators.h"

namespace roofcast {

EncoderWork picture_work(const EncoderSpec& encoder, double items, double width, double height);
/// Work for videos of which `frames` equal-sized frames are sampled. The encoder must support videos.
EncoderWork video_work(const EncoderSpec& encoder, double items, double width, double height, double frames);
EncoderWork sound_work(const EncoderSpec& encoder, double items, Seconds length);

/// Reads the encoders of a config; `hidden` is the width of its language model.
Encoders read_encoders(HfConfig& in, double hidden);

/// Parameters of the matrices, and of norms, biases and positions where they are known.
double encoder_parameters(const EncoderSpec& encoder);

/// Operators of one pass over `work` on one GPU, sharded like the language model.
std::vector<Operator> encoder_operators(const OperatorContext& context, const EncoderSpec& encoder,
                                        const EncoderWork& work);
/// Activation bytes of that pass on one GPU.
Bytes encoder_activations(const EncoderSpec& encoder, const EncoderWork& work, const Sharding& sharding);

}  // namespace roofcast
