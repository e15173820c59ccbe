#include "cli/demo/run.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <filesystem>

#include "cli/demo/demo.hpp"
#include "cli/demo/kept.hpp"
#include "cli/interrupt.hpp"
#include "cli/local/sweep.hpp"
#include "cli/output.hpp"
#include "cli/report.hpp"
#include "platform/clock.hpp"

namespace troika::demo {
namespace {

using local::LocalCluster;

constexpr std::size_t kLogTail = 12;  // lines of each log that are shown when a step was not seen

using Step = Status (*)(Demo&);
constexpr std::array<Step, 8> kSteps{show_start,        show_answer,       show_refusal,
                                     show_killed_stage, show_flipped_byte, show_killed_leader,
                                     show_killed_agent, show_incidents};

bool must_stop() {
  return cli::interrupted_by() != 0 || !story_is_read();
}

Status sweep_leftovers(Story& story) {
  TROIKA_TRY(swept, local::sweep_stale(local::temp_folder(), kPrefix));
  for (const local::Swept& one : swept)
    story.tell(
        fmt::format("a demo that was killed had left {} with {} processes: swept", one.root, one.processes));
  for (const std::string& root : local::kept_clusters(local::temp_folder(), kPrefix))
    story.tell(fmt::format("{} was left running by --keep; troika demo --stop {} ends it", root, root));
  return Done{};
}

Status all_steps(LocalCluster& cluster, Story& story, bool keep) {
  Demo demo{cluster, story, {}, {}, 50};
  TROIKA_CHECK(show_model(demo));
  for (const Step step : kSteps) {
    TROIKA_CHECK(step(demo));
    if (must_stop()) return Error{"go on with", "the demo", "interrupted"};
  }
  if (!keep) return show_end(demo);
  TROIKA_CHECK(cluster.keep());
  tell_how_to_talk(cluster, story);
  return Done{};
}

void show_logs(const LocalCluster& cluster, const Story& story) {
  std::error_code error;
  for (std::filesystem::directory_iterator it(cluster.layout().logs(), error), end; !error && it != end;
       it.increment(error)) {
    const std::string tail = last_lines(it->path().string(), kLogTail);
    if (tail.empty()) continue;
    story.tell("end of " + it->path().filename().string());
    story.block(tail);
  }
}

int could_not_begin(Story& story, const RunOptions& options, const Error& error) {
  story.failed(error);
  (void)write_facts(story, options.json).ok();  // perhaps it is the very file that cannot be written
  return story_is_read() ? cli::kUsage : cli::kWrong;
}

// The cluster goes by its destructor, however far the demo came.
int tell(Story& story, const RunOptions& options) {
  // Before a minute is spent on facts that could not be written down.
  if (const Status written = write_facts(story, options.json); !written.ok())
    return could_not_begin(story, options, written.error());
  if (const Status swept = sweep_leftovers(story); !swept.ok())
    return could_not_begin(story, options, swept.error());
  story.step("A model is made, and a copy of it for each of six nodes");
  local::Options wanted;
  wanted.root = options.directory;
  wanted.prefix = kPrefix;
  wanted.programs = options.programs;
  wanted.stop = must_stop;
  auto made = LocalCluster::make(std::move(wanted));
  if (!made.ok()) return could_not_begin(story, options, made.error());
  LocalCluster& cluster = **made;
  const Status seen = all_steps(cluster, story, options.keep);
  if (seen.ok()) {
    story.ended();
  } else {
    story.failed(seen.error());
    if (must_stop())
      story.tell("ending every process and removing the folder");
    else
      show_logs(cluster, story);
  }
  const Status written = write_facts(story, options.json);
  if (!written.ok()) story.failed(written.error());
  return seen.ok() && written.ok() ? cli::kGood : cli::kWrong;
}

}  // namespace

int run_demo(const RunOptions& options) {
  cli::note_interrupts();
  Story story(platform::now());
  const int status = tell(story, options);
  if (const int signal = cli::interrupted_by(); signal != 0 && status != cli::kGood) {
    story.tell(
        fmt::format("interrupted by signal {}: every process was ended and the folder removed", signal));
    return cli::exit_status_of(signal);
  }
  if (status == cli::kGood)
    story.tell(fmt::format("all {} steps were seen, in {:.0f} s", story.steps(), story.seconds()));
  else if (status == cli::kWrong)
    story.tell(fmt::format("step {} was not seen", story.steps()));
  return status;
}

}  // namespace troika::demo
