// The audit of a task: what cannot be verified is refused and says why, and what would let work be left out is judged more strictly.
#include "tests/fixtures/kernel_sources.hpp"
#include "verification/verify.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace pragma;
using namespace pragma::test;

namespace {

bool mentions(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

} // namespace

TEST_CASE("an output that does not depend on the input cannot be verified") {
  auto constant = loaded_task::load(R"(
import torch, torch.nn as nn
class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x.mean(dim=1, keepdim=True), dim=1)
def get_inputs(): return [torch.randn(16, 64)]
def get_init_inputs(): return []
)");
  auto audit = audit_task(constant.task, constant.ref, {});
  REQUIRE(audit);
  CHECK(std::count(audit->passing_nulls.begin(), audit->passing_nulls.end(), "ones") == 1);
  CHECK(mentions(why_unverifiable(audit->passing_nulls), "ones"));
  const auto built = build(softmax_kernel("for (int64_t i = 0; i < rows; ++i) y[i] = 1;"));
  auto v = verify(constant.task, *audit, constant.ref, built, {});
  REQUIRE(v);
  CHECK(v->stage == verdict_stage::audit);
  CHECK(mentions(v->reason, "cannot be verified"));
}

TEST_CASE("a random reference cannot be verified") {
  auto random = loaded_task::load(R"(
import random, torch, torch.nn as nn
class Model(nn.Module):
    def forward(self, x):
        return x * random.random() ** 20 # which no graph shows; two draws of it are hardly ever close
def get_inputs(): return [torch.randn(16, 64)]
def get_init_inputs(): return []
)");
  auto audit = audit_task(random.task, random.ref, {});
  REQUIRE(audit);
  CHECK(mentions(why_unverifiable(audit->passing_nulls), "changes from call to call"));
  CHECK(mentions(unverifiable_task(audit->passing_nulls).hint, "random"));
}

TEST_CASE("a result that rounding decides cannot be verified, however certain the buffers are that forward() updates") {
  const auto audited = [](const std::string& steps) {
    auto map = loaded_task::load(R"(
import torch, torch.nn as nn
class Model(nn.Module):
    def __init__(self, steps):
        super().__init__()
        self.norm, self.steps = nn.BatchNorm1d(64), steps
    def forward(self, x):
        x = torch.sigmoid(self.norm(x))
        for _ in range(self.steps): x = 3.99 * x * (1 - x)
        return x
def get_inputs(): return [torch.randn(16, 64)]
def get_init_inputs(): return [)" + steps + "]\n");
    auto audit = audit_task(map.task, map.ref, {});
    REQUIRE(audit);
    return audit->passing_nulls;
  };
  const auto chaotic = audited("60"); // each step doubles what rounding has made of the one before
  CHECK(mentions(why_unverifiable(chaotic), "decided by its rounding"));
  CHECK(mentions(unverifiable_task(chaotic).hint, "larger batch"));
  CHECK(why_unverifiable(audited("6")).empty());
}

TEST_CASE("normalised rows in bfloat16, of inputs that are nearly so, are told from a copy of these by the other kinds", "[audit]") {
  // On the task's own inputs a copy is off by less than the reference's rounding at the largest element times eight.
  auto norm = loaded_task::load(R"(
import torch, torch.nn as nn
class Model(nn.Module):
    def forward(self, x):
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)
def get_inputs(): return [torch.randn(512, 1024, dtype=torch.bfloat16)]
def get_init_inputs(): return []
)");
  auto audit = audit_task(norm.task, norm.ref, {});
  REQUIRE(audit);
  INFO(why_unverifiable(audit->passing_nulls));
  CHECK(audit->passing_nulls.empty());
}

TEST_CASE("a few values that are very large do not hide the others in their rounding") {
  auto growing = loaded_task::load(R"(
import torch, torch.nn as nn
class Model(nn.Module):
    def forward(self, x):
        return torch.exp(torch.cumsum(1.5 * x, dim=1))
def get_inputs(): return [torch.randn(2048, 128)]
def get_init_inputs(): return []
)");
  auto audit = audit_task(growing.task, growing.ref, {});
  REQUIRE(audit);
  CHECK(audit->passing_nulls.empty());
}

TEST_CASE("attention over the wrong dimension: the first token sees nothing but first tokens, and the refusal says where that comes from") {
  auto first_token = loaded_task::load(R"(
import torch, torch.nn as nn
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.token = nn.Parameter(torch.randn(1, 1, 16))
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0)
    def forward(self, x):
        return self.layer(torch.cat((self.token.expand(x.shape[0], -1, -1), x), dim=1))[:, 0]
def get_inputs(): return [torch.randn(4, 6, 16)]
def get_init_inputs(): return []
)");
  auto audit = audit_task(first_token.task, first_token.ref, {});
  REQUIRE(audit);
  CHECK(mentions(why_unverifiable(audit->passing_nulls), "the answer to another input"));
  CHECK(mentions(unverifiable_task(audit->passing_nulls).hint, "batch_first"));
}

TEST_CASE("a tolerance that would let the answer to another input pass is tightened") {
  auto mean = loaded_task::load(R"(
import torch, torch.nn as nn
class Model(nn.Module):
    def forward(self, x, y):
        return 1000 + torch.softmax(x, dim=0).sum() * 0 + (x * y).mean()
def get_inputs(): return [torch.rand(64, 256), torch.rand(64, 256)]
def get_init_inputs(): return []
)");
  verify_options loose;
  loose.tolerance = 10;
  auto audit = audit_task(mean.task, mean.ref, loose);
  REQUIRE(audit);
  CHECK(audit->passing_nulls.empty());
  CHECK(audit->tightening_of(0) < 1);
  CHECK(mentions(audit->notes.back(), "tolerance tightened"));
}

TEST_CASE("an output on which a kernel that does no work nearly passes is judged more strictly, and the others are not") {
  // The first output hardly depends on the input: 1 of everything needs 0.42 of the tolerance. The second one cancels: the reference's rounding alone needs 0.19 of it.
  auto both = loaded_task::load(R"(
import torch, torch.nn as nn
class Model(nn.Module):
    def forward(self, x):
        return 1 + 4.2e-5 * torch.tanh(x), (x + 40) - 40
def get_inputs(): return [torch.randn(64, 256)]
def get_init_inputs(): return []
)");
  auto audit = audit_task(both.task, both.ref, {});
  REQUIRE(audit);
  CHECK(audit->passing_nulls.empty());
  REQUIRE(audit->tightening.size() == 2);
  CHECK(audit->tightening[0] == Approx(0.105).epsilon(0.05)); // a quarter of that null kernel's need: what the second one's rounding needs is nothing to it
  CHECK(audit->tightening[1] == 1);
  CHECK(mentions(audit->notes.back(), "tolerance of " + both.task.outputs[0].name + " tightened"));
  const auto judge = [&](const std::string& first, const std::string& second) {
    auto v = verify(both.task, *audit, both.ref, build("#include \"pragma_kernel.h\"\n#include <math.h>\nextern \"C\" void pragma_kernel(const pragma_args* a) {\n"
                                                       "  const float* x = (const float*)a->inputs[0].data; float* y = (float*)a->outputs[0].data; float* z = (float*)a->outputs[1].data;\n"
                                                       "  for (int i = 0; i < 64 * 256; ++i) { y[i] = " + first + "; z[i] = " + second + "; }\n}\n"), {});
    if (!v) FAIL(render(v.error()));
    INFO(v->reason);
    return *v;
  };
  const std::string right = "(float)(1 + 4.2e-5 * tanhf(x[i]))", cancelled = "(x[i] + 40.0f) - 40.0f";
  CHECK(judge(right, cancelled).passed());
  CHECK(judge(right, "(" + cancelled + ") * 1.00005f").passed()); // an honest rounding that the usual tolerance allows
  const auto refused = [&](const std::string& first, const std::string& second, size_t output) {
    const auto v = judge(first, second);
    CHECK(v.stage == verdict_stage::compare);
    REQUIRE_FALSE(v.mismatches.empty());
    CHECK(v.mismatches[0].output == both.task.outputs[output].name);
  };
  refused("1", cancelled, 0);                                            // no work at all
  refused("(float)(1 + 0.64 * 4.2e-5 * tanhf(x[i]))", cancelled, 0);     // a third of it left out
  refused(right, "(" + cancelled + ") * 1.0005f", 1);
}
