#include "engine/safetensors/names.hpp"

#include <bit>
#include <cstring>
#include <random>

namespace troika::safetensors {
namespace {

constexpr std::size_t kFirstSlots = 64;
constexpr std::size_t kFirstChunk = 4096;
constexpr std::size_t kLargestChunk = 1u << 20;

std::array<std::uint64_t, 2> fresh_secret() {
  std::random_device device;
  const auto word = [&] { return std::uint64_t{device()} << 32 | device(); };
  return {word(), word()};
}

std::uint64_t word_at(const char* bytes, std::size_t size) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, size);
  return word;
}

// SipHash-1-3 (Aumasson and Bernstein): one round for each word, three at the end.
class SipHash {
 public:
  explicit SipHash(const std::array<std::uint64_t, 2>& key)
      : a_(0x736f6d6570736575 ^ key[0]),
        b_(0x646f72616e646f6d ^ key[1]),
        c_(0x6c7967656e657261 ^ key[0]),
        d_(0x7465646279746573 ^ key[1]) {}

  void take(std::uint64_t word) {
    d_ ^= word;
    round();
    a_ ^= word;
  }
  std::uint64_t end() {
    c_ ^= 0xff;
    round();
    round();
    round();
    return a_ ^ b_ ^ c_ ^ d_;
  }

 private:
  void round() {
    a_ += b_;
    b_ = std::rotl(b_, 13) ^ a_;
    a_ = std::rotl(a_, 32);
    c_ += d_;
    d_ = std::rotl(d_, 16) ^ c_;
    a_ += d_;
    d_ = std::rotl(d_, 21) ^ a_;
    c_ += b_;
    b_ = std::rotl(b_, 17) ^ c_;
    c_ = std::rotl(c_, 32);
  }

  std::uint64_t a_, b_, c_, d_;
};

}  // namespace

NameTable::NameTable() {
  static const std::array<std::uint64_t, 2> secret = fresh_secret();
  secret_ = secret;
}

std::uint64_t NameTable::hash(std::string_view name) const {
  SipHash sip(secret_);
  std::size_t at = 0;
  for (; at + 8 <= name.size(); at += 8)
    sip.take(word_at(name.data() + at, 8));
  sip.take(word_at(name.data() + at, name.size() - at) | std::uint64_t{name.size()} << 56);
  return sip.end();
}

// Of the name, or the free one where it would stand.
std::size_t NameTable::slot_of(std::string_view name, std::uint32_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash & mask;
  while (slots_[at].number != 0 && (slots_[at].hash != hash || names_[slots_[at].number - 1] != name))
    at = (at + 1) & mask;
  return at;
}

NameTable::Place NameTable::insert(std::string_view name) {
  if (3 * (names_.size() + 1) > 2 * slots_.size()) grow();
  const auto short_hash = static_cast<std::uint32_t>(hash(name));
  Slot& slot = slots_[slot_of(name, short_hash)];
  if (slot.number != 0) return {slot.number - 1, false};
  names_.push_back(keep(name));
  slot = {short_hash, size()};
  return {size() - 1, true};
}

std::optional<std::uint32_t> NameTable::find(std::string_view name) const {
  if (slots_.empty()) return std::nullopt;
  const Slot& slot = slots_[slot_of(name, static_cast<std::uint32_t>(hash(name)))];
  if (slot.number == 0) return std::nullopt;
  return slot.number - 1;
}

std::string_view NameTable::keep(std::string_view name) {
  if (chunks_.empty() || name.size() > left_) {  // empty: moved from
    std::size_t chunk = kFirstChunk;
    while (chunk < kLargestChunk && chunk < 4096 * chunks_.size())
      chunk *= 2;
    if (chunk < name.size()) chunk = name.size();
    chunks_.emplace_back(new char[chunk]);
    room_ = chunks_.back().get();
    left_ = chunk;
  }
  if (!name.empty()) std::memcpy(room_, name.data(), name.size());
  const std::string_view kept{room_, name.size()};
  room_ += name.size();
  left_ -= name.size();
  return kept;
}

void NameTable::grow() {
  std::vector<Slot> old(slots_.empty() ? kFirstSlots : 2 * slots_.size());
  old.swap(slots_);
  const std::size_t mask = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.number == 0) continue;
    std::size_t at = slot.hash & mask;
    while (slots_[at].number != 0)
      at = (at + 1) & mask;
    slots_[at] = slot;
  }
}

}  // namespace troika::safetensors
