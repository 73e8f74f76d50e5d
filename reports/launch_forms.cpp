// A launch plan as shell commands, for Docker Compose and for Kubernetes.

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "base/control_characters.h"
#include "base/error.h"
#include "base/text.h"
#include "reports/html_text.h"
#include "reports/launch_plan.h"

namespace roofcast::reports {
namespace {

std::string comments_of(const LaunchPlan& plan) {
  std::string out;
  for (std::string line : plan.comments) {
    std::replace(line.begin(), line.end(), '\n', ' ');
    out += "# " + without_controls(line) + "\n";
  }
  return out;
}

std::string indented(const std::string& text, int spaces) {
  std::string out;
  std::vector<std::string> lines = split(text, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  for (const std::string& line : lines)
    out += (line.empty() ? "" : std::string(static_cast<std::size_t>(spaces), ' ') + line) + "\n";
  return out;
}

/// The folder of a container for its files, its weights and anything named without a path.
constexpr const char* kFolder = "/launch";
constexpr const char* kHubCache = "/launch/huggingface";  ///< HF_HOME, whatever user the image runs as

std::string name_of_weights(const std::string& weights) {
  return weights.starts_with("$") ? weights.substr(1) : weights;
}

/// Path in the volume of weights: the last part of `weights`.
std::string claimed_as(const std::string& weights) {
  const std::string name = name_of_weights(weights);
  return name.substr(name.find_last_of('/') + 1);
}
/// Whether a router addresses each worker by its own address.
bool is_routed(const LaunchPlan& plan) { return plan.processes.size() > 1; }

std::string mounted_at(const std::string& weights) {
  const std::string name = name_of_weights(weights);
  return (std::filesystem::path(kFolder) / name).lexically_normal().string();
}

/// The command of the first node of a process.
std::string first_command(const LaunchProcess& p) {
  std::vector<std::string> first = p.words;
  first.insert(first.end(), p.first_words.begin(), p.first_words.end());
  return command_line(first);
}

/// The command of the other nodes of a process.
std::string further_command(const LaunchProcess& p) {
  if (!p.others.empty()) return command_line(p.others);
  std::vector<std::string> further = p.words;
  further.insert(further.end(), p.further_words.begin(), p.further_words.end());
  return command_line(further);
}
bool nodes_differ(const LaunchProcess& p) { return p.nodes > 1 && !(p.further_words.empty() && p.others.empty()); }
std::string head_first(const LaunchProcess& p) {
  return p.head_first.empty() ? "" : command_line(p.head_first) + " && ";
}

/// Whether a shell evaluates the value where the process runs; YAML lists of variables take values literally.
bool worked_out(const std::string& value) { return value.find("$(") != std::string::npos; }

/// A script for any node of the process, which checks NODE_RANK.
std::string node_script(const LaunchProcess& p) {
  std::string out;
  for (const auto& [key, value] : p.environment) {
    if (worked_out(value)) out += fmt::format("export {}=\"{}\"; ", key, value);
  }
  if (!p.setup.empty()) out += command_line(p.setup) + " && ";
  if (!nodes_differ(p)) return out + "exec " + first_command(p);
  return out + fmt::format("if [ \"$NODE_RANK\" = 0 ]; then {}exec {}; else exec {}; fi", head_first(p),
                           first_command(p), further_command(p));
}

/// mpirun starts the processes of other nodes over ssh, which containers of this kind do not have.
void refuse_mpi(const LaunchPlan& plan, const char* form) {
  for (const LaunchProcess& p : plan.processes) {
    if (!p.prefix.empty())
      throw ConfigError(fmt::format(
          "--emit-as: mpirun starts a replica on {} nodes, which has no {} form; see --emit-as shell", p.nodes, form));
  }
}

void set_port(std::vector<std::string>& words, int port) {
  const auto flag = std::find(words.begin(), words.end(), "--port");
  if (flag != words.end() && flag + 1 != words.end()) *(flag + 1) = std::to_string(port);
}

/// Quotes text for YAML.
std::string in_quotes(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

}  // namespace

std::string yaml_text(const std::string& text) {
  const bool plain = text.find_first_of(",[]#&*!|>'\"%@`\\") == std::string::npos &&
                     text.find(": ") == std::string::npos && !text.empty() && text.front() != ' ' && text.back() != ' ';
  return plain ? text : in_quotes(text);
}

namespace {

/// The same within a list or map on one line.
std::string flow_text(const std::string& text) {
  return text.find_first_of("{}") == std::string::npos ? yaml_text(text) : in_quotes(text);
}

/// Doubles dollars, because Compose substitutes $NAME.
std::string with_doubled_dollars(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '$' ? "$$" : std::string(1, c);
  return out;
}

}  // namespace

std::string command_line(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) {
    const bool variable = word.find('$') != std::string::npos;
    out += (out.empty() ? "" : " ") + (variable ? "\"" + word + "\"" : shell_word(word));
  }
  return out;
}

std::string as_shell(const LaunchPlan& plan) {
  std::string out = comments_of(plan);
  for (const LaunchProcess& p : plan.processes) {
    const std::string where = p.nodes > 1 ? fmt::format("{} nodes of {} GPUs each", p.nodes, p.gpus_per_node)
                                          : fmt::format("{} GPU{}", p.gpus_per_node, p.gpus_per_node == 1 ? "" : "s");
    out += p.gpus_per_node > 0 ? fmt::format("\n# {} x {}, each on {}\n", p.copies, p.name, where)
                               : fmt::format("\n# {}\n", p.name);
    for (const LaunchFile& file : p.files) out += fmt::format("cat > {} <<'EOF'\n{}EOF\n", file.name, file.text);
    for (const auto& [key, value] : p.environment) out += fmt::format("export {}={}\n", key, value);
    if (p.nodes > 1 && p.prefix.empty())
      out += fmt::format("# on each node, with HEAD_ADDRESS (of the first) and NODE_RANK=0..{} set\n", p.nodes - 1);
    if (!p.setup.empty()) out += command_line(p.setup) + "\n";
    if (nodes_differ(p))
      out += fmt::format("if [ \"$NODE_RANK\" = 0 ]; then\n  {}{}\nelse\n  {}\nfi\n", head_first(p), first_command(p),
                         further_command(p));
    else
      out += p.prefix + first_command(p) + "\n";
  }
  return out;
}

namespace {

/// Volumes: weights, next to the Compose file or from a variable, and the cache of downloads from the hub.
std::string compose_volumes(const LaunchPlan& plan) {
  std::string out = fmt::format("    volumes:\n      - ${{HOME}}/.cache/huggingface:{}\n", kHubCache);
  for (const std::string& weights : plan.weights) {
    const std::string name = name_of_weights(weights),
                      from = weights != name ? fmt::format("${{{}:?a folder of weights}}", name)
                             : name.starts_with("/") || name.starts_with(".") ? name
                                                                              : "./" + name;
    if (weights == name && name.find(':') != std::string::npos)
      throw ConfigError(fmt::format("--emit compose: Compose cannot mount '{}', because of its colon", name));
    out += fmt::format("      - {}\n", yaml_text(fmt::format("{}:{}:ro", from, mounted_at(weights))));
  }
  return out;
}

}  // namespace

std::string as_compose(const LaunchPlan& plan) {
  refuse_mpi(plan, "Compose");
  constexpr int kHostGpus = 8;
  std::string out = comments_of(plan) + "# HF_TOKEN: of an account that may load the repository\nservices:\n", configs;
  for (const LaunchProcess& p : plan.processes) {
    const bool several = p.gpus_per_node > 0 && !is_routed(plan);  // a router addresses one worker per host name
    const int on_a_host = several ? std::clamp(kHostGpus / p.gpus_per_node, 1, p.copies) : 1;
    if (p.gpus_per_node > 0)
      out += fmt::format("  # {} x {} in all, {} on a host{}\n", p.copies, p.name, on_a_host,
                         p.nodes > 1 ? fmt::format("; on {} hosts together, NODE_RANK=0..{} and HEAD_ADDRESS in .env",
                                                   p.nodes, p.nodes - 1)
                                     : "");
    for (int i = 0; i < on_a_host; ++i) {
      out += fmt::format("  {}-{}:\n    image: {}\n    network_mode: host\n    ipc: host\n    working_dir: {}\n",
                         p.name, i + 1, yaml_text(p.image), kFolder);
      out += fmt::format("    environment:\n      HF_TOKEN: ${{HF_TOKEN:-}}\n      HF_HOME: {}\n", kHubCache);
      for (const std::string& weights : plan.weights) {
        if (const std::string name = name_of_weights(weights); name != weights)
          out += fmt::format("      {}: {}\n", name, name);
      }
      for (const auto& [key, value] : p.environment) {
        if (!worked_out(value)) out += fmt::format("      {}: {}\n", key, in_quotes(value));
      }
      if (p.nodes > 1) out += "      NODE_RANK: ${NODE_RANK}\n      HEAD_ADDRESS: ${HEAD_ADDRESS}\n";
      const bool nvidia = plan.gpu_resource == "nvidia.com/gpu";
      std::string gpus;  // of this copy on its host
      for (int g = 0; g < p.gpus_per_node; ++g) gpus += (g > 0 ? "," : "") + std::to_string(i * p.gpus_per_node + g);
      if (!nvidia && on_a_host > 1) out += fmt::format("      HIP_VISIBLE_DEVICES: {}\n", in_quotes(gpus));
      LaunchProcess one = p;
      set_port(one.words, p.port + i);  // copies on one host use different ports
      out += fmt::format("    entrypoint: [\"/bin/sh\", \"-c\"]\n    command:\n      - {}\n",
                         in_quotes(with_doubled_dollars(node_script(one))));
      if (!p.files.empty()) out += "    configs:\n";
      for (const LaunchFile& file : p.files)
        out += fmt::format("      - {{source: {}, target: {}/{}}}\n", file.name, kFolder, file.name);
      if (p.gpus_per_node == 0) continue;
      out += compose_volumes(plan);
      std::vector<std::string> devices;
      for (const std::string& gpu : split(gpus, ',')) devices.push_back(in_quotes(gpu));
      out += nvidia ? fmt::format(
                          "    deploy: {{resources: {{reservations: {{devices: [{{driver: nvidia, device_ids: [{}], "
                          "capabilities: [gpu]}}]}}}}}}\n",
                          join(devices, ", "))
                    : "    devices: [/dev/kfd, /dev/dri]\n    group_add: [video]\n";
    }
    for (const LaunchFile& file : p.files)
      configs += fmt::format("  {}:\n    content: |\n{}", file.name, indented(with_doubled_dollars(file.text), 6));
  }
  return out + (configs.empty() ? "" : "configs:\n" + configs);
}

namespace {

enum class Answers { kYes, kNo };  ///< whether requests are sent to the pod

std::string pod_spec(const LaunchPlan& plan, const LaunchProcess& p, const std::string& name, Answers answers,
                     int spaces) {
  std::string out = fmt::format(
      "containers:\n- name: {}\n  image: {}\n  workingDir: {}\n  command: [\"/bin/sh\", \"-c\"]\n  args:\n  - {}\n"
      "  env:\n  - name: HF_TOKEN\n    valueFrom: {{secretKeyRef: {{name: hf-token, key: token, optional: true}}}}\n",
      p.name, in_quotes(p.image), kFolder, in_quotes(node_script(p)));
  for (const std::string& weights : plan.weights) {
    if (const std::string variable = name_of_weights(weights); variable != weights)
      out += fmt::format("  - {{name: {0}, value: {0}}}\n", variable);
  }
  for (const auto& [key, value] : p.environment) {
    if (!worked_out(value)) out += fmt::format("  - {{name: {}, value: {}}}\n", key, in_quotes(value));
  }
  if (p.nodes > 1)
    out +=
        "  - {name: HEAD_ADDRESS, value: \"$(LWS_LEADER_ADDRESS)\"}\n  - {name: NODE_RANK, value: "
        "\"$(LWS_WORKER_INDEX)\"}\n";
  if (answers == Answers::kYes)
    out += fmt::format(
        "  ports:\n  - containerPort: {0}\n  readinessProbe: {{httpGet: {{path: /health, port: {0}}}, periodSeconds: "
        "10}}\n",
        p.port);
  if (p.gpus_per_node > 0)
    out += fmt::format("  resources: {{limits: {{{}: {}}}}}\n", plan.gpu_resource, p.gpus_per_node);
  out += "  volumeMounts:\n  - {name: shm, mountPath: /dev/shm}\n";
  for (const LaunchFile& file : p.files)
    out += fmt::format("  - {{name: files, mountPath: {}/{}, subPath: {}}}\n", kFolder, file.name, file.name);
  const bool loads = p.gpus_per_node > 0 && !plan.weights.empty();
  for (const std::string& weights : plan.weights) {
    if (loads)
      out += fmt::format("  - {{name: weights, mountPath: {}, subPath: {}, readOnly: true}}\n",
                         flow_text(mounted_at(weights)), flow_text(claimed_as(weights)));
  }
  out += "volumes:\n- name: shm\n  emptyDir: {medium: Memory}\n";
  if (!p.files.empty()) out += fmt::format("- name: files\n  configMap: {{name: {}-files}}\n", name);
  if (loads) out += "- name: weights\n  persistentVolumeClaim: {claimName: weights}\n";
  return indented(out, spaces);
}

/// `copies` of a process under one name, and the Service of those that answer; for a single copy it is the pod's own,
/// with all ports. A LeaderWorkerSet needs another name than that Service: its controller makes a headless Service with
/// the set's name, in which the nodes find their leader before it is ready, and makes none if one with that name exists
/// (kubernetes-sigs/lws, pkg/utils/controller/controller_utils.go).
std::string workload(const LaunchPlan& plan, const LaunchProcess& p, const std::string& name, int copies) {
  std::string out;
  if (!p.files.empty()) {
    out += fmt::format("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {}-files}}\ndata:\n", name);
    for (const LaunchFile& file : p.files) out += fmt::format("  {}: |\n{}", file.name, indented(file.text, 4));
  }
  std::string selector = "app: " + name;
  if (p.nodes > 1) {  // only the leader answers
    selector += ", role: leader";
    out += fmt::format(
        "---\napiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata: {{name: {0}-nodes}}\nspec:\n  "
        "replicas: {1}\n  leaderWorkerTemplate:\n    size: {2}\n    leaderTemplate:\n      metadata: {{labels: {{app: "
        "{0}, role: leader}}}}\n      spec:\n{3}    workerTemplate:\n      metadata: {{labels: {{app: {0}, role: "
        "worker}}}}\n      spec:\n{4}",
        name, copies, p.nodes, pod_spec(plan, p, name, Answers::kYes, 8), pod_spec(plan, p, name, Answers::kNo, 8));
  } else {
    out += fmt::format(
        "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {0}}}\nspec:\n  replicas: {1}\n  selector: "
        "{{matchLabels: {{app: {0}}}}}\n  template:\n    metadata: {{labels: {{app: {0}}}}}\n    spec:\n{2}",
        name, copies, pod_spec(plan, p, name, Answers::kYes, 6));
  }
  return out + fmt::format(
                   "---\napiVersion: v1\nkind: Service\nmetadata: {{name: {}}}\nspec:\n{}  selector: {{{}}}\n  ports:\n"
                   "  - {{port: {}}}\n",
                   name, is_routed(plan) && p.gpus_per_node > 0 ? "  clusterIP: None\n" : "", selector, p.port);
}

}  // namespace

std::string as_kubernetes(const LaunchPlan& plan) {
  refuse_mpi(plan, "Kubernetes");
  std::string out = comments_of(plan);
  out += "# Secret hf-token, key token: of an account that may load the repository\n";
  if (!plan.weights.empty()) {
    std::vector<std::string> names;
    for (const std::string& weights : plan.weights) names.push_back(claimed_as(weights));
    out += fmt::format("# PersistentVolumeClaim weights: holds {}\n", join(names, ", "));
  }
  for (const LaunchProcess& p : plan.processes) {
    const bool apart = is_routed(plan) && p.gpus_per_node > 0;
    for (int i = 1; i <= (apart ? p.copies : 1); ++i)
      out += workload(plan, p, apart ? fmt::format("{}-{}", p.name, i) : p.name, apart ? 1 : p.copies);
  }
  return out;
}

}  // namespace roofcast::reports
