// Built with -mavx2: includes nothing whose inline functions other units share, or the linker might take
// those from here.
#define TROIKA_KERNEL_VARIANT avx2
#include "kernels/cpu/variant_body.inc"
