// SHA-256 (FIPS 180-4) of one stream or of two at once on one core. An instruction of SHA-NI or of ARMv8's
// cryptography extension waits for the one before it; two streams fill each other's waits. Chosen at run
// time; without such instructions OpenSSL does the work, one stream after the other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "agent/model/digest.hpp"

namespace troika::model {

enum class Sha256Method { OpenSsl, ShaNi, Armv8 };
std::string_view name(Sha256Method method);  // "OpenSSL", "SHA-NI", "ARMv8 CE"
bool available(Sha256Method method);         // on this machine
Sha256Method best_sha256();                  // the fastest one that is available

class Sha256 {
 public:
  explicit Sha256(Sha256Method method = best_sha256());
  Sha256(Sha256&&) noexcept = default;
  Sha256& operator=(Sha256&&) noexcept = default;

  void update(const void* data, std::size_t size);
  // Both get their bytes; of equal method. Fastest where the sizes are equal and multiples of 64.
  static void update_both(Sha256& a, const void* a_data, std::size_t a_size, Sha256& b, const void* b_data,
                          std::size_t b_size);
  std::string hex();  // ends it: lower-case

 private:
  static constexpr std::size_t kBlock = 64;

  // Completes a block that an earlier update left open; what is left of the data starts a block.
  void fill(const unsigned char*& data, std::size_t& size);
  void compress(const unsigned char* data, std::size_t blocks);
  void keep(const unsigned char* data, std::size_t size);

  Sha256Method method_;
  std::array<std::uint32_t, 8> state_;
  std::array<unsigned char, kBlock> open_;
  std::size_t open_size_ = 0;
  std::uint64_t bytes_ = 0;
  std::optional<Hasher> openssl_;  // where that is the method
};

}  // namespace troika::model
