#include "reports/provenance.h"

#include <cmath>

#include <fmt/format.h>

#include "hw/efficiency.h"
#include "hw/rooflines.h"
#include "reports/table.h"
#include "sim/plan/kernel_release.h"
#include "sim/plan/rules.h"
#include "sim/step/deployment.h"
#include "sim/step/operator_error.h"

namespace roofcast::reports {
namespace {

struct Origin {
  Provenance provenance = Provenance::kDatasheet;
  std::string source = "vendor datasheet";
};

/// The roofline efficiencies that price the operators; null: kernels have their own models.
const RooflineBackend* roofline_of(const Deployment& d) {
  if (d.roofline() != nullptr) return d.roofline();
  return by_roofline(d.gpu.architecture) ? &assumed_roofline() : nullptr;
}

/// The provenance of the GEMMs represents the whole, because every fit includes them.
Origin origin_of(const Deployment& d) {
  if (d.fidelity == Fidelity::kIdeal) return {};
  if (const RooflineBackend* roofline = roofline_of(d); roofline != nullptr) {
    if (roofline->by_hand)
      return {Provenance::kDatasheet, fmt::format("shares of the roofline chosen by hand after {}", roofline->source)};
    if (!roofline->source.empty()) return {Provenance::kMeasured, roofline->source};
    return {Provenance::kDatasheet,
            fmt::format("nothing is measured: {:.0f} % of the datasheet's roofline", 100 * roofline->wide[0].memory)};
  }
  const FitRecord* record = record_of(GemmShape{.weights = d.precision.weights}, *d.efficiency, d.gpu);
  if (record == nullptr) return {Provenance::kDatasheet, "no measurements: priors of the kernel models"};
  return {record->provenance, record->source};
}

}  // namespace

std::string engine_name(const EngineSpec& engine) {
  return engine.version.empty() ? engine.name : engine.name + " " + engine.version;
}

nlohmann::ordered_json provenance_json(const Deployment& d) {
  const Origin origin = origin_of(d);
  nlohmann::ordered_json out{{"parameters", name_of(origin.provenance)}, {"source", origin.source}};
  const bool by_kernels = d.fidelity != Fidelity::kIdeal && roofline_of(d) == nullptr;
  if (!d.carried_over_from().empty() && by_kernels) {
    out["carried_over_from"] = d.carried_over_from();
  }
  out["fidelity"] = d.fidelity == Fidelity::kIdeal ? "ideal" : "calibrated";
  out["kernels"] = d.engine.rooflines != nullptr ? d.engine.rooflines->name : d.efficiency->kernels();
  if (d.gpu_changed) out["gpu_changed"] = true;
  if (const std::optional<KernelRelease> measured = kernel_release(d); measured && by_kernels) {
    out["kernels_release"] = measured->engine + "-" + measured->version;
    if (has_kernels_of_another_release(d)) out["kernels_of_another_release"] = true;
  }
  if (d.engine.beyond_known) out["engine_beyond_known"] = true;
  if (d.engine.version_assumed) out["engine_version_assumed"] = true;
  if (!d.model.assumptions.empty()) out["assumptions"] = d.model.assumptions;
  out["roofcast_version"] = ROOFCAST_VERSION;
  return out;
}

std::string provenance_line(const Deployment& d) {
  if (d.fidelity == Fidelity::kIdeal) return "ideal: datasheet peaks, no efficiency, no launch or host cost";
  const Origin origin = origin_of(d);
  std::string newer = d.engine.beyond_known ? fmt::format("; the release asked for is newer than {}, the newest known",
                                                          engine_name(d.engine))
                                            : "";
  if (d.engine.version_assumed) newer += "; no release given: the newest known is assumed";
  if (has_kernels_of_another_release(d)) {
    const KernelRelease measured = *kernel_release(d);
    newer += fmt::format("; kernels measured under {}-{}; this release is another", measured.engine, measured.version);
  }
  if (!d.carried_over_from().empty() && roofline_of(d) == nullptr) {
    return fmt::format("constants carried over from {} ({}){}", d.carried_over_from(), origin.source, newer);
  }
  if (roofline_of(d) != nullptr && origin.provenance == Provenance::kDatasheet) return origin.source + newer;
  if (d.gpu_changed)
    return fmt::format("constants of the listed {}; you changed its figures: {}{}", d.gpu.name, origin.source, newer);
  return fmt::format("constants {}: {}{}", name_of(origin.provenance), origin.source, newer);
}

nlohmann::ordered_json price_json(const PriceQuote* quote) {
  const PriceQuote p = quote != nullptr ? *quote : PriceQuote{.tier = "none", .per_gpu = {std::nan("")}};
  return {{"usd_per_gpu_hour", p.per_gpu.value},
          {"tier", p.tier},
          {"provider", p.provider},
          {"region", p.region},
          {"date", p.date},
          {"source", p.source},
          {"checked", p.checked},
          {"gpus_per_host", p.host}};
}

std::string cost_line(const nlohmann::ordered_json& cost) {
  const auto number = [&](const char* key) { return cost[key].get<double>(); };
  const double joules = number("joules_per_output_token");
  const std::string energy = joules > 0 ? significant(joules, 3) + " J per output token" : "energy not known";
  if (!std::isfinite(number("usd_per_hour"))) return "not known, for want of a price; " + energy;
  const auto million = [&](const char* kind) {
    return significant(number(fmt::format("usd_per_million_{}_tokens", kind).c_str()), 3);
  };
  return fmt::format("{} USD/h; USD per million tokens: {} input, {} cached input, {} output; {}",
                     usd(number("usd_per_hour")), million("input"), million("cached_input"), million("output"), energy);
}

std::string paid_line(const Bill& bill, double gpus) {
  const double paid = bill.paid_gpus();
  if (!(paid > gpus * (1 + 1e-9))) return "";
  const PriceQuote* quote = bill.decode.quote;
  return fmt::format("{} GPUs are paid for: {} whole", plain_number(paid),
                     quote != nullptr && quote->tier == "owned" ? "machines are bought" : "instances are rented");
}

nlohmann::ordered_json deployment_json(const Deployment& d) {
  return {{"model", d.model.name},
          {"gpu", d.gpu.name},
          {"engine", d.engine.name},
          {"engine_version", d.engine.version},
          {"recipe", d.recipe},
          {"parallelism",
           {{"tp", d.sharding.tp},
            {"pp", d.sharding.pp},
            {"dcp", d.sharding.dcp},
            {"attention_dp", d.sharding.attention_dp},
            {"ep", d.sharding.ep}}},
          {"precision",
           {{"weights", name_of(d.precision.weights)},
            {"activations", name_of(d.precision.activations)},
            {"kv_cache", name_of(d.precision.kv_cache)}}}};
}

std::string deployment_line(const Deployment& d) {
  std::string layout;
  const auto add = [&](const char* name, int value) {
    if (value > 1) layout += fmt::format("{}{} {}", layout.empty() ? " (" : ", ", name, value);
  };
  add("tp", d.sharding.tp), add("pp", d.sharding.pp), add("dcp", d.sharding.dcp),
      add("attention dp", d.sharding.attention_dp), add("ep", d.sharding.ep);
  if (!layout.empty()) layout += ")";
  const Precision& p = d.precision;
  std::string weights(p.recipe.empty() ? name_of(p.weights) : std::string_view(p.recipe));
  if (has_experts(d.model) && p.expert_weights != p.weights)
    weights = fmt::format("{} experts, {}", name_of(p.expert_weights), name_of(p.weights));
  return fmt::format("{} on {} x {}{}, {}, {} weights, {} activations, {} KV cache", d.model.name, d.sharding.gpus(),
                     d.gpu.name + (d.gpu.announced ? " (announced: the vendor's plans)" : ""), layout,
                     engine_name(d.engine), weights, name_of(p.activations), name_of(p.kv_cache));
}

}  // namespace roofcast::reports
