#include "agent/model/index.hpp"

#include "agent/model/manifest.hpp"
#include "agent/model/strict_json.hpp"

namespace troika::model {
namespace {

constexpr std::size_t kMostDuplicates = 16;  // findings; the count says how many there are

// Tensors of one shard that disagree in one way.
struct Disagreement {
  std::string first;
  std::size_t count = 0;

  void add(const std::string& tensor) {
    if (count++ == 0) first = tensor;
  }
};

Finding disagree(const std::string& shard, const Disagreement& one, const std::string& how) {
  const std::string more = one.count > 1 ? " (and " + std::to_string(one.count - 1) + " more tensors)" : "";
  return finding(Code::INDEX_HEADER_DISAGREE, {}, one.first, one.first + more + how,
                 "fetch the index and the shard again, from one revision",
                 {{"shard", shard}, {"tensors", static_cast<std::int64_t>(one.count)}});
}

}  // namespace

Result<Index> parse_index(std::string_view text, const std::string& subject) {
  const auto wrong = [&](std::string reason) { return Error{"read the index", subject, std::move(reason)}; };
  TROIKA_TRY(json, parse_json(text, "read the index", subject));
  if (!json.is_object()) return wrong("a JSON object is expected");
  const auto map = json.find("weight_map");
  if (map == json.end() || !map->is_object()) return wrong("\"weight_map\" must be an object");
  Index index;
  for (const auto& [tensor, shard] : map->items()) {
    if (!shard.is_string()) return wrong("weight_map." + tensor + " must be a string");
    const std::string& name = shard.get_ref<const std::string&>();
    if (name.empty() || name.find('/') != std::string::npos || !is_shard(name))
      return wrong("weight_map." + tensor + " names \"" + name + "\", which is no shard of this directory");
    index.shard_of.emplace(tensor, name);
  }
  const auto metadata = json.find("metadata");
  if (metadata != json.end() && metadata->is_object()) {
    const auto total = metadata->find("total_size");
    if (total != metadata->end() && total->is_number_unsigned())
      index.total_bytes = total->get<std::uint64_t>();
  }
  return index;
}

std::string first_tensor_of(const Index& index, const std::string& shard) {
  for (const auto& [tensor, name] : index.shard_of)
    if (name == shard) return tensor;
  return {};
}

void TensorMap::add(const std::string& shard, const std::vector<Tensor>& tensors) {
  shards_.insert(shard);
  for (const Tensor& tensor : tensors) {
    bytes_ += tensor.end - tensor.begin;
    const auto [place, fresh] = shard_of_.emplace(tensor.name, shard);
    if (!fresh) duplicates_.push_back({tensor.name, place->second, shard});
  }
}

std::vector<Finding> TensorMap::duplicates() const {
  std::vector<Finding> findings;
  for (const Duplicate& one : duplicates_) {
    if (findings.size() == kMostDuplicates) break;
    findings.push_back(finding(Code::DUPLICATE_TENSOR, {}, one.tensor,
                               one.tensor + " is in " + one.first + " and in " + one.second,
                               "one of the two shards is of another revision: fetch both again",
                               {{"first", one.first},
                                {"second", one.second},
                                {"duplicates", static_cast<std::int64_t>(duplicates_.size())}}));
  }
  return findings;
}

std::vector<Finding> TensorMap::compare(const Index& index, const std::string& index_name,
                                        const std::set<std::string>& absent) const {
  std::map<std::string, Disagreement> unheld, elsewhere, unlisted, gone;
  for (const auto& [tensor, shard] : index.shard_of) {
    if (absent.count(shard) != 0) continue;
    if (shards_.count(shard) == 0) {
      gone[shard].add(tensor);
      continue;
    }
    const auto held = shard_of_.find(tensor);
    if (held == shard_of_.end())
      unheld[shard].add(tensor);
    else if (held->second != shard)
      elsewhere[shard].add(tensor);
  }
  for (const auto& [tensor, shard] : shard_of_)
    if (index.shard_of.count(tensor) == 0) unlisted[shard].add(tensor);

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
