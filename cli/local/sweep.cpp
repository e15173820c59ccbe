#include "cli/local/sweep.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/local/processes.hpp"
#include "cli/local/shape.hpp"
#include "platform/clock.hpp"
#include "platform/files.hpp"

namespace troika::local {
namespace {

using Json = nlohmann::json;

constexpr Bytes kMaxRecord{64u << 10};
constexpr Duration kKillLimit = std::chrono::seconds{20};

// Directories `parent`/`prefix`.* of this user, links not followed.
std::vector<std::string> candidates(const std::string& parent, const std::string& prefix) {
  std::vector<std::string> out;
  std::error_code error;
  for (std::filesystem::directory_iterator it(parent, error), end; !error && it != end; it.increment(error)) {
    struct stat facts {};
    const std::string path = it->path();
    if (!it->path().filename().string().starts_with(prefix + ".")) continue;
    if (::lstat(path.c_str(), &facts) != 0 || !S_ISDIR(facts.st_mode) || facts.st_uid != ::geteuid())
      continue;
    out.push_back(path);
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

std::string real_folder(const std::string& path) {
  std::error_code error;
  const auto real = std::filesystem::canonical(path, error);
  return error ? path : real.string();
}

std::string temp_folder() {
  const char* const folder = std::getenv("TMPDIR");
  return real_folder(folder != nullptr && *folder == '/' ? folder : "/tmp");
}

Status write_record(const std::string& root, const ClusterRecord& record) {
  const Json json{{"format", 1},         {"cluster", record.cluster}, {"pid", record.pid},
                  {"kept", record.kept}, {"gateway", record.gateway}, {"socket", record.socket}};
  return platform::write_file_durably(Layout{root}.record(), json.dump(2) + "\n");
}

Result<ClusterRecord> read_record(const std::string& root) {
  TROIKA_TRY(text, platform::read_file(Layout{root}.record(), kMaxRecord));
  const Json json = Json::parse(text, nullptr, false);
  const Error bad{"read", Layout{root}.record(), "it is not what a demo writes"};
  if (!json.is_object() || json.value("format", Json()) != 1) return bad;
  try {
    return ClusterRecord{json.at("cluster").get<std::string>(), json.at("pid").get<int>(),
                         json.at("kept").get<bool>(), json.at("gateway").get<std::string>(),
                         json.at("socket").get<std::string>()};
  } catch (const Json::exception&) {
    return bad;
  }
}

Result<Swept> sweep(const std::string& root) {
  TROIKA_TRY(killed, kill_all(root, kKillLimit));
  TROIKA_CHECK(platform::remove_tree(root));
  return Swept{root, killed.size()};
}

Result<std::vector<Swept>> sweep_stale(const std::string& parent, const std::string& prefix) {
  std::vector<Swept> swept;
  for (const std::string& root : candidates(parent, prefix)) {
    const auto record = read_record(root);
    // Without a record its owner has started nothing yet and may be about to write it.
    if (!record.ok() || record->kept) continue;
    const auto lock = platform::DirectoryLock::take(Layout{root}.lock());
    if (!lock.ok()) continue;  // the owner lives
    TROIKA_TRY(one, sweep(root));
    swept.push_back(one);
  }
  return swept;
}

std::vector<std::string> kept_clusters(const std::string& parent, const std::string& prefix) {
  std::vector<std::string> out;
  for (const std::string& root : candidates(parent, prefix))
    if (const auto record = read_record(root); record.ok() && record->kept) out.push_back(root);
  return out;
}

}  // namespace troika::local
