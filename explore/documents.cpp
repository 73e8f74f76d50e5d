#include "explore/documents.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/config_node.h"
#include "base/error.h"
#include "base/text.h"
#include "explore/query.h"
#include "reports/comparison_report.h"
#include "reports/estimate_report.h"
#include "reports/html_text.h"
#include "reports/plan_report.h"
#include "reports/question.h"
#include "reports/services_report.h"
#include "reports/simulation_report.h"
#include "sim/plan/measured/measured_source.h"
#include "sim/plan/scenario.h"
#include "sim/plan/search/plan_answer.h"
#include "sim/plan/search/services.h"
#include "sim/plan/steady_load.h"
#include "sim/plan/what_fits.h"
#include "sim/serve/media.h"
#include "sim/step/deployment.h"

namespace roofcast::explore {
namespace {

namespace fs = std::filesystem;
using Texts = std::map<std::string, std::string, std::less<>>;

/// Maximum number of requests per simulation, so that answers stay fast.
constexpr std::int64_t kMostRequests = 50000;

Texts read_body(std::string_view body) {
  const nlohmann::json json = nlohmann::json::parse(body, nullptr, false);
  if (!json.is_object()) throw ConfigError("the body must be a JSON object, such as {\"document\": \"model: ...\"}");
  static const std::vector<std::string> kKeys{"document", "trace",         "config",        "bench",  "fidelity",
                                              "batch",    "prompt_tokens", "output_tokens", "context"};
  Texts out;
  for (const auto& [key, value] : json.items()) {
    if (std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end())
      throw ConfigError(unknown_name("key", reports::shortened(reports::clean_utf8(key), 40), kKeys));
    if (!value.is_string()) throw ConfigError(key + ": must be a text");
    out[key] = value.get<std::string>();
  }
  if (!out.contains("document")) throw ConfigError("document: missing; the YAML of a plan or of a scenario");
  return out;
}

/// Makes a text available as a temporary file.
class TextFile {
 public:
  TextFile(const std::string& name, const std::string& text) {
    static std::atomic<unsigned> count{0};
    static const auto started = fs::file_time_type::clock::now().time_since_epoch().count();
    folder_ = fs::temp_directory_path() / fmt::format("roofcast-{}-{}", started, ++count);
    if (!fs::create_directory(folder_)) throw ConfigError("the folder of temporary files cannot be used");
    fs::permissions(folder_, fs::perms::owner_all);
    path_ = (folder_ / name).string();
    fs::create_directories(fs::path(path_).parent_path());
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~TextFile() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;
  const std::string& path() const { return path_; }
  std::string folder() const { return folder_.string() + "/"; }

 private:
  fs::path folder_;
  std::string path_;
};

/// Whether a text is a file name, and not a number with a unit such as "6 /s" or "3.5 USD/h".
bool names_a_file(std::string_view text) {
  for (const char* end : {".yaml", ".yml", ".json", ".jsonl", ".csv", ".txt"}) {
    if (text.ends_with(end)) return true;
  }
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return text.find('\\') != std::string_view::npos;
  const bool number = text[0] >= '0' && text[0] <= '9';
  const std::string_view unit = text.substr(slash + 1);
  return !number || unit.empty() ||
         unit.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != std::string_view::npos;
}

/// The server opens no file named by a request: neither under a key that takes files, nor for a name that could be a
/// path.
void refuse_files(const ConfigNode& node, const std::string& key) {
  for (const char* of_files : {"file", "files", "counts", "servegen"}) {
    if (key == of_files && node.kind != ConfigNode::Kind::kNull)
      throw ConfigError(node.location,
                        fmt::format("'{}' cannot be named here; {}", key,
                                    key == "counts" ? "give the 'skew' of the counts" : "give the text as 'trace'"));
  }
  if (node.kind == ConfigNode::Kind::kScalar) {
    if (key != "source" && names_a_file(node.scalar))
      throw ConfigError(node.location,
                        fmt::format("'{}' would be a file; a document names only what ships with roofcast",
                                    reports::shortened(reports::clean_utf8(node.scalar), 60)));
    return;
  }
  for (const auto& entry : node.entries) refuse_files(*entry.value, entry.key);
  for (const auto& item : node.items) refuse_files(*item, key);
}

/// A document, its texts as files, and the tree that names them.
struct Question {
  Texts texts;
  ConfigTree tree;
  Fidelity fidelity = Fidelity::kCalibrated;
  std::optional<TextFile> trace, config, bench;
};

ConfigTree with_file(const ConfigTree& tree, const char* key, const TextFile& file, const char* origin) {
  return with_value(tree, key, make_scalar(file.path(), SourceLocation{origin, 0, 0}), origin);
}

void read_question(const Texts& texts, Question& q) {
  const auto text = [&](const char* key) -> const std::string* {
    const auto found = texts.find(key);
    return found == texts.end() || found->second.empty() ? nullptr : &found->second;
  };
  q.texts = texts;
  q.tree = parse_config_text(texts.at("document"), "document");
  refuse_files(*q.tree, "");
  if (const std::string* fidelity = text("fidelity")) {
    if (*fidelity != "ideal" && *fidelity != "calibrated")
      throw ConfigError(fmt::format("fidelity: must be ideal or calibrated, got '{}'", reports::clean_utf8(*fidelity)));
    if (*fidelity == "ideal") q.fidelity = Fidelity::kIdeal;
  }
  if (const std::string* config = text("config")) {
    q.config.emplace("your-model/config.json", *config);  // a model without a name has its folder's
    q.tree = with_file(q.tree, "model", *q.config, "config");
  }
  if (const std::string* trace = text("trace")) {
    q.trace.emplace("trace.csv", *trace);
    q.tree = with_value(q.tree, "workload", make_map({}, SourceLocation{"trace", 0, 0}), "trace");
    q.tree = with_assignment(q.tree, "workload.arrivals.process=trace", "trace");
    q.tree = with_file(q.tree, "workload.arrivals.file", *q.trace, "trace");
  }
  if (const std::string* bench = text("bench")) q.bench.emplace("bench.json", *bench);
}

/// Calls `answer`; its messages name the texts instead of the temporary files.
template <class Answer>
std::string answered(std::string_view body, const Answer& answer) {
  Question q;
  const auto plain = [&](std::string message) {
    for (const auto* file : {&q.trace, &q.config, &q.bench}) {
      if (!*file) continue;
      const std::string folder = (*file)->folder();
      for (std::size_t at = message.find(folder); at != std::string::npos; at = message.find(folder, at))
        message.erase(at, folder.size());
    }
    return message;
  };
  try {
    read_question(read_body(body), q);
    return plain(answer(q));
  } catch (const ConfigError& error) {
    throw ConfigError(plain(error.what()));
  } catch (const Unavailable& error) {
    throw Unavailable(plain(error.what()));
  }
}

Scenario scenario_of(const Question& q) {
  Scenario s = read_scenario(q.tree, q.fidelity);
  if (!s.workload) throw ConfigError(q.tree->location, "missing key 'workload' of a scenario to simulate");
  if (s.deployment->memory.infeasible)
    throw Unavailable(s.deployment->memory.infeasible->reason + what_would_fit(*s.deployment));
  if (s.workload->requests > kMostRequests)
    throw ConfigError(s.workload->location,
                      fmt::format("{} requests; at most {} are played here", s.workload->requests, kMostRequests));
  return s;
}

}  // namespace

std::string estimate_document(std::string_view body) {
  return answered(body, [](const Question& q) {
    const Scenario s = read_scenario(q.tree, q.fidelity);
    if (s.serving.disaggregation) throw ConfigError("estimate: separate prefill and decode workers need simulate");
    EstimateRequest r;
    r.replicas = s.serving.replicas;
    r.speculation = s.serving.speculation;
    const ModelSpec& model = s.deployment->model;
    if (model.encoder_only) throw ConfigError("estimate: " + model.name + " is an encoder; simulate plays it");
    r.batch = integer_of(q.texts, "batch", r.batch, 1, kMostBatch);
    r.prompt_tokens = integer_of(q.texts, "prompt_tokens", r.prompt_tokens, 1, kMostTokens);
    r.output_tokens = integer_of(q.texts, "output_tokens", r.output_tokens, 1, kMostTokens);
    if (q.texts.contains("context")) r.context = integer_of(q.texts, "context", 1, 1, kMostTokens);
    r.media = usual_media(model);
    r.prompt_tokens += media_tokens(r.media);
    check_prefill_steps(*s.deployment, r);
    Estimate e = estimate(s.deployment, r);
    e.steady = steady_load(s.deployment, r);
    return reports::estimate_report(e, *s.deployment, "json", reports::question_json(q.tree, q.fidelity, r));
  });
}

std::string plan_document(std::string_view body) {
  return answered(body, [](const Question& q) {
    if (has_services(q.tree))
      return reports::services_report(answer_services(q.tree, {.fidelity = q.fidelity}, PlanDetail::kAll), "json",
                                      false, reports::question_json(q.tree, q.fidelity));
    return reports::plan_report(answer_plan(q.tree, {.fidelity = q.fidelity}), "json", false,
                                reports::question_json(q.tree, q.fidelity));
  });
}

std::string simulate_document(std::string_view body) {
  return answered(body, [](const Question& q) {
    const Scenario s = scenario_of(q);
    const ServingMetrics metrics = simulate(s.deployment, *s.workload, s.serving);
    if (metrics.completed + metrics.failed == 0)
      throw ConfigError(s.workload->location, "no request arrives within the 'duration'");
    return reports::simulation_report(metrics, s, "json", nullptr, {}, reports::question_json(q.tree, q.fidelity));
  });
}

std::string compare_document(std::string_view body) {
  return answered(body, [](const Question& q) {
    if (!q.bench) throw ConfigError("bench: missing; the JSON of the measured run");
    const Scenario s = scenario_of(q);
    return reports::comparison_report(compare_with_source(s, {.bench = q.bench->path()}), s, "json",
                                      reports::question_json(q.tree, q.fidelity));
  });
}

}  // namespace roofcast::explore
