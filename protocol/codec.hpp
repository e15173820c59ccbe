// One JSON mapping for every message, and the envelope around it.
//
// A message on the wire is a JSON object {"v":[major,minor],"type":"...","id":N, ...fields}. `id` is chosen
// by the sender, unique on its connection; answers name it in "re". Reading checks types and required fields
// and says which field of which message is wrong; unknown fields are ignored.
#pragma once

#include <concepts>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "protocol/messages.hpp"
#include "vocabulary/result.hpp"

namespace troika::protocol {

using Json = nlohmann::json;

template <class T>
concept Message = requires {
  { T::kType } -> std::convertible_to<std::string_view>;
};

std::string_view name(StageState state);  // "starting", "not_released", ...
std::string_view name(Verb verb);

// The envelope of a received frame; the fields are read with decode<T>.
struct Envelope {
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  std::string type;
  std::uint64_t id = 0;
  Json body;
};

// Errors name what is not as expected. Does not judge the version or the type: see is_supported.
Result<Envelope> parse_envelope(std::string_view frame);

inline bool is_supported(const Envelope& e) {
  return e.major == kMajorVersion;
}

// ---- writing

Json to_json(const Finding& finding);
Json to_json(const LayerRange& range);

namespace detail {

// Thrown while a message is read; caught in from_json.
struct FieldError {
  std::string field;     // path within the message: "stages[2].pid"
  std::string expected;  // "a whole number"
};

inline Json write(const std::string& v) {
  return v;
}
inline Json write(bool v) {
  return v;
}
inline Json write(double v) {
  return v;
}
template <std::integral T>
Json write(T v) {
  return v;
}
template <class Tag, class Rep>
Json write(const Quantity<Tag, Rep>& v) {
  return v.count;
}
inline Json write(StageState v) {
  return name(v);
}
inline Json write(Verb v) {
  return name(v);
}
inline Json write(Verdict v) {
  return troika::name(v);
}
inline Json write(const Finding& v) {
  return to_json(v);
}
inline Json write(const LayerRange& v) {
  return to_json(v);
}
template <Message T>
Json write(const T& message);
template <class T>
Json write(const std::vector<T>& list) {
  Json out = Json::array();
  for (const auto& item : list)
    out.push_back(write(item));
  return out;
}
template <class T>
Json write(const std::map<std::string, T>& map) {
  Json out = Json::object();
  for (const auto& [key, item] : map)
    out[key] = write(item);
  return out;
}

struct Writer {
  Json& out;
  template <class T>
  void required(const char* field, const T& v) {
    out[field] = write(v);
  }
  template <class T>
  void optional(const char* field, const T& v) {
    out[field] = write(v);
  }
};

template <Message T>
Json write(const T& message) {
  Json out = Json::object();
  T::fields(message, Writer{out});
  return out;
}

// ---- reading; throws FieldError, caught in decode

void read(const Json& in, std::string& v);
void read(const Json& in, bool& v);
void read(const Json& in, double& v);
void read(const Json& in, std::uint64_t& v);
void read(const Json& in, std::uint32_t& v);
void read(const Json& in, std::int64_t& v);
void read(const Json& in, std::int32_t& v);
void read(const Json& in, StageState& v);
void read(const Json& in, Verb& v);
void read(const Json& in, Verdict& v);
void read(const Json& in, Finding& v);
void read(const Json& in, LayerRange& v);
template <class Tag, class Rep>
void read(const Json& in, Quantity<Tag, Rep>& v) {
  read(in, v.count);
}
template <Message T>
void read(const Json& in, T& message);
[[noreturn]] void rethrow_inside(const std::string& outer, const FieldError& inner);
template <class T>
void read(const Json& in, std::vector<T>& list) {
  if (!in.is_array()) throw FieldError{"", "a list"};
  list.clear();
  for (std::size_t i = 0; i < in.size(); ++i) {
    try {
      read(in[i], list.emplace_back());
    } catch (const FieldError& e) {
      rethrow_inside("[" + std::to_string(i) + "]", e);
    }
  }
}
template <class T>
void read(const Json& in, std::map<std::string, T>& map) {
  if (!in.is_object()) throw FieldError{"", "an object"};
  map.clear();
  for (const auto& [key, item] : in.items()) {
    try {
      read(item, map[key]);
    } catch (const FieldError& e) {
      rethrow_inside(key, e);
    }
  }
}

struct Reader {
  const Json& in;
  template <class T>
  void required(const char* field, T& v) {
    const auto found = in.find(field);
    if (found == in.end()) throw FieldError{field, "a value (it is missing)"};
    value(field, *found, v);
  }
  template <class T>
  void optional(const char* field, T& v) {
    const auto found = in.find(field);
    if (found != in.end() && !found->is_null()) value(field, *found, v);
  }

 private:
  template <class T>
  void value(const char* field, const Json& found, T& v) {
    try {
      read(found, v);
    } catch (const FieldError& e) {
      rethrow_inside(field, e);
    }
  }
};

template <Message T>
void read(const Json& in, T& message) {
  if (!in.is_object()) throw FieldError{"", "an object"};
  T::fields(message, Reader{in});
}

Error field_error(std::string_view type, const FieldError& e);

}  // namespace detail

// The frame of a message.
template <Message T>
std::string encode(const T& message, std::uint64_t id) {
  Json out = detail::write(message);
  out["v"] = {kMajorVersion, kMinorVersion};
  out["type"] = T::kType;
  out["id"] = id;
  // Text from outside may not be UTF-8: it is replaced, never thrown over.
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// The fields alone, for reports, files and `--json`.
template <Message T>
Json to_json(const T& message) {
  return detail::write(message);
}

template <Message T>
Result<T> from_json(const Json& in) {
  try {
    T message;
    detail::read(in, message);
    return message;
  } catch (const detail::FieldError& e) {
    return detail::field_error(T::kType, e);
  }
}

template <Message T>
Result<T> decode(const Envelope& envelope) {
  return from_json<T>(envelope.body);
}

}  // namespace troika::protocol
