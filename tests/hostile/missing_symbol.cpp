// Attack: none, there is no pragma_kernel
// Stopped at: build
#include "pragma_kernel.h"
extern "C" void my_kernel(const pragma_args*) {}
