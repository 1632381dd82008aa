// Whose kernels ran: the functions of a Triton module, and names that are none of them.
#include "kernels/kernel_names.hpp"

#include <catch2/catch.hpp>

using namespace pragma;

namespace {

const char* module_text = R"(import torch, triton
import triton.language as tl
from triton import jit

@triton.autotune(
    configs=[triton.Config({"BLOCK": 64}, num_warps=4)],
    key=["n"],
)
@triton.jit
def tuned_kernel(x, n, BLOCK: tl.constexpr):
    pass

    @jit  # a decorator with a comment
    def inner(x):
        pass

@triton.jit(do_not_specialize=["n"])
def third(x, n):
    pass

def plain(x):
    pass

def body(x, n):
    pass

fourth = triton.jit(body)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.jit_something(x)  # @triton.jit def commented
)";

using names = std::vector<std::string>;

} // namespace

TEST_CASE("The kernels of a module are found in its text") {
  const auto found = jit_functions(module_text);
  CHECK(found == names{"tuned_kernel", "inner", "third", "body"});
  CHECK(jit_functions("").empty());
}

TEST_CASE("A launched kernel that is none of the module's functions is foreign") {
  CHECK(foreign_kernels(module_text, {"tuned_kernel", "third", "body"}).empty());
  CHECK(foreign_kernels(module_text, {"tuned_kernel_0d1d2de", "third_0d1"}).empty());
  CHECK(foreign_kernels(module_text, {"vectorized_elementwise_kernel", "third", "vectorized_elementwise_kernel", "nvjet_tst_128x64_64x8"}) ==
        names{"vectorized_elementwise_kernel", "nvjet_tst_128x64_64x8"});
  // Not every name that begins like ours is ours.
  CHECK(foreign_kernels(module_text, {"third_party_gemm", "body_", "plain", "forward"}).size() == 4);
}
