#include "engine/native/kv_cache.hpp"

namespace troika::native {

KvCache::KvCache(std::uint32_t layers, std::uint32_t entry, std::uint64_t tokens)
    : layers_(layers),
      entry_(entry),
      pages_(tokens / kPageTokens),
      // Left uninitialised on purpose: pages that are never used never cost memory.
      data_(new float[static_cast<std::size_t>(pages_) * layers * kPageTokens * entry]) {
  for (auto page = static_cast<std::uint32_t>(pages_); page > 0; --page)
    free_.push_back(page - 1);
}

std::size_t KvCache::offset(std::uint32_t page, std::uint32_t layer) const {
  return (static_cast<std::size_t>(page) * layers_ + layer) * kPageTokens * entry_;
}

Status KvCache::reserve(SequenceId sequence, std::uint64_t tokens) {
  auto& table = tables_[sequence];
  while (table.size() * kPageTokens < tokens) {
    if (free_.empty()) {
      return Error{"extend the KV cache of", "sequence " + std::to_string(sequence),
                   "all " + std::to_string(capacity_tokens()) + " tokens are in use"};
    }
    table.push_back(free_.back());
    free_.pop_back();
  }
  return Done{};
}

void KvCache::release(SequenceId sequence) {
  const auto found = tables_.find(sequence);
  if (found == tables_.end()) return;
  for (auto page = found->second.rbegin(); page != found->second.rend(); ++page)
    free_.push_back(*page);
  tables_.erase(found);
}

void KvCache::pages_of(SequenceId sequence, std::uint32_t layer, std::vector<const float*>& out) const {
  out.clear();
  const auto found = tables_.find(sequence);
  TROIKA_INVARIANT(found != tables_.end());
  for (const auto page : found->second)
    out.push_back(data_.get() + offset(page, layer));
}

float* KvCache::entry(SequenceId sequence, std::uint32_t layer, std::uint64_t position) {
  const auto found = tables_.find(sequence);
  TROIKA_INVARIANT(found != tables_.end() && position / kPageTokens < found->second.size());
  const auto page = found->second[static_cast<std::size_t>(position / kPageTokens)];
  return data_.get() + offset(page, layer) + static_cast<std::size_t>(position % kPageTokens) * entry_;
}

}  // namespace troika::native
