// The compiled part of the Python package, roofcast._core. The other part is python/roofcast.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "base/config_library.h"
#include "base/config_reader.h"
#include "library/answers.h"
#include "library/grid.h"
#include "python/from_python.h"
#include "python/to_python.h"
#include "python/watched.h"
#include "reports/catalog_entry.h"
#include "reports/result_schema.h"
#include "sim/plan/deployment_flags.h"
#include "sim/plan/measured/measured_source.h"
#include "sim/serve/observer.h"

namespace roofcast::python {
namespace {

using library::Answer;

py::bytes bytes_of(const auto& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(values[0])};
}

/// Collects every request of a run in columns, in the order of result_keys::kRequestColumns.
class RequestColumns final : public Observer {
 public:
  void on_request(const RequestRecord& r) override {
    const std::array<double, kCount> row{static_cast<double>(r.id),
                                         r.arrival.base(),
                                         static_cast<double>(r.prompt_tokens),
                                         static_cast<double>(r.output_tokens),
                                         r.ttft.in(kMillisecond),
                                         r.in_turn() > 1 ? r.tpot().in(kMillisecond) : std::nan(""),
                                         r.e2el.in(kMillisecond),
                                         r.queue.in(kMillisecond),
                                         static_cast<double>(r.cached_tokens),
                                         static_cast<double>(r.preemptions),
                                         static_cast<double>(r.replica)};
    for (std::size_t i = 0; i < kCount; ++i) columns_[i].push_back(row[i]);
  }
  /// {name: float64 values as bytes}
  py::dict dict() const {
    py::dict out;
    for (std::size_t i = 0; i < kCount; ++i)
      out[py::str(std::string(reports::result_keys::kRequestColumns[i]))] = bytes_of(columns_[i]);
    return out;
  }

 private:
  static constexpr std::size_t kCount = reports::result_keys::kRequestColumns.size();
  std::array<std::vector<double>, kCount> columns_;
};

/// An answer held by a Python object.
struct Held {
  std::shared_ptr<const Answer> answer;
  py::object requests = py::none();
};

Held held(Answer answer) { return {std::make_shared<const Answer>(std::move(answer))}; }

/// None if there is no such key.
py::object value_of(const Held& held, const std::string& key) {
  const auto& json = held.answer->json;
  const auto found = json.is_object() ? json.find(key) : json.end();
  return found == json.end() ? py::none() : object_of(*found);
}

Done simulations(const Watch& watch) { return {watch.simulations, 0}; }

int whole(const py::handle& value, const char* name, int most) {
  const ConfigTree tree = tree_of(value, name);
  std::int64_t number = 0;
  if (tree->kind != ConfigNode::Kind::kScalar || tree->quoted || !PyIndex_Check(value.ptr()))
    throw ConfigError(SourceLocation{name}, "must be a whole number");
  number = py::cast<std::int64_t>(py::int_(py::reinterpret_borrow<py::object>(value)));
  if (number < 1 || number > most)
    throw ConfigError(SourceLocation{name},
                      "must be from 1 to " + std::to_string(most) + ", got " + std::to_string(number));
  return static_cast<int>(number);
}

/// Specs shared by estimates. They are read again if one of their files has changed, if another folder of specs is
/// chosen, after an error (something that was missing may exist now), and from time to time to limit their number.
class SharedSpecs {
 public:
  /// The caller must hold the GIL.
  std::shared_ptr<SpecCache> get() {
    constexpr int kMostUses = 10'000;
    const bool changed = forget_changed_documents() || config_root() != root_;
    if (changed || uses_++ >= kMostUses) drop();
    return specs_;
  }
  void drop() {
    specs_ = std::make_shared<SpecCache>();
    root_ = config_root();
    uses_ = 0;
  }

 private:
  std::shared_ptr<SpecCache> specs_ = std::make_shared<SpecCache>();
  std::string root_ = config_root();
  int uses_ = 0;
};

SharedSpecs& shared_specs() {
  static auto* specs = new SharedSpecs;  // never destroyed: other threads may still use it at exit
  return *specs;
}

/// Drops specs whose files have changed since the last call.
void look_for_changes() { (void)shared_specs().get(); }

Held estimate(const py::object& source, const py::object& batch, const py::object& prompt_tokens,
              const py::object& output_tokens, const py::object& context, bool kv_cache, const py::dict& flags) {
  constexpr int kMostSequences = 1'000'000, kMostTokens = 100'000'000;
  const std::shared_ptr<SpecCache> specs = shared_specs().get();
  const Flags over(flags, "estimate");
  ConfigTree tree = over.over_scenario(document_of(source, "scenarios", "estimate"));
  if (!kv_cache) tree = with_assignment(tree, "engine.kv_cache=false", "kv_cache");
  const library::EstimateQuestion question{.batch = whole(batch, "batch", kMostSequences),
                                           .prompt_tokens = whole(prompt_tokens, "prompt_tokens", kMostTokens),
                                           .output_tokens = whole(output_tokens, "output_tokens", kMostTokens),
                                           .context = context.is_none() ? 0 : whole(context, "context", kMostTokens)};
  try {
    const py::gil_scoped_release release;
    return held(library::answer_estimate(tree, over.ideal(), question, specs.get()));
  } catch (const ConfigError&) {
    shared_specs().drop();
    throw;
  }
}

Held simulate(const py::object& source, const py::object& trace, const py::object& trace_format, bool per_request,
              bool intervals, const py::object& progress, const py::dict& flags) {
  look_for_changes();
  const Flags over(flags, "simulate");
  ConfigTree tree = document_of(source, "scenarios", "simulate");
  if (!trace.is_none())
    tree = with_trace(tree, py::cast<std::string>(py::module_::import("os").attr("fspath")(trace)),
                      trace_format.is_none() ? "" : py::cast<std::string>(trace_format));
  else if (!trace_format.is_none())
    throw ConfigError("trace_format: needs a trace");
  tree = over.over_scenario(tree);
  RequestColumns columns;
  std::atomic<std::uint64_t> requests{0};
  Held out = held(run_watched(
      progress,
      [&](const Watch& watch) {
        const std::uint64_t done = watch.requests, of = requests;
        return Done{of > 0 ? std::min(done, of) : done, of};
      },
      [&] {
        return library::answer_simulation(
            tree, over.ideal(),
            {.observer = per_request ? &columns : nullptr, .intervals = intervals, .requests = &requests});
      }));
  if (per_request) out.requests = columns.dict();
  return out;
}

Held plan(const py::object& source, const py::object& confidence, bool exhaustive, const py::object& progress,
          const py::dict& flags) {
  look_for_changes();
  const Flags over(flags, "plan");
  ConfigTree tree = over.over_plan(document_of(source, "plans", "plan"));
  if (!confidence.is_none())
    tree = with_value(tree, "search.confidence", tree_of(confidence, "confidence"), "confidence");
  return held(run_watched(progress, simulations,
                          [&] { return library::answer_plan(tree, over.ideal(), {.prune = !exhaustive}); }));
}

Held sweep(const py::object& source, const std::string& store, const py::object& progress, const py::dict& flags) {
  look_for_changes();
  const Flags over(flags, "sweep");
  if (source.is_none()) throw ConfigError(SourceLocation{"sweep"}, "must be a file, a name or a dict");
  SweepSpec spec = parse_sweep(document_of(source, "sweeps", "sweep"));
  over.over_sweep(spec);
  std::atomic<std::uint64_t> done{0}, all{0};
  return held(run_watched(
      progress,
      [&](const Watch&) {
        return Done{done, all};
      },
      [&] {
        return library::answer_sweep(spec, over.ideal(), {.store = store, .progress = [&](auto now, auto of) {
                                                            all = of;
                                                            done = now;
                                                          }});
      }));
}

/// A sweep of estimates over all combinations of `axes`, with the values of `zipped` taken in parallel.
SweepSpec grid_of(const py::object& scenario, const py::dict& axes, const py::dict& zipped, const py::object& where,
                  const Flags& over) {
  const SourceLocation location{"estimate_grid"};
  std::vector<ConfigNode::Entry> entries{{"scenario", location, document_of(scenario, "scenarios", "estimate_grid")}};
  if (!axes.empty()) entries.push_back({"grid", location, tree_of(axes, "grid")});
  if (!zipped.empty()) entries.push_back({"zip", location, tree_of(zipped, "zip")});
  if (py::len(where) > 0) entries.push_back({"where", location, tree_of(where, "where")});
  SweepSpec sweep = parse_sweep(make_map(std::move(entries), location));
  over.over_sweep(sweep);
  return sweep;
}

/// ([(key, index in its values as uint32)], {name: (kind, values)}), one entry per point; numbers as bytes.
py::tuple grid(const py::object& scenario, const py::dict& axes, const py::dict& zipped, const py::object& where,
               const py::object& progress, const py::dict& flags) {
  look_for_changes();
  const Flags over(flags, "estimate_grid");
  const SweepSpec spec = grid_of(scenario, axes, zipped, where, over);
  constexpr double kMost = 1e7;
  if (spec.grid_points() > kMost)
    throw ConfigError(SourceLocation{"estimate_grid"}, "more than 10 million points; that is the limit of one call");
  std::atomic<std::uint64_t> done{0}, all{0};
  const library::Grid found = run_watched(
      progress,
      [&](const Watch&) {
        return Done{done, all};
      },
      [&] {
        return library::estimate_grid(spec, over.ideal(), [&](std::uint64_t now, std::uint64_t of) {
          all = of;
          done = now;
        });
      });
  py::list keys;
  for (std::size_t axis = 0; axis < spec.axes.size(); ++axis) {
    const py::bytes positions = bytes_of(found.positions[axis]);
    for (const std::string& key : spec.axes[axis].keys) keys.append(py::make_tuple(key, positions));
  }
  py::dict columns;
  for (const auto& [name, column] : found.columns) {
    if (const auto* numbers = std::get_if<std::vector<double>>(&column))
      columns[py::str(name)] = py::make_tuple("float64", bytes_of(*numbers));
    else if (const auto* flagged = std::get_if<std::vector<std::uint8_t>>(&column))
      columns[py::str(name)] = py::make_tuple("bool", bytes_of(*flagged));
    else
      columns[py::str(name)] = py::make_tuple("text", py::cast(std::get<std::vector<std::string>>(column)));
  }
  return py::make_tuple(keys, columns);
}

Held ladder(const py::object& source, const py::object& concurrency, int requests, const py::object& progress,
            const py::dict& flags) {
  look_for_changes();
  const Flags over(flags, "ladder");
  const ConfigTree tree = over.over_scenario(document_of(source, "scenarios", "ladder"));
  const int users = whole(concurrency, "concurrency", 100'000);
  return held(
      run_watched(progress, simulations, [&] { return library::answer_ladder(tree, over.ideal(), users, requests); }));
}

Held compare(const py::object& source, const std::string& bench, const py::object& run,
             const std::vector<std::string>& scrapes, const std::string& window, const py::object& progress,
             const py::dict& flags) {
  look_for_changes();
  const Flags over(flags, "compare");
  const ConfigTree tree = over.over_scenario(document_of(source, "scenarios", "compare"));
  MeasuredSource measured{.bench = bench, .scrapes = scrapes};
  if (!window.empty()) measured.window = parse_time(window, "window");
  if (!run.is_none()) measured.run = whole(run, "run", 1'000'000);
  return held(
      run_watched(progress, simulations, [&] { return library::answer_comparison(tree, over.ideal(), measured); }));
}

Held validate(const std::string& data, const std::string& gpu, const std::string& model, bool intervals,
              const py::object& progress) {
  look_for_changes();
  return held(run_watched(progress, simulations, [&] {
    return library::answer_validation({.data = data, .gpu = gpu, .model = model, .intervals = intervals});
  }));
}

py::object entry(const std::string& kind, const std::string& name) {
  look_for_changes();
  auto json = nlohmann::ordered_json::parse(reports::catalog_entry_json(kind, name));
  for (const char* head : {"kind", "schema", "of"}) json.erase(head);  // a scenario accepts the remaining dict
  return object_of(json);
}

/// Classes of roofcast._errors, defined there so that they have docstrings and attributes.
py::object error_class(const char* name) { return py::module_::import("roofcast._errors").attr(name); }

void raise(const ConfigError& error) {
  const SourceLocation& location = error.location();
  const auto or_none = [](int number) { return number > 0 ? py::object(py::int_(number)) : py::object(py::none()); };
  const py::object path = location.path.empty() ? py::object(py::none()) : py::object(py::str(location.path.str()));
  const py::object type = error_class("ConfigError");
  PyErr_SetObject(type.ptr(),
                  type(error.what(), path, or_none(location.line), or_none(location.column), error.message()).ptr());
}

void translate(std::exception_ptr error) {
  try {
    if (error) std::rethrow_exception(error);
  } catch (const ConfigError& e) {
    raise(e);
  } catch (const Unavailable& e) {
    const py::object type = error_class("Infeasible");
    PyErr_SetObject(type.ptr(), type(e.what()).ptr());
  }
}

}  // namespace
}  // namespace roofcast::python

PYBIND11_MODULE(_core, m) {
  using namespace roofcast;
  using namespace roofcast::python;
  m.doc() = "The compiled part of roofcast; use the functions of roofcast itself.";
  m.attr("version") = ROOFCAST_VERSION;
  py::register_exception_translator(&translate);
  py::class_<Held>(m, "Answer")
      .def("value", &value_of)
      .def("keys",
           [](const Held& held) {
             std::vector<std::string> keys;
             for (const auto& [key, value] : held.answer->json.items()) keys.push_back(key);
             return keys;
           })
      .def("to_dict", [](const Held& held) { return object_of(held.answer->json); })
      .def("to_json", [](const Held& held) { return library::text_of(*held.answer); })
      .def_property_readonly("empty", [](const Held& held) { return held.answer->json.is_null(); })
      .def_property_readonly("reason", [](const Held& held) { return held.answer->reason; })
      .def_property_readonly("notes", [](const Held& held) { return held.answer->notes; })
      .def_readonly("requests", &Held::requests);
  m.def("estimate", &python::estimate);
  m.def("simulate", &python::simulate);
  m.def("plan", &python::plan);
  m.def("sweep", &python::sweep);
  m.def("grid", &python::grid);
  m.def("ladder", &python::ladder);
  m.def("compare", &python::compare);
  m.def("validate", &python::validate);
  m.def("names", &names_of);
  m.def("entry", &python::entry);
  m.def("use_configs", &use_config_root);
  m.def("configs", &config_root);
  m.def("flags", [] {
    py::list flags;
    for (const DeploymentFlag& flag : deployment_flags())
      flags.append(py::make_tuple(query_name(flag), flag.key, flag.help));
    return flags;
  });
}
