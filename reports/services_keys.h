#pragma once
// The keys of a services_plan: several services that share GPUs (reports/result_keys.h).

#include "reports/result_keys.h"

namespace roofcast::reports::result_keys {

inline constexpr auto kServices =
    keys("roofcast_version", "goal", "complete", "limits.max_gpus", "limits.max_cost_usd_per_hour",
         "limits.max_power_watts", "services", "bought", "shared_instances", "binding_limits");
inline constexpr auto kServicesTotal =
    keys("total.gpus", "total.paid_gpus", "total.usd_per_hour", "total.usd_per_hour_apart", "total.mean_power_watts",
         "total.mean_power_watts_high", "total.proven_cheapest");
inline constexpr auto kService = keys("name", "fleet_found", "fleets_weighed", "plan");
inline constexpr auto kServiceFleet =
    keys("model", "engine", "gpu", "layout", "formats", "gpus", "replicas", "prefill_replicas", "spare_replicas",
         "load", "load_unit", "probability", "usd_per_hour", "usd_per_hour_alone");
inline constexpr auto kBought =
    keys("gpu", "tier", "provider", "date", "usd_per_gpu_hour", "gpus_per_instance", "gpus", "paid_gpus", "available");
inline constexpr auto kBoughtAt = keys("checked");
inline constexpr auto kSharedInstance = keys("gpu", "gpus_per_instance", "services");
inline constexpr auto kBindingLimit = keys("limit", "gpus", "usd_per_hour");
inline constexpr auto kServicesStage = keys("month", "gpus", "paid_gpus", "usd_per_hour", "beyond");
inline constexpr std::array kServicesGroups{KeyGroup{"", kServices},
                                            KeyGroup{"", kServicesTotal, Presence::kTogether},
                                            KeyGroup{"services[].", kService},
                                            KeyGroup{"services[].", kServiceFleet, Presence::kTogether},
                                            KeyGroup{"bought[].", kBought},
                                            KeyGroup{"bought[].", kBoughtAt, Presence::kSometimes},
                                            KeyGroup{"shared_instances[].", kSharedInstance, Presence::kTogether},
                                            KeyGroup{"binding_limits[].", kBindingLimit, Presence::kTogether},
                                            KeyGroup{"growth[].", kServicesStage, Presence::kTogether},
                                            KeyGroup{"", kQuestion, Presence::kSometimes}};

}  // namespace roofcast::reports::result_keys
