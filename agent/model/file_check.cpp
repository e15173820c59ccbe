#include "agent/model/file_check.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "agent/model/body.hpp"
#include "agent/model/sha256/sha256.hpp"
#include "agent/model/strays.hpp"

namespace troika::model {
namespace {

constexpr std::size_t kPage = 4096;

bool is_json_file(std::string_view name) {
  return name.size() >= 5 && name.substr(name.size() - 5) == ".json";
}

std::int64_t signed_of(std::uint64_t value) {
  return static_cast<std::int64_t>(value);
}

Finding of_body(const std::string& name, const Body& body, std::uint64_t bytes,
                const ManifestFile& expected) {
  std::string message = name + " (" + std::to_string(bytes) + " bytes) ";
  Evidence evidence{{"bytes", signed_of(bytes)}, {"expected_bytes", signed_of(expected.bytes.count)}};
  if (body.code == Code::LFS_POINTER) {
    const std::string size = body.wanted == 0 ? "" : " of " + std::to_string(body.wanted) + " bytes";
    message += "is a Git LFS pointer to an object" + size + ", not the object";
    evidence.emplace_back("oid", body.oid);
    if (body.wanted != 0) evidence.emplace_back("size", signed_of(body.wanted));
    const bool same = !expected.sha256.empty() && body.oid == expected.sha256;
    evidence.emplace_back("oid_is_the_manifests", same);
  } else if (body.code == Code::ZERO_FILLED) {
    message += "begins with zeros where a header should be";
  } else {
    message += "is an error page, not the object: " + body.excerpt;
    evidence.emplace_back("excerpt", body.excerpt);
  }
  return finding(body.code, {}, name, message, remedy_for(body), std::move(evidence));
}

// `head`: the file's beginning. A length that cannot be is the first sign of other bytes than a shard's.
Finding of_header(const std::string& name, const safetensors::HeaderFault& fault, std::string_view head,
                  std::uint64_t bytes, const ManifestFile& expected) {
  const safetensors::HeaderFault told{fault.rule, short_name(fault.tensor), short_name(fault.detail)};
  Evidence evidence{{"rule", fault.rule},
                    {"tensor", told.tensor},
                    {"bytes", signed_of(bytes)},
                    {"expected_bytes", signed_of(expected.bytes.count)}};
  const bool no_length = fault.rule == "HeaderTooLarge" || fault.rule == "InvalidHeaderLength";
  const std::string look = no_length ? look_of(head) : std::string{};
  if (look.empty())
    return finding(Code::CORRUPT_HEADER, {}, name, name + ": " + told.text(), "fetch the file again",
                   std::move(evidence));
  evidence.emplace_back("looks_like", look);
  return finding(
      Code::CORRUPT_HEADER, {}, name, name + " is no safetensors file but " + look + " (" + told.text() + ")",
      "if this is a server's or proxy's answer, check the access token and the proxy; then fetch the "
      "file again",
      std::move(evidence));
}

// `must`: by the manifest, or by the file's own header.
Finding of_size(const std::string& name, std::uint64_t bytes, std::uint64_t must, const char* by) {
  const bool is_short = bytes < must;
  const std::uint64_t difference = is_short ? must - bytes : bytes - must;
  return finding(is_short ? Code::PARTIAL : Code::CORRUPT_TRAILING, {}, name,
                 name + " has " + std::to_string(bytes) + " bytes, " + std::to_string(difference) +
                     (is_short ? " fewer than " : " more than ") + by + " says",
                 is_short ? "the download did not finish: fetch the file again" : "fetch the file again",
                 {{"bytes", signed_of(bytes)},
                  {"expected_bytes", signed_of(must)},
                  {is_short ? "short_by" : "over_by", signed_of(difference)}});
}

// A shard by its own rules; leaves facts.finding empty where it is whole.
void look_at_shard(const FileReader& reader, const std::string& head, const ManifestFile& expected,
                   FileFacts& facts) {
  // Too short for a header to be wrong: the size is the first thing that can be told.
  if (facts.bytes < 8 && facts.bytes < expected.bytes.count) {
    facts.finding = of_size(facts.name, facts.bytes, expected.bytes.count, "the manifest");
    return;
  }
  if (const auto body = classify_body(head)) {
    facts.finding = of_body(facts.name, *body, facts.bytes, expected);
    return;
  }
  const safetensors::HeaderLength length =
      safetensors::header_length(std::string_view{head}.substr(0, 8), facts.bytes);
  if (length.fault) {
    facts.finding = of_header(facts.name, *length.fault, head, facts.bytes, expected);
    return;
  }
  const auto json = reader.read_at(8, length.bytes);
  if (!json.ok()) {
    facts.finding = unreadable(facts.name, json.error());
    return;
  }
  safetensors::Header header = safetensors::parse_header(*json);
  if (header.fault) {
    facts.finding = of_header(facts.name, *header.fault, head, facts.bytes, expected);
    return;
  }
  facts.whole = header.file_bytes == facts.bytes;
  const std::uint64_t by_header = header.file_bytes;
  facts.header = std::move(header);
  if (facts.bytes != expected.bytes.count)
    facts.finding = of_size(facts.name, facts.bytes, expected.bytes.count, "the manifest");
  else if (!facts.whole)
    facts.finding = of_size(facts.name, facts.bytes, by_header, "its own header");
}

void look_at_other(const std::string& head, const ManifestFile& expected, FileFacts& facts) {
  if (facts.bytes == expected.bytes.count) return;
  const auto body = is_json_file(facts.name) ? classify_json_file(head) : classify_body(head);
  facts.finding = body ? of_body(facts.name, *body, facts.bytes, expected)
                       : of_size(facts.name, facts.bytes, expected.bytes.count, "the manifest");
}

bool all_zero(const char* data, std::size_t size) {
  return size == 0 || (data[0] == 0 && std::memcmp(data, data + 1, size - 1) == 0);
}

std::size_t zeros_at_end(const char* data, std::size_t size) {
  std::size_t at = size;
  while (at > 0 && data[at - 1] == 0)
    --at;
  return size - at;
}

// Bytes of the pages of `data` that are nothing but zeros.
std::uint64_t zero_pages(const char* data, std::size_t size) {
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at < size; at += kPage)
    if (const std::size_t part = std::min(kPage, size - at); all_zero(data + at, part)) sum += part;
  return sum;
}

// Zeros that reach to the file's end: space that was set aside and never written (mode 9).
class ZeroTail {
 public:
  void take(const char* block, std::size_t size) {
    for (std::size_t at = 0; at < size; at += kPage) {
      const std::size_t part = std::min(kPage, size - at);
      length_ = all_zero(block + at, part) ? length_ + part : zeros_at_end(block + at, part);
    }
  }
  std::uint64_t bytes() const { return length_; }

 private:
  std::uint64_t length_ = 0;
};

// Where the bytes of a file differ from what its manifest says, as far as that can be told.
struct Where {
  std::uint64_t zeros = 0;                   // at its end
  std::optional<std::uint64_t> first_block;  // of the manifest's blocks
  std::uint64_t wrong_blocks = 0;
  bool last_block_wrong = false;
  bool zero_block = false;            // a wrong one is nothing but zeros
  std::uint64_t zeros_in_blocks = 0;  // whole pages of them in wrong ones
};

Result<Where> find_damage(FileReader& file, const ManifestFile& expected, const std::atomic<bool>& cancel) {
  constexpr std::size_t kPiece = 1u << 20;
  const AlignedBytes buffer = aligned_bytes(kPiece);
  Where where;
  ZeroTail zeros;
  Sha256 block;
  std::uint64_t in_block = 0, zeros_in_block = 0;
  std::size_t number = 0;
  const auto end_block = [&] {
    if (number < expected.blocks.size() && block.hex() != expected.blocks[number]) {
      if (!where.first_block) where.first_block = number;
      ++where.wrong_blocks;
      where.last_block_wrong = number + 1 == expected.blocks.size();
      where.zero_block = where.zero_block || zeros_in_block == in_block;
      where.zeros_in_blocks += zeros_in_block;
    }
    zeros_in_block = 0;
    block = Sha256{};
    in_block = 0;
    ++number;
  };
  for (std::uint64_t offset = 0; offset < file.stamp().bytes && !cancel.load(); offset += kPiece) {
    std::size_t got = file.read_cached(offset, buffer.get(), kPiece);
    if (got == 0) {
      TROIKA_TRY(read, file.read_past_cache(offset, buffer.get(), kPiece));
      got = read;
    }
    if (got == 0) break;
    zeros.take(buffer.get(), got);
    for (std::size_t at = 0; at < got && !expected.blocks.empty();) {
      const auto part = std::min<std::uint64_t>(got - at, expected.block_bytes.count - in_block);
      block.update(buffer.get() + at, part);
      zeros_in_block += zero_pages(buffer.get() + at, part);
      at += part;
      in_block += part;
      if (in_block == expected.block_bytes.count) end_block();
    }
  }
  if (in_block > 0) end_block();
  where.zeros = zeros.bytes();
  return where;
}

Finding of_bytes(const std::string& file, const ManifestFile& expected, const std::string& found,
                 const Where& where) {
  const std::string& wanted = expected.sha256.empty() ? expected.git_sha1 : expected.sha256;
  Evidence evidence{
      {"expected", wanted}, {"found", found}, {"zero_bytes_at_the_end", signed_of(where.zeros)}};
  std::string place;
  if (where.first_block) {
    const std::uint64_t begin = *where.first_block * expected.block_bytes.count;
    const std::uint64_t end = std::min(begin + expected.block_bytes.count, expected.bytes.count);
    evidence.emplace_back("block", signed_of(*where.first_block));
    evidence.emplace_back("block_begin", signed_of(begin));
    evidence.emplace_back("block_end", signed_of(end));
    evidence.emplace_back("wrong_blocks", signed_of(where.wrong_blocks));
    place = "; wrong in bytes " + std::to_string(begin) + " to " + std::to_string(end) + " (block " +
            std::to_string(*where.first_block) + ")";
    if (where.wrong_blocks > 1) place += " and " + std::to_string(where.wrong_blocks - 1) + " more blocks";
    if (where.zeros_in_blocks > 0) {
      evidence.emplace_back("zero_bytes_in_wrong_blocks", signed_of(where.zeros_in_blocks));
      place += ", which hold " + std::to_string(where.zeros_in_blocks) + " bytes of pages of zeros";
    }
  }
  // Where blocks tell that the end is right, its zeros are the model's own.
  const bool end_is_wrong = expected.blocks.empty() || where.last_block_wrong;
  const bool zero_end =
      end_is_wrong && where.zeros > 0 && (where.zeros >= kPage || where.zeros == expected.bytes.count);
  if (zero_end || where.zero_block)
    return finding(
        Code::ZERO_FILLED, {}, file,
        file + " has the right size and other bytes: " +
            (zero_end ? "its last " + std::to_string(where.zeros) + " are zeros" : "zeros in a whole block") +
            place,
        "look for file system errors in the kernel's log, then fetch the file again", std::move(evidence));
  return finding(Code::HASH_MISMATCH, {}, file,
                 file + " has the right size and other bytes: digest " + found.substr(0, 16) +
                     "..., expected " + wanted.substr(0, 16) + "..." + place,
                 "fetch the file again, from a source whose digest is right", std::move(evidence));
}

}  // namespace

Finding changed_while_read(const std::string& name) {
  return finding(Code::CHANGED_WHILE_READ, {}, name, name + " changed while it was read",
                 "find out what writes into the model directory; verify again when it is done");
}

Finding unreadable(const std::string& name, const Error& error) {
  if (error.reason == "not a regular file")
    return finding(Code::NOT_A_FILE, {}, name, name + " is not a regular file", "put the file in its place");
  return finding(Code::UNREADABLE, {}, name, error.message(),
                 "let the user that runs the proof read it; check the disk");
}

FileFacts look_at_file(const ModelRoot& root, const std::string& name, const ManifestFile& expected) {
  FileFacts facts;
  facts.name = name;
  auto place = place_of(root, name);
  if (auto* found = std::get_if<Finding>(&place)) {
    facts.finding = std::move(*found);
    return facts;
  }
  facts.path = std::get<std::string>(place);
  const auto reader = FileReader::open(facts.path);
  if (!reader.ok()) {
    facts.finding = unreadable(name, reader.error());
    return facts;
  }
  facts.stamp = reader->stamp();
  facts.bytes = facts.stamp.bytes;
  const auto head = reader->read_at(0, kBodyHead);
  if (!head.ok()) {
    facts.finding = unreadable(name, head.error());
    return facts;
  }
  if (is_shard(name))
    look_at_shard(*reader, *head, expected, facts);
  else
    look_at_other(*head, expected, facts);
  return facts;
}

std::optional<Finding> foreign_body(const FileFacts& file) {
  if (is_shard(file.name)) return std::nullopt;
  ManifestFile as_it_is;
  as_it_is.bytes = Bytes{file.bytes};
  if (is_json_file(file.name) && file.bytes == 0)
    return finding(Code::PARTIAL, {}, file.name, file.name + " is empty, which no JSON is",
                   "fetch the file again");
  const auto reader = FileReader::open(file.path);
  if (!reader.ok()) return unreadable(file.name, reader.error());
  const auto head = reader->read_at(0, kBodyHead);
  if (!head.ok()) return unreadable(file.name, head.error());
  const auto body = is_json_file(file.name) ? classify_json_file(*head) : classify_body(*head);
  if (!body) return std::nullopt;
  constexpr std::array<std::string_view, 6> kPages{".md", ".html", ".htm", ".txt", ".xml", ".svg"};
  const bool page =
      std::any_of(kPages.begin(), kPages.end(), [&](auto end) { return file.name.ends_with(end); });
  // Templates begin with '{' or '<' by right, and data with zeros.
  const bool surely = is_json_file(file.name) || body->code == Code::LFS_POINTER ||
                      (body->code == Code::HTML_BODY && !page) ||
                      (body->code == Code::ZERO_FILLED && loader_takes(file.name));
  return surely ? std::optional{of_body(file.name, *body, file.bytes, as_it_is)} : std::nullopt;
}

Reading judge_bytes(FileReader& file, const std::string& name, const ManifestFile& expected,
                    std::uint64_t bytes_read, const std::string& sha256, const std::string& git_sha1,
                    const std::atomic<bool>& cancel) {
  Reading reading;
  reading.stamp = file.stamp();
  const auto unchanged = [&] {
    const auto after = file.stamp_now();
    return after.ok() && *after == file.stamp();
  };
  const auto changed = [&] {
    reading.finding = changed_while_read(name);
    return reading;
  };
  if (!unchanged() || bytes_read != file.stamp().bytes) return changed();
  reading.sha256 = sha256;
  if (expected.sha256.empty() && expected.git_sha1.empty()) return reading;
  const bool by_git = expected.sha256.empty();
  const std::string& found = by_git ? git_sha1 : sha256;
  if (found == (by_git ? expected.git_sha1 : expected.sha256)) return reading;
  const auto where = find_damage(file, expected, cancel);
  if (cancel.load()) return Reading{};
  if (!unchanged()) return changed();
  if (!where.ok())
    reading.finding = unreadable(name, where.error());
  else
    reading.finding = of_bytes(name, expected, found, *where);
  return reading;
}

}  // namespace troika::model
