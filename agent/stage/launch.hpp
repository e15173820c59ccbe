// Making a stage's run directory and starting its keeper.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>

#include "agent/keeper/record.hpp"
#include "agent/stage/stage_file.hpp"
#include "platform/unique_fd.hpp"
#include "vocabulary/result.hpp"

namespace troika::agent {

struct LaunchPlan {
  std::string keeper_program;
  std::string directory;  // run directory to be made
  StageFile file;
  keeper::Spec spec;
  std::string link_key;  // secret
};

// Makes the directory (0700) and everything in it. An existing one is an error: an epoch is started once.
Status make_run_directory(const LaunchPlan& plan);

// Runs the keeper's launcher; returns when the stage has been started or could not be (then with the
// launcher's words).
boost::asio::awaitable<Status> start_keeper(std::string program, std::string directory);

// Does a keeper live there, with a record or still without?
bool keeper_lives(const std::string& directory);

}  // namespace troika::agent
