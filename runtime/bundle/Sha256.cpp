#include "runtime/bundle/Sha256.h"

// The functions of one algorithm take no memory, and no part in the machine's
// configuration; what replaces them looks the algorithm up, and crashes where
// memory is short meanwhile.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

namespace grok {

struct Sha256::State {
  SHA256_CTX context;
  bool ok;
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  state_->ok = SHA256_Init(&state_->context) == 1;
}

Sha256::~Sha256() = default;

void Sha256::update(std::span<const uint8_t> bytes) {
  state_->ok = state_->ok &&
               SHA256_Update(&state_->context, bytes.data(), bytes.size()) == 1;
}

absl::StatusOr<std::string> Sha256::finish() {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  if (!state_->ok || SHA256_Final(digest, &state_->context) != 1)
    return absl::InternalError("OpenSSL failed to compute a SHA-256");
  state_->ok = false;
  std::string hex;
  for (unsigned char byte : digest)
    for (unsigned nibble : {byte >> 4, byte & 15})
      hex += "0123456789abcdef"[nibble];
  return hex;
}

absl::StatusOr<std::string> sha256(std::string_view bytes) {
  Sha256 hash;
  hash.update({reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()});
  return hash.finish();
}

} // namespace grok
