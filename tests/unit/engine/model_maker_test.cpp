#include "engine/maker/model_maker.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/safetensors/files.hpp"
#include "tests/unit/engine/temporary_directory.hpp"

namespace troika::maker {
namespace {

TEST(ModelMaker, TheSameSeedGivesTheSameBytes) {
  const TemporaryDirectory directory;
  auto options = tiny_model();
  ASSERT_TRUE(make_model(directory.path() + "/a", options).ok());
  ASSERT_TRUE(make_model(directory.path() + "/b", options).ok());
  options.seed = 2;
  ASSERT_TRUE(make_model(directory.path() + "/c", options).ok());
  const auto a = manifest_of(directory.path() + "/a", "m");
  const auto b = manifest_of(directory.path() + "/b", "m");
  const auto c = manifest_of(directory.path() + "/c", "m");
  EXPECT_EQ(*a, *b);
  EXPECT_NE(*a, *c);
  const auto manifest = nlohmann::json::parse(*a);
  EXPECT_EQ(manifest["format"], 1);
  EXPECT_EQ(manifest["revision"].get<std::string>().size(), 40U);
  EXPECT_EQ(manifest["files"].size(), 9U);
  EXPECT_EQ(manifest["files"]["config.json"]["sha256"].get<std::string>().size(), 64U);
}

TEST(ModelMaker, FortyThreeLayersInFortySixShardsWithAnIndexThatIsTrue) {
  const TemporaryDirectory directory;
  const auto model = directory.path() + "/m";
  MakerOptions options;
  options.hidden = 16;
  options.moe_intermediate = 8;
  options.intermediate = 16;
  options.q_lora = 8;
  options.kv_lora = 8;
  options.merges = 16;
  std::uint32_t last = 0;
  const auto made = make_model(model, options, [&](std::uint32_t done, std::uint32_t) { last = done; });
  ASSERT_TRUE(made.ok()) << made.error().message();
  EXPECT_EQ(last, 46U);
  EXPECT_EQ(made->files, 51U);
  const auto index = safetensors::read_index(model);
  ASSERT_TRUE(index.ok());
  std::uint64_t bytes = 0;
  std::size_t tensors = 0;
  for (int shard = 1; shard <= 46; ++shard) {
    char name[64];
    std::snprintf(name, sizeof name, "model-%05d-of-00046.safetensors", shard);
    const auto header = safetensors::read_header(model + "/" + name);
    ASSERT_TRUE(header.ok()) << header.error().message();
    EXPECT_EQ(header->data_begin % 8, 0U);
    for (const auto& tensor : header->tensors) {
      EXPECT_EQ(index->shard(tensor.name), name);
      bytes += tensor.end - tensor.begin;
      ++tensors;
    }
  }
  EXPECT_EQ(tensors, index->tensors.size());
  EXPECT_EQ(bytes, index->total_bytes);
}

TEST(ModelMaker, RefusesFullDirectoriesAndImpossibleFigures) {
  const TemporaryDirectory directory;
  std::ofstream(directory.path() + "/file") << "x";
  EXPECT_FALSE(make_model(directory.path(), tiny_model()).ok());
  auto options = tiny_model();
  options.shards = 9;
  EXPECT_FALSE(make_model(directory.path() + "/m", options).ok());
  options = tiny_model();
  options.groups = 3;
  const auto made = make_model(directory.path() + "/m", options);
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.error().message().find("n_group"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(directory.path() + "/m"));
}

}  // namespace
}  // namespace troika::maker
