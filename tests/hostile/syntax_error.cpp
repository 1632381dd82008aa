// Attack: none, it is just broken
// Stopped at: build
#include "pragma_kernel.h"
void pragma_kernel(const pragma_args* a) {
  float x = ;
}
