#include "agent/stage/identity.hpp"

#include <charconv>

namespace troika::agent {
namespace {

std::string dotted(const std::string& cluster, const std::string& node, const StageKey& key) {
  return "troika." + cluster + "." + node + "." + folder_of(key);
}

// "REPLICA<separator>RANK<separator>EPOCH", split from its end: a replica's name may hold '-'.
Result<StageKey> parse(std::string_view text, char separator) {
  const Error bad{"read the stage's name", std::string(text), "REPLICA, RANK and EPOCH are expected"};
  const std::size_t second = text.rfind(separator);
  if (second == std::string_view::npos || second == 0) return bad;
  const std::size_t first = text.rfind(separator, second - 1);
  if (first == std::string_view::npos) return bad;
  const auto stage = parse_stage_id(std::string(text.substr(0, first)) + "/" +
                                    std::string(text.substr(first + 1, second - first - 1)));
  if (!stage.ok()) return bad;
  StageKey key{*stage, Epoch{}};
  const std::string_view epoch = text.substr(second + 1);
  const auto [end, error] = std::from_chars(epoch.data(), epoch.data() + epoch.size(), key.epoch.count);
  if (error != std::errc{} || end != epoch.data() + epoch.size()) return bad;
  return key;
}

}  // namespace

std::string text(const StageKey& key) {
  return troika::text(key.stage) + " (epoch " + std::to_string(key.epoch.count) + ")";
}

std::string mark_prefix(const std::string& cluster, const std::string& node) {
  return cluster + "/" + node + "/";
}

std::string mark_of(const std::string& cluster, const std::string& node, const StageKey& key) {
  return mark_prefix(cluster, node) + troika::text(key.stage) + "/" + std::to_string(key.epoch.count);
}

Result<StageKey> key_of_mark(std::string_view mark, const std::string& cluster, const std::string& node) {
  const std::string prefix = mark_prefix(cluster, node);
  if (mark.substr(0, prefix.size()) != prefix)
    return Error{"read the mark", std::string(mark), "it is not of " + prefix};
  return parse(mark.substr(prefix.size()), '/');
}

std::string folder_of(const StageKey& key) {
  return key.stage.replica + "-" + std::to_string(key.stage.rank.count) + "-" +
         std::to_string(key.epoch.count);
}

Result<StageKey> key_of_folder(std::string_view folder) {
  return parse(folder, '-');
}

std::string shared_memory_prefix(const std::string& cluster, const std::string& node, const StageKey& key) {
  return dotted(cluster, node, key) + ".";
}

std::string cgroup_name(const std::string& cluster, const std::string& node, const StageKey& key) {
  return dotted(cluster, node, key);
}

}  // namespace troika::agent
