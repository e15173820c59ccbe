#include "agent/model/place.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "agent/model/manifest.hpp"

namespace troika::model {
namespace {

// Empty with errno set where it does not resolve.
std::string real_path(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real{::realpath(path.c_str(), nullptr), &std::free};
  return real ? std::string(real.get()) : std::string{};
}

bool inside(const std::string& path, const std::string& directory) {
  return !directory.empty() && path.size() > directory.size() && path[directory.size()] == '/' &&
         path.compare(0, directory.size(), directory) == 0;
}

std::string parent_of(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}
std::string last_of(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

// The target's path with "." and ".." taken away by their letters: what is at its end does not exist.
std::string lexical(const std::string& base, const std::string& target) {
  const std::string whole = !target.empty() && target[0] == '/' ? target : base + "/" + target;
  std::string out;
  for (std::size_t at = 0; at < whole.size();) {
    std::size_t end = whole.find('/', at);
    if (end == std::string::npos) end = whole.size();
    const std::string part = whole.substr(at, end - at);
    at = end + 1;
    if (part.empty() || part == ".") continue;
    if (part == "..")
      out = parent_of(out);
    else
      out += "/" + part;
  }
  return out;
}

std::string link_target(const std::string& path) {
  char target[PATH_MAX];
  const ssize_t size = ::readlink(path.c_str(), target, sizeof target);
  return size > 0 ? std::string(target, static_cast<std::size_t>(size)) : std::string{};
}

Finding missing(const std::string& name) {
  const Code code = is_shard(name) ? Code::MISSING_SHARD : Code::MISSING_FILE;
  return finding(code, {}, name, name + " is in the manifest and not in the model directory",
                 "fetch the file");
}

Finding dangling(const ModelRoot& root, const std::string& name, const std::string& target) {
  const std::string wanted = lexical(parent_of(root.directory + "/" + name), target);
  // A folder of blobs that is there would show the blob too.
  const bool lost = inside(wanted, root.blobs) && !real_path(root.blobs).empty();
  if (!lost && !inside(wanted, root.directory))
    return finding(
        Code::NOT_VISIBLE_IN_NAMESPACE, {}, name,
        name + " is a link to " + target + ", which cannot be seen from here",
        "mount the folder that the link leads to as well, or put regular files into the model directory",
        {{"target", target}});
  Finding out = missing(name);
  out.message = name + " is a link to " + target + ", which is not there";
  out.evidence.emplace_back("target", target);
  return out;
}

Finding unresolved(const ModelRoot& root, const std::string& name, int error) {
  const std::string path = root.directory + "/" + name;
  if (error == ELOOP)
    return finding(Code::SYMLINK_LOOP, {}, name,
                   name + " is a link that leads to itself, or through too many others",
                   "fetch the file again");
  if (error == EACCES)
    return finding(Code::UNREADABLE, {}, name, "no permission to follow the path of " + name,
                   "let the user that runs the proof read it");
  if (error != ENOENT && error != ENOTDIR)
    return finding(Code::UNREADABLE, {}, name, name + " cannot be reached: " + std::strerror(error),
                   "check the disk and its mount");
  const std::string target = link_target(path);
  return target.empty() ? missing(name) : dangling(root, name, target);
}

}  // namespace

Result<ModelRoot> find_root(const std::string& directory) {
  ModelRoot root;
  root.directory = real_path(directory);
  if (root.directory.empty()) return system_error("open the model directory", directory, errno);
  struct stat facts {};
  if (::stat(root.directory.c_str(), &facts) != 0)
    return system_error("open the model directory", directory, errno);
  if (!S_ISDIR(facts.st_mode)) return Error{"open the model directory", directory, "not a directory"};
  if (last_of(parent_of(root.directory)) == "snapshots")
    root.blobs = parent_of(parent_of(root.directory)) + "/blobs";
  return root;
}

std::variant<std::string, Finding> place_of(const ModelRoot& root, const std::string& name) {
  const std::string path = root.directory + "/" + name;
  const std::string real = real_path(path);
  if (real.empty()) return unresolved(root, name, errno);
  if (inside(real, root.directory) || inside(real, root.blobs)) return real;
  return finding(Code::LINK_ESCAPES_TREE, {}, name,
                 name + " is a link out of the model directory, to " + real,
                 "put the file itself into the model directory: what lies elsewhere may change or be gone "
                 "for the engine",
                 {{"target", real}});
}

}  // namespace troika::model
