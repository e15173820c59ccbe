#include "agent/model/proof.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "agent/model/file_check.hpp"
#include "agent/model/file_reader.hpp"
#include "agent/model/index.hpp"
#include "agent/model/place.hpp"
#include "agent/model/revision.hpp"
#include "agent/model/strays.hpp"
#include "platform/clock.hpp"

namespace troika::model {
namespace {

constexpr std::size_t kLargestIndex = 256u << 20;  // 135,000 tensors take 12 MB
constexpr std::size_t kMostFindings = 256;

class Proof {
 public:
  Proof(const ProofPlan& plan, const std::function<void(const ProofProgress&)>& progress,
        const std::atomic<bool>& cancel)
      : plan_(plan), progress_(progress), cancel_(cancel) {}

  ModelProof run() {
    const Instant start = platform::now();
    proof_.manifest_digest = manifest_digest(plan_.manifest);
    prove();
    for (Finding& one : proof_.findings)
      one.node = plan_.node;
    worst_first(proof_.findings);
    if (proof_.findings.size() > kMostFindings) proof_.findings.resize(kMostFindings);
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
    look(*root);
    if (!proof_.cancelled) compare_index();
    if (!proof_.cancelled) read_all();
  }

  void look(const ModelRoot& root) {
    for (const auto& [name, expected] : plan_.manifest.files) {
      if (cancelled()) return;
      facts_.push_back(look_at_file(root, name, expected));
      progress_at_.total += expected.bytes;
      if (auto& header = facts_.back().header) {
        tensors_.add(name, *header);
        header.reset();
      }
    }
    progress_at_.files_total = static_cast<std::uint32_t>(facts_.size());
    Strays strays = find_strays(root, plan_.manifest);
    if (auto other = other_revision(plan_.manifest, facts_, strays)) {
      other_revision_ = true;
      add(*std::move(other));
      std::erase_if(strays.findings,
                    [](const Finding& f) { return f.code == Code::EXTRA_FILE && is_shard(f.subject); });
    }
    std::move(strays.findings.begin(), strays.findings.end(), std::back_inserter(proof_.findings));
  }

  void compare_index() {
    for (const Finding& one : tensors_.duplicates())
      add(one);
    proof_.tensors = tensors_.tensors();
    for (const FileFacts& file : facts_) {
      if (!is_index(file.name) || file.path.empty() || other_revision_) continue;
      const auto index = open_index(file);
      if (!index.ok()) {
        add(finding(Code::INDEX_HEADER_DISAGREE, {}, file.name, index.error().message(),
                    "fetch the index again"));
        continue;
      }
      std::set<std::string, std::less<>> absent;
      for (FileFacts& shard : facts_) {
        if (!is_shard(shard.name) || !shard.finding) continue;
        absent.insert(shard.name);
        name_first_tensor(*index, *shard.finding);
      }
      for (Finding& one : tensors_.compare(*index, file.name, absent))
        add(std::move(one));
    }
  }

  static Result<safetensors::Index> open_index(const FileFacts& file) {
    TROIKA_TRY(reader, FileReader::open(file.path));
    if (reader.stamp().bytes > kLargestIndex)
      return Error{"read the index", file.name, "larger than " + std::to_string(kLargestIndex) + " bytes"};
    TROIKA_TRY(text, reader.read_at(0, reader.stamp().bytes));
    return safetensors::parse_index(text, file.name);
  }

  static void name_first_tensor(const safetensors::Index& index, Finding& missing) {
    if (missing.code != Code::MISSING_SHARD) return;
    const std::string first(index.first_tensor_of(missing.subject));
    if (first.empty()) return;
    missing.message += "; its first tensor is " + first;
    missing.evidence.emplace_back("first_tensor", first);
  }

  // Every file that nothing is known against yet.
  void read_all() {
    std::vector<CrewTask> tasks;
    std::vector<FileFacts*> files;
    for (FileFacts& file : facts_) {
      if (file.finding || !plan_.read_bytes) continue;
      tasks.push_back({file.name, file.path, file.bytes, plan_.manifest.files.at(file.name), 0});
      files.push_back(&file);
    }
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
      files[i]->finding = readings[i].finding;
      by_name[files[i]->name] = std::move(readings[i]);
    }
    for (const FileFacts& file : facts_)
      list(file, by_name[file.name].sha256);
    (void)cancelled();
  }

  void list(const FileFacts& file, const std::string& sha256) {
    FileProof line{file.name, Bytes{file.bytes}, sha256, "ok"};
    if (file.finding) {
      line.status = name(file.finding->code);
      const bool of_revision = other_revision_ && is_shard(file.name);
      if (!of_revision) add(*file.finding);
    } else if (sha256.empty()) {
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
  TensorMap tensors_;
  bool other_revision_ = false;
};

}  // namespace

ModelProof prove_model(const ProofPlan& plan, const std::function<void(const ProofProgress&)>& progress,
                       const std::atomic<bool>& cancel) {
  return Proof{plan, progress, cancel}.run();
}

}  // namespace troika::model
