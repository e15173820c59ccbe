// Little-endian numbers in byte strings.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace troika::native {

template <class T>
void put(std::string& out, T value) {
  static_assert(std::is_unsigned_v<T>);
  for (unsigned shift = 0; shift < 8 * sizeof(T); shift += 8) {
    out.push_back(static_cast<char>(static_cast<std::uint64_t>(value) >> shift & 0xffU));
  }
}

// Takes numbers from the front; once something was missing, gives zeros and stays broken.
class Taker {
 public:
  explicit Taker(std::string_view bytes) : rest_(bytes) {}

  template <class T>
  T take() {
    static_assert(std::is_unsigned_v<T>);
    const auto bytes = take_bytes(sizeof(T));
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      value |= static_cast<std::uint64_t>(static_cast<std::uint8_t>(bytes[i])) << (8 * i);
    }
    return static_cast<T>(value);
  }

  // `count` bytes, or none if there are fewer.
  std::string_view take_bytes(std::size_t count) {
    if (count > rest_.size()) {
      broken_ = true;
      rest_ = {};
      return {};
    }
    const auto out = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return out;
  }

  std::size_t left() const { return rest_.size(); }
  bool broken() const { return broken_; }

 private:
  std::string_view rest_;
  bool broken_ = false;
};

}  // namespace troika::native
