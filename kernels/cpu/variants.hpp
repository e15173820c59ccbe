// The kernels of each instruction set; callers use kernels.hpp.
#pragma once

#include "kernels/cpu/kernels.hpp"

namespace troika::kernels {

namespace portable {
extern const Table kTable;
}
namespace avx2 {
extern const Table kTable;
}

}  // namespace troika::kernels
