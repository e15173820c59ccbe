#include "agent/model/header_reader.hpp"

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <unordered_set>

namespace troika::model {
namespace {

using Json = nlohmann::json;

// Events of the parser in a state machine: the top holds tensors and __metadata__, a tensor holds its three
// fields; fields that are not known are passed over, as the official reader does.
class HeaderReader final : public nlohmann::json_sax<Json> {
 public:
  explicit HeaderReader(std::vector<Tensor>& tensors) : tensors_(tensors) {}

  std::optional<HeaderFault> fault;

  bool null() override { return value("null"); }
  bool boolean(bool) override { return value("a truth value"); }
  bool number_integer(number_integer_t) override { return value("a negative number"); }
  bool number_float(number_float_t, const string_t&) override {
    return value("a fraction or a number beyond 64 bits");
  }
  bool binary(binary_t&) override { return value("binary"); }

  bool number_unsigned(number_unsigned_t number) override {
    switch (place_) {
      case Place::Shape:
        tensors_.back().shape.push_back(number);
        return true;
      case Place::Offsets:
        return offset(number);
      case Place::Skipped:
        return true;
      case Place::Start:
      case Place::Top:
      case Place::Metadata:
      case Place::Tensor:
        return value("a number");
    }
    return false;
  }

  bool string(string_t& text) override {
    if (place_ == Place::Skipped || place_ == Place::Metadata) return true;
    if (place_ != Place::Tensor || key_ != "dtype") return value("a string");
    tensors_.back().dtype = text;
    return true;
  }

  bool start_object(std::size_t) override {
    switch (place_) {
      case Place::Start:
        place_ = Place::Top;
        return true;
      case Place::Top:
        if (key_ == "__metadata__") {
          place_ = Place::Metadata;
          return true;
        }
        place_ = Place::Tensor;
        tensors_.emplace_back().name = key_;
        fields_.clear();
        return true;
      case Place::Tensor:
        return skip();
      case Place::Skipped:
        ++skipped_;
        return true;
      case Place::Metadata:
      case Place::Shape:
      case Place::Offsets:
        return value("an object");
    }
    return false;
  }

  bool key(string_t& text) override {
    switch (place_) {
      case Place::Top:
        return fresh(names_.insert(text).second, text);
      case Place::Metadata:
        return fresh(metadata_.insert(text).second, text);
      case Place::Tensor:
        return fresh(fields_.insert(text).second, text);
      case Place::Skipped:
        return true;
      case Place::Start:
      case Place::Shape:
      case Place::Offsets:
        break;
    }
    return false;
  }

  bool end_object() override {
    switch (place_) {
      case Place::Metadata:
        place_ = Place::Top;
        return true;
      case Place::Tensor:
        return end_of_tensor();
      case Place::Skipped:
        return end_of_skipped();
      case Place::Top:
        return true;
      case Place::Start:
      case Place::Shape:
      case Place::Offsets:
        break;
    }
    return false;
  }

  bool start_array(std::size_t) override {
    if (place_ == Place::Skipped) {
      ++skipped_;
      return true;
    }
    if (place_ != Place::Tensor || key_ == "dtype") return value("a list");
    if (key_ == "shape") {
      place_ = Place::Shape;
    } else if (key_ == "data_offsets") {
      place_ = Place::Offsets;
      offsets_ = 0;
    } else {
      return skip();
    }
    return true;
  }

  bool end_array() override {
    if (place_ == Place::Skipped) return end_of_skipped();
    if (place_ == Place::Offsets && offsets_ != 2)
      return deserialization("data_offsets must hold two numbers");
    place_ = Place::Tensor;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& e) override {
    // 101 with "ill-formed UTF-8" is how the parser tells of bytes that are not UTF-8.
    const bool utf8 = std::string_view{e.what()}.find("UTF-8") != std::string_view::npos;
    fault = HeaderFault{utf8 ? "InvalidHeaderUtf8" : "InvalidHeaderDeserialization",
                        {},
                        (utf8 ? "not UTF-8, near byte " : "not JSON, near byte ") + std::to_string(position)};
    return false;
  }

 private:
  enum class Place { Start, Top, Metadata, Tensor, Shape, Offsets, Skipped };

  bool deserialization(std::string detail) {
    const bool in_tensor = place_ == Place::Tensor || place_ == Place::Shape || place_ == Place::Offsets;
    fault = HeaderFault{"InvalidHeaderDeserialization", in_tensor ? tensors_.back().name : std::string{},
                        std::move(detail)};
    return false;
  }

  // A value where none of its kind may be.
  bool value(const char* kind) {
    switch (place_) {
      case Place::Skipped:
        return true;
      case Place::Start:
        return deserialization(std::string(kind) + " where the header must be an object");
      case Place::Top:
        return deserialization("\"" + key_ + "\" is " + kind + ", an object is expected");
      case Place::Metadata:
        return deserialization("__metadata__." + key_ + " is " + kind + ", a string is expected");
      case Place::Tensor:
        // A scalar under a key that nobody knows.
        if (key_ != "dtype" && key_ != "shape" && key_ != "data_offsets") return true;
        return deserialization(key_ + " is " + kind);
      case Place::Shape:
        return deserialization("shape holds " + std::string(kind));
      case Place::Offsets:
        return deserialization("data_offsets holds " + std::string(kind));
    }
    return false;
  }

  bool fresh(bool inserted, const std::string& key) {
    key_ = key;
    if (inserted) return true;
    const bool in_tensor = place_ == Place::Tensor;
    fault =
        HeaderFault{"DuplicateKey", in_tensor ? tensors_.back().name : key, "\"" + key + "\" stands twice"};
    return false;
  }

  bool offset(std::uint64_t number) {
    if (offsets_ == 2) return deserialization("data_offsets must hold two numbers");
    (offsets_ == 0 ? tensors_.back().begin : tensors_.back().end) = number;
    ++offsets_;
    return true;
  }

  bool end_of_tensor() {
    for (const char* field : {"dtype", "shape", "data_offsets"})
      if (fields_.count(field) == 0) return deserialization(std::string(field) + " is missing");
    place_ = Place::Top;
    return true;
  }

  bool skip() {
    if (key_ == "dtype" || key_ == "shape" || key_ == "data_offsets") return value("an object");
    place_ = Place::Skipped;
    skipped_ = 1;
    return true;
  }

  bool end_of_skipped() {
    if (--skipped_ == 0) place_ = Place::Tensor;
    return true;
  }

  std::vector<Tensor>& tensors_;
  Place place_ = Place::Start;
  std::string key_;
  int offsets_ = 0;
  std::size_t skipped_ = 0;
  std::unordered_set<std::string> names_;
  std::set<std::string> metadata_;
  std::set<std::string> fields_;
};

}  // namespace

std::optional<HeaderFault> read_header_json(std::string_view json, std::vector<Tensor>& tensors) {
  if (json.empty()) return HeaderFault{"InvalidHeaderDeserialization", {}, "the header is empty"};
  if (json.front() != '{') return HeaderFault{"InvalidHeaderStart", {}, "the header does not start with '{'"};
  const std::size_t last = json.find_last_not_of(' ');
  if (json[last] != '}')
    return HeaderFault{"InvalidHeaderDeserialization", {}, "the header does not end with '}' and spaces"};
  HeaderReader reader{tensors};
  const std::string_view object = json.substr(0, last + 1);
  const bool good = Json::sax_parse(object.begin(), object.end(), &reader);
  if (!good && !reader.fault)
    return HeaderFault{"InvalidHeaderDeserialization", {}, "not in the form of a header"};
  return reader.fault;
}

}  // namespace troika::model
