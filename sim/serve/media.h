#pragma once
// Images, audio and video in requests.

#include <vector>

#include "base/config_reader.h"
#include "sim/model/encoder_spec.h"

namespace roofcast {

struct ModelSpec;
struct WorkloadSpec;

/// Several equal images, audio clips or videos of one request.
struct MediaSpec {
  bool sound = false;
  int count = 1;
  double width = 0, height = 0;  ///< pixels of an image or a video frame
  Seconds length{};              ///< of audio or video
  double frames = 0;             ///< sampled frames of a video; 0: not a video
  SourceLocation location;
};

/// `images: {count: 2, width: 1024, height: 768}`, `audio: {count: 1, length: 30 s}` and `video: {count: 1, length: 60
/// s, width: 1280, height: 720, frames_per_second: 2, most_frames: 768}` of a workload or a client.
std::vector<MediaSpec> parse_media(ConfigReader& in);

/// The input of the model's encoders. Throws ConfigError at the media if the model has no such encoder.
std::vector<EncoderWork> encoder_work(const std::vector<MediaSpec>& media, const ModelSpec& model);

/// Media of every request to a model: one window of audio if its decoder cross-attends to it (Whisper), else none.
std::vector<EncoderWork> usual_media(const ModelSpec& model);

/// The number of patches and frames that the encoders process.
double patches_of(const std::vector<EncoderWork>& work);
/// Tokens that these media add to a prompt.
int media_tokens(const std::vector<EncoderWork>& work);

/// Adds the tokens of all media to the prompt lengths and moves the media to WorkloadSpec::encoded.
void place_media(WorkloadSpec& workload, const ModelSpec& model);

/// Over all kinds of clients, the media of one request that take the encoders longest.
std::vector<EncoderWork> most_media(const WorkloadSpec& workload);

}  // namespace roofcast
