#include "reports/gnuplot.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "reports/html_text.h"

extern char** environ;

namespace roofcast {
namespace fs = std::filesystem;
namespace {

/// Told apart by the colour-blind too, dark enough for print (contrast with white over 3).
constexpr std::array<std::string_view, kPalette> kColors{"#1f6fb4", "#c8453b", "#2a8f6a", "#8a5bb0", "#c27400",
                                                         "#0f8b9d", "#a0522d", "#5f6b7a", "#be3f8c", "#5c7a29"};
constexpr double kWidth = 960, kCharacter = 8.2, kSmallCharacter = 6.9;

/// In single quotes gnuplot interprets nothing; a quote is doubled.
std::string gnuplot_text(std::string_view text) {
  std::string out = "'";
  for (const char c : clean_utf8(text)) {
    if (c == '\'') out += '\'';
    out += c == '\n' || c == '\t' ? ' ' : c;
  }
  return out + "'";
}

/// Words packed into lines of at most `limit` characters.
std::vector<std::string> wrapped(const std::string& text, std::size_t limit) {
  std::vector<std::string> lines;
  std::istringstream words(text);
  std::string word;
  while (words >> word) {
    word = shortened(word, limit);
    if (lines.empty() || lines.back().size() + 1 + word.size() > limit) {
      lines.push_back(word);
    } else {
      lines.back() += " " + word;
    }
  }
  return lines;
}

class Script {
 public:
  Script(const Chart& chart, PlotFormat format) : c_(chart), format_(format), x_(x_range(chart)), y_(y_range(chart)) {
    lay_out();
  }

  std::string text(const std::string& file) {
    head(file);
    axes();
    legend();
    caption();
    references();
    labels();
    bands();
    areas();
    bars();
    lines_and_points();
    out_ += "plot ";
    for (std::size_t i = 0; i < plots_.size(); ++i) out_ += (i ? ", \\\n     " : "") + plots_[i];
    return data_ + out_ + "\nunset output\n";
  }

 private:
  template <class... A>
  void add(fmt::format_string<A...> format, A&&... arguments) {
    out_ += fmt::format(format, std::forward<A>(arguments)...) + "\n";
  }
  std::string_view color(std::size_t series) const { return kColors[static_cast<std::size_t>(color_of(c_, series))]; }
  double sx(double px) const { return px / kWidth; }
  double sy(double px) const { return 1 - px / height_; }  // pixels from the top

  void lay_out() {
    double name_width = 0;
    for (const std::string& name : c_.y.categories)
      name_width = std::max(name_width, kCharacter * static_cast<double>(std::min<std::size_t>(name.size(), 40)));
    left_ = c_.y.categories.empty() ? 88 : 30 + name_width;
    double x = left_;
    int row = 0;
    for (const LegendEntry& entry : legend_of(c_)) {
      const double width = 40 + kCharacter * static_cast<double>(std::min<std::size_t>(entry.name.size(), 60));
      if (x > left_ && x + width > kWidth - 20) x = left_, ++row;
      legend_at_.push_back({x, 56.0 + 21 * row});
      x += width;
    }
    top_ = !legend_at_.empty() ? 56.0 + 21 * row + 22 : 56;
    bottom_ = top_ + (c_.horizontal ? std::max(150.0, 46.0 * static_cast<double>(c_.y.categories.size())) : 400);
    const auto limit = static_cast<std::size_t>((kWidth - 40) / kSmallCharacter);
    for (const std::string& part : {c_.caption, c_.source.empty() ? "" : "Source: " + c_.source,
                                    c_.command.empty() ? "" : "Command: " + c_.command}) {
      for (const std::string& line : wrapped(part, limit)) caption_.push_back(line);
    }
    height_ = bottom_ + 62 + 17 * static_cast<double>(caption_.size()) + 10;
  }

  void head(const std::string& file) {
    out_ += "set encoding utf8\nset decimalsign '.'\n";
    if (format_ == PlotFormat::kPng) {
      add("set terminal pngcairo noenhanced size {:.0f},{:.0f} font 'DejaVu Sans,12' fontscale 1.8 linewidth 2 "
          "pointscale 2 background rgb 'white'",
          2 * kWidth, 2 * height_);
    } else {
      add("set terminal svg noenhanced size {:.0f},{:.0f} dynamic font 'DejaVu Sans,Helvetica,sans-serif,13' linewidth "
          "1.2 background rgb 'white'",
          kWidth, height_);
    }
    add("set output {}", gnuplot_text(file));
    add("unset key");
    add("set label {} at screen {:.4f},{:.4f} left font ',16' tc rgb '#111111'", gnuplot_text(c_.title), sx(20),
        sy(26));
    add("set lmargin at screen {:.4f}\nset rmargin at screen {:.4f}\nset tmargin at screen {:.4f}\nset bmargin at "
        "screen {:.4f}",
        sx(left_), sx(kWidth - 24), sy(top_), sy(bottom_));
    add("set border 31 lc rgb '#9aa3ad' lw 0.8\nset tics scale 0.4 nomirror tc rgb '#333333'\nset grid lc rgb "
        "'#e2e6ea' lw 0.8 lt 1 back");
  }

  void axis(char name, const Axis& a, AxisRange range, int about) {
    add("set {}range [{:.10g}:{:.10g}] noextend", name, range.low, range.high);
    if (a.log) add("set logscale {}", name);
    std::string tics;
    const auto tic = [&](const std::string& text, double at) {
      tics += fmt::format("{}{} {:.10g}", tics.empty() ? "" : ", ", gnuplot_text(text), at);
    };
    for (std::size_t i = 0; i < a.categories.size(); ++i) tic(shortened(a.categories[i], 40), static_cast<double>(i));
    if (a.categories.empty()) {
      for (const Tick& t : ticks_of(range, a.log, about)) tic(t.text, t.at);
    }
    add("set {}tics ({})", name, tics);
    if (!a.categories.empty()) add("set grid no{}tics", name);
    if (!a.title.empty()) add("set {}label {} tc rgb '#111111'", name, gnuplot_text(a.title));
  }
  void axes() {
    axis('x', c_.x, x_, 8);
    axis('y', c_.y, y_, 6);
  }

  void legend() {
    const std::vector<LegendEntry> entries = legend_of(c_);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const auto [x, y] = legend_at_[i];
      const LegendEntry& e = entries[i];
      const auto hue = kColors[static_cast<std::size_t>(e.color)];
      if (e.line) {
        add("set arrow from screen {:.4f},{:.4f} to screen {:.4f},{:.4f} nohead lw 2.5 dt {} lc rgb '{}'", sx(x), sy(y),
            sx(x + 20), sy(y), e.dashed ? "(6,4)" : "1", hue);
      } else {
        add("set object rectangle from screen {:.4f},{:.4f} to screen {:.4f},{:.4f} fs solid {} noborder fc rgb '{}'",
            sx(x + 4), sy(y + 6), sx(x + 16), sy(y - 6), e.faint ? "0.2" : "1", hue);
      }
      add("set label {} at screen {:.4f},{:.4f} left tc rgb '#222222'", gnuplot_text(shortened(e.name, 60)), sx(x + 25),
          sy(y));
    }
  }

  void caption() {
    for (std::size_t i = 0; i < caption_.size(); ++i) {
      add("set label {} at screen {:.4f},{:.4f} left font ',10' tc rgb '#555b63'", gnuplot_text(caption_[i]), sx(20),
          sy(bottom_ + 66 + 17 * static_cast<double>(i)));
    }
  }

  void references() {
    for (const ReferenceLine& r : c_.lines) {
      const AxisRange range = r.vertical ? x_ : y_;
      if (r.at < range.low || r.at > range.high) continue;
      const double f = fraction_of(r.at, range, r.vertical ? c_.x.log : c_.y.log);
      const char* style = "nohead front lw 1.6 dt (8,4) lc rgb '#b00020'";
      if (r.vertical) {
        add("set arrow from graph {:.5f},graph 0 to graph {:.5f},graph 1 {}", f, f, style);
        const bool right = f < 0.75;
        add("set label {} at graph {:.5f},graph {:.2f} {} front tc rgb '#b00020'", gnuplot_text(r.label),
            right ? f + 0.008 : f - 0.008, label_height(c_), right ? "left" : "right");
      } else {
        add("set arrow from graph 0,graph {:.5f} to graph 1,graph {:.5f} {}", f, f, style);
        add("set label {} at graph 0.99,graph {:.5f} right front tc rgb '#b00020'", gnuplot_text(r.label),
            f > 0.93 ? f - 0.035 : f + 0.03);
      }
    }
  }

  void labels() {
    const double width = kWidth - 24 - left_;
    for (const PlacedLabel& l : place_labels(c_, kCharacter / width, 17 / (bottom_ - top_))) {
      add("set label {} at graph {:.4f},graph {:.4f} {} front font ',11' tc rgb '#222222'", gnuplot_text(l.text), l.x,
          l.y, l.left ? "left" : "right");
    }
  }

  std::string block(const std::string& rows) {
    const std::string name = fmt::format("$d{}", blocks_++);
    data_ += name + " << EOD\n" + rows + "EOD\n";
    return name;
  }

  void bands() {
    for (std::size_t b = 0; b < c_.bands.size(); ++b) {
      const Band& band = c_.bands[b];
      std::string rows;
      for (std::size_t i = 0; i < band.x.size(); ++i)
        rows += fmt::format("{:.10g} {:.10g} {:.10g}\n", band.x[i], band.low[i], band.high[i]);
      const auto color =
          kColors[static_cast<std::size_t>(band.color >= 0 ? band.color : static_cast<int>(b)) % kPalette];
      plots_.push_back(fmt::format("{} using 1:2:3 with filledcurves fs transparent solid 0.16 noborder lc rgb '{}'",
                                   block(rows), color));
    }
  }

  void areas() {
    const auto edges = upper_edges(c_);
    std::vector<double> below;
    for (std::size_t s = 0; s < c_.series.size(); ++s) {
      if (c_.series[s].shape != Shape::kArea) continue;
      std::string rows;
      for (std::size_t i = 0; i < edges[s].size(); ++i) {
        const double floor = c_.stacked && below.size() == edges[s].size() ? below[i] : std::max(0.0, y_.low);
        rows += fmt::format("{:.10g} {:.10g} {:.10g}\n", c_.series[s].x[i], floor, edges[s][i]);
      }
      below = edges[s];
      plots_.push_back(
          fmt::format("{} using 1:2:3 with filledcurves fs solid 0.85 noborder lc rgb '{}'", block(rows), color(s)));
    }
  }

  void bars() {
    std::vector<std::string> rows(c_.series.size());
    for (const Bar& b : bars_of(c_)) {
      const AxisRange along = c_.horizontal ? x_ : y_;
      const double from = std::clamp(std::min(b.from, b.to), along.low, along.high),
                   to = std::clamp(std::max(b.from, b.to), along.low, along.high);
      const std::array<double, 2> across{b.position - b.half_width, b.position + b.half_width};
      rows[b.series] +=
          c_.horizontal
              ? fmt::format("{0:.10g} {1:.10g} {0:.10g} {2:.10g} {1:.10g} {3:.10g}\n", from, across[0], to, across[1])
              : fmt::format("{0:.10g} {1:.10g} {0:.10g} {2:.10g} {1:.10g} {3:.10g}\n", across[0], from, across[1], to);
    }
    for (std::size_t s = 0; s < rows.size(); ++s) {
      if (!rows[s].empty())
        plots_.push_back(
            fmt::format("{} using 1:2:3:4:5:6 with boxxyerror fs solid 0.92 border rgb 'white' lc rgb '{}'",
                        block(rows[s]), color(s)));
    }
  }

  void lines_and_points() {
    for (std::size_t s = 0; s < c_.series.size(); ++s) {
      const Series& series = c_.series[s];
      if (series.shape == Shape::kBars || series.shape == Shape::kArea) continue;
      std::string rows;
      for (std::size_t i = 0; i < series.x.size(); ++i) {
        const double size = series.size.empty() ? (series.x.size() > 300 ? 0.35 : 0.9)
                                                : 0.6 + 2.6 * std::sqrt(std::clamp(series.size[i], 0.0, 1.0));
        rows += fmt::format("{:.10g} {:.10g} {:.3g}\n", series.x[i], series.y[i], size);
      }
      const std::string name = block(rows);
      if (series.shape != Shape::kPoints) {
        plots_.push_back(fmt::format("{} using 1:2 with lines lw 2.2 dt {} lc rgb '{}'", name,
                                     series.dashed ? "(6,4)" : "1", color(s)));
      }
      if (series.shape != Shape::kLine) {
        plots_.push_back(
            fmt::format("{} using 1:2:3 with points pt 7 ps variable lc rgb '#30{}'", name, color(s).substr(1)));
      }
    }
  }

  const Chart& c_;
  PlotFormat format_;
  AxisRange x_, y_;
  double left_ = 0, top_ = 0, bottom_ = 0, height_ = 0;
  int blocks_ = 0;
  std::vector<std::pair<double, double>> legend_at_;
  std::vector<std::string> caption_, plots_;
  std::string data_, out_;
};

/// A folder that goes with its owner.
class Workshop {
 public:
  Workshop() {
    std::string pattern = (fs::temp_directory_path() / "roofcast-plot-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw Unavailable("no temporary folder can be made for gnuplot's script");
    path_ = pattern;
  }
  ~Workshop() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Workshop(const Workshop&) = delete;
  Workshop& operator=(const Workshop&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

/// Exit status, or -1 when gnuplot cannot be started; its messages go to `log`.
int run_gnuplot(const std::string& script, const std::string& log) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  std::string name = "gnuplot", defaults = "-d", file = script;
  const std::array<char*, 4> words{name.data(), defaults.data(), file.data(), nullptr};
  pid_t child = 0;
  const int failed = posix_spawnp(&child, "gnuplot", &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return -1;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

void draw_one(const Chart& chart, PlotFormat format, const fs::path& workshop, const fs::path& target) {
  const fs::path drawn = workshop / ("plot" + target.extension().string()), script = workshop / "plot.gp",
                 log = workshop / "log";
  fs::remove(drawn);
  std::ofstream(script, std::ios::binary) << gnuplot_script(chart, format, drawn.string());
  const int status = run_gnuplot(script.string(), log.string());
  if (status == -1 || status == 127)
    throw Unavailable("gnuplot is missing: apt-get install gnuplot-nox; the HTML page works without");
  if (status != 0 || !fs::exists(drawn) || fs::file_size(drawn) == 0) {
    std::ifstream in(log);
    std::string said((std::istreambuf_iterator<char>(in)), {});
    std::replace(said.begin(), said.end(), '\n', ' ');
    throw InternalError(fmt::format("gnuplot could not draw '{}': {}", chart.id, shortened(said, 300)));
  }
  std::error_code error;
  fs::copy_file(drawn, target, fs::copy_options::overwrite_existing, error);
  if (error) throw ConfigError(Mark{target.string(), 0, 0}, "cannot be written: " + error.message());
}

}  // namespace

std::string gnuplot_script(const Chart& chart, PlotFormat format, const std::string& file) {
  return Script(chart, format).text(file);
}

std::vector<std::string> draw_with_gnuplot(std::span<const Chart> charts, PlotFormat format,
                                           const std::string& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error || !fs::is_directory(directory))
    throw ConfigError(Mark{directory, 0, 0}, "is no folder and cannot be made one");
  const Workshop workshop;
  std::vector<std::string> paths;
  for (const Chart& chart : charts) {
    const fs::path target = fs::path(directory) / (chart.id + (format == PlotFormat::kPng ? ".png" : ".svg"));
    draw_one(chart, format, workshop.path(), target);
    paths.push_back(target.string());
  }
  return paths;
}

}  // namespace roofcast
