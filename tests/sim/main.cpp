// troika_sim: runs seeded schedules of faults against the policies.
//   troika_sim [--seeds N] [--first N]        N runs (default: TROIKA_SIM_SEEDS, else 10000), then the
//   counters troika_sim --seed N                       one run again, with its trace troika_sim --mutation
//   NAME --seeds N      proves that the checks find this fault of the harness: must fail troika_sim --twice N
//   each run twice: the traces must be equal
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "world.hpp"

namespace {

using namespace troika::sim;

struct Options {
  std::uint64_t first = 1;
  std::uint64_t seeds = TROIKA_SIM_SCHEDULES;
  bool one = false;
  bool twice = false;
  Mutation mutation = Mutation::None;
};

bool read_number(const char* text, std::uint64_t& number) {
  char* end = nullptr;
  number = std::strtoull(text, &end, 10);
  return *text != '\0' && *end == '\0';
}

bool read_options(int argc, char** argv, Options& options) {
  if (const char* seeds = std::getenv("TROIKA_SIM_SEEDS"))
    if (!read_number(seeds, options.seeds)) return false;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view key = argv[i];
    bool good = false;
    if (key == "--seeds") good = read_number(argv[i + 1], options.seeds);
    if (key == "--first") good = read_number(argv[i + 1], options.first);
    if (key == "--twice") good = options.twice = read_number(argv[i + 1], options.seeds);
    if (key == "--seed") {
      good = options.one = read_number(argv[i + 1], options.first);
      options.seeds = 1;
    }
    if (key == "--mutation")
      for (const auto& [mutation, name] : kMutations)
        if (name == argv[i + 1]) good = true, options.mutation = mutation;
    if (!good) return false;
  }
  return argc % 2 == 1;
}

// Every rare path must have been taken, or the faults prove nothing.
int check_counters(const Counters& counters) {
  int missing = 0;
  const auto show = [&](const char* name, std::uint64_t value) {
    std::printf("  %-32s %llu%s\n", name, static_cast<unsigned long long>(value),
                value == 0 ? "   NEVER" : "");
    missing += value == 0;
  };
#define COUNTER(name) show(#name, counters.name);
#include "counters.def"
#undef COUNTER
  return missing;
}

int run_all(const Options& options) {
  Counters counters;
  std::uint64_t all_hashes = 0;
  for (std::uint64_t seed = options.first; seed < options.first + options.seeds; ++seed) {
    World world(seed, options.mutation);
    const bool good = world.run();
    if (!good) {
      if (options.mutation != Mutation::None && !options.one) {
        std::printf("found at seed %llu: %s\n", static_cast<unsigned long long>(seed),
                    world.checks.failure()->c_str());
        return 0;
      }
      world.print_failure();
      std::printf("again with: troika_sim --seed %llu\n", static_cast<unsigned long long>(seed));
      return 1;
    }
    if (options.twice) {
      World again(seed, options.mutation);
      again.run();
      if (again.trace.hash() != world.trace.hash()) {
        std::printf("seed %llu: two runs differ\n", static_cast<unsigned long long>(seed));
        return 1;
      }
    }
    counters.add(world.count);
    all_hashes = all_hashes * 31 + world.trace.hash();
    if (options.one) {
      world.trace.print();
      std::printf("seed %llu: good, trace %016llx\n", static_cast<unsigned long long>(seed),
                  static_cast<unsigned long long>(world.trace.hash()));
    }
  }
  if (options.mutation != Mutation::None) {
    std::printf("not found in %llu runs\n", static_cast<unsigned long long>(options.seeds));
    return 1;
  }
  if (options.one || options.twice) return 0;
  std::printf("%llu schedules good, traces %016llx\n", static_cast<unsigned long long>(options.seeds),
              static_cast<unsigned long long>(all_hashes));
  const int missing = check_counters(counters);
  constexpr std::uint64_t kEnough = 2000;  // fewer runs may miss a rare path without meaning anything
  if (missing == 0 || options.seeds < kEnough) return 0;
  std::printf("%d rare paths were never taken\n", missing);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!read_options(argc, argv, options)) {
    std::fprintf(stderr,
                 "usage: troika_sim [--seeds N] [--first N] [--seed N] [--twice N] [--mutation NAME]\n");
    return 2;
  }
  return run_all(options);
}
