#include "protocol/codec.hpp"

#include <array>
#include <limits>

namespace troika::protocol {
namespace {

constexpr std::array<std::pair<StageState, std::string_view>, 7> kStageStates{{
    {StageState::Starting, "starting"},
    {StageState::Loading, "loading"},
    {StageState::Ready, "ready"},
    {StageState::Exited, "exited"},
    {StageState::Released, "released"},
    {StageState::NotReleased, "not_released"},
    {StageState::CannotTell, "cannot_tell"},
}};

constexpr std::array<std::pair<Verb, std::string_view>, 5> kVerbs{{
    {Verb::Start, "start"},
    {Verb::Stop, "stop"},
    {Verb::Restart, "restart"},
    {Verb::Drain, "drain"},
    {Verb::Failover, "failover"},
}};

template <class Table, class T>
std::string_view name_in(const Table& table, T value) {
  for (const auto& [v, text] : table)
    if (v == value) return text;
  broken_invariant("enum value", __FILE__, __LINE__);
}

template <class Table, class T>
void read_in(const Table& table, const Json& in, T& value) {
  std::string expected;
  for (const auto& [v, text] : table) {
    if (in.is_string() && in.get_ref<const std::string&>() == text) {
      value = v;
      return;
    }
    expected += (expected.empty() ? "one of " : ", ") + std::string(text);
  }
  throw detail::FieldError{"", expected};
}

// Nesting below an envelope is 6 at the most; a deeper document is hostile and would recurse while it is
// parsed.
constexpr int kMaxDepth = 16;

}  // namespace

std::string_view name(StageState state) {
  return name_in(kStageStates, state);
}
std::string_view name(Verb verb) {
  return name_in(kVerbs, verb);
}

Result<Envelope> parse_envelope(std::string_view frame) {
  const auto bad = [](std::string reason) { return Error{"read the message", "", std::move(reason)}; };
  // The library would take it for the end of the frame.
  if (frame.find('\0') != std::string_view::npos) return bad("not JSON");
  bool too_deep = false;
  Json json = Json::parse(
      frame.begin(), frame.end(),
      [&](int depth, Json::parse_event_t, Json&) {
        too_deep = too_deep || depth > kMaxDepth;
        return !too_deep;
      },
      false);
  if (too_deep) return bad("nested deeper than " + std::to_string(kMaxDepth));
  if (json.is_discarded()) return bad("not JSON");
  if (!json.is_object()) return bad("not a JSON object");
  Envelope envelope;
  const auto version = json.find("v");
  const auto is_number = [](const Json& part) {
    return part.is_number_unsigned() &&
           part.get<std::uint64_t>() <= std::numeric_limits<std::uint32_t>::max();
  };
  if (version == json.end() || !version->is_array() || version->size() != 2 || !is_number((*version)[0]) ||
      !is_number((*version)[1]))
    return bad("\"v\" must be [major, minor]");
  envelope.major = (*version)[0].get<std::uint32_t>();
  envelope.minor = (*version)[1].get<std::uint32_t>();
  const auto type = json.find("type");
  if (type == json.end() || !type->is_string()) return bad("\"type\" must be a string");
  envelope.type = type->get<std::string>();
  const auto id = json.find("id");
  if (id == json.end() || !id->is_number_unsigned()) return bad("\"id\" must be a whole number from 0");
  envelope.id = id->get<std::uint64_t>();
  envelope.body = std::move(json);
  return envelope;
}

Json to_json(const LayerRange& range) {
  return Json::array({range.begin, range.end});
}

Json to_json(const Finding& f) {
  Json evidence = Json::object();
  for (const auto& [key, value] : f.evidence)
    std::visit([&, k = key](const auto& v) { evidence[k] = v; }, value);
  Json out{{"code", troika::name(f.code)},
           {"severity", troika::name(f.severity)},
           {"node", f.node},
           {"subject", f.subject},
           {"message", f.message},
           {"evidence", std::move(evidence)},
           {"remedy", f.remedy}};
  return out;
}

namespace detail {

void read(const Json& in, std::string& v) {
  if (!in.is_string()) throw FieldError{"", "a string"};
  v = in.get<std::string>();
}
void read(const Json& in, bool& v) {
  if (!in.is_boolean()) throw FieldError{"", "true or false"};
  v = in.get<bool>();
}
void read(const Json& in, double& v) {
  if (!in.is_number()) throw FieldError{"", "a number"};
  v = in.get<double>();
}
void read(const Json& in, std::uint64_t& v) {
  if (!in.is_number_unsigned()) throw FieldError{"", "a whole number from 0"};
  v = in.get<std::uint64_t>();
}
void read(const Json& in, std::uint32_t& v) {
  std::uint64_t wide = 0;
  read(in, wide);
  if (wide > std::numeric_limits<std::uint32_t>::max()) throw FieldError{"", "a whole number below 2^32"};
  v = static_cast<std::uint32_t>(wide);
}
void read(const Json& in, std::int64_t& v) {
  if (!in.is_number_integer() || (in.is_number_unsigned() && in.get<std::uint64_t>() > INT64_MAX))
    throw FieldError{"", "a whole number"};
  v = in.get<std::int64_t>();
}
void read(const Json& in, std::int32_t& v) {
  std::int64_t wide = 0;
  read(in, wide);
  if (wide > INT32_MAX || wide < INT32_MIN) throw FieldError{"", "a whole number of 32 bits"};
  v = static_cast<std::int32_t>(wide);
}
void read(const Json& in, StageState& v) {
  read_in(kStageStates, in, v);
}
void read(const Json& in, Verb& v) {
  read_in(kVerbs, in, v);
}
void read(const Json& in, Verdict& v) {
  const auto verdict = in.is_string() ? parse_verdict(in.get_ref<const std::string&>())
                                      : Result<Verdict>{Error{"", "", "a verdict"}};
  if (!verdict.ok()) throw FieldError{"", "ok, warning, cannot_tell or error"};
  v = *verdict;
}
void read(const Json& in, LayerRange& v) {
  if (!in.is_array() || in.size() != 2) throw FieldError{"", "[begin, end]"};
  read(in[0], v.begin);
  read(in[1], v.end);
}
void read(const Json& in, Finding& v) {
  if (!in.is_object()) throw FieldError{"", "a finding"};
  const Reader reader{in};
  std::string code, severity;
  Reader r = reader;
  r.required("code", code);
  r.required("severity", severity);
  r.optional("node", v.node);
  r.optional("subject", v.subject);
  r.optional("message", v.message);
  r.optional("remedy", v.remedy);
  // A newer peer may know codes that this one does not: kept as CANNOT_TELL with the name in the evidence.
  const auto known = parse_code(code);
  v.code = known.ok() ? *known : Code::CANNOT_TELL;
  const auto level = parse_severity(severity);
  if (!level.ok()) throw FieldError{"severity", "info, warning or error"};
  v.severity = *level;
  v.evidence.clear();
  if (!known.ok()) v.evidence.emplace_back("unknown_code", code);
  if (const auto evidence = in.find("evidence"); evidence != in.end() && evidence->is_object()) {
    for (const auto& [key, value] : evidence->items()) {
      if (value.is_string())
        v.evidence.emplace_back(key, value.get<std::string>());
      else if (value.is_boolean())
        v.evidence.emplace_back(key, value.get<bool>());
      else if (value.is_number_integer())
        v.evidence.emplace_back(key, value.get<std::int64_t>());
      else if (value.is_number())
        v.evidence.emplace_back(key, value.get<double>());
    }
  }
}

void rethrow_inside(const std::string& outer, const FieldError& inner) {
  const std::string separator = inner.field.empty() || inner.field.front() == '[' ? "" : ".";
  throw FieldError{outer + separator + inner.field, inner.expected};
}

Error field_error(std::string_view type, const FieldError& e) {
  return Error{"read the " + std::string(type), e.field.empty() ? "" : "field \"" + e.field + "\"",
               e.expected + " is expected"};
}

}  // namespace detail
}  // namespace troika::protocol
