// Little-endian fields of plan.bin: a writer, and a reader that never reads
// past the end.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace grok {

class ByteWriter {
public:
  void u32(uint32_t v) { put(v, 4); }
  void u64(uint64_t v) { put(v, 8); }
  void raw(std::string_view bytes) { out_.append(bytes); }
  const std::string &bytes() const { return out_; }

private:
  void put(uint64_t v, int count) {
    for (int i = 0; i < count; ++i)
      out_ += char(v >> (8 * i) & 0xff);
  }
  std::string out_;
};

/// A read past the end gives zeros and is remembered.
class ByteReader {
public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}
  uint32_t u32() { return uint32_t(take(4)); }
  uint64_t u64() { return take(8); }
  std::string_view raw(size_t count) {
    if (count > remaining()) {
      failed_ = true;
      return {};
    }
    std::string_view out = bytes_.substr(at_, count);
    at_ += count;
    return out;
  }
  size_t at() const { return at_; }
  size_t remaining() const { return bytes_.size() - at_; }
  bool failed() const { return failed_; }

private:
  uint64_t take(size_t count) {
    std::string_view field = raw(count);
    uint64_t v = 0;
    for (size_t i = 0; i < field.size(); ++i)
      v |= uint64_t(uint8_t(field[i])) << (8 * i);
    return v;
  }
  std::string_view bytes_;
  size_t at_ = 0;
  bool failed_ = false;
};

} // namespace grok
