#include "cli/demo/kept.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "cli/command.hpp"
#include "cli/demo/run.hpp"
#include "cli/local/sweep.hpp"
#include "cli/output.hpp"
#include "cli/report.hpp"
#include "platform/files.hpp"

namespace troika::demo {
namespace {

constexpr Bytes kMaxLog{64u << 20};

std::string own_path() {
  std::string path(4096, '\0');
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size());
  path.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
  return path;
}

}  // namespace

void tell_how_to_talk(const local::LocalCluster& cluster, const Story& story) {
  const std::string& root = cluster.layout().root;
  const std::string troika = own_path();
  story.tell("It is left running. Talk to it (one request in ten seconds):");
  story.block(
      fmt::format("curl -N http://127.0.0.1:{}/v1/chat/completions -H 'Content-Type: application/json' \\\n"
                  "  -d "
                  "'{{\"model\":\"{}\",\"messages\":[{{\"role\":\"user\",\"content\":\"Hello\"}}],\"max_"
                  "tokens\":64,\"stream\":true}}'\n"
                  "curl http://127.0.0.1:{}/healthz\n"
                  "{} --socket {} status\n"
                  "{} --socket {} incidents",
                  cluster.ports().gateway, cluster.shape().model, cluster.ports().gateway, troika,
                  cluster.layout().socket(), troika, cluster.layout().socket()));
  story.tell("End it, and remove everything:");
  story.block(fmt::format("{} demo --stop {}", troika, root));
}

Status write_facts(const Story& story, const std::string& path) {
  if (path.empty()) return Done{};
  const std::string text = cli::document(story.document());
  std::error_code error;
  const auto kind = std::filesystem::status(path, error).type();
  if (kind == std::filesystem::file_type::not_found || kind == std::filesystem::file_type::regular)
    return platform::write_file_durably(std::filesystem::absolute(path).string(), text);
  // A pipe or a terminal is written to; a new file must not take its place.
  std::ofstream out(path, std::ios::binary);
  if (out << text << std::flush) return Done{};
  return Error{"write", path, "it does not take the facts"};
}

std::string last_lines(const std::string& path, std::size_t count) {
  const auto text = platform::read_file(path, kMaxLog);
  if (!text.ok()) return "";
  std::size_t from = text->size();
  for (std::size_t lines = 0; from > 0 && lines <= count; --from)
    if ((*text)[from - 1] == '\n' && from != text->size() && ++lines == count) break;
  return text->substr(from);
}

int stop_kept(std::string directory) {
  if (directory.empty()) {
    const auto kept = local::kept_clusters(local::temp_folder(), kPrefix);
    if (kept.size() != 1) {
      std::string names;
      for (const std::string& one : kept)
        names += " " + one;
      return cli::complain(
          {"end the demo in", local::temp_folder(),
           kept.empty() ? "none was left running" : "more than one was left; name it:" + names},
          cli::kUsage);
    }
    directory = kept.front();
  }
  // Its processes are known by this path in their command lines.
  std::error_code error;
  const auto real = std::filesystem::canonical(directory, error);
  if (error) return cli::complain({"end the demo in", directory, error.message()}, cli::kUsage);
  directory = real.string();
  const auto record = local::read_record(directory);
  if (!record.ok()) return cli::complain(record.error(), cli::kUsage);
  const auto lock = platform::DirectoryLock::take(local::Layout{directory}.lock());
  if (!lock.ok())
    return cli::complain({"end the demo in", directory, "it still runs; end it with Ctrl-C or SIGTERM"},
                         cli::kUsage);
  const auto swept = local::sweep(directory);
  if (!swept.ok()) return cli::complain(swept.error(), cli::kWrong);
  std::printf("%s: %zu processes ended, the folder removed, nothing is left\n", directory.c_str(),
              swept->processes);
  return cli::kGood;
}

}  // namespace troika::demo
