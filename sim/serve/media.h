#pragma once
// Pictures and sounds that come with requests.

#include <vector>

#include "base/config_reader.h"
#include "sim/model/encoder_spec.h"

namespace roofcast {

struct ModelSpec;
struct WorkloadSpec;

/// Equal pictures, sounds or videos of one request.
struct MediaSpec {
  bool sound = false;
  int count = 1;
  double width = 0, height = 0;  ///< pixels of a picture, or of a video's frame
  Seconds length{};              ///< of a sound or a video
  double frames = 0;             ///< frames of a video that are used; 0: not a video
  Mark mark;
};

/// `images: {count: 2, width: 1024, height: 768}`, `audio: {count: 1, length: 30 s}` and `video: {count: 1, length: 60
/// s, width: 1280, height: 720, frames_per_second: 2, most_frames: 768}` of a workload or a client.
std::vector<MediaSpec> parse_media(ConfigReader& in);

/// The input of the model's encoders. Throws ConfigError at the media if the model has no such encoder.
std::vector<EncoderWork> encoder_work(const std::vector<MediaSpec>& media, const ModelSpec& model);

/// Media of every request of a model: a window of sound if its decoder attends to one (Whisper), else none.
std::vector<EncoderWork> usual_media(const ModelSpec& model);

/// The number of patches and frames that pass the encoders.
double patches_of(const std::vector<EncoderWork>& work);
/// Tokens that such media add to a prompt.
int media_tokens(const std::vector<EncoderWork>& work);

/// Adds their tokens to the prompts of a workload, all of whose media become WorkloadSpec::encoded.
void place_media(WorkloadSpec& workload, const ModelSpec& model);

/// The media of one request that take the encoders longest, of all clients.
std::vector<EncoderWork> most_media(const WorkloadSpec& workload);

}  // namespace roofcast
