#include "engine/native/service/scheduler.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace troika::native {
namespace {

std::vector<tokenizer::TokenId> prompt(std::size_t n) {
  return std::vector<tokenizer::TokenId>(n, 3);
}

SchedulerLimits limits(std::uint32_t running, std::uint32_t rows, std::uint32_t in_flight, std::uint64_t kv) {
  return {running, rows, in_flight, 4, kv};
}

StepTokens answer(const Step& step) {
  StepTokens tokens{step.number, {}};
  for (const auto& segment : step.segments) {
    if (segment.sample) tokens.sampled.push_back({segment.sequence, 9});
  }
  return tokens;
}

TEST(Scheduler, CutsPromptsIntoChunksAndSamplesAfterTheLast) {
  Scheduler scheduler(limits(4, 8, 4, 1024));
  const auto id = *scheduler.add(prompt(20), 5, {});
  for (const auto& [start, count, sample] : {std::tuple{0U, 8U, false}, {8U, 8U, false}, {16U, 4U, true}}) {
    const auto step = scheduler.next();
    ASSERT_TRUE(step.has_value());
    ASSERT_EQ(step->segments.size(), 1U);
    EXPECT_EQ(step->segments[0], (Segment{id, start, count, sample}));
    EXPECT_EQ(step->tokens.size(), count);
  }
  EXPECT_FALSE(scheduler.next().has_value()) << "the token is not there yet";
}

TEST(Scheduler, KeepsAtMostItsLimitInFlight) {
  Scheduler scheduler(limits(4, 8, 2, 1024));
  ASSERT_TRUE(scheduler.add(prompt(100), 5, {}).ok());
  const auto first = scheduler.next();
  EXPECT_TRUE(scheduler.next().has_value());
  EXPECT_FALSE(scheduler.next().has_value());
  EXPECT_TRUE(scheduler.receive(answer(*first)).ok());
  EXPECT_TRUE(scheduler.next().has_value());
}

TEST(Scheduler, DecodingGoesBeforePrefillInEveryStep) {
  Scheduler scheduler(limits(4, 8, 1, 4096));
  const auto first = *scheduler.add(prompt(4), 100, {});
  auto step = *scheduler.next();
  ASSERT_TRUE(scheduler.receive(answer(step)).ok());
  const auto second = *scheduler.add(prompt(1000), 100, {});
  for (int i = 0; i < 20; ++i) {
    step = *scheduler.next();
    ASSERT_EQ(step.segments.size(), 2U);
    EXPECT_EQ(step.segments[0].sequence, first);
    EXPECT_EQ(step.segments[1].sequence, second);
    EXPECT_EQ(step.segments[1].count, 7U);
    ASSERT_TRUE(scheduler.receive(answer(step)).ok());
  }
}

TEST(Scheduler, AdmissionWaitsForRoomAndGoesInOrder) {
  Scheduler scheduler(limits(4, 64, 1, 64));
  const auto first = *scheduler.add(prompt(30), 10, {});
  const auto second = *scheduler.add(prompt(30), 10, {});
  const auto third = *scheduler.add(prompt(2), 2, {});
  auto step = *scheduler.next();
  ASSERT_EQ(step.admissions.size(), 1U);
  EXPECT_EQ(scheduler.waiting(), 2U) << "the third would fit, but came later";
  EXPECT_EQ(scheduler.kv_reserved(), 48U);
  ASSERT_TRUE(scheduler.receive(answer(step)).ok());
  scheduler.end(first);
  step = *scheduler.next();
  EXPECT_EQ(step.releases, std::vector<SequenceId>{first});
  ASSERT_EQ(step.admissions.size(), 2U);
  EXPECT_EQ(step.admissions[0].sequence, second);
  EXPECT_EQ(step.admissions[1].sequence, third);
}

TEST(Scheduler, RefusesWhatNeverFitsAndWhatIsTooMuch) {
  Scheduler scheduler(limits(1, 8, 1, 64));
  EXPECT_FALSE(scheduler.add(prompt(60), 5, {}).ok());
  for (int i = 0; i < 4; ++i)
    EXPECT_TRUE(scheduler.add(prompt(4), 5, {}).ok());
  EXPECT_FALSE(scheduler.add(prompt(4), 5, {}).ok());
}

TEST(Scheduler, AnEndedSequenceIsReleasedEvenWithNothingElseToDo) {
  Scheduler scheduler(limits(4, 8, 2, 64));
  const auto id = *scheduler.add(prompt(4), 5, {});
  const auto step = *scheduler.next();
  scheduler.end(id);
  const auto release = scheduler.next();
  ASSERT_TRUE(release.has_value());
  EXPECT_EQ(release->releases, std::vector<SequenceId>{id});
  EXPECT_TRUE(release->segments.empty());
  EXPECT_EQ(scheduler.kv_reserved(), 0U);
  EXPECT_TRUE(scheduler.receive(answer(step))->empty()) << "its token is nobody's";
  ASSERT_TRUE(scheduler.receive(answer(*release)).ok());
  EXPECT_FALSE(scheduler.next().has_value());
}

TEST(Scheduler, AnAbortWhileWaitingNeedsNoRelease) {
  Scheduler scheduler(limits(1, 8, 1, 64));
  ASSERT_TRUE(scheduler.add(prompt(4), 5, {}).ok());
  const auto waiting = *scheduler.add(prompt(4), 5, {});
  ASSERT_TRUE(scheduler.next().has_value());
  scheduler.end(waiting);
  EXPECT_EQ(scheduler.waiting(), 0U);
}

TEST(Scheduler, AnswersOutOfOrderOrUnaskedAreFaults) {
  Scheduler scheduler(limits(2, 8, 2, 64));
  const auto id = *scheduler.add(prompt(12), 5, {});
  const auto step = *scheduler.next();
  EXPECT_FALSE(scheduler.receive({2, {}}).ok());
  EXPECT_FALSE(scheduler.receive({step.number, {{id, 4}}}).ok()) << "the prompt is not complete";
}

// Random arrivals, ends and answers: positions stay consecutive, limits hold, everything is released once.
TEST(Scheduler, HoldsItsPromisesUnderRandomLoad) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    std::mt19937 engine(seed);
    const auto random = [&](unsigned below) { return static_cast<unsigned>(engine()) % below; };
    const auto bounds = limits(3, 16, 3, 256);
    Scheduler scheduler(bounds);
    std::map<SequenceId, std::uint32_t> lengths;  // admitted, as a rank sees them
    std::map<SequenceId, unsigned> output;        // tokens still to come
    std::vector<SequenceId> alive;
    std::deque<Step> flight;
    for (int turn = 0; turn < 2000; ++turn) {
      switch (random(4)) {
        case 0: {
          const auto tokens = 1 + random(40);
          if (const auto id = scheduler.add(prompt(1 + random(80)), tokens, {}); id.ok()) {
            alive.push_back(*id);
            output[*id] = tokens;
          }
          break;
        }
        case 1:
          if (!alive.empty() && random(4) == 0) {
            const auto at = random(static_cast<unsigned>(alive.size()));
            scheduler.end(alive[at]);
            alive.erase(alive.begin() + at);
          }
          break;
        case 2:
          if (auto step = scheduler.next()) {
            for (const auto id : step->releases)
              EXPECT_EQ(lengths.erase(id), 1U);
            for (const auto& admission : step->admissions)
              EXPECT_TRUE(lengths.try_emplace(admission.sequence, 0).second);
            EXPECT_LE(lengths.size(), bounds.running);
            EXPECT_LE(step->rows(), bounds.rows);
            std::uint64_t pages = 0;
            for (const auto& segment : step->segments) {
              ASSERT_TRUE(lengths.contains(segment.sequence));
              EXPECT_EQ(lengths[segment.sequence], segment.start);
              lengths[segment.sequence] += segment.count;
            }
            for (const auto& [id, length] : lengths)
              pages += (length + kPageTokens - 1) / kPageTokens;
            EXPECT_LE(pages * kPageTokens, bounds.kv_tokens);
            flight.push_back(std::move(*step));
            EXPECT_LE(flight.size(), bounds.in_flight);
          }
          break;
        default:
          if (!flight.empty()) {
            const auto live = scheduler.receive(answer(flight.front()));
            ASSERT_TRUE(live.ok()) << live.error().message();
            flight.pop_front();
            for (const auto& sampled : *live) {
              if (--output[sampled.sequence] > 0 && random(20) != 0) continue;
              scheduler.end(sampled.sequence);
              std::erase(alive, sampled.sequence);
            }
          }
      }
    }
  }
}

}  // namespace
}  // namespace troika::native
