// A growing text on its way to the user, whole characters only.
#pragma once

#include <ostream>
#include <string_view>

namespace grok::grokrun {

class TextStream {
public:
  explicit TextStream(std::ostream &out) : out_(out) {}
  /// `whole`: the text so far. What may still change is held back.
  void update(std::string_view whole);
  /// The text is complete.
  void finish(std::string_view whole);

private:
  void print(std::string_view whole, size_t end);
  std::ostream &out_;
  size_t printed_ = 0;
};

} // namespace grok::grokrun
