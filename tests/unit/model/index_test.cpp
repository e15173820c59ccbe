// The index against the headers (mode 1): every way in which they can differ, by a plain second reckoning.
#include "agent/model/index.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

namespace troika::model {
namespace {

using Shards = std::map<std::string, std::set<std::string>>;  // by name: its tensors
using Listed = std::map<std::string, std::string>;            // by tensor: the shard
using Counts = std::map<std::string, std::int64_t>;           // "CODE shard how": tensors

safetensors::Header header_of(const std::set<std::string>& tensors) {
  std::string json = "{";
  std::size_t at = 0;
  for (const std::string& tensor : tensors) {
    json += (at == 0 ? "\"" : ",\"") + tensor + R"(":{"dtype":"U8","shape":[1],"data_offsets":[)" +
            std::to_string(at) + "," + std::to_string(at + 1) + "]}";
    ++at;
  }
  return safetensors::parse_header(json + "}");
}

NamedIndex index_of(const Listed& listed, const std::string& name = "index") {
  std::string json;
  for (const auto& [tensor, shard] : listed)
    json += (json.empty() ? "\"" : ",\"") + tensor + "\":\"" + shard + "\"";
  auto index = safetensors::parse_index(R"({"weight_map":{)" + json + "}}", name);
  EXPECT_TRUE(index.ok()) << json;
  return {name, *std::move(index)};
}

std::vector<NamedIndex> only(NamedIndex index) {
  std::vector<NamedIndex> all;
  all.push_back(std::move(index));
  return all;
}

struct Reckoning {
  Counts disagreements;
  std::int64_t duplicates = 0;
};

std::vector<std::string> holders(const Shards& shards, const std::string& tensor) {
  std::vector<std::string> out;
  for (const auto& [shard, tensors] : shards)
    if (tensors.count(tensor) != 0) out.push_back(shard);
  return out;
}

Reckoning plainly(const Shards& shards, const Listed& listed,
                  const std::set<std::string, std::less<>>& absent) {
  Reckoning out;
  for (const auto& [tensor, shard] : listed) {
    if (absent.count(shard) != 0) continue;
    const auto held = holders(shards, tensor);
    if (shards.count(shard) == 0)
      ++out.disagreements["MISSING_SHARD " + shard];
    else if (held.empty())
      ++out.disagreements["not in its header " + shard];
    else if (std::find(held.begin(), held.end(), shard) == held.end())
      ++out.disagreements["in another shard " + shard];
  }
  std::set<std::string> all;
  for (const auto& [shard, tensors] : shards)
    all.insert(tensors.begin(), tensors.end());
  for (const std::string& tensor : all) {
    const auto held = holders(shards, tensor);
    out.duplicates += static_cast<std::int64_t>(held.size()) - 1;
    if (listed.count(tensor) == 0) ++out.disagreements["not in the index " + held.front()];
  }
  return out;
}

std::string text_in(const Finding& finding, const char* key) {
  for (const auto& [name, value] : finding.evidence)
    if (const auto* text = std::get_if<std::string>(&value); text != nullptr && name == key) return *text;
  return {};
}

std::int64_t tensors_in(const Finding& finding) {
  for (const auto& [name, value] : finding.evidence)
    if (const auto* count = std::get_if<std::int64_t>(&value); count != nullptr && name == "tensors")
      return *count;
  return 0;
}

Reckoning told(const std::vector<Finding>& findings) {
  Reckoning out;
  for (const Finding& one : findings) {
    if (one.code == Code::DUPLICATE_TENSOR) ++out.duplicates;
    if (one.code == Code::MISSING_SHARD) out.disagreements["MISSING_SHARD " + one.subject] = tensors_in(one);
    for (const char* how : {"not in its header", "in another shard", "not in the index"})
      if (one.code == Code::INDEX_HEADER_DISAGREE && one.message.ends_with(how))
        out.disagreements[std::string(how) + " " + text_in(one, "shard")] = tensors_in(one);
  }
  return out;
}

TEST(Index, EveryDifferenceIsCountedOnce) {
  std::mt19937 random(20261207);
  const auto upto = [&](int most) { return std::uniform_int_distribution<int>(0, most)(random); };
  const std::vector<std::string> names{"a", "b", "c", "d"};
  int with_all = 0;
  for (int round = 0; round < 4000; ++round) {
    Shards shards;
    Listed listed;
    std::set<std::string, std::less<>> absent;
    TensorMap map;
    std::size_t tensors = 0;
    for (const char* shard : {"1.safetensors", "2.safetensors", "3.safetensors"}) {
      for (const std::string& tensor : names)
        if (upto(2) == 0) shards[shard].insert(tensor);
      if (shards[shard].empty()) shards.erase(shard);
      if (shards.count(shard) == 0) continue;
      map.add(shard, header_of(shards[shard]));
      tensors += shards[shard].size();
    }
    if (upto(1) == 0) absent.insert("4.safetensors");
    for (const std::string& tensor : names)
      if (const int at = upto(5); at != 0) listed[tensor] = std::to_string(at) + ".safetensors";
    const Reckoning expected = plainly(shards, listed, absent);
    const Reckoning found = told(map.compare(only(index_of(listed)), absent));
    ASSERT_EQ(found.disagreements, expected.disagreements) << "round " << round;
    ASSERT_EQ(found.duplicates, expected.duplicates) << "round " << round;
    ASSERT_EQ(map.tensors(), tensors);
    const Reckoning without = told(map.compare({}, absent));
    EXPECT_EQ(without.duplicates, expected.duplicates);
    EXPECT_TRUE(without.disagreements.empty());
    with_all += expected.disagreements.size() >= 4 && expected.duplicates > 0 ? 1 : 0;
  }
  EXPECT_GT(with_all, 10);  // the worlds are of many kinds
}

TEST(Index, ATensorInTwoShardsIsToldInTheirOrder) {
  TensorMap map;
  map.add("1.safetensors", header_of({"a", "b"}));
  map.add("2.safetensors", header_of({"b"}));
  const auto found = map.compare(only(index_of({{"a", "1.safetensors"}, {"b", "2.safetensors"}})), {});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].subject, "b");
  EXPECT_EQ(text_in(found[0], "first"), "1.safetensors");
  EXPECT_EQ(text_in(found[0], "second"), "2.safetensors");
}

// Published models have the same tensors twice in one folder, in two formats with an index each.
TEST(Index, WhatOneOfSeveralIndexesNamesIsListed) {
  TensorMap map;
  map.add("consolidated-1.safetensors", header_of({"a", "b"}));
  map.add("model-1.safetensors", header_of({"a", "c", "d"}));
  auto both =
      only(index_of({{"a", "consolidated-1.safetensors"}, {"b", "consolidated-1.safetensors"}}, "one"));
  both.push_back(
      index_of({{"a", "model-1.safetensors"}, {"c", "model-1.safetensors"}, {"x", "9.safetensors"}}, "two"));
  const auto findings = map.compare(both, {});
  const Reckoning found = told(findings);
  EXPECT_EQ(found.disagreements,
            (Counts{{"MISSING_SHARD 9.safetensors", 1}, {"not in the index model-1.safetensors", 1}}));
  EXPECT_EQ(found.duplicates, 0);
  EXPECT_NE(findings[0].message.find("named by two"), std::string::npos) << findings[0].message;
}

TEST(Index, ManyDuplicatesAreCounted) {
  std::set<std::string> names;
  for (int i = 0; i < 40; ++i)
    names.insert("t" + std::to_string(i));
  TensorMap map("original/");
  map.add("1.safetensors", header_of(names));
  map.add("2.safetensors", header_of(names));
  const auto found = map.compare({}, {});
  ASSERT_EQ(found.size(), 16U);
  EXPECT_NE(found.back().message.find("24 more"), std::string::npos) << found.back().message;
  EXPECT_EQ(text_in(found.back(), "first"), "original/1.safetensors");
}

TEST(Index, EndlessNamesAndShardsTakeNoRoomInTheReport) {
  const std::string name(3u << 20, 'n');
  Listed listed{{name, "1.safetensors"}};
  for (int i = 0; i < 5000; ++i)
    listed["t" + std::to_string(i)] = "s" + std::to_string(i) + ".safetensors";
  TensorMap map;
  map.add("1.safetensors", header_of({name + "x"}));
  const auto findings = map.compare(only(index_of(listed)), {});
  EXPECT_EQ(findings.size(), 258U);  // 256 shards that are not there, one tensor each way
  for (const Finding& one : findings) {
    EXPECT_LE(one.subject.size(), kLongestSubject);
    EXPECT_LE(one.message.size(), kLongestText);
    if (one.code == Code::INDEX_HEADER_DISAGREE) {
      EXPECT_NE(one.message.find("... "), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace troika::model
