// Simplifications of contractions: right against Torch, said as a finding, and left out when asked.
#include "base/files.hpp"
#include "execution/build.hpp"
#include "reference/reference.hpp"
#include "synthesis/search/builtin.hpp"
#include "verification/verify.hpp"

#include <catch2/catch.hpp>
#include <fstream>

using namespace pragma;

namespace {

struct summed_task {
  const char* name;
  const char* layer;   ///< self.f
  const char* forward; ///< of x
  const char* input;
  bool shorter = true; ///< is there a shorter way?
};

const summed_task tasks[] = {
    {"linear_mean", "nn.Linear(70, 45)", "torch.mean(self.f(x) - self.p[:45], dim=1, keepdim=True)", "torch.randn(13, 70)"},
    {"linear_sum_of_rows", "nn.Linear(9, 21, bias=False)", "torch.sum(self.f(x) / 3, dim=0)", "torch.randn(17, 9)"},
    {"conv_mean", "nn.Conv2d(3, 8, 3, stride=2, padding=1)", "torch.mean(self.f(x) * 0.5, dim=[2, 3], keepdim=True)", "torch.randn(4, 3, 11, 14)"},
    {"conv_dilated_sum", "nn.Conv1d(5, 6, 4, dilation=3, padding=4)", "self.f(x).sum(dim=2)", "torch.randn(2, 5, 23)"},
    {"transposed_mean", "nn.ConvTranspose2d(3, 16, 3)", "torch.logsumexp(torch.mean(self.f(x), dim=(2, 3), keepdim=True), dim=1)", "torch.randn(5, 3, 12, 9)"},
    {"transposed_strided_sum", "nn.ConvTranspose2d(4, 7, (3, 4), stride=(2, 3), padding=1, output_padding=1, dilation=(1, 2))",
     "torch.sum(self.f(x), dim=(2, 3))", "torch.randn(3, 4, 6, 7)"},
    {"one_image", "nn.Conv3d(2, 5, 2, padding=2)", "torch.sum(self.f(x), dim=(2, 3, 4))", "torch.randn(1, 2, 3, 4, 5)"},
    {"needed_elsewhere", "nn.Linear(30, 20)", "self.f(x) * torch.sum(self.f(x), dim=1, keepdim=True)", "torch.randn(13, 30)", false},
    {"not_linear", "nn.Linear(30, 20)", "torch.sum(torch.relu(self.f(x)), dim=1)", "torch.randn(13, 30)", false},
    {"diagonal_rows", "nn.Identity()", "torch.diag(x) @ self.p.reshape(8, 8)", "torch.randn(8)"},
    {"diagonal_columns", "nn.Identity()", "self.p.reshape(8, 8) @ torch.diag(x)", "torch.randn(8)"},
    {"grouped", "nn.Conv2d(4, 8, 3, groups=2)", "torch.sum(self.f(x), dim=(2, 3))", "torch.randn(2, 4, 9, 9)", false},
};

std::string text_of(const summed_task& t) {
  return std::string("import torch\nimport torch.nn as nn\n\n\nclass Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.f = ") + t.layer +
         "\n        self.p = nn.Parameter(torch.randn(64))\n\n    def forward(self, x):\n        return " + t.forward + "\n\n\ndef get_inputs():\n    return [" + t.input +
         "]\n\n\ndef get_init_inputs():\n    return []\n";
}

bool says_so(const builtin_coder& coder) {
  for (const auto& f : coder.graph_findings())
    if (f.why.find("keeps only its sums") != std::string::npos || f.why.find("only scales") != std::string::npos) return true;
  return false;
}

} // namespace

TEST_CASE("sums over contractions take the shorter way, and are right") {
  const auto folder = temp_dir::create("pragma-algebra-");
  auto ref = reference::start({});
  REQUIRE(folder);
  REQUIRE(ref);
  for (const auto& t : tasks) {
    INFO(t.name);
    const auto path = folder->path() / (std::string(t.name) + ".py");
    std::ofstream(path) << text_of(t);
    auto loaded = ref->load(path, 2);
    if (!loaded) FAIL(render(loaded.error()));
    builtin_options as_written;
    as_written.algebra = false;
    auto coder = builtin_coder::create(*loaded, {}), plain = builtin_coder::create(*loaded, as_written);
    REQUIRE(coder);
    REQUIRE(plain);
    CHECK(says_so(*coder) == t.shorter);
    CHECK_FALSE(says_so(*plain));
    const auto first = coder->next(std::nullopt), other = plain->next(std::nullopt);
    REQUIRE(first);
    REQUIRE(other);
    CHECK((first->source == other->source) == !t.shorter);
    INFO(first->source);
    verify_options checks;
    checks.seeds = 2;
    const auto audit = audit_task(*loaded, *ref, checks);
    REQUIRE(audit);
    for (const auto& c : {*first, *other}) {
      const auto built = build_candidate(c, {});
      if (!built) FAIL(render(built.error()));
      const auto v = verify(*loaded, *audit, *ref, *built, checks);
      REQUIRE(v);
      INFO(v->reason);
      CHECK(v->passed());
    }
  }
}
