#include "runtime/bundle/Sha256.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

namespace grok {

struct Sha256::State {
  EVP_MD_CTX *context = nullptr;
  bool ok = false;
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  // The machine's OpenSSL configuration has no say in what a hash is.
  OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
  state_->context = EVP_MD_CTX_new();
  state_->ok = state_->context &&
               EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) == 1;
}

Sha256::~Sha256() { EVP_MD_CTX_free(state_->context); }

void Sha256::update(std::span<const uint8_t> bytes) {
  state_->ok = state_->ok && EVP_DigestUpdate(state_->context, bytes.data(),
                                              bytes.size()) == 1;
}

absl::StatusOr<std::string> Sha256::finish() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  if (!state_->ok || EVP_DigestFinal_ex(state_->context, digest, &length) != 1)
    return absl::ResourceExhaustedError(
        "OpenSSL failed to compute a SHA-256: is memory left?");
  state_->ok = false;
  std::string hex;
  for (unsigned i = 0; i < length; ++i)
    for (unsigned nibble : {digest[i] >> 4, digest[i] & 15})
      hex += "0123456789abcdef"[nibble];
  return hex;
}

absl::StatusOr<std::string> sha256(std::string_view bytes) {
  Sha256 hash;
  hash.update({reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()});
  return hash.finish();
}

} // namespace grok
