#include "agent/model/index.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

namespace troika::model {
namespace {

constexpr std::size_t kMostDuplicates = 16;  // findings; the count says how many there are

// Tensors of one shard that disagree in one way.
struct Disagreement {
  std::string first;
  std::size_t count = 0;

  void add(std::string_view tensor) {
    if (count++ == 0) first = tensor;
  }
};
using Disagreements = std::map<std::string, Disagreement, std::less<>>;  // by shard

void note(Disagreements& all, std::string_view shard, std::string_view tensor) {
  auto found = all.find(shard);
  if (found == all.end()) found = all.emplace(shard, Disagreement{}).first;
  found->second.add(tensor);
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
  Comparing(const TensorMap& map, const safetensors::Index* index) : map_(map), index_(index) {}

  Comparison run(const std::string& index_name, const std::set<std::string, std::less<>>& absent) {
    for (const Shard& shard : map_.shards_)
      agreed_.emplace_back(shard.tensors.size(), false);
    if (index_ != nullptr) match(absent);
    for (std::uint32_t shard = 0; shard < map_.shards_.size(); ++shard)
      sort_out(shard);
    for (const std::uint32_t id : missed_) {
      const std::string_view tensor = index_->tensors.name(id);
      note(loose_.find(tensor) ? elsewhere_ : unheld_, index_->shards.name(index_->shard_of[id]), tensor);
    }
    tell(index_name);
    if (index_ != nullptr && absent.empty()) judge_total(index_name);
    return std::move(out_);
  }

 private:
  // By the index: each of its tensors, in the shard that it names.
  void match(const std::set<std::string, std::less<>>& absent) {
    place_shards(absent);
    for (std::uint32_t id = 0; id < index_->tensors.size(); ++id) {
      const std::uint32_t place = places_[index_->shard_of[id]];
      const std::string_view tensor = index_->tensors.name(id);
      if (place == kGone) note(gone_, index_->shards.name(index_->shard_of[id]), tensor);
      if (place == kGone || place == kAbsent) continue;
      if (const auto held = map_.shards_[place].tensors.find(tensor))
        agreed_[place][*held] = true;
      else
        missed_.push_back(id);
    }
  }

  void place_shards(const std::set<std::string, std::less<>>& absent) {
    places_.assign(index_->shards.size(), kGone);
    for (std::uint32_t shard = 0; shard < map_.shards_.size(); ++shard)
      if (const auto listed = index_->shards.find(map_.shards_[shard].name)) places_[*listed] = shard;
    for (const std::string& shard : absent)
      if (const auto listed = index_->shards.find(shard)) places_[*listed] = kAbsent;
  }

  // By the header: what it has and the index does not say of this shard.
  void sort_out(std::uint32_t shard) {
    const safetensors::NameTable& tensors = map_.shards_[shard].tensors;
    for (std::uint32_t id = 0; id < tensors.size(); ++id) {
      if (agreed_[shard][id]) continue;
      const std::string_view tensor = tensors.name(id);
      const auto listed = index_ == nullptr ? std::nullopt : index_->tensors.find(tensor);
      const std::uint32_t place = listed ? places_[index_->shard_of[*listed]] : kGone;
      if (place < map_.shards_.size() && map_.shards_[place].tensors.find(tensor)) {
        twice(tensor, place, shard);
        continue;
      }
      const auto [loose, fresh] = loose_.insert(tensor);
      if (!fresh) {
        twice(tensor, loose_in_[loose], shard);
        continue;
      }
      loose_in_.push_back(shard);
      if (index_ != nullptr && !listed) note(unlisted_, map_.shards_[shard].name, tensor);
    }
  }

  void twice(std::string_view tensor, std::uint32_t one, std::uint32_t other) {
    if (out_.duplicates.size() == kMostDuplicates) return;
    const std::string name(tensor), &first = map_.shards_[std::min(one, other)].name,
                                    &second = map_.shards_[std::max(one, other)].name;
    out_.duplicates.push_back(finding(Code::DUPLICATE_TENSOR, {}, name,
                                      name + " is in " + first + " and in " + second,
                                      "one of the two shards is of another revision: fetch both again",
                                      {{"first", first}, {"second", second}}));
  }

  void tell(const std::string& index_name) {
    auto& findings = out_.disagreements;
    for (const auto& [shard, one] : gone_)
      findings.push_back(
          finding(Code::MISSING_SHARD, {}, shard,
                  shard + " is named by " + index_name + " and not there; its first tensor is " + one.first,
                  "fetch the shard, or the index of the right revision",
                  {{"first_tensor", one.first}, {"tensors", static_cast<std::int64_t>(one.count)}}));
    for (const auto& [shard, one] : unheld_)
      findings.push_back(
          disagree(shard, one, " should be in " + shard + " by the index and is not in its header"));
    for (const auto& [shard, one] : elsewhere_)
      findings.push_back(
          disagree(shard, one, " should be in " + shard + " by the index and is in another shard"));
    for (const auto& [shard, one] : unlisted_)
      findings.push_back(disagree(shard, one, " is in the header of " + shard + " and not in the index"));
  }

  void judge_total(const std::string& index_name) {
    if (!out_.disagreements.empty() || index_->total_bytes == 0 || index_->total_bytes == map_.bytes_) return;
    out_.disagreements.push_back(finding(Code::STALE_TOTAL_SIZE, {}, index_name,
                                         "metadata.total_size is " + std::to_string(index_->total_bytes) +
                                             ", the tensors have " + std::to_string(map_.bytes_) +
                                             " bytes; loaders do not use it"));
  }

  const TensorMap& map_;
  const safetensors::Index* index_;
  std::vector<std::uint32_t> places_;      // by the index's number of a shard: ours, kAbsent or kGone
  std::vector<std::vector<bool>> agreed_;  // by our shard and its tensor's number
  std::vector<std::uint32_t> missed_;      // tensors of the index that are not where it says
  safetensors::NameTable loose_;           // tensors that are not where the index says, each once
  std::vector<std::uint32_t> loose_in_;    // by the number there: the first shard that holds it
  Disagreements gone_, unheld_, elsewhere_, unlisted_;
  Comparison out_;
};

TensorMap::Comparison TensorMap::compare(const safetensors::Index* index, const std::string& index_name,
                                         const std::set<std::string, std::less<>>& absent) const {
  return Comparing{*this, index}.run(index_name, absent);
}

}  // namespace troika::model
