#pragma once
// An engine's settings are listed once (engine_spec.cpp), for a visitor. One visitor reads them, one writes them.

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/config_reader.h"
#include "sim/step/engine_settings.h"

namespace roofcast {

/// Reads each setting. An absent key keeps its value.
struct SettingReader {
  static constexpr bool kReads = true;
  ConfigReader& in;

  void operator()(std::string_view key, bool& value) const { value = in.boolean(key, value); }
  void operator()(std::string_view key, int& value, Range range) const {
    value = static_cast<int>(in.integer(key, value, range));
  }
  void operator()(std::string_view key, double& value, Range range) const { value = in.number(key, value, range); }
  void operator()(std::string_view key, Seconds& value) const { value = in.time(key, value); }
  void operator()(std::string_view key, Bytes& value) const { value = in.bytes(key, value); }
  void operator()(std::string_view key, std::string& value) const { value = in.text(key, value); }
  /// One of `names`: an enumerator by its number, or the name itself.
  template <class T>
  void choice(std::string_view key, T& value, std::span<const std::string_view> names) const {
    if constexpr (std::is_same_v<T, std::string>) {
      const auto now = std::find(names.begin(), names.end(), value) - names.begin();
      value = names[in.choice(key, names, static_cast<std::size_t>(now))];
    } else {
      value = static_cast<T>(in.choice(key, names, static_cast<std::size_t>(value)));
    }
  }
  /// A setting with its own reader, and its value for other visitors.
  template <class Read, class Value>
  void special(std::string_view, Read read, Value) const {
    read(in);
  }
};

/// Writes each setting as text.
struct SettingWriter {
  static constexpr bool kReads = false;
  std::vector<EngineSetting>& out;
  std::string prefix = {};

  template <class T>
  void operator()(std::string_view key, const T& value, Range = {}) const {
    put(key, text_of(value));
  }
  template <class T>
  void choice(std::string_view key, const T& value, std::span<const std::string_view> names) const {
    if constexpr (std::is_same_v<T, std::string>) {
      put(key, value);
    } else {
      put(key, std::string(names[static_cast<std::size_t>(value)]));
    }
  }
  template <class Read, class Value>
  void special(std::string_view key, Read, Value value) const {
    put(key, text_of(value()));
  }
  static std::string text_of(bool value) { return value ? "true" : "false"; }
  static std::string text_of(int value) { return std::to_string(value); }
  static std::string text_of(double value) { return fmt::format("{:g}", value); }
  static std::string text_of(const std::string& value) { return value; }
  static std::string text_of(Bytes value) { return fmt::format("{:g} GB", value.base() / 1e9); }
  static std::string text_of(Seconds value) { return fmt::format("{:g} s", value.base()); }
  void put(std::string_view key, std::string text) const {
    out.push_back({prefix + std::string(key), std::move(text)});
  }
};

}  // namespace roofcast
