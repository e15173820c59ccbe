// The gateway's smaller parts: event splitter, ledger, stored route, counters.
#include <gtest/gtest.h>

#include "daemon/gateway/counters.hpp"
#include "daemon/gateway/event_splitter.hpp"
#include "daemon/gateway/ledger.hpp"
#include "daemon/gateway/route_book.hpp"
#include "tests/unit/platform/folder.hpp"

namespace troika::daemon::gateway {
namespace {

using platform::Folder;

std::vector<std::string> split(const std::string& bytes, std::size_t piece) {
  EventSplitter splitter;
  std::vector<std::string> events;
  for (std::size_t i = 0; i < bytes.size(); i += piece) {
    splitter.feed(bytes.substr(i, piece));
    for (auto event = splitter.next(); !event.empty(); event = splitter.next())
      events.push_back(event);
  }
  const auto rest = splitter.take_rest();
  if (!rest.empty()) events.push_back("rest:" + rest);
  return events;
}

TEST(EventSplitter, CutsAtBlankLinesWhateverThePiecesAre) {
  const std::string stream = "data: a\n\ndata: b\r\n\r\n: ping\n\nevent: x\ndata: c\n\ndata: hal";
  const std::vector<std::string> expected{"data: a\n\n", "data: b\r\n\r\n", ": ping\n\n",
                                          "event: x\ndata: c\n\n", "rest:data: hal"};
  for (std::size_t piece = 1; piece <= stream.size(); ++piece)
    EXPECT_EQ(split(stream, piece), expected) << piece;
}

TEST(EventSplitter, TellsOfAnEventBeyondItsBound) {
  EventSplitter splitter;
  splitter.feed(std::string(EventSplitter::kMaxEvent, 'x'));
  EXPECT_EQ(splitter.next(), "");
  EXPECT_FALSE(splitter.overflowed());
  splitter.feed("x");
  EXPECT_EQ(splitter.next(), "");
  EXPECT_TRUE(splitter.overflowed());
}

LedgerEntry entry(const std::string& id) {
  return {id, WallTime{}, "a", Epoch{3}, Tokens{5}, Tokens{6}};
}

TEST(Ledger, KeepsTheBucketAndTheCountOverARestart) {
  Folder folder;
  {
    auto ledger = Ledger::open(folder / "g.sqlite");
    ASSERT_TRUE(ledger.ok());
    EXPECT_TRUE(ledger->created());
    EXPECT_FALSE((*ledger->last_record()).has_value());
    ASSERT_TRUE(ledger->admit(entry("r1"), {Instant{Duration{77}}, "boot"}).ok());
    ASSERT_TRUE(ledger->finish("r1", "complete", Tokens{9}, WallTime{}).ok());
    ASSERT_TRUE(ledger->admit(entry("r2"), {Instant{Duration{99}}, "boot"}).ok());
    ASSERT_TRUE(ledger->renew({Instant{Duration{111}}, "boot"}).ok());
  }
  auto ledger = Ledger::open(folder / "g.sqlite");
  ASSERT_TRUE(ledger.ok());
  EXPECT_FALSE(ledger->created());
  EXPECT_EQ(ledger->admitted(), 2u);
  const auto record = *ledger->last_record();
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->tat, Instant{Duration{111}});
  EXPECT_EQ(record->boot_id, "boot");
  EXPECT_EQ(*ledger->close_lost(WallTime{}), 1);  // r2 never ended
  EXPECT_EQ(*ledger->close_lost(WallTime{}), 0);
}

TEST(Ledger, SameRequestTwiceIsRefusedAndCountsOnce) {
  Folder folder;
  auto ledger = Ledger::open(folder / "g.sqlite");
  ASSERT_TRUE(ledger.ok());
  ASSERT_TRUE(ledger->admit(entry("r1"), {}).ok());
  EXPECT_FALSE(ledger->admit(entry("r1"), {}).ok());
  EXPECT_EQ(ledger->admitted(), 1u);
}

TEST(Ledger, DamagedFileIsNamedAndLeftAsItIs) {
  Folder folder;
  const std::string path = folder / "g.sqlite";
  ASSERT_TRUE(platform::write_file_durably(path, std::string(8192, 'x')).ok());
  const auto ledger = Ledger::open(path);
  ASSERT_FALSE(ledger.ok());
  EXPECT_NE(ledger.error().message().find(path), std::string::npos);
  EXPECT_EQ(platform::content_of(path), std::string(8192, 'x'));
}

protocol::Route route(std::uint64_t term, std::uint64_t generation) {
  protocol::Route r;
  r.term = Term{term};
  r.generation = generation;
  r.targets.push_back({"a", Epoch{4}, "127.0.0.1:1", "n1", Tokens{5}});
  return r;
}

TEST(RouteBook, OnlyNewerRoutesAreObeyedAndTheLastOutlivesTheProcess) {
  Folder folder;
  {
    auto book = RouteBook::open(folder / "route.json");
    ASSERT_TRUE(book.ok());
    EXPECT_EQ(book->target(0), nullptr);
    EXPECT_TRUE(book->apply(route(2, 5)).ok());
    EXPECT_TRUE(book->apply(route(2, 5)).ok());   // again
    EXPECT_FALSE(book->apply(route(2, 4)).ok());  // older
    EXPECT_FALSE(book->apply(route(1, 9)).ok());  // an earlier leader's
    EXPECT_TRUE(book->apply(route(3, 1)).ok());   // a later leader's
  }
  auto book = RouteBook::open(folder / "route.json");
  ASSERT_TRUE(book.ok());
  ASSERT_NE(book->target(0), nullptr);
  EXPECT_EQ(book->route()->term, Term{3});
  EXPECT_EQ(book->target(0)->relay_address, "127.0.0.1:1");
  EXPECT_EQ(book->target(1), nullptr);
}

TEST(RouteBook, WhatCannotBeWrittenIsNotInForce) {
  Folder folder;
  auto book = RouteBook::open(folder / "none/route.json");
  ASSERT_TRUE(book.ok());
  EXPECT_FALSE(book->apply(route(1, 1)).ok());
  EXPECT_EQ(book->target(0), nullptr);
}

TEST(RouteBook, DamagedFileIsNamed) {
  Folder folder;
  const std::string path = folder / "route.json";
  ASSERT_TRUE(platform::write_file_durably(path, "{\"term\":").ok());
  const auto book = RouteBook::open(path);
  ASSERT_FALSE(book.ok());
  EXPECT_NE(book.error().message().find(path), std::string::npos);
}

TEST(Counters, PrometheusText) {
  Counters counters;
  counters.refuse("rate_limit_exceeded");
  counters.refuse("rate_limit_exceeded");
  counters.fail("upstream_failed");
  counters.first_byte(std::chrono::milliseconds{300});
  counters.first_byte(std::chrono::minutes{10});
  const auto text = prometheus_text(counters, {});
  EXPECT_NE(text.find("troika_gateway_refused_total{code=\"rate_limit_exceeded\"} 2\n"), std::string::npos);
  EXPECT_NE(text.find("troika_gateway_failed_total{code=\"upstream_failed\"} 1\n"), std::string::npos);
  EXPECT_NE(text.find("troika_gateway_ttft_seconds_bucket{le=\"0.25\"} 0\n"), std::string::npos);
  EXPECT_NE(text.find("troika_gateway_ttft_seconds_bucket{le=\"0.5\"} 1\n"), std::string::npos);
  EXPECT_NE(text.find("troika_gateway_ttft_seconds_bucket{le=\"320\"} 1\n"), std::string::npos);
  EXPECT_NE(text.find("troika_gateway_ttft_seconds_bucket{le=\"+Inf\"} 2\n"), std::string::npos);
  EXPECT_NE(text.find("troika_gateway_ttft_seconds_count 2\n"), std::string::npos);
}

}  // namespace
}  // namespace troika::daemon::gateway
