// A progress bar on stderr, if that is a terminal.
#pragma once

#include <cstdint>
#include <string>

namespace grok::grokrun {

class Progress {
public:
  explicit Progress(std::string label);
  ~Progress(); // ends the line
  Progress(const Progress &) = delete;
  void update(uint64_t done, uint64_t total);

private:
  std::string label_;
  bool terminal_;
  int shown_ = -1; // percent
};

} // namespace grok::grokrun
