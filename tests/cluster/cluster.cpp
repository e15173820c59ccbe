#include "tests/cluster/cluster.hpp"

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <stdexcept>

#include "cli/demo/kept.hpp"
#include "cli/local/sweep.hpp"
#include "cli/render.hpp"

#ifndef TROIKA_PATIENCE
#define TROIKA_PATIENCE 1
#endif

namespace troika::local {

Duration patience(std::chrono::seconds limit) {
  const char* const asked = std::getenv("TROIKA_PATIENCE");
  const int factor = asked != nullptr ? std::atoi(asked) : 0;
  return limit * (factor > 0 ? factor : TROIKA_PATIENCE);
}

void ClusterTest::SetUp() {
  const auto swept = sweep_stale(temp_folder(), "troika-test");
  ASSERT_TRUE(swept.ok()) << swept.error().message();
  for (const Swept& one : *swept)
    std::cout << "swept " << one.root << " of a killed test: " << one.processes << " processes\n";
}

void ClusterTest::TearDown() {
  if (!cluster_) return;
  if (HasFailure()) {
    const auto answer = cluster_->status();
    if (answer.ok()) std::cout << cli::render_status(*answer.reply, {});
    const auto incidents = cluster_->incidents();
    if (incidents.ok())
      for (const auto& one : incidents.reply->incidents)
        std::cout << cli::render_incident(one, {});
    std::error_code error;
    for (std::filesystem::directory_iterator it(cluster_->layout().logs(), error), none; !error && it != none;
         it.increment(error))
      std::cout << "---- end of " << it->path().filename().string() << "\n"
                << demo::last_lines(it->path().string(), 40) << "\n";
  }
  cluster_.reset();
}

void ClusterTest::make(Options options) {
  auto made = LocalCluster::make(std::move(options));
  if (!made.ok()) throw std::runtime_error(made.error().message());
  cluster_ = *std::move(made);
}

void ClusterTest::start() {
  const Status started = cluster_->start();
  if (!started.ok()) throw std::runtime_error(started.error().message());
  wait("every agent and the gateway are connected",
       [](const auto& s) { return demo::all_connected(s) && s.gateway.connected; });
}

void ClusterTest::serve() {
  const auto done = cluster_->command(protocol::Verb::Start, "");
  if (!done.ok()) throw std::runtime_error(done.error.message());
  if (done.reply->verdict > Verdict::Warning) throw std::runtime_error(done.reply->text);
  wait("both replicas serve", [](const auto& s) { return demo::all_serve(s) && !demo::routed(s).empty(); });
}

void ClusterTest::end() {
  const Ending ending = cluster_->end();
  EXPECT_TRUE(ending.clean()) << text(ending);
}

protocol::StatusReply ClusterTest::status() const {
  const auto answer = cluster_->status();
  if (!answer.ok()) throw std::runtime_error(answer.error.message());
  return *answer.reply;
}

protocol::StatusReply ClusterTest::wait(const std::string& what, const Condition& holds,
                                        std::chrono::seconds limit) const {
  const auto seen = cluster_->wait_for(what, holds, patience(limit));
  if (!seen.ok()) throw std::runtime_error(seen.error().message());
  return *seen;
}

pid_t ClusterTest::pid_of(const std::string& stage) const {
  const auto now = status();
  const auto* const one = demo::stage(now, stage);
  if (one == nullptr) throw std::runtime_error("no stage " + stage);
  return static_cast<pid_t>(one->pid);
}

std::unique_ptr<Stream> ClusterTest::stream(std::uint32_t max_tokens) const {
  auto stream =
      std::make_unique<Stream>("127.0.0.1", cluster_->ports().gateway,
                               demo::completion(cluster_->shape().model, "Hello", max_tokens, true));
  const Status seen = cluster_->wait_until(
      "the answer is under way", [&] { return stream->pieces() > 2 || !stream->running(); },
      patience(std::chrono::seconds{60}));
  EXPECT_TRUE(seen.ok()) << seen.error().message();
  return stream;
}

StreamOutcome ClusterTest::ask(std::uint32_t max_tokens) const {
  return Stream("127.0.0.1", cluster_->ports().gateway,
                demo::completion(cluster_->shape().model, "Hello", max_tokens, true))
      .join();
}

void ClusterTest::kill(pid_t pid, int signal) const {
  ASSERT_GT(pid, 1);
  const Status killed = cluster_->kill_and_wait(pid, signal);
  ASSERT_TRUE(killed.ok()) << killed.error().message();
}

}  // namespace troika::local
