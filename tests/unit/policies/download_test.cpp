// What a downloader's output tells (mode 7, case A22), and room for what is missing (mode 9, case A23).
#include "policies/download.hpp"

#include <gtest/gtest.h>

namespace troika::policies {
namespace {

std::vector<Code> codes(std::string_view text) {
  std::vector<Code> found;
  for (const Finding& one : judge_download(text))
    found.push_back(one.code);
  return found;
}

std::string evidence(const Finding& f, const std::string& key) {
  for (const auto& [name, value] : f.evidence) {
    if (name != key) continue;
    if (const auto* text = std::get_if<std::string>(&value)) return *text;
    return std::to_string(std::get<std::int64_t>(value));
  }
  return "absent";
}

TEST(Download, A22_AHashThatCannotBeParsedIsARefusalAndNotCorruption) {
  const auto found = judge_download("Unable to parse string as hex hash value");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].code, Code::FETCH_AUTH);
  EXPECT_EQ(verdict_of(found), Verdict::Error);
  EXPECT_EQ(evidence(found[0], "line"), "Unable to parse string as hex hash value");
  EXPECT_NE(found[0].remedy.find("1.26.0"), std::string::npos);
  EXPECT_NE(found[0].remedy.find("terms"), std::string::npos);
}

TEST(Download, EveryReasonByWhatItsToolsWrite) {
  const std::pair<const char*, Code> told[] = {
      {"OSError: [Errno 28] No space left on device", Code::DISK_FULL},
      {"rsync: [receiver] write failed on \"/m/x\": No space left on device (28)", Code::DISK_FULL},
      {"OSError: [Errno 122] Disk quota exceeded", Code::DISK_FULL},
      {"UserWarning: Not enough free disk space to download the file.", Code::DISK_FULL},
      {"huggingface_hub.utils._errors.GatedRepoError: 401 Client Error.", Code::FETCH_AUTH},
      {"requests.exceptions.HTTPError: 403 Client Error: Forbidden for url: https://x", Code::FETCH_AUTH},
      {"Cannot access gated repo for url https://huggingface.co/a/b/resolve/main/x.", Code::FETCH_AUTH},
      {"Access to model a/b is restricted. You must be authenticated.", Code::FETCH_AUTH},
      {"Invalid user token.", Code::FETCH_AUTH},
      {"HTTPSConnectionPool(host='x', port=443): Read timed out. (read timeout=10)", Code::FETCH_STALLED},
      {"httpx.ReadTimeout: The read operation timed out", Code::FETCH_STALLED},
      {"ConnectionResetError: [Errno 104] Connection reset by peer", Code::FETCH_STALLED},
      {"socket.gaierror: [Errno -3] Temporary failure in name resolution", Code::FETCH_STALLED},
      {"httpx.RemoteProtocolError: Server disconnected without sending a response.", Code::FETCH_STALLED},
      {"rsync error: timeout in data send/receive (code 30)", Code::FETCH_STALLED},
      {"OSError: Consistency check failed: file should be of size 10 but has size 9 (x.safetensors).",
       Code::PARTIAL},
  };
  for (const auto& [line, code] : told)
    EXPECT_EQ(codes(line), std::vector{code}) << line;
}

TEST(Download, TheFileOfAWrongSizeIsNamed) {
  const auto found = judge_download(
      "OSError: Consistency check failed: file should be of size 3600000000 but has size 9 "
      "(model-00002-of-00046.safetensors).\nThis is usually due to network issues.");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].subject, "model-00002-of-00046.safetensors");
  for (const char* unnamed : {"Consistency check failed: file should be of size 1 but has size 2",
                              "Consistency check failed: file should be of size 1 but has )("}) {
    const auto without = judge_download(unnamed);
    ASSERT_EQ(without.size(), 1u) << unnamed;
    EXPECT_EQ(without[0].subject, "download") << unnamed;
  }
}

TEST(Download, LinesEndAtCarriageReturnsTooAndTheLastOneIsShown) {
  const auto found = judge_download(
      "x:   1%|   | 1/46 [00:01<?]\rx:   2%|   | 1/46\r\n"
      "Read timed out. (1)\nRead timed out. (2)\rx: 3%|  |\n401 Client Error\n");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].code, Code::FETCH_AUTH);
  EXPECT_EQ(evidence(found[0], "line"), "401 Client Error");
  EXPECT_EQ(found[1].code, Code::FETCH_STALLED);
  EXPECT_EQ(evidence(found[1], "line"), "Read timed out. (2)");
}

TEST(Download, NothingIsMadeOfWhatTellsNothing) {
  using namespace std::string_view_literals;
  for (const std::string_view text :
       {""sv, "\n"sv, "\r\r\n\n"sv, "\0\xff\xfe\n\0"sv, "Fetching 46 files: 100%|##########| 46/46"sv,
        "Downloaded 401 files"sv, "size 403"sv, "space left on the device: 4 GB"sv})
    EXPECT_TRUE(codes(text).empty()) << text;
}

TEST(Download, ALongLineIsShownInPart) {
  const std::string line = "Read timed out." + std::string(1u << 20, 'x');
  const auto found = judge_download(line);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(evidence(found[0], "line").size(), 240u);
}

TEST(Download, WhatMustBeFetchedAgain) {
  for (const Code code : {Code::LFS_POINTER, Code::HTML_BODY, Code::JSON_BODY, Code::XML_BODY,
                          Code::ZERO_FILLED, Code::PARTIAL, Code::CORRUPT_TRAILING, Code::CORRUPT_HEADER,
                          Code::MISSING_SHARD, Code::MISSING_FILE, Code::HASH_MISMATCH})
    EXPECT_TRUE(must_be_fetched(code)) << name(code);
  // The bytes may be right.
  for (const Code code : {Code::UNREADABLE, Code::CANNOT_TELL, Code::EXTRA_FILE, Code::INDEX_HEADER_DISAGREE,
                          Code::MANIFEST_INVALID})
    EXPECT_FALSE(must_be_fetched(code)) << name(code);
}

TEST(DiskRoom, A23_WhatIsProvenNeedsNoRoom) {
  EXPECT_FALSE(judge_room("/m", {Bytes{0}, Bytes{0}, Bytes{20'000'000'000}}));
  EXPECT_FALSE(judge_room("/m", {Bytes{0}, Bytes{0}, Bytes{0}}));
  EXPECT_FALSE(judge_room("/m", {Bytes{0}, Bytes{0}, std::nullopt}));
}

TEST(DiskRoom, WhatIsMissingAndFivePercentMustFit) {
  struct Case {
    std::uint64_t missing, bad, free, lacking;
  };
  for (const Case& c : {Case{100, 0, 105, 0},
                        {100, 0, 104, 1},
                        {100, 0, 0, 105},
                        {101, 0, 106, 1},
                        {101, 0, 107, 0},
                        {1, 0, 1, 1},
                        {1, 0, 2, 0},
                        {100, 5, 100, 5},
                        {100, 4, 100, 5},
                        {100, 100, 105, 0},
                        {100, 100, 5, 100},
                        {100, 200, 0, 105}}) {
    const auto judged = judge_room("/m", {Bytes{c.missing}, Bytes{c.bad}, Bytes{c.free}});
    ASSERT_EQ(judged.has_value(), c.lacking != 0) << c.missing << " " << c.bad << " " << c.free;
    if (!judged) continue;
    EXPECT_EQ(judged->code, Code::DISK_FULL);
    EXPECT_NE(judged->message.find(" " + std::to_string(c.lacking) + " bytes too few"), std::string::npos)
        << judged->message;
    EXPECT_EQ(evidence(*judged, "missing_bytes"), std::to_string(c.missing));
    // The old copies stay until the new ones are whole; only an operator can remove them first.
    EXPECT_EQ(judged->remedy.find("remove the bad copies first") == 0, c.bad >= c.lacking) << judged->remedy;
  }
}

TEST(DiskRoom, NumbersNearTheLargestDoNotWrapRound) {
  constexpr std::uint64_t kMost = UINT64_MAX;
  EXPECT_TRUE(judge_room("/m", {Bytes{kMost}, Bytes{0}, Bytes{kMost - 1}}));
  EXPECT_TRUE(judge_room("/m", {Bytes{kMost}, Bytes{kMost}, Bytes{kMost - 1}}));
  EXPECT_FALSE(judge_room("/m", {Bytes{kMost}, Bytes{kMost}, Bytes{kMost}}));
  EXPECT_FALSE(judge_room("/m", {Bytes{1}, Bytes{kMost}, Bytes{kMost}}));
}

TEST(DiskRoom, FreeSpaceThatCouldNotBeAskedForIsSaidSo) {
  const auto judged = judge_room("/m", {Bytes{1}, Bytes{0}, std::nullopt});
  ASSERT_TRUE(judged);
  EXPECT_EQ(judged->code, Code::CANNOT_TELL);
}

}  // namespace
}  // namespace troika::policies
