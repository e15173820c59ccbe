// Which of the findings about one failure names it. When one stage of a pipeline dies its neighbours end too,
// and often tell of it first: the first word heard is seldom the cause. Pure.
#pragma once

#include <vector>

#include "vocabulary/finding.hpp"

namespace troika::policies {

// How near the finding is to the origin of the failure; of several the highest names it.
//   4  its node is gone, or was rebooted
//   3  somebody ended a stage by a signal, or its keeper, so that nobody saw its end
//   2  a stage ended for a reason of its own, or anything else that is an error
//   1  a stage ended because it lost a neighbour (evidence "follows")
//   0  no error
int nearness(const Finding& finding);

// The nearest first; equally near ones stay in their order.
void nearest_first(std::vector<Finding>& findings);

}  // namespace troika::policies
