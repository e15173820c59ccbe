#include "agent/model/file_check.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

#include "agent/model/body.hpp"
#include "agent/model/digest.hpp"
#include "agent/model/file_reader.hpp"

namespace troika::model {
namespace {

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
    message +=
        "is a Git LFS pointer to an object of " + std::to_string(body.wanted) + " bytes, not the object";
    evidence.emplace_back("oid", body.oid);
    evidence.emplace_back("size", signed_of(body.wanted));
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

Finding of_header(const std::string& name, const HeaderFault& fault, std::uint64_t bytes,
                  const ManifestFile& expected) {
  std::string message = name + ": " + fault.rule + ": ";
  if (!fault.tensor.empty()) message += "tensor " + fault.tensor + ": ";
  Evidence evidence{{"rule", fault.rule},
                    {"tensor", fault.tensor},
                    {"bytes", signed_of(bytes)},
                    {"expected_bytes", signed_of(expected.bytes.count)}};
  return finding(Code::CORRUPT_HEADER, {}, name, message + fault.detail, "fetch the file again",
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

Finding unreadable(const std::string& name, const Error& error) {
  if (error.reason == "not a regular file")
    return finding(Code::NOT_A_FILE, {}, name, name + " is not a regular file", "put the file in its place");
  return finding(Code::UNREADABLE, {}, name, error.message(),
                 "give the agent's user the right to read it; check the disk");
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
  const HeaderLength length = header_length(std::string_view{head}.substr(0, 8), facts.bytes);
  if (length.fault) {
    facts.finding = of_header(facts.name, *length.fault, facts.bytes, expected);
    return;
  }
  const auto json = reader.read_at(8, length.bytes);
  if (!json.ok()) {
    facts.finding = unreadable(facts.name, json.error());
    return;
  }
  Header header = parse_header(*json);
  if (header.fault) {
    facts.finding = of_header(facts.name, *header.fault, facts.bytes, expected);
    return;
  }
  facts.whole = header.file_bytes == facts.bytes;
  facts.tensors = std::move(header.tensors);
  if (facts.bytes != expected.bytes.count)
    facts.finding = of_size(facts.name, facts.bytes, expected.bytes.count, "the manifest");
  else if (!facts.whole)
    facts.finding = of_size(facts.name, facts.bytes, header.file_bytes, "its own header");
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

// Zeros that reach to the file's end: space that was set aside and never written (mode 9).
class ZeroTail {
 public:
  void take(const char* block, std::size_t size) {
    for (std::size_t at = 0; at < size; at += FileReader::kPage) {
      const std::size_t part = std::min(FileReader::kPage, size - at);
      length_ = all_zero(block + at, part) ? length_ + part : 0;
    }
  }
  std::uint64_t bytes() const { return length_; }

 private:
  std::uint64_t length_ = 0;
};

struct FreeAligned {
  void operator()(char* memory) const { ::operator delete[](memory, std::align_val_t{FileReader::kPage}); }
};

Finding of_bytes(const FileFacts& facts, const ManifestFile& expected, const std::string& found,
                 std::uint64_t zeros) {
  const std::string& wanted = expected.sha256.empty() ? expected.git_sha1 : expected.sha256;
  Evidence evidence{{"expected", wanted}, {"found", found}, {"zero_bytes_at_the_end", signed_of(zeros)}};
  if (zeros >= FileReader::kPage)
    return finding(
        Code::ZERO_FILLED, {}, facts.name,
        facts.name + " has the right size and other bytes: its last " + std::to_string(zeros) + " are zeros",
        "look for file system errors in the kernel's log, then fetch the file again", std::move(evidence));
  return finding(Code::HASH_MISMATCH, {}, facts.name,
                 facts.name + " has the right size and other bytes: digest " + found.substr(0, 16) +
                     "..., expected " + wanted.substr(0, 16) + "...",
                 "fetch the file again, from a source whose digest is right", std::move(evidence));
}

}  // namespace

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
  facts.bytes = reader->stamp().bytes;
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

Reading read_file(const FileFacts& facts, const ManifestFile& expected,
                  const std::function<bool(std::size_t)>& advance) {
  Reading reading;
  auto reader = FileReader::open(facts.path);
  if (!reader.ok()) {
    reading.finding = unreadable(facts.name, reader.error());
    return reading;
  }
  const std::unique_ptr<char[], FreeAligned> buffer{
      new (std::align_val_t{FileReader::kPage}) char[FileReader::kBlock]};
  Hasher sha256 = Hasher::sha256();
  Hasher git = Hasher::git_blob(reader->stamp().bytes);
  const bool by_git = expected.sha256.empty();
  ZeroTail zeros;
  std::uint64_t total = 0;
  for (std::uint64_t block = 0;; ++block) {
    const auto got = reader->read_block(block, buffer.get());
    if (!got.ok()) {
      reading.finding = unreadable(facts.name, got.error());
      return reading;
    }
    sha256.update(buffer.get(), *got);
    if (by_git) git.update(buffer.get(), *got);
    zeros.take(buffer.get(), *got);
    total += *got;
    if (!advance(*got)) {
      reading.cancelled = true;
      return reading;
    }
    if (*got < FileReader::kBlock) break;
  }
  const auto after = reader->stamp_now();
  if (!after.ok() || *after != reader->stamp() || total != reader->stamp().bytes) {
    reading.finding =
        finding(Code::CHANGED_WHILE_READ, {}, facts.name, facts.name + " changed while it was read",
                "find out what writes into the model directory; verify again when it is done");
    return reading;
  }
  reading.sha256 = sha256.hex();
  const std::string found = by_git ? git.hex() : reading.sha256;
  if (found != (by_git ? expected.git_sha1 : expected.sha256))
    reading.finding = of_bytes(facts, expected, found, zeros.bytes());
  return reading;
}

}  // namespace troika::model
