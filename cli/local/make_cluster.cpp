// The files of a LocalCluster.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "cli/local/local_cluster.hpp"
#include "cli/local/sweep.hpp"
#include "platform/clock.hpp"
#include "platform/files.hpp"
#include "platform/pki.hpp"

namespace troika::local {
namespace {

constexpr Duration kAuthorityValid = std::chrono::hours{24 * 30};
constexpr Duration kCertificatesValid = std::chrono::hours{24 * 7};
constexpr Bytes kSpare{256u << 20};  // logs, stores, and what others need meanwhile
constexpr std::uint64_t kUsualModel =
    64u << 20;  // figure of the default model, rounded up; asked before it is made

Result<std::string> make_root(const Options& options) {
  if (options.root.empty()) {
    std::string path = temp_folder() + "/" + options.prefix + ".XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) return system_error("make a folder in", temp_folder(), errno);
    return real_folder(path);
  }
  if (options.root.front() != '/')
    return Error{"use the folder", options.root, "an absolute path is expected"};
  if (::mkdir(options.root.c_str(), 0700) != 0) return system_error("make the folder", options.root, errno);
  return real_folder(options.root);
}

Status check_space(const Options& options, const std::string& root) {
  const std::uint64_t copies = options.shape.replicas * options.shape.layers.size() + 1;
  const Bytes needed{copies * kUsualModel + kSpare.count};
  TROIKA_TRY(free, platform::free_space(root));
  if (free >= needed) return Done{};
  return Error{"make a cluster in", root,
               fmt::format("{} MiB are free and {} MiB are needed; set TMPDIR or --dir to a roomier place",
                           free.count >> 20, needed.count >> 20)};
}

// The folder goes again when the rest of the making fails.
struct RemoveUnlessDone {
  std::string root;
  bool done = false;
  ~RemoveUnlessDone() {
    if (!done) (void)platform::remove_tree(root).ok();
  }
};

}  // namespace

Result<std::unique_ptr<LocalCluster>> LocalCluster::make(Options options) {
  TROIKA_TRY(programs, find_programs(options.programs));
  TROIKA_TRY(root, make_root(options));
  RemoveUnlessDone undo{root};
  if (root.size() > Layout::kMaxRoot)
    return Error{
        "use the folder", root,
        fmt::format("sockets below it would have paths over the system's limit: at most {} characters",
                    Layout::kMaxRoot)};
  TROIKA_CHECK(check_space(options, root));
  const Layout layout{root};
  TROIKA_TRY(lock, platform::DirectoryLock::take(layout.lock()));
  TROIKA_TRY(block, PortBlock::reserve());
  // Agents sweep by the mark cluster/node of their stages: two clusters on this machine must not share it.
  options.shape.cluster += "-" + platform::random_hex(3);
  options.model.layers = layers_of(options.shape);
  options.model.name = options.shape.model;
  std::unique_ptr<LocalCluster> cluster(
      new LocalCluster(std::move(options), layout, std::move(lock), std::move(block), programs));
  undo.done = true;  // from here on it is the cluster's
  TROIKA_CHECK(cluster->prepare());
  return cluster;
}

LocalCluster::LocalCluster(Options options, Layout layout, platform::DirectoryLock lock, PortBlock block,
                           Programs programs)
    : options_(std::move(options)),
      layout_(std::move(layout)),
      lock_(std::move(lock)),
      block_(std::move(block)),
      ports_(ports_of(options_.shape, block_)),
      programs_(std::move(programs)),
      address_{layout_.socket(), "", {}} {}

Status LocalCluster::prepare() {
  TROIKA_CHECK(
      write_record(layout_.root, {options_.shape.cluster, ::getpid(), false,
                                  fmt::format("http://127.0.0.1:{}", ports_.gateway), layout_.socket()}));
  TROIKA_CHECK(platform::make_directories(layout_.logs()));
  TROIKA_CHECK(platform::make_directories(layout_.leader_state()));
  TROIKA_CHECK(make_certificates());
  TROIKA_CHECK(make_files());
  return make_copies();
}

Status LocalCluster::make_certificates() {
  using platform::Identity;
  using platform::Role;
  const std::string& cluster = options_.shape.cluster;
  TROIKA_CHECK(platform::make_directories(layout_.pki(), 0700));
  TROIKA_CHECK(platform::make_authority(layout_.pki(), cluster, kAuthorityValid));
  const auto issue = [&](Role role, const std::string& name) {
    return platform::issue(layout_.pki(), Identity{cluster, role, name}, kCertificatesValid);
  };
  TROIKA_CHECK(issue(Role::Leader, "leader"));
  TROIKA_CHECK(issue(Role::Operator, "operator"));
  for (const std::string& node : node_names(options_.shape))
    TROIKA_CHECK(issue(Role::Agent, node));
  return Done{};
}

Status LocalCluster::make_files() {
  const Instant began = platform::now();
  TROIKA_TRY(made, maker::make_model(layout_.model(), options_.model));
  model_facts_.made = made;
  TROIKA_TRY(manifest, maker::manifest_of(layout_.model(), options_.shape.model));
  model_facts_.make_seconds = platform::seconds_since(began);
  TROIKA_CHECK(platform::write_file_durably(layout_.manifest(), manifest));
  TROIKA_CHECK(
      platform::write_file_durably(layout_.cluster_toml(), cluster_toml(options_.shape, layout_, ports_)));
  for (const std::string& node : node_names(options_.shape)) {
    TROIKA_CHECK(platform::make_directories(layout_.node(node)));
    TROIKA_CHECK(platform::write_file_durably(layout_.agent_toml(node),
                                              agent_toml(options_.shape, layout_, ports_, programs_, node)));
  }
  return Done{};
}

Status LocalCluster::make_copies() {
  for (const std::string& node : node_names(options_.shape)) {
    if (stopped()) return Error{"copy the model for", node, "interrupted"};
    TROIKA_TRY(copied, copy_directory(layout_.model(), layout_.node_model(node)));
    model_facts_.copies += 1;
    model_facts_.copied.files += copied.files;
    model_facts_.copied.reflinked += copied.reflinked;
    model_facts_.copied.bytes += copied.bytes;
  }
  return Done{};
}

}  // namespace troika::local
