#include "engine/native/service/handshake.hpp"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "engine/native/service/bytes.hpp"
#include "engine/safetensors/files.hpp"

namespace troika::native {
namespace {

Error bad_hello(std::string reason) {
  return Error{"accept", "the hello of another stage", std::move(reason)};
}

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

void put_text(std::string& out, std::string_view text) {
  put(out, static_cast<std::uint8_t>(text.size()));
  out += text;
}

std::string take_text(Taker& in) {
  const auto length = in.take<std::uint8_t>();
  return std::string(in.take_bytes(length));
}

// A peer that is not proven yet does not get to write control characters into the log.
std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 64))
    out.push_back(c >= ' ' && c <= '~' ? c : '?');
  return out;
}

}  // namespace

Result<LinkKey> parse_link_key(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  LinkKey key{};
  if (text.size() != 2 * key.size()) return Error{"read", "the link key", "must be 64 hex digits"};
  for (std::size_t i = 0; i < key.size(); ++i) {
    const int high = digit(text[2 * i]);
    const int low = digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return Error{"read", "the link key", "must be 64 hex digits"};
    key[i] = static_cast<unsigned char>(high * 16 + low);
  }
  return key;
}

Result<LinkKey> read_link_key(const std::string& path) {
  TROIKA_TRY(text, safetensors::read_text(path, 4096));
  auto key = parse_link_key(text);
  OPENSSL_cleanse(text.data(), text.size());
  if (!key.ok()) return Error{"read the link key from", path, "must be 64 hex digits"};
  return key;
}

Result<Nonce> fresh_nonce() {
  Nonce nonce{};
  if (RAND_bytes(nonce.data(), static_cast<int>(nonce.size())) != 1) {
    return Error{"draw", "a nonce", "OpenSSL has no random numbers"};
  }
  return nonce;
}

std::string encode(const Hello& hello) {
  std::string body;
  body.append(reinterpret_cast<const char*>(hello.nonce.data()), hello.nonce.size());
  put_text(body, hello.cluster);
  put_text(body, hello.replica);
  put(body, hello.epoch);
  for (const auto value : {hello.from_rank, hello.to_rank, hello.ranks, hello.hidden, hello.layers,
                           hello.boundary, hello.rows, hello.sequences, hello.context}) {
    put(body, value);
  }
  put_text(body, hello.dtype);
  std::string out(kLinkMagic);
  put(out, kLinkVersion);
  put(out, static_cast<std::uint16_t>(body.size()));
  return out + body;
}

Result<std::size_t> parse_hello_prefix(std::string_view prefix) {
  if (!prefix.starts_with(kLinkMagic)) return bad_hello("not the link protocol");
  Taker in(prefix.substr(kLinkMagic.size()));
  const auto version = in.take<std::uint16_t>();
  const auto bytes = in.take<std::uint16_t>();
  if (version != kLinkVersion)
    return bad_hello(fmt::format("protocol version {} where {} is expected", version, kLinkVersion));
  if (in.broken() || bytes > kLongestHello) return bad_hello("too long");
  return std::size_t{bytes};
}

Result<Hello> parse_hello_body(std::string_view body) {
  Taker in(body);
  Hello hello;
  const auto nonce = in.take_bytes(hello.nonce.size());
  if (!nonce.empty()) std::memcpy(hello.nonce.data(), nonce.data(), nonce.size());
  hello.cluster = take_text(in);
  hello.replica = take_text(in);
  hello.epoch = in.take<std::uint64_t>();
  for (auto* value : {&hello.from_rank, &hello.to_rank, &hello.ranks, &hello.hidden, &hello.layers,
                      &hello.boundary, &hello.rows, &hello.sequences, &hello.context}) {
    *value = in.take<std::uint32_t>();
  }
  hello.dtype = take_text(in);
  if (in.broken() || in.left() != 0) return bad_hello("cut short or too long");
  return hello;
}

std::optional<std::string> difference(const Hello& expected, const Hello& got) {
  const auto text = [](const char* what, const std::string& mine,
                       const std::string& theirs) -> std::optional<std::string> {
    if (mine == theirs) return std::nullopt;
    return fmt::format("{} {} where {} is expected", what, printable(theirs), printable(mine));
  };
  const auto number = [](const char* what, std::uint64_t mine,
                         std::uint64_t theirs) -> std::optional<std::string> {
    if (mine == theirs) return std::nullopt;
    return fmt::format("{} {} where {} is expected", what, theirs, mine);
  };
  if (auto d = text("cluster", expected.cluster, got.cluster)) return d;
  if (auto d = text("replica", expected.replica, got.replica)) return d;
  if (auto d = number("epoch", expected.epoch, got.epoch)) return d;
  if (auto d = number("from-rank", expected.from_rank, got.from_rank)) return d;
  if (auto d = number("to-rank", expected.to_rank, got.to_rank)) return d;
  if (auto d = number("number of ranks", expected.ranks, got.ranks)) return d;
  if (auto d = number("hidden size", expected.hidden, got.hidden)) return d;
  if (auto d = number("number of layers", expected.layers, got.layers)) return d;
  if (auto d = number("layer boundary", expected.boundary, got.boundary)) return d;
  if (auto d = number("chunked prefill", expected.rows, got.rows)) return d;
  if (auto d = number("max running", expected.sequences, got.sequences)) return d;
  if (auto d = number("context length", expected.context, got.context)) return d;
  return text("dtype", expected.dtype, got.dtype);
}

Mac proof(const LinkKey& key, LinkEnd end, std::string_view dialer_hello, std::string_view listener_hello) {
  std::string message = end == LinkEnd::Dialer ? "dialer" : "listener";
  message += dialer_hello;
  message += listener_hello;
  Mac mac{};
  unsigned length = 0;
  const auto* made =
      HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(message.data()), message.size(), mac.data(), &length);
  TROIKA_INVARIANT(made != nullptr && length == mac.size());
  return mac;
}

bool same(const Mac& a, std::string_view b) {
  return b.size() == a.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace troika::native
