// Pictures as SVG that stands inside a page. How things look is said by the
// classes of the page's style sheet.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace grok::report {

/// A place in pixels from the top left corner.
struct Point {
  double x = 0, y = 0;
};

/// "<" and the like as entities, for text and attributes; no control
/// characters.
std::string escaped(std::string_view text);
/// At most four digits that count, as people write them: "12.5", "1.2e+09".
std::string shortNumber(double value);

class Svg {
public:
  /// `label`: what the picture shows, for those who cannot see it.
  Svg(double width, double height, std::string_view label);

  /// `hover`: what is shown under the pointer, if anything. `opacity` lets one
  /// colour stand for a quantity.
  void rect(Point corner, double width, double height, std::string_view style,
            std::string_view hover = "", double opacity = 1);
  void line(Point from, Point to, std::string_view style);
  void polyline(std::span<const Point> points, std::string_view style);
  enum class Anchor { kStart, kMiddle, kEnd };
  void text(Point at, std::string_view words, Anchor anchor,
            std::string_view style = "");
  std::string str() const { return body_ + "</svg>\n"; }

private:
  std::string body_;
};

} // namespace grok::report
