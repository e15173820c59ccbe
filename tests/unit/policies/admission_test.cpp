// Admission: the caps, the rate as a promise about any interval, the queue. Cases E10, E11, E16; modes
// 78, 79.
#include "policies/admission.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "tests/sim/random.hpp"

namespace troika::policies {
namespace {

using namespace std::chrono_literals;

constexpr RequestSize kSmall{Tokens{100}, Tokens{100}};
constexpr Tokens kUnknown{};
const Instant kStart{1h};

Admission fresh(AdmissionRule rule = {}) {
  Admission admission(rule);
  admission.restore(std::nullopt, "boot-1", kStart);
  return admission;
}

std::optional<Admitted> admitted(const AdmissionAnswer& answer) {
  const auto* a = std::get_if<Admitted>(&answer);
  return a == nullptr ? std::nullopt : std::optional(*a);
}
Refused refused(const AdmissionAnswer& answer) {
  const auto* r = std::get_if<Refused>(&answer);
  return r == nullptr ? Refused{RefusalKind::RateLimit, 0, "not refused"} : *r;
}
bool pass_one(Admission& admission, Instant at) {
  const auto a = admitted(admission.ask(kSmall, kUnknown, at));
  if (!a.has_value()) return false;
  admission.passed(a->ticket, at);
  admission.ended(a->ticket);
  return true;
}

TEST(Caps, E10_PromptOverTheCapIsRefusedForGoodWithBothFigures) {
  Admission admission = fresh();
  const Refused r = refused(admission.ask({Tokens{8193}, Tokens{1}}, kUnknown, kStart));
  EXPECT_EQ(r.kind, RefusalKind::PromptCap);
  EXPECT_EQ(r.retry_after_s, 0u);
  EXPECT_NE(r.message.find("8193"), std::string::npos);
  EXPECT_NE(r.message.find("8192"), std::string::npos);
  EXPECT_TRUE(admitted(admission.ask({Tokens{8192}, Tokens{1}}, kUnknown, kStart)).has_value());
}

TEST(Caps, E11_WindowIsInclusive) {
  Admission admission = fresh();
  const Refused r = refused(admission.ask({Tokens{8000}, Tokens{4289}}, kUnknown, kStart));
  EXPECT_EQ(r.kind, RefusalKind::Window);
  EXPECT_EQ(r.retry_after_s, 0u);
  EXPECT_NE(r.message.find("12288"), std::string::npos);
  EXPECT_TRUE(admitted(admission.ask({Tokens{8000}, Tokens{4288}}, kUnknown, kStart)).has_value());
}

TEST(Caps, SumsThatOverflowAreOverTheWindow) {
  Admission admission = fresh();
  EXPECT_EQ(refused(admission.ask({Tokens{100}, Tokens{UINT64_MAX - 50}}, kUnknown, kStart)).kind,
            RefusalKind::Window);
}

TEST(Caps, KvCapacityCountsWhatIsInFlight) {
  AdmissionRule rule;
  rule.rate = 100;
  rule.burst = 10;
  Admission admission = fresh(rule);
  const auto first = admitted(admission.ask({Tokens{500}, Tokens{100}}, Tokens{1000}, kStart));
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(admission.active_tokens(), Tokens{600});
  const Refused full = refused(admission.ask({Tokens{300}, Tokens{101}}, Tokens{1000}, kStart));
  EXPECT_EQ(full.kind, RefusalKind::KvCapacity);
  EXPECT_GE(full.retry_after_s, 1u);
  EXPECT_TRUE(admitted(admission.ask({Tokens{300}, Tokens{100}}, Tokens{1000}, kStart)).has_value());
  EXPECT_EQ(refused(admission.ask({Tokens{900}, Tokens{101}}, Tokens{1000}, kStart)).retry_after_s, 0u)
      << "never fits: asking again is no use";
}

TEST(Caps, E16_NinthInFlightIsToldTenSecondsAtLeast) {
  AdmissionRule rule;
  rule.burst = 20;
  Admission admission = fresh(rule);
  for (int i = 0; i < 8; ++i)
    ASSERT_TRUE(admitted(admission.ask(kSmall, kUnknown, kStart)).has_value());
  const Refused r = refused(admission.ask(kSmall, kUnknown, kStart));
  EXPECT_EQ(r.kind, RefusalKind::InFlight);
  EXPECT_GE(r.retry_after_s, 10u);
}

TEST(Rate, RetryAfterIsExactAndRoundedUp) {
  Admission admission = fresh();  // 0.10 a second, burst 1
  ASSERT_TRUE(pass_one(admission, kStart));
  EXPECT_EQ(refused(admission.ask(kSmall, kUnknown, kStart + 3200ms)).retry_after_s, 7u);
  EXPECT_EQ(refused(admission.ask(kSmall, kUnknown, kStart)).retry_after_s, 10u);
  EXPECT_EQ(refused(admission.ask(kSmall, kUnknown, kStart + 9s)).retry_after_s, 1u);
  EXPECT_EQ(refused(admission.ask(kSmall, kUnknown, kStart + 10s - 1ns)).retry_after_s, 1u);
  EXPECT_TRUE(pass_one(admission, kStart + 10s)) << "what was promised holds";
}

TEST(Rate, BurstThenTheRate) {
  AdmissionRule rule;
  rule.burst = 3;
  Admission admission = fresh(rule);
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(pass_one(admission, kStart));
  EXPECT_FALSE(pass_one(admission, kStart + 9s));
  EXPECT_TRUE(pass_one(admission, kStart + 10s));
  EXPECT_FALSE(pass_one(admission, kStart + 10s));
}

TEST(Rate, WhatCountsIsTheInstantOfPassingOn) {
  Admission admission = fresh();
  const auto first = admitted(admission.ask(kSmall, kUnknown, kStart));
  EXPECT_EQ(first->pass_by, kStart + Admission::kPassSlack);
  admission.passed(first->ticket, kStart + 200ms);
  admission.ended(first->ticket);
  EXPECT_FALSE(pass_one(admission, kStart + 10s));
  EXPECT_TRUE(pass_one(admission, kStart + 10s + 200ms));
}

TEST(Rate, BurstNeedNotWaitForEarlierOnesToBePassedOn) {
  AdmissionRule rule;
  rule.burst = 3;
  Admission admission = fresh(rule);
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(admitted(admission.ask(kSmall, kUnknown, kStart)).has_value());
  EXPECT_EQ(refused(admission.ask(kSmall, kUnknown, kStart)).retry_after_s, 11u)
      << "10 s after the latest instant";
}

TEST(Rate, SlowWriteIsRenewedAndCountsWhenItPasses) {
  Admission admission = fresh();
  const auto first = admitted(admission.ask(kSmall, kUnknown, kStart));
  EXPECT_EQ(admission.renew(first->ticket, kStart + 4s), kStart + 4s + Admission::kPassSlack);
  EXPECT_EQ(admission.record().tat, kStart + 14s + Admission::kPassSlack);
  admission.passed(first->ticket, kStart + 4100ms);
  EXPECT_FALSE(pass_one(admission, kStart + 14s));
  EXPECT_TRUE(pass_one(admission, kStart + 14100ms));
  EXPECT_EQ(admission.renew(999, kStart), std::nullopt);
}

TEST(Rate, GivenUpAdmissionFreesItsSlotNotItsPlace) {
  AdmissionRule rule;
  rule.in_flight = 1;
  Admission admission = fresh(rule);
  const auto first = admitted(admission.ask(kSmall, kUnknown, kStart));
  admission.gave_up(first->ticket);
  EXPECT_EQ(admission.in_flight(), 0u);
  EXPECT_EQ(refused(admission.ask(kSmall, kUnknown, kStart + 5s)).kind, RefusalKind::RateLimit);
  EXPECT_TRUE(admitted(admission.ask(kSmall, kUnknown, kStart + 10s + Admission::kPassSlack)).has_value());
}

TEST(Rate, PeekTakesNothing) {
  Admission admission = fresh();
  for (int i = 0; i < 5; ++i)
    EXPECT_TRUE(admitted(admission.peek(kSmall, kUnknown, kStart)).has_value());
  EXPECT_EQ(admission.in_flight(), 0u);
}

TEST(Restart, WithTheRecordNothingIsForgotten) {
  Admission admission = fresh();
  const auto first = admitted(admission.ask(kSmall, kUnknown, kStart));
  const AdmissionRecord record = admission.record();
  EXPECT_EQ(record.tat, first->pass_by + 10s);
  Admission again(AdmissionRule{});
  again.restore(record, "boot-1", kStart + 1s);
  EXPECT_EQ(again.in_flight(), 0u) << "what was in flight died with the gateway";
  EXPECT_EQ(refused(again.ask(kSmall, kUnknown, kStart + 1s)).retry_after_s, 10u);
  EXPECT_TRUE(admitted(again.ask(kSmall, kUnknown, kStart + 10250ms)).has_value());
}

TEST(Restart, AnotherBootStartsWithAnEmptyBucket) {
  AdmissionRule rule;
  rule.burst = 3;
  Admission admission(rule);
  admission.restore(AdmissionRecord{Instant{900h}, "boot-1"}, "boot-2", kStart);
  EXPECT_FALSE(pass_one(admission, kStart + 9s));
  EXPECT_TRUE(pass_one(admission, kStart + 10s));
  EXPECT_FALSE(pass_one(admission, kStart + 10s));
}

TEST(Restart, RecordOfASlowerRuleDoesNotLockOutForEver) {
  Admission admission(AdmissionRule{});
  admission.restore(AdmissionRecord{kStart + 100h, "boot-1"}, "boot-1", kStart);
  EXPECT_TRUE(pass_one(admission, kStart + 10s));
}

TEST(Queue, PlacesAreOneIntervalApartAndFirstInFirstOut) {
  AdmissionRule rule;
  rule.queue = 3;
  rule.queue_wait = 25s;
  Admission admission = fresh(rule);
  ASSERT_TRUE(pass_one(admission, kStart));
  std::deque<Instant> places;
  for (int i = 0; i < 2; ++i) {
    const AdmissionAnswer answer = admission.ask(kSmall, kUnknown, kStart);
    ASSERT_TRUE(std::holds_alternative<Waiting>(answer));
    places.push_back(std::get<Waiting>(answer).until);
  }
  EXPECT_EQ(places[0], kStart + 10s);
  EXPECT_EQ(places[1], kStart + 20s);
  EXPECT_EQ(refused(admission.ask(kSmall, kUnknown, kStart)).retry_after_s, 30u)
      << "would wait longer than allowed";
  EXPECT_TRUE(std::holds_alternative<Waiting>(admission.ask(kSmall, kUnknown, kStart + 10s)))
      << "a newcomer does not overtake";
  ASSERT_TRUE(admitted(admission.ask(kSmall, kUnknown, kStart + 10s, true)).has_value());
  EXPECT_EQ(admission.waiting(), 2u);
}

TEST(Queue, FullOneRefuses) {
  AdmissionRule rule;
  rule.queue = 1;
  rule.queue_wait = 1h;
  Admission admission = fresh(rule);
  ASSERT_TRUE(pass_one(admission, kStart));
  EXPECT_TRUE(std::holds_alternative<Waiting>(admission.ask(kSmall, kUnknown, kStart)));
  EXPECT_EQ(refused(admission.ask(kSmall, kUnknown, kStart)).kind, RefusalKind::RateLimit);
  admission.leave_queue();
  EXPECT_TRUE(std::holds_alternative<Waiting>(admission.ask(kSmall, kUnknown, kStart)));
}

TEST(Queue, WaitsForASlotInFlight) {
  AdmissionRule rule;
  rule.rate = 100;
  rule.in_flight = 1;
  rule.queue = 1;
  rule.queue_wait = 1min;
  Admission admission = fresh(rule);
  const auto first = admitted(admission.ask(kSmall, kUnknown, kStart));
  admission.passed(first->ticket, kStart);
  EXPECT_TRUE(std::holds_alternative<Waiting>(admission.ask(kSmall, kUnknown, kStart + 1s)));
  const AdmissionAnswer still = admission.ask(kSmall, kUnknown, kStart + 2s, true);
  ASSERT_TRUE(std::holds_alternative<Waiting>(still));
  EXPECT_EQ(std::get<Waiting>(still).until, kStart + 2s + Admission::kAskAgain);
  admission.ended(first->ticket);
  EXPECT_TRUE(admitted(admission.ask(kSmall, kUnknown, kStart + 2s, true)).has_value());
}

// A flood of the demo's kind: exactly what the rate allows.
TEST(Rate, FloodAdmitsExactlyWhatTheRateAllows) {
  Admission admission = fresh();
  int passed = 0;
  for (int i = 0; i < 10000; ++i)
    passed += pass_one(admission, kStart + i * 5ms);  // 50 s
  EXPECT_EQ(passed, 5);
}

// The promise itself: whatever the delays between decision and passing on, the restarts with the record of
// the last admission, the boots, and instants that are equal: no interval holds more than burst + rate * w.
class AnyInterval : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(AnyInterval, HoldsAtMostBurstPlusRateTimesW) {
  sim::Random random(GetParam());
  constexpr double kRates[] = {0.1, 0.3, 1, 3, 7, 50};
  AdmissionRule rule;
  rule.rate = kRates[random.below(6)];
  rule.burst = static_cast<std::uint32_t>(1 + random.below(5));
  rule.in_flight = static_cast<std::uint32_t>(1 + random.below(8));
  const auto interval = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(1 / rule.rate));
  struct Pending {
    Admitted admitted;
    Instant at;  // when the caller gets to pass it on
  };
  Admission admission(rule);
  Instant now = kStart;
  Duration clock{};  // of this boot, relative to `now`
  int boot = 1;
  std::optional<AdmissionRecord> written;
  admission.restore(written, "boot-1", now);
  std::vector<Pending> pending;
  std::vector<std::uint64_t> in_flight;
  std::vector<Instant> passes;
  const auto pass_due = [&] {
    std::vector<Pending> renewed;
    std::erase_if(pending, [&](const Pending& p) {
      if (p.at > now) return false;
      const std::uint64_t ticket = p.admitted.ticket;
      if (now + clock <= p.admitted.pass_by) {
        admission.passed(ticket, now + clock);
        in_flight.push_back(ticket);
        passes.push_back(now);
      } else if (random.chance(0.5)) {
        admission.gave_up(ticket);
      } else {
        const auto pass_by = admission.renew(ticket, now + clock);
        written = admission.record();
        renewed.push_back({{ticket, *pass_by}, now + random.between(0ns, 300ms)});
      }
      return true;
    });
    pending.insert(pending.end(), renewed.begin(), renewed.end());
  };
  for (int step = 0; step < 3000; ++step) {
    if (!random.chance(0.2)) now += random.between(0ns, random.chance(0.5) ? interval / 4 : Duration{20ms});
    pass_due();
    if (const auto a = admitted(admission.ask(kSmall, kUnknown, now + clock))) {
      written = admission.record();  // before it is passed on
      pending.push_back(
          {*a, now + random.between(0ns, random.chance(0.5) ? Duration{400ms} : Duration{1ms})});
      pass_due();
    }
    if (!in_flight.empty() && random.chance(0.5)) {
      admission.ended(in_flight.front());
      in_flight.erase(in_flight.begin());
    }
    if (random.chance(0.01)) {  // the gateway ends, now and then with its machine
      if (random.chance(0.3)) {
        ++boot;
        clock = random.between(0s, 100s) - now.time_since_epoch();
      }
      pending.clear();
      in_flight.clear();
      admission = Admission(rule);
      admission.restore(written, "boot-" + std::to_string(boot), now + clock);
    }
  }
  ASSERT_GT(passes.size(), 10u);
  for (std::size_t i = 0; i < passes.size(); ++i) {
    for (std::size_t j = i; j < passes.size(); ++j) {
      const double w = std::chrono::duration<double>(passes[j] - passes[i]).count();
      ASSERT_LE(static_cast<double>(j - i + 1), rule.burst + rule.rate * w + 1e-9)
          << "from " << i << " to " << j << ", rate " << rule.rate << ", burst " << rule.burst;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, AnyInterval, ::testing::Range<std::uint64_t>(1, 41));

}  // namespace
}  // namespace troika::policies
