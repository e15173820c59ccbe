// What two stages say to each other before the first step: who they are, and that they know the epoch's key.
// Pure.
//
// The dialer sends its hello. The listener answers with its own hello and HMAC-SHA256(key, "listener" + both
// hellos). The dialer sends HMAC-SHA256(key, "dialer" + both hellos); the listener confirms with one byte.
// Each hello holds a fresh nonce, so no part can be replayed. The key itself is never sent.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "vocabulary/result.hpp"

namespace troika::native {

using LinkKey = std::array<unsigned char, 32>;
using Nonce = std::array<unsigned char, 32>;
using Mac = std::array<unsigned char, 32>;

inline constexpr std::string_view kLinkMagic = "TRKLINK\n";
inline constexpr std::uint16_t kLinkVersion = 1;
inline constexpr std::size_t kHelloPrefix = 12;    // magic, u16 version, u16 bytes of the body
inline constexpr std::size_t kLongestHello = 512;  // of the body
inline constexpr char kConfirm = '+';

// Both ends must say the same, except for the nonce.
struct Hello {
  std::string cluster;
  std::string replica;
  std::uint64_t epoch = 0;
  std::uint32_t from_rank = 0;  // the dialer
  std::uint32_t to_rank = 0;    // the listener
  std::uint32_t ranks = 0;
  std::uint32_t hidden = 0;
  std::uint32_t layers = 0;     // of the model
  std::uint32_t boundary = 0;   // the listener's first layer
  std::uint32_t rows = 0;       // --chunked-prefill
  std::uint32_t sequences = 0;  // --max-running
  std::uint32_t context = 0;    // --context-length
  std::string dtype = "f32";    // of activations
  Nonce nonce{};
};

// 64 hex digits, and perhaps a newline.
Result<LinkKey> parse_link_key(std::string_view text);
Result<LinkKey> read_link_key(const std::string& path);

Result<Nonce> fresh_nonce();

std::string encode(const Hello& hello);  // prefix and body
// Length of the body that follows the prefix. Error: another protocol or version, or a body that is too long.
Result<std::size_t> parse_hello_prefix(std::string_view prefix);
Result<Hello> parse_hello_body(std::string_view body);

// The first difference that forbids the link: "epoch 6 where 7 is expected".
std::optional<std::string> difference(const Hello& expected, const Hello& got);

enum class LinkEnd { Dialer, Listener };
Mac proof(const LinkKey& key, LinkEnd end, std::string_view dialer_hello, std::string_view listener_hello);
bool same(const Mac& a, std::string_view b);  // in constant time

}  // namespace troika::native
