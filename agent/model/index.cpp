#include "agent/model/index.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

namespace troika::model {
namespace {

constexpr std::size_t kMostDuplicates = 16;  // findings; the last one says how many more there are
constexpr std::size_t kMostShards = 256;     // that disagree in one way: a report holds no more

// Tensors of one shard that disagree in one way.
struct Disagreement {
  std::string first;  // of them
  std::string by;     // the index
  std::size_t count = 0;
};
using Disagreements = std::map<std::string, Disagreement, std::less<>>;  // by shard

void note(Disagreements& all, std::string_view shard, std::string_view tensor, std::string_view by = {}) {
  auto found = all.find(shard);
  if (found == all.end()) {
    if (all.size() == kMostShards) return;
    found = all.emplace(shard, Disagreement{short_name(tensor), std::string(by), 0}).first;
  }
  ++found->second.count;
}

Finding disagree(const std::string& shard, const Disagreement& one, const std::string& how) {
  const std::string more = one.count > 1 ? " (and " + std::to_string(one.count - 1) + " more tensors)" : "";
  return finding(Code::INDEX_HEADER_DISAGREE, {}, one.first, one.first + more + how,
                 "fetch the index and the shard again, from one revision",
                 {{"shard", shard}, {"tensors", static_cast<std::int64_t>(one.count)}});
}

constexpr std::uint32_t kAbsent = UINT32_MAX;    // a shard without a good header
constexpr std::uint32_t kGone = UINT32_MAX - 1;  // a shard that only the index names

}  // namespace

void TensorMap::add(const std::string& shard, safetensors::Header header) {
  for (const safetensors::Tensor& tensor : header.tensors)
    bytes_ += tensor.end - tensor.begin;
  tensors_ += header.names.size();
  shards_.push_back({shard, std::move(header.names)});
}

class TensorMap::Comparing {
 public:
  Comparing(const TensorMap& map, const std::vector<NamedIndex>& indexes) : map_(map) {
    for (const NamedIndex& one : indexes)
      listings_.push_back({one.name, one.index, {}, {}});
  }

  std::vector<Finding> run(const std::set<std::string, std::less<>>& absent) {
    for (const Shard& shard : map_.shards_)
      agreed_.emplace_back(shard.tensors.size(), false);
    for (Listing& one : listings_)
      match(one, absent);
    for (std::uint32_t shard = 0; shard < map_.shards_.size(); ++shard)
      sort_out(shard);
    for (const Listing& one : listings_) {
      for (const std::uint32_t id : one.missed) {
        const std::string_view tensor = one.index.tensors.name(id);
        note(loose_.find(tensor) ? elsewhere_ : unheld_, one.shard_of(id), tensor);
      }
    }
    tell_disagreements();
    if (out_.empty() && absent.empty()) judge_total();
    tell_duplicates();
    return std::move(out_);
  }

 private:
  struct Listing {
    const std::string& name;
    const safetensors::Index& index;
    std::vector<std::uint32_t> places;  // by the index's number of a shard: ours, kAbsent or kGone
    std::vector<std::uint32_t> missed;  // its tensors that are not where it says

    std::string_view shard_of(std::uint32_t tensor) const {
      return index.shards.name(index.shard_of[tensor]);
    }
  };

  // By the index: each of its tensors, in the shard that it names.
  void match(Listing& one, const std::set<std::string, std::less<>>& absent) {
    place_shards(one, absent);
    for (std::uint32_t id = 0; id < one.index.tensors.size(); ++id) {
      const std::uint32_t place = one.places[one.index.shard_of[id]];
      const std::string_view tensor = one.index.tensors.name(id);
      if (place == kGone) note(gone_, one.shard_of(id), tensor, one.name);
      if (place == kGone || place == kAbsent) continue;
      if (const auto held = map_.shards_[place].tensors.find(tensor))
        agreed_[place][*held] = true;
      else
        one.missed.push_back(id);
    }
  }

  void place_shards(Listing& one, const std::set<std::string, std::less<>>& absent) const {
    one.places.assign(one.index.shards.size(), kGone);
    for (std::uint32_t shard = 0; shard < map_.shards_.size(); ++shard)
      if (const auto listed = one.index.shards.find(map_.shards_[shard].name)) one.places[*listed] = shard;
    for (const std::string& shard : absent)
      if (const auto listed = one.index.shards.find(shard)) one.places[*listed] = kAbsent;
  }

  // By the header: what it has and no index says of this shard.
  void sort_out(std::uint32_t shard) {
    const safetensors::NameTable& tensors = map_.shards_[shard].tensors;
    for (std::uint32_t id = 0; id < tensors.size(); ++id) {
      if (agreed_[shard][id]) continue;
      const std::string_view tensor = tensors.name(id);
      bool listed = false;
      if (const auto holder = holder_of(tensor, listed)) {
        twice(tensor, *holder, shard);
        continue;
      }
      const auto [loose, fresh] = loose_.insert(tensor);
      if (!fresh) {
        twice(tensor, loose_in_[loose], shard);
        continue;
      }
      loose_in_.push_back(shard);
      if (!listings_.empty() && !listed) note(unlisted_, map_.shards_[shard].name, tensor);
    }
  }

  // The shard that an index names for it and that has it.
  std::optional<std::uint32_t> holder_of(std::string_view tensor, bool& listed) const {
    for (const Listing& one : listings_) {
      const auto id = one.index.tensors.find(tensor);
      if (!id) continue;
      listed = true;
      const std::uint32_t place = one.places[one.index.shard_of[*id]];
      if (place < map_.shards_.size() && map_.shards_[place].tensors.find(tensor)) return place;
    }
    return std::nullopt;
  }

  void twice(std::string_view tensor, std::uint32_t one, std::uint32_t other) {
    if (duplicates_++ < kMostDuplicates)
      twice_.push_back({short_name(tensor), std::min(one, other), std::max(one, other)});
  }

  void tell_duplicates() {
    for (std::size_t i = 0; i < twice_.size(); ++i) {
      const auto& [tensor, one, other] = twice_[i];
      const std::string first = shown(map_.shards_[one].name), second = shown(map_.shards_[other].name);
      const std::uint64_t more = i + 1 == kMostDuplicates ? duplicates_ - kMostDuplicates : 0;
      out_.push_back(
          finding(Code::DUPLICATE_TENSOR, {}, tensor,
                  tensor + " is in " + first + " and in " + second +
                      (more > 0 ? " (and " + std::to_string(more) + " more tensors are in two shards)" : ""),
                  "one of the two shards is of another revision: fetch both again",
                  {{"first", first}, {"second", second}}));
    }
  }

  void tell_disagreements() {
    for (const auto& [shard, one] : gone_)
      out_.push_back(
          finding(Code::MISSING_SHARD, {}, shown(shard),
                  shown(shard) + " is named by " + one.by +
                      " and is no file of the manifest; its first tensor is " + one.first,
                  "take the index and the manifest of one revision, then fetch the shard",
                  {{"first_tensor", one.first}, {"tensors", static_cast<std::int64_t>(one.count)}}));
    for (const auto& [shard, one] : unheld_)
      out_.push_back(disagree(shown(shard), one,
                              " should be in " + shown(shard) + " by the index and is not in its header"));
    for (const auto& [shard, one] : elsewhere_)
      out_.push_back(disagree(shown(shard), one,
                              " should be in " + shown(shard) + " by the index and is in another shard"));
    for (const auto& [shard, one] : unlisted_)
      out_.push_back(
          disagree(shown(shard), one, " is in the header of " + shown(shard) + " and not in the index"));
  }

  // Of the one index of the folder.
  void judge_total() {
    if (listings_.size() != 1) return;
    const auto& [name, index, places, missed] = listings_.front();
    if (index.total_bytes == 0 || index.total_bytes == map_.bytes_) return;
    out_.push_back(finding(Code::STALE_TOTAL_SIZE, {}, name,
                           "metadata.total_size is " + std::to_string(index.total_bytes) +
                               ", the tensors have " + std::to_string(map_.bytes_) +
                               " bytes; loaders do not use it"));
  }

  std::string shown(const std::string& shard) const { return map_.folder_ + shard; }

  struct Twice {
    std::string tensor;
    std::uint32_t one, other;  // our shards
  };

  const TensorMap& map_;
  std::vector<Listing> listings_;
  std::vector<std::vector<bool>> agreed_;  // by our shard and its tensor's number: an index says the same
  safetensors::NameTable loose_;           // the other tensors, each once
  std::vector<std::uint32_t> loose_in_;    // by the number there: the first shard that holds it
  std::vector<Twice> twice_;
  std::uint64_t duplicates_ = 0;
  Disagreements gone_, unheld_, elsewhere_, unlisted_;
  std::vector<Finding> out_;
};

std::vector<Finding> TensorMap::compare(const std::vector<NamedIndex>& indexes,
                                        const std::set<std::string, std::less<>>& absent) const {
  return Comparing{*this, indexes}.run(absent);
}

}  // namespace troika::model
