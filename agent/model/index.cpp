#include "agent/model/index.hpp"

#include <map>

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

}  // namespace

void TensorMap::add(const std::string& shard, const safetensors::Header& header) {
  const std::uint32_t number = shards_.insert(shard).id;
  for (const safetensors::Tensor& tensor : header.tensors) {
    bytes_ += tensor.end - tensor.begin;
    const auto [id, fresh] = tensors_.insert(tensor.name);
    if (fresh) {
      shard_of_.push_back(number);
      continue;
    }
    if (++duplicates_ > kMostDuplicates) continue;
    const std::string name(tensor.name), first(shards_.name(shard_of_[id]));
    duplicate_findings_.push_back(finding(Code::DUPLICATE_TENSOR, {}, name,
                                          name + " is in " + first + " and in " + shard,
                                          "one of the two shards is of another revision: fetch both again",
                                          {{"first", first}, {"second", shard}}));
  }
}

std::vector<Finding> TensorMap::compare(const safetensors::Index& index, const std::string& index_name,
                                        const std::set<std::string, std::less<>>& absent) const {
  Disagreements unheld, elsewhere, unlisted, gone;
  for (std::uint32_t i = 0; i < index.tensors.size(); ++i) {
    const std::string_view tensor = index.tensors.name(i), shard = index.shards.name(index.shard_of[i]);
    if (absent.count(shard) != 0) continue;
    const auto held = tensors_.find(tensor);
    if (!shards_.find(shard))
      note(gone, shard, tensor);
    else if (!held)
      note(unheld, shard, tensor);
    else if (shards_.name(shard_of_[*held]) != shard)
      note(elsewhere, shard, tensor);
  }
  for (std::uint32_t i = 0; i < tensors_.size(); ++i)
    if (!index.tensors.find(tensors_.name(i))) note(unlisted, shards_.name(shard_of_[i]), tensors_.name(i));

  std::vector<Finding> findings;
  for (const auto& [shard, one] : gone)
    findings.push_back(
        finding(Code::MISSING_SHARD, {}, shard,
                shard + " is named by " + index_name + " and not there; its first tensor is " + one.first,
                "fetch the shard, or the index of the right revision",
                {{"first_tensor", one.first}, {"tensors", static_cast<std::int64_t>(one.count)}}));
  for (const auto& [shard, one] : unheld)
    findings.push_back(
        disagree(shard, one, " should be in " + shard + " by the index and is not in its header"));
  for (const auto& [shard, one] : elsewhere)
    findings.push_back(
        disagree(shard, one, " should be in " + shard + " by the index and is in another shard"));
  for (const auto& [shard, one] : unlisted)
    findings.push_back(disagree(shard, one, " is in the header of " + shard + " and not in the index"));
  if (findings.empty() && absent.empty() && index.total_bytes != 0 && index.total_bytes != bytes_)
    findings.push_back(finding(Code::STALE_TOTAL_SIZE, {}, index_name,
                               "metadata.total_size is " + std::to_string(index.total_bytes) +
                                   ", the tensors have " + std::to_string(bytes_) +
                                   " bytes; loaders do not use it"));
  return findings;
}

}  // namespace troika::model
