#include "policies/download.hpp"

#include <algorithm>
#include <array>

namespace troika::policies {
namespace {

struct Reason {
  Code code;
  const char* message;
  const char* remedy;
  std::array<std::string_view, 12> told_by;  // any of these in a line
};

// Texts of huggingface_hub 0.23 to 1.26, hf_xet 1.5, requests, httpx and rsync.
constexpr std::array kReasons{
    Reason{Code::DISK_FULL,
           "the downloader found no room on the disk",
           "free space, or set HF_HOME or the target to a larger disk, then fetch again",
           {"No space left on device", "Not enough free disk space to download", "Disk quota exceeded"}},
    // hf_xet reads the refusal of a gated repository as a hash.
    Reason{
        Code::FETCH_AUTH,
        "the downloader was refused: no token, one without the right, or terms that are not accepted",
        "accept the model's terms on its page, log in (hf auth login, or HF_TOKEN), and fetch again with "
        "huggingface_hub 1.26.0 or newer, which names this fault",
        {"Unable to parse string as hex hash value", "401 Client Error", "403 Client Error",
         "401 Unauthorized", "403 Forbidden", "GatedRepoError", "Cannot access gated repo", "Access to model",
         "Invalid user token", "Invalid username or password", "LocalTokenNotFoundError"}},
    Reason{Code::FETCH_STALLED,
           "the downloader gave up waiting for the network",
           "fetch again: finished files stay; on a slow line set HF_HUB_DOWNLOAD_TIMEOUT=120 and "
           "HF_HUB_ETAG_TIMEOUT=30",
           {"Read timed out", "ReadTimeout", "ConnectTimeout", "ConnectionError", "Connection reset by peer",
            "Connection timed out", "Temporary failure in name resolution", "Name or service not known",
            "IncompleteRead", "Server disconnected", "without sending a response",
            "timeout in data send/receive"}},
};

// huggingface_hub compares the size alone, and ends with the name in brackets.
constexpr std::string_view kWrongSize = "Consistency check failed: file should be of size ";
constexpr std::size_t kLongestLine = 240;  // bytes of it in the evidence

bool tells(std::string_view line, const Reason& reason) {
  return std::any_of(reason.told_by.begin(), reason.told_by.end(), [&](std::string_view text) {
    return !text.empty() && line.find(text) != std::string_view::npos;
  });
}

// The file of the consistency check; empty: it is not told.
std::string file_in_brackets(std::string_view line) {
  const std::size_t open = line.rfind('('), close = line.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return {};
  return std::string(line.substr(open + 1, std::min(close - open - 1, kLongestLine)));
}

std::int64_t signed_of(Bytes bytes) {
  return static_cast<std::int64_t>(std::min<std::uint64_t>(bytes.count, INT64_MAX));
}

// 5 % more, to the next whole byte; the largest number where that is too large.
Bytes with_reserve(Bytes missing) {
  const std::uint64_t reserve = missing.count / 20 + (missing.count % 20 != 0 ? 1 : 0);
  return Bytes{missing.count > UINT64_MAX - reserve ? UINT64_MAX : missing.count + reserve};
}

}  // namespace

std::vector<Finding> judge_download(std::string_view text) {
  std::array<std::string_view, kReasons.size()> last{};
  std::string_view wrong_size;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of("\r\n"), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    for (std::size_t i = 0; i < kReasons.size(); ++i)
      if (tells(line, kReasons[i])) last[i] = line;
    if (line.find(kWrongSize) != std::string_view::npos) wrong_size = line;
  }
  std::vector<Finding> findings;
  for (std::size_t i = 0; i < kReasons.size(); ++i) {
    if (last[i].empty()) continue;
    const std::string line(last[i].substr(0, kLongestLine));
    findings.push_back(finding(kReasons[i].code, {}, "download", kReasons[i].message + (": " + line),
                               kReasons[i].remedy, {{"line", line}}));
  }
  if (!wrong_size.empty()) {
    std::string file = file_in_brackets(wrong_size);
    if (file.empty()) file = "download";
    findings.push_back(
        finding(Code::PARTIAL, {}, file,
                "the downloader received another number of bytes for " + file + " than was told",
                "fetch the file again", {{"line", std::string(wrong_size.substr(0, kLongestLine))}}));
  }
  return findings;
}

bool must_be_fetched(Code code) {
  switch (code) {
    case Code::LFS_POINTER:
    case Code::HTML_BODY:
    case Code::JSON_BODY:
    case Code::XML_BODY:
    case Code::ZERO_FILLED:
    case Code::PARTIAL:
    case Code::CORRUPT_TRAILING:
    case Code::CORRUPT_HEADER:
    case Code::MISSING_SHARD:
    case Code::MISSING_FILE:
    case Code::HASH_MISMATCH:
      return true;
    default:
      return false;
  }
}

std::optional<Finding> judge_room(const std::string& directory, const DiskRoom& room) {
  if (room.missing == Bytes{0}) return std::nullopt;
  const Bytes needed = with_reserve(room.missing);
  if (!room.free)
    return finding(Code::CANNOT_TELL, {}, "download",
                   "whether the missing " + std::to_string(room.missing.count) +
                       " bytes fit on the disk of " + directory + ": its free space could not be asked for",
                   "df " + directory, {{"missing_bytes", signed_of(room.missing)}});
  if (room.free->count >= needed.count) return std::nullopt;
  const Bytes lacking{needed.count - room.free->count};
  const std::string remedy = room.bad.count >= lacking.count
                                 ? "remove the bad copies first (" + std::to_string(room.bad.count) +
                                       " bytes): a downloader keeps them until the new ones are whole"
                                 : "free the space first: a copy into a full disk looks like one that hangs";
  return finding(Code::DISK_FULL, {}, "download",
                 "to fetch the missing " + std::to_string(room.missing.count) + " bytes the disk of " +
                     directory + " has " + std::to_string(lacking.count) + " bytes too few (" +
                     std::to_string(room.free->count) + " are free; 5 % are held in reserve)",
                 remedy,
                 {{"missing_bytes", signed_of(room.missing)},
                  {"needed_bytes", signed_of(needed)},
                  {"free_bytes", signed_of(*room.free)},
                  {"bad_bytes", signed_of(room.bad)}});
}

}  // namespace troika::policies
