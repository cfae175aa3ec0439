#include "tools/report/Svg.h"

#include "absl/strings/str_format.h"
#include "tools/cli/Printable.h"

namespace grok::report {
namespace {

const char *word(Svg::Anchor anchor) {
  switch (anchor) {
  case Svg::Anchor::kStart:
    return "start";
  case Svg::Anchor::kMiddle:
    return "middle";
  case Svg::Anchor::kEnd:
    return "end";
  }
  return "start";
}

} // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : cli::printableLine(text))
    switch (c) {
    case '&':
      out += "&amp;";
      break;
    case '<':
      out += "&lt;";
      break;
    case '>':
      out += "&gt;";
      break;
    case '"':
      out += "&quot;";
      break;
    default:
      out += c;
    }
  return out;
}

std::string shortNumber(double value) { return absl::StrFormat("%.4g", value); }

Svg::Svg(double width, double height, std::string_view label) {
  body_ = absl::StrFormat(
      "<svg viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" "
      "role=\"img\" aria-label=\"%s\">\n",
      width, height, width, height, escaped(label));
}

void Svg::rect(Point corner, double width, double height,
               std::string_view style, std::string_view hover, double opacity) {
  absl::StrAppendFormat(
      &body_,
      "<rect class=\"%s\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"",
      style, corner.x, corner.y, width, height);
  if (opacity < 1)
    absl::StrAppendFormat(&body_, " fill-opacity=\"%.2f\"", opacity);
  if (hover.empty())
    body_ += "/>\n";
  else
    absl::StrAppendFormat(&body_, "><title>%s</title></rect>\n",
                          escaped(hover));
}

void Svg::line(Point from, Point to, std::string_view style) {
  absl::StrAppendFormat(
      &body_,
      "<line class=\"%s\" x1=\"%.2f\" y1=\"%.2f\" x2=\"%.2f\" y2=\"%.2f\"/>\n",
      style, from.x, from.y, to.x, to.y);
}

void Svg::polyline(std::span<const Point> points, std::string_view style) {
  absl::StrAppendFormat(&body_, "<polyline class=\"%s\" points=\"", style);
  for (const Point &p : points)
    absl::StrAppendFormat(&body_, "%.2f,%.2f ", p.x, p.y);
  body_ += "\"/>\n";
}

void Svg::text(Point at, std::string_view words, Anchor anchor,
               std::string_view style) {
  absl::StrAppendFormat(
      &body_,
      "<text class=\"%s\" x=\"%.2f\" y=\"%.2f\" text-anchor=\"%s\">%s</text>\n",
      style, at.x, at.y, word(anchor), escaped(words));
}

} // namespace grok::report
