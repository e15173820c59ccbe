// Every message: what is written is read again, and what is wrong is named.
#include "protocol/messages.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <set>

#include "protocol/codec.hpp"
#include "tests/unit/protocol/fill.hpp"

namespace troika::protocol {
namespace {

using All =
    testing::Types<Refusal, ExitStatus, StageReport, Hello, Welcome, LinkFact, NodeFacts, Heartbeat,
                   HeartbeatAck, StageEvent, StageEventAck, ManifestFile, Manifest, Verify, VerifyProgress,
                   VerifyDone, Audit, AuditProgress, AuditDone, EndAudit, AuditRequest, AuditedNode,
                   AuditStatus, AuditReply, EnginePlan, StartStage, StopStage, Probe, ProbeDone, GatewayHello,
                   RouteTarget, Route, RouteApplied, TargetLoad, GatewayStats, RequestFailed, RelayRequest,
                   RelayHead, RelayEnd, StatusRequest, StageStatus, ReplicaStatus, NodeStatus, GatewayStatus,
                   Incident, StatusReply, Command, CommandProgress, CommandDone, IncidentsRequest,
                   IncidentsReply>;

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

template <Message T>
void expect_round_trip(const T& sent) {
  const auto got = travelled(sent);
  ASSERT_TRUE(got.ok()) << got.error().message();
  EXPECT_TRUE(*got == sent) << to_json(*got).dump(1) << to_json(sent).dump(1);
}

// One type of message behind functions of JSON, so that the tests below are compiled once and not for each
// type.
struct Kind {
  std::string type;
  bool travels_alone = false;
  std::vector<FieldName> fields;
  Json defaults;
  Json filled;        // every field different from its default
  std::string frame;  // of the filled one
  std::function<void()> round_trip_of_defaults;
  std::function<void()> round_trip_of_filled;
  std::function<Result<Json>(const Json&)> reread;  // the message read and written again
  std::function<void(const Envelope&)> decode;      // the message read, and encoded again if it can be
};

template <Message T>
Kind kind_of() {
  return {.type = std::string(T::kType),
          .travels_alone = kTravelsAlone<T>,
          .fields = fields_of<T>(),
          .defaults = to_json(T{}),
          .filled = to_json(filled<T>()),
          .frame = encode(filled<T>(), 1),
          .round_trip_of_defaults = [] { expect_round_trip(T{}); },
          .round_trip_of_filled = [] { expect_round_trip(filled<T>()); },
          .reread = [](const Json& json) -> Result<Json> {
            const auto got = from_json<T>(json);
            if (!got.ok()) return got.error();
            return to_json(*got);
          },
          .decode =
              [](const Envelope& envelope) {
                const auto message = protocol::decode<T>(envelope);
                if (message.ok()) {
                  EXPECT_FALSE(encode(*message, 2).empty());
                }
              }};
}

template <class... T>
std::vector<Kind> kinds_of(testing::Types<T...>*) {
  return {kind_of<T>()...};
}

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = kinds_of(static_cast<All*>(nullptr));
  return all;
}

class EveryMessage : public testing::TestWithParam<std::size_t> {
 protected:
  const Kind& kind() const { return kinds()[GetParam()]; }
};
INSTANTIATE_TEST_SUITE_P(, EveryMessage, testing::Range(std::size_t{0}, kinds().size()),
                         [](const auto& which) { return kinds()[which.param].type; });

TEST_P(EveryMessage, RoundTripsWithEveryFieldSet) {
  kind().round_trip_of_filled();
  for (const FieldName& field : kind().fields)
    EXPECT_NE(kind().filled[field.name], kind().defaults[field.name]) << field.name << " was not filled";
}

TEST_P(EveryMessage, RoundTripsWithDefaults) {
  kind().round_trip_of_defaults();
}

TEST_P(EveryMessage, LeavesTheEnvelopesFieldsAlone) {
  if (!kind().travels_alone) return;
  for (const FieldName& field : kind().fields)
    EXPECT_TRUE(field.name != "v" && field.name != "type" && field.name != "id") << field.name;
}

// A newer peer may say more.
TEST_P(EveryMessage, IgnoresFieldsItDoesNotKnow) {
  Json json = kind().filled;
  json["a_field_of_tomorrow"] = {{"nested", {1, 2, 3}}};
  const auto got = kind().reread(json);
  ASSERT_TRUE(got.ok()) << got.error().message();
  EXPECT_EQ(*got, kind().filled);
}

TEST_P(EveryMessage, NamesTheFieldThatIsMissing) {
  for (const FieldName& field : kind().fields) {
    Json json = kind().filled;
    json.erase(field.name);
    const auto got = kind().reread(json);
    EXPECT_EQ(got.ok(), !field.required) << field.name;
    if (got.ok()) continue;
    EXPECT_EQ(got.error().message(), "cannot read the " + kind().type + " field \"" + field.name +
                                         "\": a value (it is missing) is expected");
  }
}

// An older peer does not send it, and some writers say null.
TEST_P(EveryMessage, KeepsTheDefaultOfAnOptionalField) {
  for (const FieldName& field : kind().fields) {
    if (field.required) continue;
    Json without = kind().filled, null = without;
    without.erase(field.name);
    null[field.name] = nullptr;
    const auto a = kind().reread(without), b = kind().reread(null);
    ASSERT_TRUE(a.ok() && b.ok()) << field.name;
    EXPECT_EQ(*a, *b);
    EXPECT_EQ((*a)[field.name], kind().defaults[field.name]);
  }
}

TEST_P(EveryMessage, NamesTheFieldOfAnotherType) {
  for (const FieldName& field : kind().fields) {
    for (const Json& wrong :
         {Json("a word"), Json(-1.5), Json({1, "x"}), Json({{"x", Json::array()}}), Json(true)}) {
      Json json = kind().filled;
      if (wrong.type() == json[field.name].type()) continue;
      if (wrong.is_number() && json[field.name].is_number_float()) continue;
      json[field.name] = wrong;
      const auto got = kind().reread(json);
      ASSERT_FALSE(got.ok()) << field.name << " = " << wrong;
      EXPECT_NE(got.error().message().find("field \"" + field.name), std::string::npos)
          << got.error().message();
    }
  }
}

TEST_P(EveryMessage, ChangedTextNeverCrashes) {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    std::string text = kind().frame;
    for (auto changes = 1 + random() % 3; changes > 0; --changes) {
      const std::size_t at = random() % text.size();
      if (random() % 2 == 0)
        text[at] = static_cast<char>(random());
      else
        text.erase(at, 1 + random() % 8);
      if (text.empty()) text = "{";
    }
    const auto envelope = parse_envelope(text);
    if (envelope.ok()) kind().decode(*envelope);
  }
}

TEST_P(EveryMessage, ChangedValuesNeverCrash) {
  const Json good = kind().filled.flatten();
  std::mt19937 random(6);
  // flatten's inverse takes plain values only.
  const std::vector<Json> values{Json(),
                                 Json(""),
                                 Json(-1),
                                 Json(~std::uint64_t{0}),
                                 Json(1e300),
                                 Json(true),
                                 Json(std::string("\xff\xfe"))};
  for (int round = 0; round < 100 && !good.empty(); ++round) {
    Json flat = good;
    auto at = flat.begin();
    std::advance(at, random() % flat.size());
    *at = values[random() % values.size()];
    const auto again = kind().reread(flat.unflatten());
    if (again.ok()) {
      EXPECT_FALSE(again->is_null());
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
  std::multiset<std::string> tested;
  for (const Kind& kind : kinds())
    tested.insert(kind.type);
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
