#pragma once
// The worked examples of the lectures (docs/lectures.md) as computed tables.

#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace roofcast {

/// A number or a text.
struct LectureCell {
  LectureCell(double value) : number(value) {}
  LectureCell(std::string words) : text(std::move(words)), is_number(false) {}
  LectureCell(const char* words) : text(words), is_number(false) {}
  double number = 0;
  std::string text;
  bool is_number = true;
};

struct LectureTable {
  std::string title;
  std::vector<std::string> columns;
  std::vector<std::vector<LectureCell>> rows;
};

/// An input of an example: a number, or a list of numbers.
struct LectureInput {
  std::string_view name, help;
  std::vector<double> usual;
  double least = -std::numeric_limits<double>::max(), most = std::numeric_limits<double>::max();
};

/// Inputs by name, as given or by default.
class LectureInputs {
 public:
  explicit LectureInputs(std::map<std::string, std::vector<double>, std::less<>> values) : values_(std::move(values)) {}
  const std::vector<double>& list(std::string_view name) const { return values_.find(name)->second; }
  double one(std::string_view name) const { return list(name).front(); }
  int whole(std::string_view name) const { return static_cast<int>(one(name)); }

 private:
  std::map<std::string, std::vector<double>, std::less<>> values_;
};

struct Lecture {
  std::string_view name, help;
  std::vector<LectureInput> inputs;
  std::vector<LectureTable> (*tables)(const LectureInputs&);
  std::vector<std::string> sources;
};

std::span<const Lecture> lectures();
/// Throws ConfigError for an unknown name.
const Lecture& lecture_named(const std::string& name);
/// The tables of a lecture. Each of `inputs`, "NAME=1,2.5", overrides an input. Throws ConfigError for unknown inputs,
/// for text, and for values out of range.
std::vector<LectureTable> tables_of(const Lecture& lecture, std::span<const std::string> inputs);

}  // namespace roofcast
