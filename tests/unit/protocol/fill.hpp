// A message with every field different from its default, by the message's own list of fields.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "protocol/codec.hpp"

namespace troika::protocol {

// Values count up, so that two fields that are mixed up differ.
class Fill {
 public:
  template <class T>
  void required(const char*, T& field) {
    fill(field);
  }
  template <class T>
  void optional(const char*, T& field) {
    fill(field);
  }

 private:
  std::uint32_t next() { return ++count_; }

  void fill(std::string& v) { v = "text \"" + std::to_string(next()) + "\" Zürich \n\x01"; }
  void fill(bool& v) { v = !v; }
  void fill(double& v) { v = next() + 0.125; }
  void fill(std::uint64_t& v) { v = ~std::uint64_t{0} - next(); }
  void fill(std::uint32_t& v) { v = ~std::uint32_t{0} - next(); }
  void fill(std::int64_t& v) { v = INT64_MIN + next(); }
  void fill(std::int32_t& v) { v = INT32_MIN + static_cast<std::int32_t>(next()); }
  void fill(StageState& v) { v = StageState::NotReleased; }
  void fill(Verb& v) { v = Verb::Failover; }
  void fill(Verdict& v) { v = Verdict::CannotTell; }
  void fill(LayerRange& v) { v = LayerRange{next(), next()}; }
  void fill(Finding& v) {
    std::string text;
    fill(text);
    v = Finding{Code::HASH_MISMATCH,
                Severity::Warning,
                text,
                "subject",
                "message",
                {{"a", std::string("b")}, {"c", std::int64_t{-5}}, {"d", 2.5}, {"e", true}},
                "remedy"};
  }
  template <class Tag, class Rep>
  void fill(Quantity<Tag, Rep>& v) {
    fill(v.count);
  }
  template <class T>
  void fill(std::vector<T>& v) {
    v.resize(2);
    for (T& item : v)
      fill(item);
  }
  template <class T>
  void fill(std::map<std::string, T>& v) {
    fill(v["one"]);
    fill(v["model-00001-of-00046.safetensors"]);
  }
  template <Message T>
  void fill(T& v) {
    T::fields(v, *this);
  }

  std::uint32_t count_ = 0;
};

template <Message T>
T filled() {
  T message;
  T::fields(message, Fill{});
  return message;
}

struct FieldName {
  std::string name;
  bool required = false;
};

class Names {
 public:
  explicit Names(std::vector<FieldName>& out) : out_(out) {}
  template <class F>
  void required(const char* field, F&) {
    out_.push_back({field, true});
  }
  template <class F>
  void optional(const char* field, F&) {
    out_.push_back({field, false});
  }

 private:
  std::vector<FieldName>& out_;
};

template <Message T>
std::vector<FieldName> fields_of() {
  std::vector<FieldName> names;
  T message;
  T::fields(message, Names{names});
  return names;
}

}  // namespace troika::protocol
