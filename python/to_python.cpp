#include "python/to_python.h"

#include <cmath>

namespace roofcast::python {

namespace py = pybind11;
using Json = nlohmann::ordered_json;

namespace {

/// Invalid UTF-8 is replaced, as in the text output.
py::object text_of(const std::string& text) {
  PyObject* decoded = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
  if (decoded == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(decoded);
}

}  // namespace

py::object object_of(const Json& json) {
  switch (json.type()) {
    case Json::value_t::object: {
      py::dict dict;
      for (const auto& [key, value] : json.items()) dict[text_of(key)] = object_of(value);
      return dict;
    }
    case Json::value_t::array: {
      py::list list(json.size());
      for (std::size_t i = 0; i < json.size(); ++i) list[i] = object_of(json[i]);
      return list;
    }
    case Json::value_t::string:
      return text_of(json.get_ref<const std::string&>());
    case Json::value_t::boolean:
      return py::bool_(json.get<bool>());
    case Json::value_t::number_integer:
      return py::int_(json.get<std::int64_t>());
    case Json::value_t::number_unsigned:
      return py::int_(json.get<std::uint64_t>());
    case Json::value_t::number_float: {
      const auto value = json.get<double>();
      if (!std::isfinite(value)) return py::none();
      return py::float_(value);
    }
    default:
      return py::none();
  }
}

}  // namespace roofcast::python
