// SHA-256 and Git's blob id over streams of bytes. The algorithms are fetched from OpenSSL once for the
// process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace troika::model {

class Hasher {
 public:
  static Hasher sha256();
  // Git's id of a file of this size: SHA-1 of "blob SIZE\0" and the content.
  static Hasher git_blob(std::uint64_t bytes);

  Hasher(Hasher&&) noexcept;
  Hasher& operator=(Hasher&&) noexcept;
  ~Hasher();

  void update(const void* data, std::size_t size);
  std::string hex();  // ends it: lower-case

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  explicit Hasher(const char* algorithm);
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

std::string sha256_hex(std::string_view text);
std::string hex_of(const unsigned char* bytes, std::size_t size);  // lower-case

}  // namespace troika::model
