// A page that needs nothing but itself: no network, no script.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace grok::report {

class Page {
public:
  explicit Page(std::string_view title);
  void heading(std::string_view text);
  void paragraph(std::string_view text);
  /// An SVG picture and what is to be seen in it.
  void figure(const std::string &svg, std::string_view caption);
  /// The first cell of each row names it.
  void table(const std::vector<std::string> &header,
             const std::vector<std::vector<std::string>> &rows);
  std::string html() const { return body_ + "</main>\n</body>\n</html>\n"; }

private:
  std::string body_;
};

} // namespace grok::report
