// SHA-256, by OpenSSL's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace grok {

/// Of a hash in hex.
inline constexpr size_t kHashDigits = 64;

class Sha256 {
public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256 &) = delete;
  void update(std::span<const uint8_t> bytes);
  /// Lower-case hex, once; Internal if OpenSSL failed anywhere.
  absl::StatusOr<std::string> finish();

private:
  struct State;
  std::unique_ptr<State> state_;
};

absl::StatusOr<std::string> sha256(std::string_view bytes);

} // namespace grok
