#include "agent/model/sha256/sha256.hpp"

#include <algorithm>
#include <cstring>

#include "agent/model/sha256/compress.hpp"
#include "vocabulary/result.hpp"

namespace troika::model {
namespace {

// FIPS 180-4, 5.3.3.
constexpr std::array<std::uint32_t, 8> kStart{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                              0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

const Compression* compression(Sha256Method method) {
  switch (method) {
    case Sha256Method::OpenSsl:
      return nullptr;
    case Sha256Method::ShaNi:
      return sha_ni_compression();
    case Sha256Method::Armv8:
      return armv8_compression();
  }
  broken_invariant("method of SHA-256", __FILE__, __LINE__);
}

}  // namespace

std::string_view name(Sha256Method method) {
  switch (method) {
    case Sha256Method::OpenSsl:
      return "OpenSSL";
    case Sha256Method::ShaNi:
      return "SHA-NI";
    case Sha256Method::Armv8:
      return "ARMv8 CE";
  }
  broken_invariant("method of SHA-256", __FILE__, __LINE__);
}

bool available(Sha256Method method) {
  return method == Sha256Method::OpenSsl || compression(method) != nullptr;
}

Sha256Method best_sha256() {
  for (const auto method : {Sha256Method::ShaNi, Sha256Method::Armv8})
    if (available(method)) return method;
  return Sha256Method::OpenSsl;
}

Sha256::Sha256(Sha256Method method) : method_(method), state_(kStart) {
  TROIKA_INVARIANT(available(method));
  if (method == Sha256Method::OpenSsl) openssl_ = Hasher::sha256();
}

void Sha256::update(const void* data, std::size_t size) {
  if (openssl_) return openssl_->update(data, size);
  const auto* at = static_cast<const unsigned char*>(data);
  fill(at, size);
  compress(at, size / kBlock);
  keep(at + size / kBlock * kBlock, size % kBlock);
}

void Sha256::update_both(Sha256& a, const void* a_data, std::size_t a_size, Sha256& b, const void* b_data,
                         std::size_t b_size) {
  TROIKA_INVARIANT(a.method_ == b.method_);
  if (a.openssl_) {
    a.openssl_->update(a_data, a_size);
    b.openssl_->update(b_data, b_size);
    return;
  }
  const auto* a_at = static_cast<const unsigned char*>(a_data);
  const auto* b_at = static_cast<const unsigned char*>(b_data);
  a.fill(a_at, a_size);
  b.fill(b_at, b_size);
  const std::size_t both = std::min(a_size, b_size) / kBlock;
  compression(a.method_)->two(a.state_.data(), a_at, b.state_.data(), b_at, both);
  const std::size_t done = both * kBlock;
  // What one has more than the other; only one of these has blocks left.
  a.update(a_at + done, a_size - done);
  b.update(b_at + done, b_size - done);
  a.bytes_ += done;
  b.bytes_ += done;
}

void Sha256::fill(const unsigned char*& data, std::size_t& size) {
  if (open_size_ == 0 || size == 0) return;
  const std::size_t part = std::min(size, kBlock - open_size_);
  std::memcpy(open_.data() + open_size_, data, part);
  open_size_ += part;
  bytes_ += part;
  data += part;
  size -= part;
  if (open_size_ < kBlock) return;
  open_size_ = 0;
  compression(method_)->one(state_.data(), open_.data(), 1);
}

void Sha256::compress(const unsigned char* data, std::size_t blocks) {
  if (blocks == 0) return;
  compression(method_)->one(state_.data(), data, blocks);
  bytes_ += blocks * kBlock;
}

void Sha256::keep(const unsigned char* data, std::size_t size) {
  if (size == 0) return;
  std::memcpy(open_.data(), data, size);
  open_size_ = size;
  bytes_ += size;
}

std::string Sha256::hex() {
  if (openssl_) return openssl_->hex();
  const std::uint64_t bits = bytes_ * 8;
  // A one bit, zeros, and the length in the last eight bytes of a block.
  std::array<unsigned char, 2 * kBlock> end{};
  const std::size_t padding = (open_size_ < kBlock - 8 ? kBlock : 2 * kBlock) - open_size_;
  end[0] = 0x80;
  for (std::size_t i = 0; i < 8; ++i)
    end[padding - 1 - i] = static_cast<unsigned char>(bits >> (8 * i));
  update(end.data(), padding);
  std::array<unsigned char, 32> digest;  // the words of the state, big-endian
  for (std::size_t i = 0; i < digest.size(); ++i)
    digest[i] = static_cast<unsigned char>(state_[i / 4] >> (24 - 8 * (i % 4)));
  return hex_of(digest.data(), digest.size());
}

}  // namespace troika::model
