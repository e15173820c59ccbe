// Finding what runs from before: the records of keepers, and processes with our mark that have none.
#include "agent/stage/stages.hpp"
#include "platform/files.hpp"
#include "platform/log.hpp"
#include "platform/tree.hpp"

namespace troika::agent {

Status Stages::adopt(const std::function<bool(const StageKey&)>& told) {
  const std::string folder = home_.run_dir + "/stages";
  TROIKA_CHECK(platform::make_directories(folder, 0700));
  TROIKA_TRY(names, platform::list_directory(folder));
  for (const std::string& name : names)
    if (!name.starts_with('.')) adopt_folder(name, told);
  adopt_marked();
  return Done{};
}

void Stages::adopt_folder(const std::string& folder, const std::function<bool(const StageKey&)>& told) {
  const std::string path = home_.run_dir + "/stages/" + folder;
  const auto key = key_of_folder(folder);
  if (!key.ok()) {
    platform::log("left aside: " + path + " is no stage's run directory");
    return;
  }
  if (told(*key)) return;
  auto file = read_stage_file(path + "/" + kStageFile);
  const bool sound = file.ok() && file->key() == *key;
  platform::log("found " + text(*key) + (sound ? "" : ", its run directory is broken"));
  if (sound) {
    add(Stage::found(home_, *key, *std::move(file), {}));
  } else {
    add(Stage::found(home_, *key, std::nullopt,
                     file.ok() ? "its run directory belongs to another stage" : file.error().message()));
  }
}

// A keeper that was killed, or a run directory that is gone: nobody could find these by their record.
void Stages::adopt_marked() {
  const auto marked = platform::find_marked(mark_prefix(config_.cluster, config_.node));
  if (!marked.ok()) {
    platform::log(marked.error().message() + ": stages without a record cannot be found");
    return;
  }
  for (const platform::Marked& one : *marked) {
    const auto key = key_of_mark(one.mark, config_.cluster, config_.node);
    if (!key.ok() || stages_.count(*key) != 0) continue;
    platform::log("found " + text(*key) + " without a record: process " + std::to_string(one.id.pid));
    add(Stage::found(home_, *key, std::nullopt, "it has no run directory"));
  }
}

}  // namespace troika::agent
