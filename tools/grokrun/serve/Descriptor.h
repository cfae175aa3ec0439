// The owner of a file descriptor.
#pragma once

#include <unistd.h>

#include <utility>

namespace grok::serve {

class Descriptor {
public:
  explicit Descriptor(int value = -1) : value_(value) {}
  Descriptor(Descriptor &&other) noexcept
      : value_(std::exchange(other.value_, -1)) {}
  Descriptor &operator=(Descriptor &&other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Descriptor() { reset(); }
  /// -1: none.
  int get() const { return value_; }
  void reset() {
    if (value_ >= 0)
      ::close(std::exchange(value_, -1));
  }

private:
  int value_;
};

} // namespace grok::serve
