#include "agent/model/nvfp4.hpp"

#include <algorithm>
#include <map>

#include "engine/safetensors/json_strict.hpp"

namespace troika::model {
namespace {

using Json = nlohmann::json;
using safetensors::Dtype;

constexpr std::array<const char*, 4> kSuffixes{"weight", "weight_scale", "weight_scale_2", "input_scale"};
constexpr std::array<Dtype, 4> kDtypes{Dtype::U8, Dtype::F8_E4M3, Dtype::F32, Dtype::F32};
constexpr std::uint64_t kGroup = 16;  // values of one scale in NVFP4
constexpr const char* kFields =
    "quant_algo MIXED_PRECISION with moe_quant_algo NVFP4 and group_size, or quant_algo NVFP4";

// "....experts.12.w1": of one expert, not of all at once nor of the shared ones.
bool of_an_expert(std::string_view linear) {
  constexpr std::string_view kInfix = ".experts.";
  const std::size_t found = linear.find(kInfix);
  if (found == std::string_view::npos) return false;
  const std::string_view number = linear.substr(found + kInfix.size());
  const std::size_t digits = number.find_first_not_of("0123456789");
  return digits != std::string_view::npos && digits > 0 && number[digits] == '.';
}

// Python writes and reads NaN and Infinity in JSON, and some models' configurations have them; to JSON they
// are nothing. Lengths stay, so that places in errors are those of the file.
std::string without_python_numbers(std::string text) {
  bool quoted = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (quoted) {
      if (text[at] == '\\')
        ++at;
      else
        quoted = text[at] != '"';
      continue;
    }
    if (text[at] == '"') quoted = true;
    for (const std::string_view word : {"-Infinity", "Infinity", "NaN"}) {
      if (std::string_view(text).substr(at, word.size()) != word) continue;
      text.replace(at, word.size(), "0" + std::string(word.size() - 1, ' '));
      break;
    }
  }
  return text;
}

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || !found->is_string() ? std::string{} : found->get<std::string>();
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  return text;
}

// As it is written there, for people.
std::string shown_field(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return "absent";
  std::string text = found->dump(-1, ' ', true, Json::error_handler_t::replace);
  constexpr std::size_t kLongest = 64;
  return text.size() > kLongest ? text.substr(0, kLongest) + "..." : text;
}

// 0: none, or not a whole number from 1.
std::uint64_t group_in(const Json& object) {
  const auto found = object.find("group_size");
  return found == object.end() || !found->is_number_unsigned() ? 0 : found->get<std::uint64_t>();
}

std::uint64_t group_in_groups(const Json& quantization) {
  const auto groups = quantization.find("config_groups");
  if (groups == quantization.end() || !groups->is_object()) return 0;
  for (const Json& group : *groups) {
    if (!group.is_object()) continue;
    const auto weights = group.find("weights");
    if (weights == group.end() || !weights->is_object()) continue;
    if (const std::uint64_t size = group_in(*weights); size != 0) return size;
  }
  return 0;
}

Finding quant_config(std::string message, std::string remedy, decltype(Finding::evidence) evidence = {}) {
  return finding(Code::QUANT_CONFIG, {}, "config.json", std::move(message), std::move(remedy),
                 std::move(evidence));
}

std::string shape_text(std::size_t dimensions, const std::array<std::uint64_t, 2>& shape) {
  if (dimensions == 0) return "[]";
  std::string text = "[" + std::to_string(shape[0]);
  if (dimensions > 1) text += ", " + std::to_string(shape[1]);
  return text + (dimensions > 2 ? ", ...]" : "]");
}

}  // namespace

// What config.json says of the routed experts.
struct Nvfp4Experts::Claim {
  std::string algorithm;  // quant_algo
  bool experts = false;   // that they are NVFP4
  bool input_scale = true;
  std::uint64_t group = 0;  // 0: not told where the engine looks for it
  std::string missing;      // what the engine does not find; empty: nothing
  bool in_linears = false;  // of all linear layers, not of the experts alone

  static Claim of(const std::optional<std::string>& config) {
    Claim claim;
    if (!config) {
      claim.missing = "the model has no config.json";
      return claim;
    }
    const auto json = safetensors::parse_strict(without_python_numbers(*config), "config.json");
    if (!json.ok()) {
      claim.missing = json.error().message();
      return claim;
    }
    const auto found = json->is_object() ? json->find("quantization_config") : json->end();
    if (found == json->end() || !found->is_object()) {
      claim.missing = "config.json has no quantization_config";
      return claim;
    }
    claim.read(*found);
    return claim;
  }

 private:
  void read(const Json& quantization) {
    algorithm = text_of(quantization, "quant_algo");
    const bool mixed = algorithm == "MIXED_PRECISION";
    const bool of_experts = upper(text_of(quantization, "moe_quant_algo")) == "NVFP4";
    in_linears = upper(algorithm) == "NVFP4" || upper(algorithm) == "W4A16_NVFP4";
    experts = of_experts || in_linears;
    input_scale = upper(algorithm) != "W4A16_NVFP4";
    group = group_in(quantization);
    if (group == 0 && in_linears) group = group_in_groups(quantization);
    const auto wrong = [&](const char* key) {
      missing =
          "quantization_config." + std::string(key) + " in config.json is " + shown_field(quantization, key);
    };
    if (!mixed && !in_linears)
      wrong("quant_algo");
    else if (mixed && !of_experts)
      wrong("moe_quant_algo");
    else if (group == 0)
      wrong("group_size");
  }
};

// By kind of fault: its first tensor, and how many there are.
struct Nvfp4Experts::Faults {
  struct One {
    std::string first;
    std::string how;
    std::int64_t count = 0;
  };
  std::map<std::string, One> by_kind;

  void add(const std::string& kind, std::string_view linear, Part part, const std::string& how) {
    One& one = by_kind[kind + kSuffixes[part]];
    if (one.count++ > 0) return;
    one.first = short_name(linear) + "." + kSuffixes[part];
    one.how = how;
  }
};

std::optional<Nvfp4Experts::Part> Nvfp4Experts::part_of(std::string_view suffix) {
  for (std::size_t i = 0; i < kParts; ++i)
    if (suffix == kSuffixes[i]) return static_cast<Part>(i);
  return std::nullopt;
}

void Nvfp4Experts::add(const safetensors::Header& header) {
  for (const safetensors::Tensor& tensor : header.tensors) {
    const std::size_t dot = tensor.name.rfind('.');
    if (dot == std::string_view::npos) continue;
    const auto part = part_of(tensor.name.substr(dot + 1));
    if (!part) continue;
    anywhere_ = anywhere_ || *part == Scale2;
    const std::string_view linear = tensor.name.substr(0, dot);
    if (!of_an_expert(linear)) continue;
    const auto [id, fresh] = names_.insert(linear);
    if (fresh) linears_.emplace_back();
    Described& it = linears_[id][*part];
    it = {true, tensor.dtype, tensor.shape.size(), {}};
    std::copy_n(tensor.shape.begin(), std::min<std::size_t>(tensor.shape.size(), it.shape.size()),
                it.shape.begin());
  }
}

// FP8 experts have weight_scale and input_scale too: only these are signs of NVFP4.
bool Nvfp4Experts::quantized(const Linear& linear, bool claimed) {
  if (linear[Scale2].there) return true;
  if (!linear[Weight].there || linear[Weight].dtype != Dtype::U8) return false;
  return claimed || (linear[Scale].there && linear[Scale].dtype == Dtype::F8_E4M3);
}

void Nvfp4Experts::judge(std::string_view name, const Linear& linear, const Claim& claim, bool complete,
                         Faults& faults) {
  for (std::size_t i = 0; i < kParts; ++i) {
    const auto part = static_cast<Part>(i);
    if (part == InputScale && !claim.input_scale) continue;
    const Described& one = linear[part];
    if (!one.there) {
      if (complete) faults.add("missing ", name, part, "is not there");
    } else if (one.dtype != kDtypes[i]) {
      faults.add(
          "dtype ", name, part,
          "is " + std::string(safetensors::name(one.dtype)) + ", not " + safetensors::name(kDtypes[i]));
    } else if (part >= Scale2 ? !one.scalar() : one.dimensions != 2) {
      faults.add("shape ", name, part,
                 "has the shape " + shape_text(one.dimensions, one.shape) + ", not " +
                     (part >= Scale2 ? "[] or [1]" : "two dimensions"));
    }
  }
  const Described &weight = linear[Weight], &scale = linear[Scale];
  if (!weight.there || !scale.there || weight.dimensions != 2 || scale.dimensions != 2) return;
  if (weight.dtype != kDtypes[Weight] || scale.dtype != kDtypes[Scale]) return;
  // No product of the three overflows where they agree: a weight's bytes are fewer than 2^63.
  const std::uint64_t group = claim.missing.empty() && claim.group != 0 ? claim.group : kGroup;
  const bool agree = weight.shape[0] == scale.shape[0] && weight.shape[1] < (std::uint64_t{1} << 62) &&
                     (2 * weight.shape[1]) % group == 0 && scale.shape[1] == 2 * weight.shape[1] / group;
  if (agree) return;
  faults.add("agree ", name, Scale,
             "has the shape " + shape_text(2, scale.shape) + ", which does not go with " +
                 shape_text(2, weight.shape) + " of its weight and groups of " + std::to_string(group));
}

// The configuration promises what no tensor keeps.
std::vector<Finding> Nvfp4Experts::contradicted(const Claim& claim) const {
  const bool weights = std::any_of(linears_.begin(), linears_.end(),
                                   [](const Linear& linear) { return linear[Weight].there; });
  if (!claim.experts || !weights || (claim.in_linears && anywhere_)) return {};
  return {quant_config("config.json says that the routed experts are NVFP4, and " +
                           short_name(names_.name(0)) + " and all others are not",
                       "fetch config.json and the shards of one revision")};
}

std::vector<Finding> Nvfp4Experts::check(const std::optional<std::string>& config, bool complete) const {
  const Claim claim = Claim::of(config);
  Faults faults;
  std::optional<std::uint32_t> first;
  for (std::uint32_t i = 0; i < linears_.size(); ++i) {
    if (!quantized(linears_[i], claim.experts)) continue;
    if (!first) first = i;
    judge(names_.name(i), linears_[i], claim, complete, faults);
  }
  if (!first) return complete ? contradicted(claim) : std::vector<Finding>{};

  std::vector<Finding> findings;
  if (!claim.missing.empty())
    findings.push_back(quant_config(
        "the routed experts are NVFP4 (" + short_name(names_.name(*first)) +
            "), and the engine would not know: " + claim.missing + "; it needs " + kFields,
        "fetch config.json of the same revision again", {{"linear", short_name(names_.name(*first))}}));
  for (const auto& [kind, one] : faults.by_kind) {
    const std::string more =
        one.count > 1 ? " (and " + std::to_string(one.count - 1) + " more in the same way)" : "";
    findings.push_back(quant_config(one.first + " of an NVFP4 expert " + one.how + more,
                                    "fetch config.json and the shards of one revision",
                                    {{"tensor", one.first}, {"tensors", one.count}}));
  }
  return findings;
}

}  // namespace troika::model
