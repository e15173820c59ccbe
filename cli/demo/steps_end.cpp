#include <fmt/format.h>
#include <unistd.h>

#include "cli/demo/demo.hpp"
#include "cli/render.hpp"
#include "platform/clock.hpp"

namespace troika::demo {
namespace {

constexpr std::size_t kIndent = 16;  // of a block in the story

cli::Style table_style() {
  const std::size_t width = cli::style_of(STDOUT_FILENO).width;
  return {false, width > 2 * kIndent ? width - kIndent : 0};
}

}  // namespace

Status show_incidents(Demo& demo) {
  Story& story = demo.story;
  story.step("The record: every incident, from its first sign to recovery");
  const auto answer = demo.cluster.incidents();
  if (!answer.ok()) return answer.error;
  const auto& incidents = answer.reply->incidents;
  story.block(cli::render_incidents(incidents, table_style()));
  std::size_t open = 0, died = 0, mismatched = 0;
  nlohmann::json list = nlohmann::json::array();
  for (const auto& one : incidents) {
    open += one.closed.empty() ? 1 : 0;
    for (const Finding& finding : one.findings) {
      died += finding.code == Code::STAGE_DIED ? 1 : 0;
      mismatched += finding.code == Code::HASH_MISMATCH ? 1 : 0;
    }
    list.push_back({{"id", one.id},
                    {"opened", one.opened},
                    {"closed", one.closed},
                    {"subject", one.subject},
                    {"title", one.title}});
  }
  story.facts["incidents"] = std::move(list);
  if (open != 0) return unseen("all incidents closed", fmt::format("{} open", open));
  if (died < 2 || mismatched < 1)
    return unseen("the two killed stages and the flipped byte in the record",
                  fmt::format("{} and {}", died, mismatched));
  story.seen(
      fmt::format("{} incidents, all closed; troika incidents show ID tells one in full", incidents.size()));
  return Done{};
}

Status show_end(Demo& demo) {
  Story& story = demo.story;
  story.step("Everything is stopped");
  const Instant began = platform::now();
  const local::Ending ending = demo.cluster.end();
  const double end_s = platform::seconds_since(began);
  story.facts["end"] = {{"seconds", end_s},
                        {"processes_left", ending.left.size()},
                        {"ports_held", ending.busy_ports.size()},
                        {"shared_memory_left", ending.shared_memory.size()},
                        {"folder_removed", ending.directory_removed}};
  if (!ending.clean()) return unseen("a clean end", text(ending));
  story.seen(fmt::format("after {:.1f} s: no process, no port, no shared memory, no folder is left", end_s));
  return Done{};
}

}  // namespace troika::demo
