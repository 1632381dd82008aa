// Attack: none, it calls what does not exist
// Stopped at: build
#include "pragma_kernel.h"
extern "C" void nowhere();
void pragma_kernel(const pragma_args*) { nowhere(); }
