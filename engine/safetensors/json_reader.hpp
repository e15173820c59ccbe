// Strict JSON (RFC 8259), read value by value without a document in memory: headers may have 100 MB, the
// index of a large model a million lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troika::safetensors {

// Every step that fails leaves the reason and its place in problem(); all later ones fail too.
class JsonReader {
 public:
  static constexpr unsigned kDeepest = 64;  // objects and arrays within one another

  enum class Kind { Object, Array, String, Unsigned, OtherNumber, Boolean, Null, Nothing };
  // "a list", "a fraction or a number below 0 or beyond 64 bits": to be used in messages.
  static const char* text(Kind kind);

  explicit JsonReader(std::string_view text) : text_(text) {}

  Kind next();            // of the value that comes; Nothing: none can
  bool enter(Kind kind);  // Object or Array
  // The next key, valid until the next call; false: the object has ended, or a problem.
  bool member(std::string_view& key);
  bool element();                        // false: the array has ended, or a problem
  bool string(std::string_view& value);  // valid until the next call
  bool number(std::uint64_t& value);
  bool skip();  // a whole value, whatever it is
  bool end();   // nothing but white space is left

  bool failed() const { return problem_.has_value(); }
  // "byte 12: a key is expected"
  std::string problem() const;

 private:
  bool fail(const char* what);
  void pass_space();
  bool take(char wanted);
  bool word(std::string_view wanted);
  bool leave();
  bool skip_number();
  bool escaped(std::string_view& value, std::size_t begin);
  bool escape();
  bool four_digits(std::uint32_t& unit);

  std::string_view text_;
  std::size_t at_ = 0;
  unsigned depth_ = 0;
  bool fresh_ = false;  // an object or array was just entered
  std::string scratch_;
  std::optional<const char*> problem_;
};

// The first byte of `text` that is not in a well-formed UTF-8 sequence; nothing: all are.
std::optional<std::size_t> find_bad_utf8(std::string_view text);

}  // namespace troika::safetensors
