// Not part of any program: the purity test must reject this object.
#include <pthread.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace troika::policies::test {

void* run(void* argument) {
  return argument;
}

long impure() {
  pthread_t thread{};
  long sum = pthread_create(&thread, nullptr, run, nullptr);
  sum += std::chrono::steady_clock::now().time_since_epoch().count();
  sum += socket(AF_INET, SOCK_STREAM, 0);
  if (std::FILE* file = std::fopen("/dev/null", "r")) sum += std::fclose(file);
  if (std::getenv("HOME") != nullptr) ++sum;
  return sum;
}

}  // namespace troika::policies::test
