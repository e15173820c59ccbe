// The compute thread of a stage.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "engine/native/stage.hpp"

namespace troika::native {

// Loads the stage, then runs steps in the order in which they are submitted. All callbacks run on the I/O
// thread.
class Worker {
 public:
  using Load = std::function<Result<std::unique_ptr<Stage>>(const std::atomic<bool>& stop)>;
  using Loaded = std::function<void(Status)>;
  using Stepped = std::function<void(Status, Step, StepTokens)>;

  // Steps that wait at a time; rank 0 keeps far fewer in flight.
  static constexpr std::size_t kMostWaiting = 2048;

  Worker(boost::asio::io_context& io, Load load, Loaded loaded, Stepped stepped);
  // Stops within one layer's time and waits for the thread.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // False: too many wait.
  bool submit(Step step);

 private:
  void run();

  boost::asio::io_context& io_;
  Load load_;
  Loaded loaded_;
  Stepped stepped_;
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Step> waiting_;
  std::thread thread_;
};

}  // namespace troika::native
