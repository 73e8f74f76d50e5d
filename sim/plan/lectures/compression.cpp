// Lectures of smaller models: rounding, formats, pruning, distillation, and what quality they leave.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/model/recipes.h"
#include "sim/plan/estimate.h"
#include "sim/plan/lectures/distillation.h"
#include "sim/plan/lectures/published.h"
#include "sim/plan/lectures/rounding.h"
#include "sim/plan/lectures/topics.h"
#include "sim/plan/scenario.h"

namespace roofcast {
namespace {

std::string percent(double share) { return fmt::format("{:+.1f} %", 100 * share); }

/// On one H100, by the datasheet.
Estimate estimate_of(const std::string& model, const std::string& precision, int batch, int context) {
  const std::string text = fmt::format("model: {}\ngpu: h100-sxm\nprecision: {}\n", model, precision);
  ConfigReader in(parse_config_text(text, "lecture"), "a scenario");
  const auto deployment = read_deployment(in, Fidelity::kIdeal);
  return estimate(deployment, {.batch = batch, .prompt_tokens = context, .output_tokens = 1, .context = context});
}

}  // namespace

LectureTables quantization_tables(const LectureInputs& in) {
  const std::vector<double>& weights = in.list("weights");
  const int bits = in.whole("bits");
  const QuantizedGroup group = quantize_absmax(weights, bits);
  LectureTable rounded{
      fmt::format("absmax, {} bit: scale {:.6g}", bits, group.scale), {"weight", "integer", "back", "error"}, {}};
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double integer = group.integers[i];
    rounded.rows.push_back({weights[i], integer, group.value(i), group.value(i) - weights[i]});
  }
  double largest = 0;
  for (const double w : weights) largest = std::max(largest, std::abs(w));
  const std::vector<double> levels = nf4_levels();
  LectureTable normal{fmt::format("NF4: scale {:.6g}", largest), {"weight", "level", "of 16", "back", "error"}, {}};
  for (const double w : weights) {
    const auto distance = [&](double level) { return std::abs(level * largest - w); };
    const auto nearest =
        std::min_element(levels.begin(), levels.end(), [&](double a, double b) { return distance(a) < distance(b); });
    normal.rows.push_back(
        {w, *nearest, static_cast<double>(nearest - levels.begin()), *nearest * largest, *nearest * largest - w});
  }
  const auto values = static_cast<double>(weights.size());
  LectureTable bytes{"bytes of the group", {"format", "bytes", "largest error"}, {}};
  bytes.rows.push_back({"fp32", values * 4, 0.0});
  bytes.rows.push_back(
      {fmt::format("{} bit and an fp32 scale", bits), group.bytes(32).base(), largest_error(weights, group)});
  double off = 0;
  for (const auto& row : normal.rows) off = std::max(off, std::abs(row.back().number));
  bytes.rows.push_back({"NF4 and an fp32 scale", (values * 4 + 32) / 8, off});
  return {rounded, normal, bytes};
}

LectureTables format_tables(const LectureInputs& in) {
  const int batch = in.whole("batch"), context = in.whole("context");
  LectureTable table{fmt::format("Llama-3.1-8B, {} sequences of {} tokens, ideal", batch, context),
                     {"format", "bits a weight", "GB", "TPOT ms", "speed-up", "quality", "measured on"},
                     {}};
  std::vector<std::string> names{"fp32", "bf16", "fp8", "int8"};
  for (const Recipe& recipe : recipes()) names.emplace_back(recipe.name);
  const std::vector<Published> quality = published("quality");
  const double parameters = estimate_of("llama-3.1-8b", "fp32", batch, context).memory.weights.base() / 4;
  const double plain = estimate_of("llama-3.1-8b", "bf16", batch, context).tpot.base();
  for (const std::string& name : names) {
    const Estimate e = estimate_of("llama-3.1-8b", name, batch, context);
    const auto known = std::find_if(quality.begin(), quality.end(),
                                    [&](const Published& row) { return row.of == "weights" && row.format == name; });
    const bool none = known == quality.end();
    table.rows.push_back({name, e.memory.weights.base() * 8 / parameters, e.memory.weights.in(kGigabyte),
                          e.tpot.in(kMillisecond), plain / e.tpot.base(),
                          none ? "" : fmt::format("{} {}", percent(known->change()), known->measure),
                          none ? "" : known->model});
  }
  return {table};
}

LectureTables pruning_tables(const LectureInputs& in) {
  LectureTable sparse{"four 16-bit weights, two of them zero (2:4)", {"", "dense", "2:4", "ratio"}, {}};
  sparse.rows.push_back({"bytes", 8.0, 2 * 2.0 + 2 * 2 / 8.0, 4.5 / 8});
  sparse.rows.push_back({"products of sparse tensor cores, relative", 1.0, 0.5, 0.5});
  sparse.rows.push_back({"decode at most, bound by weights", 1.0, 8 / 4.5, 8 / 4.5});
  sparse.rows.push_back({"prefill at most, bound by products", 1.0, 2.0, 2.0});
  LectureTable layers{"Llama-3.1-8B with fewer layers, one H100, 1024 tokens, ideal",
                      {"layers", "GB", "KV bytes per token", "TPOT ms", "speed-up"},
                      {}};
  const double whole = estimate_of("llama-3.1-8b", "bf16", 1, 1024).tpot.base();
  for (const double count : in.list("layers")) {
    const Estimate e =
        estimate_of(fmt::format("{{name: llama-3.1-8b, num_hidden_layers: {:.0f}}}", count), "bf16", 1, 1024);
    layers.rows.push_back({count, e.memory.weights.in(kGigabyte), e.memory.cache_per_token.base(),
                           e.tpot.in(kMillisecond), whole / e.tpot.base()});
  }
  LectureTable quality{"published", {"pruned", "model", "measure", "before", "after", "source"}, {}};
  for (const Published& row : published("quality")) {
    if (row.of == "pruning")
      quality.rows.push_back({row.format, row.model, row.measure, row.plain, row.changed, row.source});
  }
  return {sparse, layers, quality};
}

LectureTables distillation_tables(const LectureInputs& in) {
  const std::vector<double>&teacher = in.list("teacher"), &student = in.list("student");
  const auto label = static_cast<std::size_t>(in.one("label"));
  if (teacher.size() != student.size())
    throw ConfigError(fmt::format("--set student: {} logits for the teacher's {}", student.size(), teacher.size()));
  if (label >= teacher.size())
    throw ConfigError(fmt::format("--set label: {} classes, counted from 0", teacher.size()));
  LectureTables out;
  LectureTable loss{"a CE + (1 - a) T^2 KL", {"T", "CE", "KL", "loss"}, {}};
  for (const double t : in.list("temperature")) {
    const std::vector<double> hard = softened(teacher, t), soft = softened(student, t);
    LectureTable table{fmt::format("softmax(z / {:g})", t), {"class", "teacher", "student"}, {}};
    for (std::size_t i = 0; i < teacher.size(); ++i) table.rows.push_back({static_cast<double>(i), hard[i], soft[i]});
    out.push_back(table);
    loss.rows.push_back({t, -std::log(softened(student, 1)[label]), kl_divergence(hard, soft),
                         distillation_loss(teacher, student, label, t, in.one("hard_weight"))});
  }
  out.push_back(loss);
  return out;
}

LectureTables quality_tables(const LectureInputs&) {
  LectureTable table{"published", {"of", "format", "model", "measure", "16 bit", "changed", "change", "source"}, {}};
  for (const Published& row : published("quality")) {
    table.rows.push_back(
        {row.of, row.format, row.model, row.measure, row.plain, row.changed, percent(row.change()), row.source});
  }
  return {table};
}

}  // namespace roofcast
