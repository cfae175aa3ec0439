// Plots with axes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/report/Svg.h"

namespace grok::report {

struct Axis {
  std::string label;
  double least = 0, most = 1; // least < most
  bool log = false;           // decimal; least > 0
};

/// x to the right, y upwards.
class Plot {
public:
  Plot(std::string_view label, const Axis &x, const Axis &y,
       double height = 260);
  /// From the x axis up to `y`.
  void bar(double x0, double x1, double y, std::string_view style,
           std::string_view hover);
  void line(const std::vector<Point> &points, std::string_view style);
  /// A vertical line with words beside its top; nothing outside the axis.
  void mark(double x, std::string_view words, std::string_view style);
  /// A horizontal one.
  void level(double y, std::string_view words, std::string_view style);
  std::string str() const { return svg_.str(); }

private:
  double px(double x) const;
  double py(double y) const;
  void drawAxes(double height);

  Axis x_, y_;
  double left_, right_, top_, bottom_; // of the area, in pixels
  int marks_ = 0;                      // so that their words lie apart
  Svg svg_;
};

/// A bar of parts, one after the other.
struct StackedBar {
  std::string name;
  std::vector<std::pair<std::string, double>> parts; // name, and length
};

/// Bars to the right, with a legend. Parts of one name have one colour; `marks`
/// are vertical lines.
std::string
stackedBars(std::string_view label, const std::string &axis,
            const std::vector<StackedBar> &bars,
            const std::vector<std::pair<std::string, double>> &marks = {});

/// Round numbers from `least` to `most`, about `count` of them.
std::vector<double> ticks(double least, double most, int count);

} // namespace grok::report
