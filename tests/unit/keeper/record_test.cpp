#include "agent/keeper/record.hpp"

#include <gtest/gtest.h>

namespace troika::keeper {
namespace {

TEST(Records, ReadBackWhatWasWritten) {
  Spec spec;
  spec.mark = "c/n/a/0/7";
  spec.argv = {"/bin/x", "", "two words", "line\nbreak", "100%", std::string("\x01", 1)};
  spec.environment = {"A=b c", "EMPTY="};
  spec.log_limit = Bytes{123};
  spec.secret = "/run/x/link.key";
  const auto read = read_spec(write(spec));
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(read->argv, spec.argv);
  EXPECT_EQ(read->environment, spec.environment);
  EXPECT_EQ(read->log_limit.count, 123u);
  EXPECT_EQ(read->secret, spec.secret);
  EXPECT_EQ(read->cgroup, "");

  const Record record{{10, 20}, {30, 40}, "/sys/fs/cgroup/x", "2026-11-30T20:27:32.000Z"};
  const auto record_read = read_record(write(record));
  ASSERT_TRUE(record_read.ok());
  EXPECT_EQ(record_read->keeper, record.keeper);
  EXPECT_EQ(record_read->stage, record.stage);
  EXPECT_EQ(record_read->cgroup, record.cgroup);

  const auto exit = read_exit(write(Exit{3, 0, true, "x"}));
  ASSERT_TRUE(exit.ok());
  EXPECT_EQ(exit->code, 3);
  EXPECT_TRUE(exit->requested);
}

TEST(Records, TornAndForeignTextIsRefused) {
  const std::string whole = write(Exit{3, 9, false, "2026-11-30T20:27:32.000Z"});
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(read_exit(whole.substr(0, size)).ok()) << "cut at " << size;
  EXPECT_FALSE(read_exit("format 2\ncode 1\nsignal 0\nrequested 0\nat x\n").ok());
  EXPECT_FALSE(read_exit("format 1\ncode x\nsignal 0\nrequested 0\nat x\n").ok());
  EXPECT_FALSE(read_spec("format 1\nmark %z\n").ok());
}

}  // namespace
}  // namespace troika::keeper
