#define TROIKA_KERNEL_VARIANT portable
#include "kernels/cpu/variant_body.inc"
