#pragma once
#include <string>

#include <nlohmann/json.hpp>

#include "sim/plan/search/services.h"

namespace roofcast::reports {

/// format: table | json | csv (one row per service). `question` is added to the JSON unless null.
std::string services_report(const ServicesAnswer& answer, const std::string& format, bool wide = false,
                            const nlohmann::ordered_json& question = nullptr);

nlohmann::ordered_json services_json(const ServicesAnswer& answer);
/// One line: which service has no fleet, or that they do not fit together; empty if all have one.
std::string no_services_plan(const ServicesAnswer& answer);
/// The launch commands of every service. Throws ConfigError for an engine that some service is not planned for.
std::string services_launch(const ServicesAnswer& answer, const std::string& engine, const std::string& form);

}  // namespace roofcast::reports
