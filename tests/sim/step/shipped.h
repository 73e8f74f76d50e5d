#pragma once
// Deployments of what the project ships.

#include <memory>
#include <string>

#include "base/config_library.h"
#include "hw/efficiency.h"
#include "sim/step/deployment.h"

namespace roofcast::shipped {

inline std::shared_ptr<Deployment> deploy(const std::string& model, const std::string& gpu,
                                          const std::string& engine = "vllm", int tp = 1,
                                          Fidelity fidelity = Fidelity::kCalibrated) {
  auto d = std::make_shared<Deployment>();
  d->fidelity = fidelity;
  d->engine = parse_engine_spec(ConfigReader(load_named("engines", engine, {}), "an engine"));
  CalibratedGpu loaded = load_gpu(load_named("hardware", gpu, {}), d->engine.kernels);
  d->gpu = loaded.spec;
  d->efficiency = std::make_shared<const Efficiency>(loaded.efficiency);
  d->model = parse_model(load_named("models", model, {}));
  d->precision = d->model.precision;
  d->sharding.tp = tp;
  d->memory = plan_memory(*d);
  return d;
}

}  // namespace roofcast::shipped
