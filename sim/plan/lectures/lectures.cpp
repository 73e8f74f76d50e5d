// The list of lectures, and how their inputs are read.
#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "sim/plan/lectures/topics.h"

namespace roofcast {
namespace {

const std::vector<Lecture>& all() {
  static const std::vector<Lecture> kLectures{
      {"roofline",
       "arithmetic intensity of products and attention beside the ridge point",
       {{"peak", "TFLOP/s", {989}, 1e-6},
        {"bandwidth", "TB/s", {3.35}, 1e-9},
        {"tokens", "at once", {1, 64, 295, 4096}, 1},
        {"inputs", "of the product", {4096}, 1},
        {"outputs", "of the product", {11008}, 1},
        {"context", "tokens in the cache", {4096}, 1},
        {"group", "query heads of a KV head", {1, 8}, 1}},
       roofline_tables,
       {"Williams, Waterman, Patterson, 2009, Roofline"}},
      {"kv-cache",
       "keys and values to the byte, what they cost beside the weights, and what recomputing them would",
       {{"layers", "of the model", {80}, 1, 1e4},
        {"kv_heads", "key-value heads", {8, 1, 64}, 1, 1e4},
        {"head_dim", "values of a head", {128}, 1, 1e5},
        {"kv_bytes", "of a value", {2}, 0.1, 8},
        {"context", "tokens of a sequence", {4096, 32768}, 1, 1e9},
        {"batch", "sequences", {1, 64}, 1, 1e9},
        {"weights", "GB", {140}, 1e-3, 1e6},
        {"steps", "tokens before a step", {100, 500}, 0, 1e9},
        {"prompt", "tokens before a generation", {4096}, 1, 1e8},
        {"output", "tokens of it", {256}, 1, 1e8}},
       cache_tables,
       {"Pope et al., 2022, arXiv:2211.05102, section 3.3"}},
      {"configurator",
       "a deployment by its sizes: memory, time of a token, throughput, first token",
       {{"parameters", "billions", {13}, 1e-3, 1e6},
        {"layers", "of the model", {40}, 1, 1e4},
        {"kv_heads", "key-value heads", {40}, 1, 1e4},
        {"head_dim", "values of a head", {128}, 1, 1e5},
        {"batch", "sequences", {1, 16, 32, 64, 256}, 1, 1e9},
        {"context", "tokens of each", {2048}, 1, 1e9},
        {"drafts", "k of speculation; 0: off", {0}, 0, 64},
        {"acceptance", "of a draft", {0.8}, 0, 1},
        {"cost_ratio", "of a draft over a step", {0.11}, 0, 100},
        {"memory", "GB", {80}, 1, 1e7},
        {"peak", "TFLOP/s", {989}, 1e-6, 1e9},
        {"bandwidth", "TB/s", {3.35}, 1e-6, 1e6},
        {"weight_bytes", "of a parameter", {2}, 0.1, 8},
        {"kv_bytes", "of a value in the cache", {2}, 0.1, 8},
        {"price", "USD an hour", {2}, 0, 1e9}},
       configurator_tables,
       {"Pope et al., 2022, arXiv:2211.05102, section 2; Leviathan et al., 2023, arXiv:2211.17192, theorem 3.8",
        "a model by name on a GPU by name: roofcast estimate --fidelity ideal"}},
      {"launches",
       "what torch.compile and CUDA graphs take off a decode step",
       {{"layers", "of the model", {32}, 1, 1e4},
        {"parameters", "billions", {6.74}, 1e-3, 1e6},
        {"weight_bytes", "of a parameter", {2}, 0.1, 8},
        {"bandwidth", "TB/s", {2.04}, 1e-6, 1e6},
        {"launch", "us of the host for a kernel", {6}, 0, 1e4},
        {"eager", "kernels of a layer", {40}, 1, 1e4},
        {"compiled", "kernels of a layer", {13}, 1, 1e4}},
       launch_tables,
       {"kernels of a layer: transformers, models/llama/modeling_llama.py: two norms of 9 with the residual's sum, 10 "
        "of "
        "rotation, 2 of activation, 7 products, attention, 2 copies into the cache; compiled, each of the first three "
        "is "
        "one and the copies are one",
        "in a deployment: --set engine.fused_elementwise=false, engine.cuda_graphs.enabled=false"}},
      {"batching",
       "static (padded) batches against selective, continuous ones",
       {{"prompts", "tokens of each request", {100, 100}, 1},
        {"outputs", "tokens of each request", {500, 10}, 1},
        {"slots", "requests that run at once", {2}, 1, 1024}},
       batching_tables,
       {"Yu et al., 2022, Orca, OSDI, sections 3.2 (selective batching) and 3.1 (iteration-level scheduling)"}},
      {"cache-waste",
       "what contiguous and paged caches waste",
       {{"prompt", "tokens, mean", {161}, 1},
        {"output", "tokens, mean", {338}, 1},
        {"output_cv", "deviation of the outputs over their mean", {0}, 0, 100},
        {"slot", "tokens of a contiguous place", {2048}, 1},
        {"blocks", "tokens of a block", {1, 16, 64, 128}, 1},
        {"room", "tokens that the memory holds", {500000}, 1}},
       waste_tables,
       {"Kwon et al., 2023, arXiv:2309.06180, sections 3.1 and 6.1 (ShareGPT's lengths)"}},
      {"quantization",
       "weights rounded to integers and to NF4, by hand",
       {{"weights", "of one group", {0.5, -0.2, 0, -1}}, {"bits", "of an integer", {8}, 2, 16}},
       quantization_tables,
       {"Dettmers et al., 2022, arXiv:2208.07339, section 2.1.1 (absmax)",
        "Dettmers et al., 2023, arXiv:2305.14314, section 3 (NF4)"}},
      {"formats",
       "size, speed and published quality of weight formats, on Llama-3.1-8B and one H100",
       {{"batch", "sequences", {1}, 1, 100000}, {"context", "tokens of each", {1024}, 1, 100000}},
       format_tables,
       {"sizes and times: roofcast estimate --fidelity ideal; quality: configs/published/quality.yaml"}},
      {"pruning",
       "2:4 sparsity, and fewer layers of Llama-3.1-8B",
       {{"layers", "that stay, of 32", {32, 28, 24, 16}, 1, 32}},
       pruning_tables,
       {"NVIDIA, 2020, Ampere white paper (2:4: two of four values and two index bits each)",
        "arXiv:2408.11796 (Minitron), configs/published/quality.yaml"}},
      {"distillation",
       "softened teacher and student, and the loss",
       {{"teacher", "logits", {10, 2, 1}, -30, 30},
        {"student", "logits", {5, 1.5, 1}, -30, 30},
        {"label", "the true class, from 0", {0}, 0, 1e6},
        {"temperature", "T", {1, 4}, 0.1, 1e6},
        {"hard_weight", "of the label's loss", {0.5}, 0, 1}},
       distillation_tables,
       {"Hinton, Vinyals, Dean, 2015, arXiv:1503.02531"}},
      {"quality",
       "published losses of quantization, pruning and KV formats",
       {},
       quality_tables,
       {"configs/published/quality.yaml names the source of each row"}},
      {"rejection-sampling",
       "why speculative decoding leaves the output distribution as it is",
       {{"target", "probabilities q", {0.3, 0.7}, 0, 1},
        {"draft", "probabilities p", {0.5, 0.5}, 0, 1},
        {"draws", "tokens that are sampled", {100000}, 1, 1e7}},
       rejection_tables,
       {"Leviathan et al., 2023, arXiv:2211.17192, appendix A.1; Chen et al., 2023, arXiv:2302.01318"}},
      {"speculation",
       "tokens of a step and speed-up by the number of drafts, chains and trees",
       {{"acceptance", "a", {0.8}, 0, 1},
        {"cost_ratio", "r, a draft's cost over a step's", {0.11}, 0, 100},
        {"drafts", "k", {1, 2, 4, 6, 8, 12}, 1, 64},
        {"widths", "candidates of a node", {1, 2, 4}, 1, 64}},
       speculation_tables,
       {"arXiv:2211.17192, equation 1; trees: arXiv:2406.16858 and arXiv:2305.09781, table 1"}},
      {"drafts",
       "who drafts: models, heads, n-grams, suffixes, lookahead",
       {{"drafts", "k", {4}, 1, 64},
        {"window", "W of lookahead decoding", {15}, 1, 1000},
        {"ngram", "N of lookahead decoding", {5}, 2, 100},
        {"guesses", "G of lookahead decoding", {15}, 1, 1000}},
       draft_tables,
       {"acceptance: docs/guides/speculative-decoding.md", "lookahead: arXiv:2402.02057, section 3"}},
      {"attention",
       "naive attention and FlashAttention: bytes, tiles, and the speeds of FlashAttention 1, 2 and 3",
       {{"tokens", "N", {8192}, 1, 1e7},
        {"heads", "of a layer", {64}, 1, 1e4},
        {"head_dim", "d", {128}, 1, 1e4},
        {"sram", "KiB of an SM", {228}, 1, 1e6},
        {"tiles", "rows", {64, 128, 256, 512}, 1, 1e5}},
       attention_tables,
       {"arXiv:2205.14135, algorithm 0; speeds: configs/published/speeds.yaml"}},
      {"latent-attention",
       "a decode step of latent attention, absorbed and not",
       {{"heads", "of a layer", {128}, 1, 1e4},
        {"latent", "values cached", {512}, 1, 1e5},
        {"rope", "rotary values cached", {64}, 0, 1e5},
        {"nope", "of a key, without position", {128}, 1, 1e5},
        {"value", "of a value", {128}, 1, 1e5},
        {"context", "tokens in the cache", {32768}, 1, 1e8}},
       latent_tables,
       {"DeepSeek-V2, 2024, arXiv:2405.04434, sections 2.1.2 and appendix C",
        "priced in a deployment: --set engine.attention_kernel=naive expands, the default absorbs"}},
  };
  return kLectures;
}

std::vector<double> numbers_of(const LectureInput& input, const std::string& text) {
  std::vector<double> out;
  for (const std::string& word : split(text, ',')) {
    const std::string number(trim(word));
    char* end = nullptr;
    const double value = std::strtod(number.c_str(), &end);
    if (number.empty() || *end != '\0' || !(value >= input.least && value <= input.most)) {
      const bool bounded = input.most<1e300, from = input.least> - 1e300;
      throw ConfigError(fmt::format("--set {}: must be numbers{}{}, such as {}; got '{}'", input.name,
                                    from ? fmt::format(" of at least {}", input.least) : "",
                                    bounded ? fmt::format(" and at most {}", input.most) : "",
                                    fmt::join(input.usual, ","), text));
    }
    out.push_back(value);
  }
  return out;
}

}  // namespace

std::span<const Lecture> lectures() { return all(); }

const Lecture& lecture_named(const std::string& name) {
  std::vector<std::string> names;
  for (const Lecture& lecture : all()) {
    if (lecture.name == name) return lecture;
    names.emplace_back(lecture.name);
  }
  throw ConfigError(unknown_name("lecture", name, names));
}

std::vector<LectureTable> tables_of(const Lecture& lecture, std::span<const std::string> inputs) {
  std::map<std::string, std::vector<double>, std::less<>> values;
  std::vector<std::string> names;
  for (const LectureInput& input : lecture.inputs) {
    values[std::string(input.name)] = input.usual;
    names.emplace_back(input.name);
  }
  for (const std::string& given : inputs) {
    const std::size_t equals = given.find('=');
    if (equals == std::string::npos) throw ConfigError(fmt::format("--set {}: write NAME=NUMBER,...", given));
    const std::string name = given.substr(0, equals);
    const auto input = std::find_if(lecture.inputs.begin(), lecture.inputs.end(),
                                    [&](const LectureInput& i) { return i.name == name; });
    if (input == lecture.inputs.end()) throw ConfigError("--set: " + unknown_name("input", name, names));
    values[name] = numbers_of(*input, given.substr(equals + 1));
  }
  return lecture.tables(LectureInputs(std::move(values)));
}

}  // namespace roofcast
