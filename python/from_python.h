#pragma once
// Converts Python values to the trees that the C++ code reads.

#include <string>

#include <pybind11/pybind11.h>

#include "base/config_node.h"
#include "sim/plan/search/sweep.h"

namespace roofcast::python {

namespace py = pybind11;

/// Accepts None, bool, int, float, str, paths, and dicts and sequences of these; also numbers and arrays of numpy.
/// `where` is the dotted key to name in errors.
ConfigTree tree_of(const py::handle& value, const std::string& where);

/// Accepts a dict, YAML text (a str with a line end, a brace or ": "), the path of a file, or a name in
/// configs/`folder`. None is an empty document. `function` names the caller in errors.
ConfigTree document_of(const py::object& source, const std::string& folder, const char* function);

/// Keyword arguments for keys of a scenario, like the flags of the command line: those of sim/plan/deployment_flags.h,
/// `seed`, `force_unsupported`, `set` (a dict of dotted keys), and `fidelity`.
class Flags {
 public:
  /// Throws TypeError for an unknown name.
  Flags(const py::dict& flags, const char* function);
  bool ideal() const { return ideal_; }
  ConfigTree over_scenario(ConfigTree tree) const;
  ConfigTree over_plan(ConfigTree tree) const;
  void over_sweep(SweepSpec& sweep) const;

 private:
  struct Setting {
    std::string key, origin;
    ConfigTree value;
  };
  std::vector<Setting> settings_;
  bool ideal_ = false;
};

}  // namespace roofcast::python
