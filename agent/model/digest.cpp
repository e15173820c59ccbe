#include "agent/model/digest.hpp"

#include <openssl/evp.h>

#include <array>

#include "vocabulary/result.hpp"

namespace troika::model {
namespace {

// Fetching costs more than hashing a small file; the result lives as long as the process.
const EVP_MD* algorithm_named(const char* name) {
  static const EVP_MD* const sha256 = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  static const EVP_MD* const sha1 = EVP_MD_fetch(nullptr, "SHA1", nullptr);
  return std::string_view{name} == "SHA1" ? sha1 : sha256;
}

}  // namespace

void Hasher::Free::operator()(evp_md_ctx_st* context) const {
  EVP_MD_CTX_free(context);
}

Hasher::Hasher(const char* algorithm) : context_(EVP_MD_CTX_new()) {
  const EVP_MD* md = algorithm_named(algorithm);
  TROIKA_INVARIANT(context_ != nullptr && md != nullptr);
  TROIKA_INVARIANT(EVP_DigestInit_ex2(context_.get(), md, nullptr) == 1);
}
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;
Hasher::~Hasher() = default;

Hasher Hasher::sha256() {
  return Hasher{"SHA256"};
}

Hasher Hasher::git_blob(std::uint64_t bytes) {
  Hasher hasher{"SHA1"};
  const std::string head = "blob " + std::to_string(bytes);
  hasher.update(head.c_str(), head.size() + 1);
  return hasher;
}

void Hasher::update(const void* data, std::size_t size) {
  TROIKA_INVARIANT(EVP_DigestUpdate(context_.get(), data, size) == 1);
}

std::string Hasher::hex() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned size = 0;
  TROIKA_INVARIANT(EVP_DigestFinal_ex(context_.get(), digest.data(), &size) == 1);
  return hex_of(digest.data(), size);
}

std::string hex_of(const unsigned char* bytes, std::size_t size) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (std::size_t i = 0; i < size; ++i) {
    out.push_back(kHex[bytes[i] >> 4]);
    out.push_back(kHex[bytes[i] & 15]);
  }
  return out;
}

std::string sha256_hex(std::string_view text) {
  Hasher hasher = Hasher::sha256();
  hasher.update(text.data(), text.size());
  return hasher.hex();
}

}  // namespace troika::model
