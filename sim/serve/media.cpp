#include "sim/serve/media.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "sim/model/encoder.h"
#include "sim/serve/workload.h"

namespace roofcast {
namespace {

constexpr double kMostItems = 1000, kMostPixels = 1e5;
constexpr Seconds kLongestSound{36000};

MediaSpec read_size(ConfigReader& in) {
  MediaSpec m;
  m.location = in.location();
  m.count = static_cast<int>(in.integer("count", 1, Range{1, kMostItems}));
  m.width = static_cast<double>(in.integer("width", Range{1, kMostPixels}));
  m.height = static_cast<double>(in.integer("height", Range{1, kMostPixels}));
  if (m.width > 200 * m.height || m.height > 200 * m.width)
    throw ConfigError(m.location, "one side of an image may be at most 200 times as long as the other");
  return m;
}

MediaSpec parse_pictures(ConfigReader in) {
  MediaSpec m = read_size(in);
  in.finish();
  return m;
}

/// Frames are sampled: 2 per second, an even number, at least 4 and at most 768 (FPS, FPS_MIN_FRAMES and FPS_MAX_FRAMES
/// in qwen_vl_utils/vision_process.py). vLLM samples 32 frames by default (vllm/multimodal/video.py).
MediaSpec parse_videos(ConfigReader in) {
  MediaSpec m = read_size(in);
  m.length = in.time("length");
  if (m.length <= Seconds(0) || m.length > kLongestSound) in.fail("length", "must be more than 0 s and at most 10 h");
  const double rate = in.number("frames_per_second", 2, Range{0.001, 240});
  const double most = static_cast<double>(in.integer("most_frames", 768, Range{4, 100000}));
  in.finish();
  m.frames = 2 * std::floor(std::clamp(m.length.base() * rate, 4.0, most) / 2);
  return m;
}

MediaSpec parse_sounds(ConfigReader in) {
  MediaSpec m;
  m.sound = true;
  m.location = in.location();
  m.count = static_cast<int>(in.integer("count", 1, Range{1, kMostItems}));
  m.length = in.time("length");
  if (m.length <= Seconds(0) || m.length > kLongestSound) in.fail("length", "must be more than 0 s and at most 10 h");
  in.finish();
  return m;
}

/// Whisper's decoder attends to one window; the transcription endpoints of vLLM and OpenAI split longer audio before it
/// is sent.
void check_window(const MediaSpec& m, const ModelSpec& model) {
  constexpr Seconds kWindow{30};
  if (model.encoded_tokens > 0 && m.sound && (m.count > 1 || m.length > kWindow))
    throw ConfigError(
        m.location,
        fmt::format("{} accepts audio of at most 30 s per request; split longer audio into several requests",
                    model.name));
}

void place(WorkloadSpec& w, const ModelSpec& model) {
  if (w.media.empty() && model.encoded_tokens > 0)
    throw ConfigError(w.location,
                      fmt::format("{} transcribes: its requests need 'audio: {{length: 30 s}}'", model.name));
  if (w.media.empty()) return;
  const SourceLocation location = w.media.front().location;
  if (w.arrivals.process == ArrivalSpec::Process::kTrace && w.clients.empty())
    throw ConfigError(location, "the prompts of a trace already count the tokens of their images and audio");
  w.encoded = encoder_work(w.media, model);
  w.prompt_tokens.extra = media_tokens(w.encoded);
  if (!w.listed) return;
  auto longer = std::make_shared<std::vector<RequestLengths>>(*w.listed);
  for (RequestLengths& lengths : *longer) lengths.prompt_tokens += w.prompt_tokens.extra;
  w.listed = std::move(longer);
}

}  // namespace

std::vector<MediaSpec> parse_media(ConfigReader& in) {
  std::vector<MediaSpec> media;
  if (auto pictures = in.optional_child("images")) media.push_back(parse_pictures(std::move(*pictures)));
  if (auto videos = in.optional_child("video")) media.push_back(parse_videos(std::move(*videos)));
  if (auto sounds = in.optional_child("audio")) media.push_back(parse_sounds(std::move(*sounds)));
  return media;
}

std::vector<EncoderWork> encoder_work(const std::vector<MediaSpec>& media, const ModelSpec& model) {
  std::vector<EncoderWork> out;
  for (const MediaSpec& m : media) {
    const Encoders& e = model.encoders;
    const auto& encoder = m.sound ? e.sounds : e.pictures;
    check_window(m, model);
    if (!encoder)
      throw ConfigError(m.location, fmt::format("{} {}", model.name, m.sound ? e.no_sounds : e.no_pictures));
    if (m.frames > 0 && encoder->frames_of_grid <= 0)
      throw ConfigError(m.location, fmt::format("the number of tokens per video of '{}' in {} is not known",
                                                encoder->name, model.name));
    out.push_back(m.sound        ? sound_work(*encoder, m.count, m.length)
                  : m.frames > 0 ? video_work(*encoder, m.count, m.width, m.height, m.frames)
                                 : picture_work(*encoder, m.count, m.width, m.height));
  }
  return out;
}

std::vector<EncoderWork> usual_media(const ModelSpec& model) {
  if (model.encoded_tokens <= 0) return {};
  return encoder_work({{.sound = true, .count = 1, .length = Seconds(30), .location = {}}}, model);
}

double patches_of(const std::vector<EncoderWork>& work) {
  double sum = 0;
  for (const EncoderWork& w : work) sum += w.items * w.sequences * w.patches;
  return sum;
}

int media_tokens(const std::vector<EncoderWork>& work) {
  double sum = 0;
  for (const EncoderWork& w : work) sum += w.items * w.tokens;
  return static_cast<int>(std::min(sum, 1e8));
}

void place_media(WorkloadSpec& workload, const ModelSpec& model) {
  if (workload.clients.empty() || !workload.media.empty()) place(workload, model);
  for (WorkloadSpec& client : workload.clients) place(client, model);
}

std::vector<EncoderWork> most_media(const WorkloadSpec& workload) {
  std::vector<EncoderWork> most = workload.encoded;
  for (const WorkloadSpec& client : workload.clients) {
    if (patches_of(client.encoded) > patches_of(most)) most = client.encoded;
  }
  return most;
}

}  // namespace roofcast
