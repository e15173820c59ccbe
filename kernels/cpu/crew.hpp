// Threads that share one loop at a time.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace troika::kernels {

// A caller and threads - 1 others. With one thread nothing is started and each() is a plain call.
class Crew {
 public:
  explicit Crew(std::size_t threads);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // Calls part(begin, end) for disjoint parts of [0, n), one a thread, and returns when all are done. `part`
  // must not throw. Called from one thread only.
  void each(std::size_t n, const std::function<void(std::size_t, std::size_t)>& part);

 private:
  void follow(std::size_t index);
  void work(std::size_t index, std::size_t n,
            const std::function<void(std::size_t, std::size_t)>& part) const;

  std::size_t threads_;
  std::mutex mutex_;
  std::condition_variable start_;
  std::condition_variable done_;
  std::size_t round_ = 0;
  std::size_t left_ = 0;
  bool ending_ = false;
  std::size_t n_ = 0;
  const std::function<void(std::size_t, std::size_t)>* part_ = nullptr;
  std::vector<std::thread> others_;
};

}  // namespace troika::kernels
