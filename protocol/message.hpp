// The messages between leader, agents, gateway and operators: plain structs, one JSON mapping (codec.hpp),
// one version. Each struct lists its fields once, in `fields`; that list drives writing, reading and the
// error texts.
//
// Rules for change, so that a rolling upgrade works: fields are only added, and only with a default
// (`optional`); a reader ignores fields it does not know; an unknown message type is answered with
// Refusal{UNKNOWN_TYPE}; a peer of another major version is answered with Refusal{VERSION_UNSUPPORTED} and
// the connection is closed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "vocabulary/finding.hpp"
#include "vocabulary/names.hpp"
#include "vocabulary/units.hpp"

namespace troika::protocol {

inline constexpr std::uint32_t kMajorVersion = 1;
inline constexpr std::uint32_t kMinorVersion = 0;

// A frame of a message is at most this long; a manifest of 46 files without block digests is about 8 KiB.
inline constexpr Bytes kMaxMessage{4u << 20};
// Of the findings in one message, as JSON (keep_worst): the rest has room beside them.
inline constexpr std::size_t kMostFindingsBytes = 3u << 20;
// A raw frame (relay bodies) is at most this long.
inline constexpr Bytes kMaxRawFrame{64u << 10};

// Field lists use v.required(name, field) and v.optional(name, field); optional keeps the default when
// absent.
#define TROIKA_FIELDS(Type, wire_name)                 \
  static constexpr std::string_view kType = wire_name; \
  bool operator==(const Type&) const = default;        \
  template <class Self, class Visitor>                 \
  static void fields(Self& m, Visitor&& v)

// The receiver does not do what the message with id `re` asked.
struct Refusal {
  std::uint64_t re = 0;
  std::string
      code;  // UNKNOWN_TYPE, VERSION_UNSUPPORTED, MALFORMED, STALE_TERM, STALE_EPOCH, CERT_ROLE, BUSY, ...
  std::string message;
  TROIKA_FIELDS(Refusal, "refusal") {
    v.required("re", m.re);
    v.required("code", m.code);
    v.required("message", m.message);
  }
};

}  // namespace troika::protocol
