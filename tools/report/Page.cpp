#include "tools/report/Page.h"

#include "absl/strings/str_cat.h"
#include "tools/report/Svg.h"

namespace grok::report {
namespace {

/// Colours that are told apart by those who see few of them, after Okabe and
/// Ito.
constexpr const char *kStyle = R"(
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #ffffff;
  --grid: #d8dee4; --faint: #57606a; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3;
  --paper: #0d1117; --grid: #30363d; --faint: #8b949e; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink);
  background: var(--paper); margin: 0; }
main { max-width: 900px; margin: 0 auto; padding: 1rem 1.25rem 3rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
figure { margin: 1rem 0; } figcaption { color: var(--faint); }
svg { max-width: 100%; height: auto; }
svg text { font: 12px system-ui, sans-serif; fill: var(--ink); }
svg text.small { font-size: 9px; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .15rem .8rem .15rem 0; text-align: right;
  border-bottom: 1px solid var(--grid); }
th:first-child, td:first-child { text-align: left; }
.grid { stroke: var(--grid); } .axis { stroke: var(--faint); }
.empty { fill: var(--grid); }
.c0 { fill: #0072b2; } .c1 { fill: #e69f00; } .c2 { fill: #009e73; }
.c3 { fill: #d55e00; } .c4 { fill: #56b4e9; } .c5 { fill: #cc79a7; }
.c6 { fill: #b8a900; } .c7 { fill: #8c8c8c; }
.line { fill: none; stroke: #0072b2; stroke-width: 1.3; }
.line2 { fill: none; stroke: #e69f00; stroke-width: 1.3; }
.deadline { stroke: #d55e00; stroke-width: 1.5; }
.quantile { stroke: #009e73; stroke-dasharray: 4 3; }
)";

} // namespace

Page::Page(std::string_view title) {
  absl::StrAppend(&body_,
                  "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta "
                  "charset=\"utf-8\">\n<meta name=\"viewport\" "
                  "content=\"width=device-width\">\n<title>",
                  escaped(title), "</title>\n<style>", kStyle,
                  "</style>\n</head>\n<body>\n<main>\n<h1>", escaped(title),
                  "</h1>\n");
}

void Page::heading(std::string_view text) {
  absl::StrAppend(&body_, "<h2>", escaped(text), "</h2>\n");
}

void Page::paragraph(std::string_view text) {
  absl::StrAppend(&body_, "<p>", escaped(text), "</p>\n");
}

void Page::figure(const std::string &svg, std::string_view caption) {
  absl::StrAppend(&body_, "<figure>\n", svg, "<figcaption>", escaped(caption),
                  "</figcaption>\n</figure>\n");
}

void Page::table(const std::vector<std::string> &header,
                 const std::vector<std::vector<std::string>> &rows) {
  absl::StrAppend(&body_, "<table>\n<thead><tr>");
  for (const std::string &cell : header)
    absl::StrAppend(&body_, "<th>", escaped(cell), "</th>");
  absl::StrAppend(&body_, "</tr></thead>\n<tbody>\n");
  for (const std::vector<std::string> &row : rows) {
    absl::StrAppend(&body_, "<tr>");
    for (const std::string &cell : row)
      absl::StrAppend(&body_, "<td>", escaped(cell), "</td>");
    absl::StrAppend(&body_, "</tr>\n");
  }
  absl::StrAppend(&body_, "</tbody>\n</table>\n");
}

} // namespace grok::report
