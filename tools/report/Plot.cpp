#include "tools/report/Plot.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace grok::report {
namespace {

constexpr double kWidth = 860, kLeft = 74, kRight = 18, kTop = 28, kBottom = 42;
constexpr int kColours = 8; // classes c0 .. c7 of the style sheet
using Anchor = Svg::Anchor;

/// Where a value is between the ends of its axis, 0 to 1.
double share(const Axis &axis, double value) {
  if (axis.log)
    return (std::log10(value) - std::log10(axis.least)) /
           (std::log10(axis.most) - std::log10(axis.least));
  return (value - axis.least) / (axis.most - axis.least);
}

/// 1, 10, 100, ... on a logarithmic axis, and its end.
std::vector<double> ticksOf(const Axis &axis, int count) {
  if (!axis.log)
    return ticks(axis.least, axis.most, count);
  std::vector<double> out;
  for (double v = std::pow(10, std::ceil(std::log10(axis.least) - 1e-9));
       v <= axis.most * (1 + 1e-9); v *= 10)
    out.push_back(v);
  return out;
}

} // namespace

std::vector<double> ticks(double least, double most, int count) {
  const double raw = (most - least) / count,
               decade = std::pow(10, std::floor(std::log10(raw)));
  double step = decade;
  for (double factor : {2.0, 5.0, 10.0})
    if (step < raw)
      step = factor * decade;
  std::vector<double> out;
  for (double n = std::ceil(least / step - 1e-9);
       n * step <= most + step * 1e-9; ++n)
    out.push_back(n * step + 0.0); // no -0
  return out;
}

Plot::Plot(std::string_view label, const Axis &x, const Axis &y, double height)
    : x_(x), y_(y), left_(kLeft), right_(kWidth - kRight), top_(kTop),
      bottom_(height - kBottom), svg_(kWidth, height, label) {
  drawAxes(height);
}

double Plot::px(double x) const {
  return left_ + std::clamp(share(x_, x), 0.0, 1.0) * (right_ - left_);
}

double Plot::py(double y) const {
  return bottom_ - std::clamp(share(y_, y), 0.0, 1.0) * (bottom_ - top_);
}

void Plot::drawAxes(double height) {
  for (double x : ticksOf(x_, 8)) {
    svg_.line({px(x), top_}, {px(x), bottom_}, "grid");
    svg_.text({px(x), bottom_ + 16}, shortNumber(x), Anchor::kMiddle);
  }
  for (double y : ticksOf(y_, 5)) {
    svg_.line({left_, py(y)}, {right_, py(y)}, "grid");
    svg_.text({left_ - 6, py(y) + 4}, shortNumber(y), Anchor::kEnd);
  }
  svg_.line({left_, bottom_}, {right_, bottom_}, "axis");
  svg_.line({left_, top_}, {left_, bottom_}, "axis");
  svg_.text({(left_ + right_) / 2, height - 8}, x_.label, Anchor::kMiddle);
  svg_.text({4, 12}, y_.label, Anchor::kStart);
}

void Plot::bar(double x0, double x1, double y, std::string_view style,
               std::string_view hover) {
  svg_.rect({px(x0), py(y)}, std::max(px(x1) - px(x0) - 0.5, 0.5),
            bottom_ - py(y), style, hover);
}

void Plot::line(const std::vector<Point> &points, std::string_view style) {
  std::vector<Point> pixels;
  for (const Point &p : points)
    pixels.push_back({px(p.x), py(p.y)});
  svg_.polyline(pixels, style);
}

void Plot::mark(double x, std::string_view words, std::string_view style) {
  if (x < x_.least || x > x_.most)
    return;
  svg_.line({px(x), top_}, {px(x), bottom_}, style);
  bool left = share(x_, x) > 0.7;
  svg_.text({px(x) + (left ? -4 : 4), top_ + 12 + 14 * marks_++}, words,
            left ? Anchor::kEnd : Anchor::kStart);
}

void Plot::level(double y, std::string_view words, std::string_view style) {
  if (y < y_.least || y > y_.most)
    return;
  svg_.line({left_, py(y)}, {right_, py(y)}, style);
  svg_.text({right_, py(y) - 4}, words, Anchor::kEnd);
}

std::string
stackedBars(std::string_view label, const std::string &axis,
            const std::vector<StackedBar> &bars,
            const std::vector<std::pair<std::string, double>> &marks) {
  constexpr double kNames = 210, kBar = 20, kGap = 8, kLegendLine = 18;
  std::vector<std::string> names; // of parts, in the order of their colours
  double most = 0;
  for (const StackedBar &bar : bars) {
    double sum = 0;
    for (const auto &[name, value] : bar.parts) {
      if (std::find(names.begin(), names.end(), name) == names.end())
        names.push_back(name);
      sum += value;
    }
    most = std::max(most, sum);
  }
  for (const auto &[name, value] : marks)
    most = std::max(most, value);
  constexpr size_t kNamesALine = 5;
  const double legend = kLegendLine *
                        double((names.size() + kNamesALine - 1) / kNamesALine),
               top = legend + (marks.empty() ? 8 : 24),
               bottom = top + double(bars.size()) * (kBar + kGap),
               width = kWidth - kRight - kNames;
  Svg svg(kWidth, bottom + kBottom, label);
  const Axis x{axis, 0, most > 0 ? most * 1.02 : 1};
  auto px = [&](double value) { return kNames + share(x, value) * width; };
  auto colour = [&](const std::string &name) {
    auto at = std::find(names.begin(), names.end(), name) - names.begin();
    return absl::StrCat("c", at % kColours);
  };
  for (size_t i = 0; i != names.size(); ++i) {
    double step = (kWidth - kRight) / kNamesALine;
    Point at{double(i % kNamesALine) * step,
             kLegendLine * double(i / kNamesALine) + 2};
    svg.rect(at, 12, 12, colour(names[i]));
    svg.text({at.x + 17, at.y + 11}, names[i], Anchor::kStart);
  }
  for (double tick : ticks(0, x.most, 8)) {
    svg.line({px(tick), top - 4}, {px(tick), bottom}, "grid");
    svg.text({px(tick), bottom + 16}, shortNumber(tick), Anchor::kMiddle);
  }
  svg.text({kNames + width / 2, bottom + 34}, axis, Anchor::kMiddle);
  for (size_t i = 0; i != bars.size(); ++i) {
    double y = top + double(i) * (kBar + kGap), at = 0;
    svg.text({kNames - 8, y + 14}, bars[i].name, Anchor::kEnd);
    for (const auto &[name, value] : bars[i].parts) {
      svg.rect(
          {px(at), y}, px(at + value) - px(at), kBar, colour(name),
          absl::StrCat(bars[i].name, ", ", name, ": ", shortNumber(value)));
      at += value;
    }
  }
  for (const auto &[name, value] : marks) {
    svg.line({px(value), top - 16}, {px(value), bottom}, "deadline");
    bool left = share(x, value) > 0.5;
    svg.text({px(value) + (left ? -4 : 4), top - 8}, name,
             left ? Anchor::kEnd : Anchor::kStart);
  }
  return svg.str();
}

} // namespace grok::report
