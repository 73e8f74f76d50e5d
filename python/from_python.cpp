#include "python/from_python.h"

#include <cmath>

#include <fmt/format.h>

#include "base/config_library.h"
#include "base/text.h"
#include "sim/plan/deployment_flags.h"
#include "sim/plan/search/plan_spec.h"

namespace roofcast::python {
namespace {

std::string joined(const std::string& where, const std::string& key) { return where.empty() ? key : where + "." + key; }

std::string type_of(const py::handle& value) { return Py_TYPE(value.ptr())->tp_name; }

ConfigTree text_node(std::string text, const SourceLocation& location) {
  auto node = std::make_shared<ConfigNode>();
  node->kind = ConfigNode::Kind::kScalar;
  node->location = location;
  node->scalar = std::move(text);
  node->quoted = true;  // keeps "8" a text
  return node;
}

ConfigTree null_node(const SourceLocation& location) {
  auto node = std::make_shared<ConfigNode>();
  node->location = location;
  return node;
}

ConfigTree number_node(double value, const SourceLocation& location) {
  if (!std::isfinite(value)) throw ConfigError(location, fmt::format("must be finite, got {}", value));
  return make_scalar(fmt::format("{}", value), location);
}

ConfigTree map_node(const py::dict& dict, const std::string& where) {
  std::vector<ConfigNode::Entry> entries;
  for (const auto& [key, value] : dict) {
    if (!py::isinstance<py::str>(key))
      throw ConfigError(SourceLocation{where}, fmt::format("a key must be a str, got {}", type_of(key)));
    auto name = py::cast<std::string>(key);
    const std::string place = joined(where, name);
    ConfigTree child = tree_of(value, place);
    entries.push_back({std::move(name), SourceLocation{place}, std::move(child)});
  }
  return make_map(std::move(entries), SourceLocation{where});
}

ConfigTree list_node(const py::handle& sequence, const std::string& where) {
  std::vector<ConfigTree> items;
  for (const py::handle item : sequence) items.push_back(tree_of(item, fmt::format("{}[{}]", where, items.size())));
  return make_list(std::move(items), SourceLocation{where});
}

bool is_yaml_text(const std::string& text) {
  return text.find('\n') != std::string::npos || text.find(": ") != std::string::npos || text.starts_with('{');
}

/// A str becomes an unquoted scalar, like a flag's value on the command line; other values are converted as usual.
ConfigTree flag_value(const py::handle& value, const std::string& name) {
  const ConfigTree tree = tree_of(value, name);
  if (tree->kind != ConfigNode::Kind::kScalar) return tree;
  return make_scalar(tree->scalar, tree->location);
}

/// A str is parsed as YAML text, like the value of `--set`.
ConfigTree set_value(const py::handle& value, const std::string& key) {
  if (!py::isinstance<py::str>(value)) return tree_of(value, key);
  const auto text = py::cast<std::string>(value);
  const ConfigTree tree = with_assignment(make_map(), "value=" + text, "set " + key);
  return *tree->find("value");
}

[[noreturn]] void refuse_flag(const std::string& name, const char* function) {
  std::vector<std::string> valid{"seed", "fidelity", "force_unsupported", "set"};
  for (const DeploymentFlag& flag : deployment_flags()) valid.push_back(query_name(flag));
  throw py::type_error(fmt::format("{}(): {}", function, unknown_name("keyword", name, valid)));
}

}  // namespace

ConfigTree tree_of(const py::handle& value, const std::string& where) {
  const SourceLocation location{where};
  PyObject* object = value.ptr();
  if (value.is_none()) return null_node(location);
  if (PyBool_Check(object)) return make_scalar(object == Py_True ? "true" : "false", location);
  if (PyLong_Check(object)) return make_scalar(py::cast<std::string>(py::str(value)), location);
  if (PyFloat_Check(object)) return number_node(PyFloat_AS_DOUBLE(object), location);
  if (PyUnicode_Check(object)) return text_node(py::cast<std::string>(value), location);
  if (PyDict_Check(object)) return map_node(py::reinterpret_borrow<py::dict>(value), where);
  if (PyList_Check(object) || PyTuple_Check(object)) return list_node(value, where);
  if (py::hasattr(value, "__fspath__")) return text_node(py::cast<std::string>(value.attr("__fspath__")()), location);
  if (py::hasattr(value, "tolist")) return tree_of(value.attr("tolist")(), where);  // numpy, pandas
  if (py::isinstance<py::iterable>(value)) return list_node(value, where);          // range
  throw ConfigError(location, fmt::format("cannot be a {}", type_of(value)));
}

ConfigTree document_of(const py::object& source, const std::string& folder, const char* function) {
  const SourceLocation location{function};
  if (source.is_none()) return make_map({}, location);
  if (PyDict_Check(source.ptr())) return map_node(py::reinterpret_borrow<py::dict>(source), "");
  if (py::hasattr(source, "__fspath__")) return parse_config_file(py::cast<std::string>(source.attr("__fspath__")()));
  if (!PyUnicode_Check(source.ptr()))
    throw ConfigError(location, fmt::format("takes a dict, YAML text, a path or a name, got {}", type_of(source)));
  const auto text = py::cast<std::string>(source);
  return is_yaml_text(text) ? parse_config_text(text, "text") : load_named(folder, text, location);
}

Flags::Flags(const py::dict& flags, const char* function) {
  if (flags.empty()) return;
  std::size_t read = 0;
  const auto given = [&](const char* name) {
    PyObject* value = PyDict_GetItemString(flags.ptr(), name);
    read += value != nullptr ? 1 : 0;
    return value == Py_None ? py::handle() : py::handle(value);
  };
  for (const DeploymentFlag& flag : deployment_flags()) {
    const std::string name = query_name(flag);
    if (const py::handle value = given(name.c_str())) settings_.push_back({flag.key, name, flag_value(value, name)});
  }
  if (const py::handle set = given("set")) {
    if (!PyDict_Check(set.ptr())) throw ConfigError("set: must be a dict of dotted keys");
    for (const auto& [key, value] : py::reinterpret_borrow<py::dict>(set)) {
      if (!PyUnicode_Check(key.ptr())) throw ConfigError("set: must be a dict of dotted keys");
      auto name = py::cast<std::string>(key);
      settings_.push_back({name, "set " + name, set_value(value, name)});
    }
  }
  for (const char* key : {"force_unsupported", "seed"}) {
    if (const py::handle value = given(key)) settings_.push_back({key, key, flag_value(value, key)});
  }
  if (const py::handle fidelity = given("fidelity")) {
    const std::string name = py::cast<std::string>(py::str(fidelity));
    if (name != "ideal" && name != "calibrated")
      throw ConfigError(fmt::format("fidelity: must be ideal or calibrated, got '{}'", name));
    ideal_ = name == "ideal";
  }
  if (read == flags.size()) return;
  for (const auto& [key, value] : flags) {
    const auto name = py::cast<std::string>(key);
    bool known = name == "set" || name == "seed" || name == "fidelity" || name == "force_unsupported";
    for (const DeploymentFlag& flag : deployment_flags()) known |= query_name(flag) == name;
    if (!known) refuse_flag(name, function);
  }
}

ConfigTree Flags::over_scenario(ConfigTree tree) const {
  for (const Setting& s : settings_) tree = with_value(tree, s.key, s.value, s.origin);
  return tree;
}

ConfigTree Flags::over_plan(ConfigTree tree) const {
  for (const Setting& s : settings_)
    tree = s.key.starts_with("search.") ? with_value(tree, s.key, s.value, s.origin)
                                        : with_constraint(tree, s.key, s.value, s.origin);
  return tree;
}

void Flags::over_sweep(SweepSpec& sweep) const {
  for (const Setting& s : settings_) sweep.scenario = with_fixed(sweep, sweep.scenario, s.key, s.value, s.origin);
}

}  // namespace roofcast::python
