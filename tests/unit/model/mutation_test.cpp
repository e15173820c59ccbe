// 10,000 seeded mutations of a small tree, and single bits of one of 46 shards: each is found and named, or
// proven harmless. What is right is judged by comparing the directory with what was written, not by the
// proof's own rules. Modes 1 to 9.
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "tests/sim/random.hpp"
#include "tests/unit/model/tree.hpp"

namespace troika::model {
namespace {

namespace fs = std::filesystem;
using sim::Random;
using Contents = std::map<std::string, std::string>;  // by name

constexpr std::uint64_t kSeed = 20261207;
constexpr std::size_t kPage = 4096;

std::string random_bytes(Random& random, std::size_t size) {
  std::string out(size, '\0');
  for (char& one : out)
    one = static_cast<char>(random.next());
  return out;
}

// `pages` pages of data and a bit more, in three tensors of one name each.
std::string shard_with(Random& random, const std::string& number, std::size_t pages) {
  const std::size_t size = pages * kPage + random.below(kPage);
  const std::size_t first = size / 3, second = size / 2;
  const auto tensor = [&](const char* name, std::size_t begin, std::size_t end) {
    return "\"layer." + number + "." + name + R"(":{"dtype":"U8","shape":[)" + std::to_string(end - begin) +
           R"(],"data_offsets":[)" + std::to_string(begin) + "," + std::to_string(end) + "]}";
  };
  std::string data = random_bytes(random, size);
  if (pages > 1) data.replace(kPage, kPage + 512, kPage + 512, '\0');  // zeros that belong there
  return shard_of(
      "{" + tensor("k", 0, first) + "," + tensor("q", first, second) + "," + tensor("v", second, size) + "}",
      data.substr(0, size));
}

std::string name_of_shard(std::size_t number, std::size_t of) {
  char name[64];
  std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", number, of);
  return name;
}

Contents tree_of(Random& random, std::size_t shards, std::size_t pages) {
  Contents tree;
  std::string map;
  for (std::size_t i = 1; i <= shards; ++i) {
    const std::string name = name_of_shard(i, shards), number = std::to_string(i);
    tree[name] = shard_with(random, number, pages);
    for (const char* tensor : {"k", "q", "v"})
      map += (map.empty() ? "\"layer." : ",\"layer.") + number + "." + tensor + "\":\"" + name + "\"";
  }
  tree["model.safetensors.index.json"] = R"({"metadata":{},"weight_map":{)" + map + "}}";
  tree["config.json"] = R"({"architectures":["DeepseekV4ForCausalLM"],"num_hidden_layers":43})";
  tree["tokenizer.json"] = R"({"version":"1.0"})" + std::string(2 * kPage, ' ');
  tree["merges.txt"] = "a b\nb c\n";
  tree["LICENSE"] = "MIT";
  return tree;
}

class MutationTest : public TreeTest {
 protected:
  void make(Contents originals) {
    originals_ = std::move(originals);
    for (const auto& [name, content] : originals_) {
      names_.push_back(name);
      put(name, content);
    }
    outside_.emplace();
    for (const auto& [name, content] : originals_)
      std::ofstream(*outside_ / name, std::ios::binary) << content;
  }

  // Empty where there is no regular file.
  static std::string read(const fs::path& path) {
    std::error_code none;
    if (!fs::is_regular_file(path, none)) return "";
    std::string content(fs::file_size(path), '\0');
    std::ifstream(path, std::ios::binary).read(content.data(), static_cast<std::streamsize>(content.size()));
    return content;
  }
  // One thread: these files are small.
  ModelProof prove_alone() {
    ProofPlan plan{folder_.path(), manifest_, "spark-1"};
    plan.crew.threads = 1;
    const std::atomic<bool> cancel{false};
    return prove_model(
        plan, [](const ProofProgress&) {}, cancel);
  }

  // What a name leads to; nothing: no regular file, or one outside the tree.
  std::optional<std::string> seen_at(const std::string& name) const {
    const fs::path own = path(name);
    const auto kind = fs::symlink_status(own).type();
    if (kind == fs::file_type::regular) return read(own);
    if (kind != fs::file_type::symlink) return std::nullopt;
    std::error_code none;
    const fs::path real = fs::canonical(own, none);
    if (none || !fs::is_regular_file(real) || real.parent_path() != fs::canonical(folder_.path()))
      return std::nullopt;
    return read(real);
  }

  // The names whose content is not the manifest's.
  std::set<std::string> changed() const {
    std::set<std::string> names;
    for (const auto& [name, content] : originals_)
      if (seen_at(name) != content) names.insert(name);
    return names;
  }
  // The files that no manifest names and a loader would take. Only such as a mutation makes.
  std::set<std::string> extra() const {
    std::set<std::string> names;
    for (const auto& one : fs::directory_iterator(folder_.path())) {
      const std::string name = one.path().filename();
      if (originals_.count(name) == 0 && !name.ends_with(".bak")) names.insert(name);
    }
    return names;
  }

  void restore(const std::set<std::string>& wrong) {
    for (const auto& one : fs::directory_iterator(folder_.path()))
      if (originals_.count(one.path().filename()) == 0 ||
          one.symlink_status().type() != fs::file_type::regular)
        fs::remove_all(one.path());
    for (const auto& [name, content] : originals_)
      if (wrong.count(name) != 0 || !fs::exists(path(name))) write(name, content);
  }

  // Mutations of what lies there now. A name whose file is gone already is left as it is.
  std::string flip(Random& random, const std::string& name) {
    std::string content = read(path(name));
    if (content.empty()) return "nothing to flip";
    // A third of the flips hit what is read first.
    const std::size_t most =
        random.below(3) == 0 ? std::min<std::size_t>(content.size(), 256) : content.size();
    const std::size_t at = random.below(most), bit = random.below(8);
    content[at] = static_cast<char>(content[at] ^ (1 << bit));
    replace(name, content);
    return "bit " + std::to_string(bit) + " of byte " + std::to_string(at);
  }
  std::string truncate(Random& random, const std::string& name) {
    const std::string content = read(path(name));
    const std::size_t size = random.below(2) == 0 && content.size() > kPage
                                 ? content.size() / kPage * kPage
                                 : random.below(content.size() + 1);
    replace(name, content.substr(0, size));
    return "cut to " + std::to_string(size);
  }
  std::string extend(Random& random, const std::string& name) {
    const std::size_t more = 1 + random.below(2 * kPage);
    const bool zeros = random.below(2) == 0;
    replace(name, read(path(name)) + (zeros ? std::string(more, '\0') : random_bytes(random, more)));
    return std::to_string(more) + (zeros ? " zeros more" : " bytes more");
  }
  std::string zero_a_page(Random& random, const std::string& name) {
    std::string content = read(path(name));
    const std::size_t page = random.below(content.size() / kPage + 1) * kPage;
    const std::size_t size = std::min(kPage, content.size() - std::min(page, content.size()));
    content.replace(std::min(page, content.size()), size, size, '\0');
    replace(name, content);
    return "zeros at " + std::to_string(page);
  }
  std::string swap(Random& random, const std::string& name) {
    const std::string other = any(random);
    const std::string one = read(path(name)), two = read(path(other));
    replace(name, two);
    replace(other, one);
    return "exchanged with " + other;
  }
  std::string copy_another(Random& random, const std::string& name) {
    const std::string other = any(random);
    replace(name, read(path(other)));
    return "a copy of " + other;
  }
  std::string rename(Random& random, const std::string& name) {
    static const std::vector<std::string> kNew{"model-00009-of-00008.safetensors",
                                               "old.safetensors",
                                               "model.safetensors.bak",
                                               "extra.bin",
                                               "x.gguf",
                                               "README.bak",
                                               "modeling.py"};
    const std::string to = kNew[random.below(kNew.size())];
    if (fs::exists(fs::symlink_status(path(name)))) fs::rename(path(name), path(to));
    return "renamed to " + to;
  }
  std::string remove(Random&, const std::string& name) {
    fs::remove_all(path(name));
    return "removed";
  }
  std::string directory(Random&, const std::string& name) {
    fs::remove_all(path(name));
    fs::create_directory(path(name));
    return "a directory";
  }
  std::string link(Random& random, const std::string& name) {
    const std::string other = any(random);
    const std::vector<std::string> targets{name, other, *outside_ / name, "../nowhere/" + name, "gone.bak"};
    const std::string target = targets[random.below(targets.size())];
    fs::remove_all(path(name));
    fs::create_symlink(target, path(name));
    return "a link to " + target;
  }
  std::string another_index(Random& random, const std::string& name) {
    (void)name;
    std::string index = originals_.at(kIndex);
    const std::string one = name_of_shard(1 + random.below(kShards), kShards);
    const std::string two = name_of_shard(1 + random.below(kShards), kShards);
    const auto at = index.find(one);
    index.replace(at, one.size(), two);
    replace(kIndex, index);
    return "an index that has " + two + " for " + one;
  }

  std::string mutate(Random& random) {
    using Way = std::string (MutationTest::*)(Random&, const std::string&);
    static constexpr Way kWays[]{
        &MutationTest::flip,        &MutationTest::truncate,     &MutationTest::extend,
        &MutationTest::zero_a_page, &MutationTest::swap,         &MutationTest::copy_another,
        &MutationTest::rename,      &MutationTest::remove,       &MutationTest::directory,
        &MutationTest::link,        &MutationTest::another_index};
    const std::string name = any(random);
    return name + ": " + (this->*kWays[random.below(std::size(kWays))])(random, name);
  }

  static constexpr std::size_t kShards = 8;
  inline static const std::string kIndex = "model.safetensors.index.json";

  std::string any(Random& random) const { return names_[random.below(names_.size())]; }
  // In the place of whatever is there, a link or a directory too.
  void replace(const std::string& name, const std::string& content) {
    fs::remove_all(path(name));
    write(name, content);
  }

  std::vector<std::string> names_;
  Contents originals_;
  std::optional<platform::Folder> outside_;  // the same files, where no link may lead
};

// Nothing where proof and directory agree, else what is wrong with the proof.
std::string fault_of(const ModelProof& proof, const std::set<std::string>& changed,
                     const std::set<std::string>& extra, const Contents& originals) {
  std::set<std::string> named;
  std::string all;
  for (const Finding& one : proof.findings) {
    all += "\n  " + std::string(name(one.code)) + " " + one.subject + ": " + one.message;
    if (one.severity == Severity::Error) named.insert(one.subject);
  }
  const bool good = verdict_of(proof.findings) == Verdict::Ok;
  const auto wrong = [&](const std::string& what) { return what + "; it says:" + all; };
  if (good != (changed.empty() && extra.empty())) return wrong(good ? "it says ok" : "it says not ok");
  for (const auto* names : {&changed, &extra})
    for (const std::string& one : *names)
      if (named.count(one) == 0) return wrong(one + " is not named");
  for (const std::string& one : named)
    if (originals.count(one) != 0 && changed.count(one) == 0) return wrong(one + " is named and as it was");
  return "";
}

TEST_F(MutationTest, EachOfTenThousandMutationsIsFoundAndNamedOrHarmless) {
  Random random(kSeed);
  make(tree_of(random, kShards, 2));
  std::size_t found = 0, harmless = 0;
  for (int i = 0; i < 10000; ++i) {
    const bool twice = random.below(4) == 0;
    std::string text = mutate(random);
    if (twice) text += ", then " + mutate(random);
    const auto wrong = changed(), more = extra();
    const std::string fault = fault_of(prove_alone(), wrong, more, originals_);
    ASSERT_EQ(fault, "") << "mutation " << i << ": " << text;
    ++(wrong.empty() && more.empty() ? harmless : found);
    restore(wrong);
  }
  EXPECT_EQ(fault_of(prove_alone(), {}, {}, originals_), "");
  EXPECT_GT(found, 8000u);
  EXPECT_GT(harmless, 100u) << "the same file, zeros that were zeros: these are mutations too";
}

TEST_F(MutationTest, ABitOfAnyOf46ShardsIsFoundAndNamed) {
  Random random(kSeed);
  make(tree_of(random, 46, 1));
  const auto expect_found = [&](const std::string& name, std::size_t at, std::size_t bit) {
    std::string content = originals_.at(name);
    content[at] = static_cast<char>(content[at] ^ (1 << bit));
    write(name, content);
    ASSERT_EQ(fault_of(prove_alone(), {name}, {}, originals_), "")
        << name << ": bit " << bit << " of byte " << at;
    write(name, originals_.at(name));
  };
  for (const auto& [name, content] : originals_) {
    const std::size_t data = std::min(content.size() - 1, content.find("}}") + 2);
    for (const std::size_t at :
         {std::size_t{0}, std::size_t{7}, std::size_t{8}, data - 1, data, content.size() - 1})
      if (at < content.size()) expect_found(name, at, random.below(8));
  }
  for (int i = 0; i < 500; ++i) {
    const std::string name = any(random);
    expect_found(name, random.below(originals_.at(name).size()), random.below(8));
  }
}

}  // namespace
}  // namespace troika::model
