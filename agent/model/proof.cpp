#include "agent/model/proof.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "agent/model/file_check.hpp"
#include "agent/model/file_reader.hpp"
#include "agent/model/index.hpp"
#include "agent/model/nvfp4.hpp"
#include "agent/model/place.hpp"
#include "agent/model/revision.hpp"
#include "agent/model/strays.hpp"
#include "platform/clock.hpp"
#include "policies/download.hpp"

namespace troika::model {
namespace {

constexpr std::size_t kLargestIndex = 256u << 20;  // 135,000 tensors take 12 MB
constexpr std::size_t kLargestConfig = 16u << 20;
constexpr std::size_t kMostFindings = 256;
constexpr std::size_t kMostIndexes = 4;          // of one folder
constexpr std::uint64_t kMostTensors = 8 << 20;  // their names take some 1 GB

// "" or ending with '/'.
std::string folder_of(std::string_view name) {
  return std::string(name.substr(0, name.rfind('/') + 1));
}

class Proof {
 public:
  Proof(const ProofPlan& plan, const std::function<void(const ProofProgress&)>& progress,
        const std::atomic<bool>& cancel)
      : plan_(plan), progress_(progress), cancel_(cancel) {}

  ModelProof run() {
    const Instant start = platform::now();
    proof_.manifest_digest = manifest_digest(plan_.manifest);
    prove();
    worst_first(proof_.findings);
    const std::size_t most = kMostFindings - (room_ ? 1 : 0);
    if (proof_.findings.size() > most) proof_.findings.resize(most);
    if (room_) proof_.findings.push_back(*std::move(room_));
    for (Finding& one : proof_.findings)
      one.node = plan_.node;
    worst_first(proof_.findings);
    proof_.seconds = platform::seconds_since(start);
    return std::move(proof_);
  }

 private:
  void add(Finding one) { proof_.findings.push_back(std::move(one)); }

  void prove() {
    if (const Status good = check_manifest(plan_.manifest, plan_.manifest.model); !good.ok()) {
      add(finding(Code::MANIFEST_INVALID, {}, "manifest", good.error().message(), "make the manifest anew"));
      return;
    }
    const auto root = find_root(plan_.directory);
    if (!root.ok()) {
      add(finding(Code::UNREADABLE, {}, plan_.directory, root.error().message(),
                  "set [model] path in the agent's configuration to the model directory"));
      return;
    }
    const bool all_known = recall_all(*root);
    if (!all_known) look(*root);
    if (!proof_.cancelled) look_for_strays(*root);
    if (!proof_.cancelled && !all_known) contents_ = compare_contents();
    if (proof_.cancelled) return;
    proof_.tensors = contents_.tensors;
    proof_.findings.insert(proof_.findings.end(), contents_.findings.begin(), contents_.findings.end());
    read_all();
    if (!proof_.cancelled && !other_revision_) judge_room(*root);
    if (!all_known) remember_contents();
  }

  // Every file by the record of earlier proofs, and what its bytes say of one another too.
  bool recall_all(const ModelRoot& root) {
    const Memory& memory = plan_.crew.memory;
    if (memory.record == nullptr || memory.deep || !plan_.read_bytes) return false;
    auto contents = memory.record->contents_of(proof_.manifest_digest);
    if (!contents) return false;
    for (const auto& [name, expected] : plan_.manifest.files) {
      const auto place = place_of(root, name);
      const auto* path = std::get_if<std::string>(&place);
      auto known = path != nullptr ? recall(memory, *path) : std::nullopt;
      if (!known || !stands_for(*known, expected)) {
        facts_.clear();
        known_.clear();
        return false;
      }
      FileFacts& file = facts_.emplace_back();
      file.name = name;
      file.path = *path;
      file.bytes = known->stamp.bytes;
      file.stamp = known->stamp;
      known_.emplace(name, *std::move(known));
    }
    contents_ = *std::move(contents);
    return true;
  }

  static bool stands_for(const policies::Remembered& known, const ManifestFile& expected) {
    if (known.stamp.bytes != expected.bytes.count) return false;
    return expected.sha256.empty() ? known.git_sha1 == expected.git_sha1 : known.sha256 == expected.sha256;
  }

  void look(const ModelRoot& root) {
    for (const auto& [name, expected] : plan_.manifest.files) {
      if (cancelled()) return;
      FileFacts& file = facts_.emplace_back(look_at_file(root, name, expected));
      if (file.header) {
        add_tensors(file);
      }
      if (file.finding || !plan_.read_bytes) continue;
      // What the header said is of the bytes that the record knows only if the file did not change between.
      auto known = recall(plan_.crew.memory, file.path);
      if (known && known->stamp == file.stamp && stands_for(*known, expected))
        known_.emplace(name, *std::move(known));
    }
  }

  void add_tensors(FileFacts& file) {
    auto header = *std::move(file.header);
    file.header.reset();
    tensors_ += header.names.size();
    if (tensors_ > kMostTensors) {
      if (!file.finding)
        file.finding =
            finding(Code::CANNOT_TELL, {}, file.name,
                    "the shards up to " + file.name + " have more than " + std::to_string(kMostTensors) +
                        " tensors together: their names are not compared",
                    "look at the headers of the shards");
      return;
    }
    experts_.add(header);
    std::string folder = folder_of(file.name);
    TensorMap& map = folders_.try_emplace(folder, folder).first->second;
    map.add(file.name.substr(folder.size()), std::move(header));
  }

  void look_for_strays(const ModelRoot& root) {
    Strays strays = find_strays(root, plan_.manifest);
    if (auto other = other_revision(plan_.manifest, facts_, strays)) {
      other_revision_ = true;
      add(*std::move(other));
      std::erase_if(strays.findings,
                    [](const Finding& f) { return f.code == Code::EXTRA_FILE && is_shard(f.subject); });
    }
    std::move(strays.findings.begin(), strays.findings.end(), std::back_inserter(proof_.findings));
  }

  // Index and headers, each folder by itself: an index names shards of its own. Then the configuration.
  Contents compare_contents() {
    Contents out{tensors_, {}};
    const auto take = [&out](std::vector<Finding> more) {
      std::move(more.begin(), more.end(), std::back_inserter(out.findings));
    };
    for (const FileFacts& file : facts_)
      if (is_index(file.name)) folders_.try_emplace(folder_of(file.name), folder_of(file.name));
    for (const auto& [folder, tensors] : folders_) {
      const auto absent = absent_of(folder);
      take(tensors.compare(indexes_of(folder, absent, out.findings), absent));
    }
    if (!other_revision_) take(check_experts());
    return out;
  }

  // Shards without a good header, by their names in the folder.
  std::set<std::string, std::less<>> absent_of(const std::string& folder) const {
    std::set<std::string, std::less<>> absent;
    for (const FileFacts& file : facts_)
      if (is_shard(file.name) && file.finding && folder_of(file.name) == folder)
        absent.insert(file.name.substr(folder.size()));
    return absent;
  }

  std::vector<NamedIndex> indexes_of(const std::string& folder,
                                     const std::set<std::string, std::less<>>& absent,
                                     std::vector<Finding>& findings) {
    std::vector<NamedIndex> indexes;
    for (FileFacts& file : facts_) {
      if (!is_index(file.name) || folder_of(file.name) != folder || other_revision_) continue;
      if (indexes.size() == kMostIndexes) {
        findings.push_back(finding(Code::CANNOT_TELL, {}, file.name,
                                   file.name + " is not compared: its folder has more than " +
                                       std::to_string(kMostIndexes) + " indexes",
                                   "pin the model without the indexes that its engine does not read"));
        break;
      }
      const auto text = text_of(file, kLargestIndex);
      if (!text) continue;
      auto index = safetensors::parse_index(*text, file.name);
      if (!index.ok()) {
        findings.push_back(finding(Code::INDEX_HEADER_DISAGREE, {}, file.name, index.error().message(),
                                   "fetch the index again"));
        continue;
      }
      for (FileFacts& shard : facts_)
        if (shard.name.starts_with(folder) && absent.count(shard.name.substr(folder.size())) != 0)
          name_first_tensor(*index, shard.name.substr(folder.size()), *shard.finding);
      indexes.push_back({file.name, *std::move(index)});
    }
    return indexes;
  }

  std::vector<Finding> check_experts() {
    const bool complete = std::none_of(facts_.begin(), facts_.end(), [](const FileFacts& file) {
      return is_shard(file.name) && file.finding;
    });
    const auto config = std::find_if(facts_.begin(), facts_.end(),
                                     [](const FileFacts& file) { return file.name == "config.json"; });
    if (config == facts_.end()) return experts_.check(std::nullopt, complete);
    const auto text = text_of(*config, kLargestConfig);
    return text ? experts_.check(text, complete) : std::vector<Finding>{};
  }

  // Of bytes that are all proven, and were the same when they were compared and when they were read.
  void remember_contents() {
    if (plan_.crew.memory.record == nullptr || proof_.cancelled || other_revision_) return;
    const bool good = std::all_of(contents_.findings.begin(), contents_.findings.end(),
                                  [](const Finding& one) { return one.severity == Severity::Info; });
    if (good && proof_.files == plan_.manifest.files.size())
      plan_.crew.memory.record->put_contents(proof_.manifest_digest, contents_);
  }

  // As it was when it was looked at first, and is still. Nothing: the file has a finding, by now.
  std::optional<std::string> text_of(FileFacts& file, std::size_t largest) {
    if (file.finding) return std::nullopt;
    const auto spoilt = [&](Finding why) {
      file.finding = std::move(why);
      known_.erase(file.name);
      return std::nullopt;
    };
    if (file.bytes > largest)
      return spoilt(finding(Code::CANNOT_TELL, {}, file.name,
                            file.name + " is larger than " + std::to_string(largest) +
                                " bytes: what it says is not compared with the tensors",
                            "look whether it is the right file"));
    const auto reader = FileReader::open(file.path);
    if (!reader.ok()) return spoilt(unreadable(file.name, reader.error()));
    auto text = reader->read_at(0, file.bytes);
    if (!text.ok()) return spoilt(unreadable(file.name, text.error()));
    const auto after = reader->stamp_now();
    if (!(reader->stamp() == file.stamp) || !after.ok() || !(*after == file.stamp) ||
        text->size() != file.bytes)
      return spoilt(changed_while_read(file.name));
    return *std::move(text);
  }

  // `shard`: the missing one, as the index names it.
  static void name_first_tensor(const safetensors::Index& index, const std::string& shard, Finding& missing) {
    if (missing.code != Code::MISSING_SHARD) return;
    const std::string first = short_name(index.first_tensor_of(shard));
    if (first.empty()) return;
    missing.message += "; its first tensor is " + first;
    missing.evidence.emplace_back("first_tensor", first);
  }

  // Every file that nothing is known against or for yet.
  void read_all() {
    std::vector<CrewTask> tasks;
    std::vector<FileFacts*> files;
    for (FileFacts& file : facts_) {
      if (file.finding || !plan_.read_bytes || known_.count(file.name) != 0) continue;
      tasks.push_back({file.name, file.path, file.bytes, plan_.manifest.files.at(file.name), 0});
      progress_at_.total += Bytes{file.bytes};
      files.push_back(&file);
    }
    progress_at_.files_total = static_cast<std::uint32_t>(facts_.size());
    const auto already = static_cast<std::uint32_t>(facts_.size() - files.size());
    auto readings = read_files(
        tasks, plan_.crew,
        [&](const CrewProgress& now) {
          proof_.bytes = Bytes{now.bytes};
          progress_at_.done = Bytes{now.bytes};
          progress_at_.files_done = already + now.files;
          progress_at_.file = now.file;
          progress_(progress_at_);
        },
        cancel_);
    std::map<std::string, Reading> by_name;
    for (std::size_t i = 0; i < files.size(); ++i) {
      FileFacts& file = *files[i];
      Reading& reading = readings[i];
      file.finding = std::move(reading.finding);
      // Its header was looked at before.
      if (!file.finding && !reading.sha256.empty() && !(reading.stamp == file.stamp))
        file.finding = changed_while_read(file.name);
      by_name[file.name] = std::move(reading);
    }
    for (const FileFacts& file : facts_)
      list(file, by_name[file.name]);
    (void)cancelled();
  }

  void list(const FileFacts& file, const Reading& reading) {
    FileProof line{file.name, Bytes{file.bytes}, reading.sha256, "ok"};
    line.remembered = reading.remembered;
    if (const auto known = known_.find(file.name); known != known_.end()) {
      line.sha256 = known->second.sha256;
      line.cached = true;
      ++proof_.cached;
    }
    if (file.finding) {
      line.status = name(file.finding->code);
      const bool of_revision = other_revision_ && is_shard(file.name);
      if (!of_revision) add(*file.finding);
    } else if (line.sha256.empty()) {
      line.status = "not_read";
      if (plan_.read_bytes && !cancelled())
        add(finding(Code::CANNOT_TELL, {}, file.name,
                    file.name + " was not read: no memory or no thread for it",
                    "verify again when the machine has room"));
    } else {
      ++proof_.files;
      proof_.shards += is_shard(file.name) ? 1 : 0;
    }
    proof_.list.push_back(std::move(line));
  }

  void judge_room(const ModelRoot& root) {
    policies::DiskRoom room;
    for (const FileFacts& file : facts_) {
      if (!file.finding || !policies::must_be_fetched(file.finding->code)) continue;
      const Bytes whole = plan_.manifest.files.at(file.name).bytes;
      room.missing += whole;
      room.bad += std::min(Bytes{file.bytes}, whole);
    }
    proof_.missing = room.missing;
    if (room.missing == Bytes{0}) return;
    if (const auto free = plan_.free_space(root.directory); free.ok()) room.free = *free;
    room_ = policies::judge_room(root.directory, room);
  }

  bool cancelled() {
    if (cancel_.load(std::memory_order_relaxed)) proof_.cancelled = true;
    return proof_.cancelled;
  }

  const ProofPlan& plan_;
  const std::function<void(const ProofProgress&)>& progress_;
  const std::atomic<bool>& cancel_;
  ModelProof proof_;
  ProofProgress progress_at_;
  std::vector<FileFacts> facts_;
  std::map<std::string, policies::Remembered> known_;  // by name: files that need not be read
  std::map<std::string, TensorMap> folders_;           // by folder: "" or ending with '/'
  std::uint64_t tensors_ = 0;                          // of all shards
  Nvfp4Experts experts_;
  Contents contents_;
  std::optional<Finding> room_;  // for what must be fetched
  bool other_revision_ = false;
};

}  // namespace

ModelProof prove_model(const ProofPlan& plan, const std::function<void(const ProofProgress&)>& progress,
                       const std::atomic<bool>& cancel) {
  return Proof{plan, progress, cancel}.run();
}

}  // namespace troika::model
