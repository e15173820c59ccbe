// Every message: what is written is read again, and what is wrong is named.
#include "protocol/messages.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <set>

#include "protocol/codec.hpp"
#include "tests/unit/protocol/fill.hpp"

namespace troika::protocol {
namespace {

using All =
    testing::Types<Refusal, ExitStatus, StageReport, Hello, Welcome, LinkFact, NodeFacts, Heartbeat,
                   HeartbeatAck, StageEvent, StageEventAck, ManifestFile, Manifest, Verify, VerifyProgress,
                   VerifyDone, EnginePlan, StartStage, StopStage, Probe, ProbeDone, GatewayHello, RouteTarget,
                   Route, RouteApplied, TargetLoad, GatewayStats, RequestFailed, RelayRequest, RelayHead,
                   RelayEnd, StatusRequest, StageStatus, ReplicaStatus, NodeStatus, GatewayStatus, Incident,
                   StatusReply, Command, CommandProgress, CommandDone, IncidentsRequest, IncidentsReply>;

template <class T>
struct NamesOf;
template <class... T>
struct NamesOf<testing::Types<T...>> {
  static std::multiset<std::string> names() { return {std::string(T::kType)...}; }
};

template <class T>
class EveryMessage : public testing::Test {};
TYPED_TEST_SUITE(EveryMessage, All);

// Incident is only ever a part of other messages: its id would be taken for the envelope's.
template <Message T>
constexpr bool kTravelsAlone = !std::is_same_v<T, Incident>;

// The fields as they travel: through the text of a frame.
template <Message T>
Result<T> travelled(const T& message) {
  if (!kTravelsAlone<T>) return from_json<T>(Json::parse(to_json(message).dump()));
  const std::string frame = encode(message, 7);
  const auto envelope = parse_envelope(frame);
  if (!envelope.ok()) return envelope.error();
  EXPECT_EQ(envelope->type, T::kType);
  EXPECT_EQ(envelope->id, 7u);
  EXPECT_TRUE(is_supported(*envelope));
  return decode<T>(*envelope);
}

TYPED_TEST(EveryMessage, RoundTripsWithEveryFieldSet) {
  const TypeParam sent = filled<TypeParam>();
  const auto got = travelled(sent);
  ASSERT_TRUE(got.ok()) << got.error().message();
  EXPECT_TRUE(*got == sent) << to_json(*got).dump(1) << to_json(sent).dump(1);
  if (!fields_of<TypeParam>().empty()) {
    EXPECT_FALSE(sent == TypeParam{});
  }
}

TYPED_TEST(EveryMessage, RoundTripsWithDefaults) {
  const auto got = travelled(TypeParam{});
  ASSERT_TRUE(got.ok()) << got.error().message();
  EXPECT_TRUE(*got == TypeParam{});
}

TYPED_TEST(EveryMessage, LeavesTheEnvelopesFieldsAlone) {
  for (const FieldName& field : fields_of<TypeParam>())
    EXPECT_TRUE((field.name != "v" && field.name != "type" && field.name != "id") ||
                !kTravelsAlone<TypeParam>);
}

// A newer peer may say more.
TYPED_TEST(EveryMessage, IgnoresFieldsItDoesNotKnow) {
  Json json = to_json(filled<TypeParam>());
  json["a_field_of_tomorrow"] = {{"nested", {1, 2, 3}}};
  const auto got = from_json<TypeParam>(json);
  ASSERT_TRUE(got.ok()) << got.error().message();
  EXPECT_TRUE(*got == filled<TypeParam>());
}

TYPED_TEST(EveryMessage, NamesTheFieldThatIsMissing) {
  for (const FieldName& field : fields_of<TypeParam>()) {
    Json json = to_json(filled<TypeParam>());
    json.erase(field.name);
    const auto got = from_json<TypeParam>(json);
    EXPECT_EQ(got.ok(), !field.required) << field.name;
    if (got.ok()) continue;
    EXPECT_EQ(got.error().message(), "cannot read the " + std::string(TypeParam::kType) + " field \"" +
                                         field.name + "\": a value (it is missing) is expected");
  }
}

// An older peer does not send it, and some writers say null.
TYPED_TEST(EveryMessage, KeepsTheDefaultOfAnOptionalField) {
  for (const FieldName& field : fields_of<TypeParam>()) {
    if (field.required) continue;
    Json without = to_json(filled<TypeParam>()), null = without;
    without.erase(field.name);
    null[field.name] = nullptr;
    const auto a = from_json<TypeParam>(without), b = from_json<TypeParam>(null);
    ASSERT_TRUE(a.ok() && b.ok()) << field.name;
    EXPECT_TRUE(*a == *b);
    EXPECT_EQ(to_json(*a)[field.name], to_json(TypeParam{})[field.name]);
  }
}

TYPED_TEST(EveryMessage, NamesTheFieldOfAnotherType) {
  for (const FieldName& field : fields_of<TypeParam>()) {
    for (const Json& wrong :
         {Json("a word"), Json(-1.5), Json({1, "x"}), Json({{"x", Json::array()}}), Json(true)}) {
      Json json = to_json(filled<TypeParam>());
      if (wrong.type() == json[field.name].type()) continue;
      if (wrong.is_number() && json[field.name].is_number_float()) continue;
      json[field.name] = wrong;
      const auto got = from_json<TypeParam>(json);
      ASSERT_FALSE(got.ok()) << field.name << " = " << wrong;
      EXPECT_NE(got.error().message().find("field \"" + field.name), std::string::npos)
          << got.error().message();
    }
  }
}

TYPED_TEST(EveryMessage, ChangedTextNeverCrashes) {
  const std::string frame = encode(filled<TypeParam>(), 1);
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    std::string text = frame;
    for (auto changes = 1 + random() % 3; changes > 0; --changes) {
      const std::size_t at = random() % text.size();
      if (random() % 2 == 0)
        text[at] = static_cast<char>(random());
      else
        text.erase(at, 1 + random() % 8);
      if (text.empty()) text = "{";
    }
    const auto envelope = parse_envelope(text);
    if (!envelope.ok()) continue;
    const auto message = decode<TypeParam>(*envelope);
    if (message.ok()) {
      EXPECT_FALSE(encode(*message, 2).empty());
    }
  }
}

TYPED_TEST(EveryMessage, ChangedValuesNeverCrash) {
  const Json good = to_json(filled<TypeParam>()).flatten();
  std::mt19937 random(6);
  const std::vector<Json> values{
      Json(),     Json(""),      Json(-1),       Json(~std::uint64_t{0}),      Json(1e300),
      Json(true), Json::array(), Json::object(), Json(std::string("\xff\xfe"))};
  for (int round = 0; round < 100 && !good.empty(); ++round) {
    Json flat = good;
    auto at = flat.begin();
    std::advance(at, random() % flat.size());
    const Json& value = values[random() % values.size()];
    // flatten's inverse takes plain values only.
    if (value.is_structured()) continue;
    *at = value;
    const auto message = from_json<TypeParam>(flat.unflatten());
    if (message.ok()) {
      EXPECT_FALSE(encode(*message, 2).empty());
    }
  }
}

// The list above is complete: the headers name each message once.
TEST(Messages, AllAreTested) {
  std::multiset<std::string> written;
  for (const auto& file : std::filesystem::directory_iterator(TROIKA_PROTOCOL_DIR)) {
    if (file.path().extension() != ".hpp") continue;
    std::ifstream in(file.path());
    for (std::string line; std::getline(in, line);) {
      const std::size_t at = line.find("TROIKA_FIELDS(");
      const std::size_t open = line.find('"');
      if (at == std::string::npos || open == std::string::npos || line.starts_with("#define")) continue;
      written.insert(line.substr(open + 1, line.find('"', open + 1) - open - 1));
    }
  }
  const auto tested = NamesOf<All>::names();
  EXPECT_EQ(tested, written);
  EXPECT_EQ(std::set<std::string>(tested.begin(), tested.end()).size(), tested.size())
      << "two messages of one name";
}

TEST(Messages, NestedFieldsAreNamedByTheirPath) {
  Json json = to_json(filled<Hello>());
  json["stages"][1]["exit"]["signal"] = "nine";
  const auto got = from_json<Hello>(json);
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().message(),
            "cannot read the hello field \"stages[1].exit.signal\": a whole number is expected");

  Json verify = to_json(filled<Verify>());
  verify["manifest"]["files"]["one"]["bytes"] = -1;
  EXPECT_EQ(from_json<Verify>(verify).error().subject, "field \"manifest.files.one.bytes\"");

  Json command = to_json(filled<Command>());
  command["verb"] = "explode";
  EXPECT_EQ(from_json<Command>(command).error().reason,
            "one of start, stop, restart, drain, failover is expected");
}

TEST(Messages, NumbersKeepTheirRange) {
  Json json = to_json(filled<StartStage>());
  json["rank"] = std::uint64_t{1} << 32;
  EXPECT_EQ(from_json<StartStage>(json).error().reason, "a whole number below 2^32 is expected");
  json["rank"] = -1;
  EXPECT_EQ(from_json<StartStage>(json).error().reason, "a whole number from 0 is expected");
  json["rank"] = 1.0;
  EXPECT_FALSE(from_json<StartStage>(json).ok());
}

// Codes are only added: what an older reader does not know it cannot judge, and says so.
TEST(Messages, AnUnknownFindingCodeIsKept) {
  Json json = to_json(filled<VerifyDone>());
  json["findings"][0]["code"] = "CODE_OF_TOMORROW";
  const auto got = from_json<VerifyDone>(json);
  ASSERT_TRUE(got.ok()) << got.error().message();
  EXPECT_EQ(got->findings[0].code, Code::CANNOT_TELL);
  ASSERT_FALSE(got->findings[0].evidence.empty());
  EXPECT_EQ(std::get<std::string>(got->findings[0].evidence[0].second), "CODE_OF_TOMORROW");
  json["findings"][0]["severity"] = "fatal";
  EXPECT_EQ(from_json<VerifyDone>(json).error().subject, "field \"findings[0].severity\"");
}

// Paths and log lines are bytes of somebody else.
TEST(Messages, TextThatIsNotUtf8IsReplacedNotThrown) {
  StageEventAck ack;
  ack.event = "caf\xe9 \xff\xfe";
  const auto got = travelled(ack);
  ASSERT_TRUE(got.ok()) << got.error().message();
  EXPECT_EQ(got->event, "caf\xef\xbf\xbd \xef\xbf\xbd\xef\xbf\xbd");
}

}  // namespace
}  // namespace troika::protocol
