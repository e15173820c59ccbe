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

safetensors::Index index_of(const Listed& listed) {
  std::string json;
  for (const auto& [tensor, shard] : listed)
    json += (json.empty() ? "\"" : ",\"") + tensor + "\":\"" + shard + "\"";
  auto index = safetensors::parse_index(R"({"weight_map":{)" + json + "}}", "index");
  EXPECT_TRUE(index.ok()) << json;
  return *std::move(index);
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

Reckoning told(const TensorMap::Comparison& comparison) {
  Reckoning out;
  for (const Finding& one : comparison.disagreements) {
    if (one.code == Code::MISSING_SHARD) {
      out.disagreements["MISSING_SHARD " + one.subject] = tensors_in(one);
      continue;
    }
    EXPECT_EQ(one.code, Code::INDEX_HEADER_DISAGREE);
    for (const char* how : {"not in its header", "in another shard", "not in the index"})
      if (one.message.ends_with(how))
        out.disagreements[std::string(how) + " " + text_in(one, "shard")] = tensors_in(one);
  }
  out.duplicates = static_cast<std::int64_t>(comparison.duplicates.size());
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
    const auto index = index_of(listed);
    const Reckoning expected = plainly(shards, listed, absent),
                    found = told(map.compare(&index, "index", absent));
    ASSERT_EQ(found.disagreements, expected.disagreements) << "round " << round;
    ASSERT_EQ(found.duplicates, expected.duplicates) << "round " << round;
    ASSERT_EQ(map.tensors(), tensors);
    EXPECT_EQ(static_cast<std::int64_t>(map.compare(nullptr, {}, absent).duplicates.size()),
              expected.duplicates);
    EXPECT_TRUE(map.compare(nullptr, {}, absent).disagreements.empty());
    with_all += expected.disagreements.size() >= 4 && expected.duplicates > 0 ? 1 : 0;
  }
  EXPECT_GT(with_all, 10);  // the worlds are of many kinds
}

TEST(Index, ATensorInTwoShardsIsToldInTheirOrder) {
  TensorMap map;
  map.add("1.safetensors", header_of({"a", "b"}));
  map.add("2.safetensors", header_of({"b"}));
  const auto index = index_of({{"a", "1.safetensors"}, {"b", "2.safetensors"}});
  const auto found = map.compare(&index, "index", {}).duplicates;
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].subject, "b");
  EXPECT_EQ(text_in(found[0], "first"), "1.safetensors");
  EXPECT_EQ(text_in(found[0], "second"), "2.safetensors");
}

}  // namespace
}  // namespace troika::model
