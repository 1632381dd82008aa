// Matrix products and convolutions in Triton: every layout and variant with odd small shapes, under several tiles, parts of k
// and ways to multiply. The stand-in cuts factors of a "tf32" product as tensor cores do, so split factors must make up for it.
#include "triton_fixture.hpp"

#include "base/json.hpp"
#include "synthesis/ir/graph.hpp"
#include "synthesis/lower/lower.hpp"
#include "synthesis/search/search.hpp"
#include "synthesis/triton/emit.hpp"

using namespace pragma;

namespace {

const small_task products[] = {
    {"a_plain", "return x @ y", "[torch.randn(70, 45), torch.randn(45, 83)]", "", "x, y"},
    {"a_whole_tiles", "return x @ y", "[torch.randn(64, 64), torch.randn(64, 128)]", "", "x, y"},
    {"a_left_transposed", "return x.T @ y", "[torch.randn(45, 70), torch.randn(45, 83)]", "", "x, y"},
    {"a_right_transposed", "return x @ y.T", "[torch.randn(70, 45), torch.randn(83, 45)]", "", "x, y"},
    {"a_both_transposed", "return x.T @ y.T", "[torch.randn(45, 70), torch.randn(83, 45)]", "", "x, y"},
    {"a_batch", "return torch.bmm(x, y)", "[torch.randn(5, 33, 20), torch.randn(5, 20, 41)]", "", "x, y"},
    {"a_batch_factor", "return torch.bmm(x, y) * z[:, None, None]", "[torch.randn(5, 33, 70), torch.randn(5, 70, 41), torch.randn(5)]", "", "x, y, z"},
    {"a_shared_columns", "return x @ y", "[torch.randn(3, 40, 20), torch.randn(20, 41)]", "", "x, y"},
    {"a_einsum", "return torch.einsum('bijl,lk->bijk', x, y)", "[torch.randn(2, 3, 20, 18), torch.randn(18, 33)]", "", "x, y"},
    {"a_upper", "return torch.triu(x @ y)", "[torch.randn(70, 70), torch.randn(70, 70)]", "", "x, y"},
    {"a_lower_half", "return torch.where(z, x @ y, torch.zeros_like(y[:1]))", "[torch.randn(70, 40).bfloat16(), torch.randn(40, 50).bfloat16(), torch.ones(70, 50, dtype=torch.bool).tril(3)]", "", "x, y, z"},
    {"a_lower", "return torch.tril(x @ y, 3)", "[torch.randn(70, 40), torch.randn(40, 50)]", "", "x, y"},
    {"a_follow", "return torch.relu(x @ y + z) * 0.5 + w", "[torch.randn(37, 45), torch.randn(45, 50), torch.randn(50), torch.randn(37, 50)]", "", "x, y, z, w"},
    {"a_addmm", "return torch.addmm(z, x, y, beta=0.5, alpha=2.0)", "[torch.randn(37, 45), torch.randn(45, 50), torch.randn(37, 50)]", "", "x, y, z"},
    {"a_linear", "return torch.sigmoid(self.l(x))", "[torch.randn(37, 145)]", "self.l = nn.Linear(145, 50)"},
    {"a_linear_batch", "return self.l(x)", "[torch.randn(3, 7, 45)]", "self.l = nn.Linear(45, 50)"},
    {"a_small_k", "return x @ y", "[torch.randn(200, 8), torch.randn(8, 150)]", "", "x, y"},
    {"a_narrow", "return x @ y", "[torch.randn(200, 300), torch.randn(300, 3)]", "", "x, y"},
    {"a_large_k", "return x @ y", "[torch.randn(20, 1500), torch.randn(1500, 24)]", "", "x, y"},
};

const small_task convolutions[] = {
    {"a_1d_strided_dilated", "return self.c(x)", "[torch.randn(4, 3, 61)]", "self.c = nn.Conv1d(3, 20, 3, stride=3, dilation=4)"},
    {"a_2d_asymmetric", "return self.c(x)", "[torch.randn(2, 3, 17, 19)]", "self.c = nn.Conv2d(3, 20, (3, 5), padding=(1, 2), dilation=(2, 1))"},
    {"a_2d_channels", "return self.c(x)", "[torch.randn(2, 32, 9, 11)]", "self.c = nn.Conv2d(32, 20, 3, padding=1, stride=2)"},
    {"a_2d_some_channels", "return self.c(x)", "[torch.randn(1, 70, 7, 6)]", "self.c = nn.Conv2d(70, 20, 3, padding=1)"},
    {"a_2d_points", "return self.c(x)", "[torch.randn(2, 16, 9, 11)]", "self.c = nn.Conv2d(16, 24, 1)"},
    {"a_2d_points_strided", "return torch.relu(self.c(x))", "[torch.randn(2, 16, 9, 11)]", "self.c = nn.Conv2d(16, 24, 1, stride=2, bias=False)"},
    {"a_2d_residual", "return torch.tanh(self.c(x)) + x", "[torch.randn(2, 16, 9, 11)]", "self.c = nn.Conv2d(16, 16, 3, padding=1)"},
    {"a_2d_one_channel", "return self.c(x)", "[torch.randn(2, 16, 6, 7)]", "self.c = nn.Conv2d(16, 1, 3)"},
    {"a_2d_one_pixel", "return self.c(x)", "[torch.randn(2, 16, 6, 7)]", "self.c = nn.Conv2d(16, 20, (6, 7))"},
    {"a_3d", "return self.c(x)", "[torch.randn(2, 3, 5, 6, 7)]", "self.c = nn.Conv3d(3, 18, (3, 2, 1), padding=(1, 0, 0))"},
    {"a_3d_channels", "return self.c(x)", "[torch.randn(1, 16, 5, 6, 7)]", "self.c = nn.Conv3d(16, 18, 3, padding=1)"},
    {"a_groups", "return self.c(x)", "[torch.randn(2, 32, 7, 9)]", "self.c = nn.Conv2d(32, 24, 3, groups=2, padding=1)"},
    {"a_small_groups", "return self.c(x)", "[torch.randn(2, 8, 7, 9)]", "self.c = nn.Conv2d(8, 12, 3, groups=4, padding=1)"},
    {"a_multiplied_channels", "return self.c(x)", "[torch.randn(2, 4, 7, 9)]", "self.c = nn.Conv2d(4, 8, 3, groups=4, padding=1)"},
    {"a_separable", "return self.p(self.d(x))", "[torch.randn(2, 3, 9, 11)]", "self.d = nn.Conv2d(3, 3, 3, groups=3); self.p = nn.Conv2d(3, 20, 1)"},
    {"a_functional", "return F.conv2d(x, y)", "[torch.randn(2, 16, 7, 8), torch.randn(5, 16, 3, 2)]", "", "x, y"},
};

const small_task transposed[] = {
    {"a_t1_dilated", "return self.c(x)", "[torch.randn(2, 3, 25)]", "self.c = nn.ConvTranspose1d(3, 20, 5, dilation=3)"},
    {"a_t1_strided", "return self.c(x)", "[torch.randn(2, 16, 13)]", "self.c = nn.ConvTranspose1d(16, 20, 3, stride=2, padding=1, dilation=2)"},
    {"a_t2", "return self.c(x)", "[torch.randn(2, 16, 9, 8)]", "self.c = nn.ConvTranspose2d(16, 20, (3, 5), padding=(1, 2))"},
    {"a_t2_far", "return self.c(x)", "[torch.randn(2, 16, 5, 7)]", "self.c = nn.ConvTranspose2d(16, 20, 3, stride=5, padding=1, dilation=2)"},
    {"a_t2_small_groups", "return self.c(x)", "[torch.randn(2, 16, 6, 7)]",
     "self.c = nn.ConvTranspose2d(16, 8, (3, 5), stride=(2, 3), padding=(1, 2), dilation=(2, 1), groups=4)"},
    {"a_t2_groups", "return self.c(x)", "[torch.randn(2, 32, 6, 7)]", "self.c = nn.ConvTranspose2d(32, 24, 3, stride=2, padding=1, output_padding=1, groups=2)"},
    {"a_t2_holes", "return torch.relu(self.c(x))", "[torch.randn(2, 16, 5, 6)]", "self.c = nn.ConvTranspose2d(16, 3, 2, stride=3)"},
    {"a_t2_one_column", "return self.c(x)", "[torch.randn(1, 16, 5, 1)]", "self.c = nn.ConvTranspose2d(16, 20, (3, 1), stride=(2, 1))"},
    {"a_t2_each_channel", "return self.c(x)", "[torch.randn(2, 4, 5, 6)]", "self.c = nn.ConvTranspose2d(4, 4, 3, stride=2, groups=4)"},
    {"a_t3", "return self.c(x)", "[torch.randn(2, 3, 4, 5, 6)]", "self.c = nn.ConvTranspose3d(3, 18, 3)"},
    {"a_t3_strided", "return self.c(x)", "[torch.randn(1, 16, 3, 4, 5)]", "self.c = nn.ConvTranspose3d(16, 18, 3, stride=2, padding=1, dilation=2)"},
    {"a_t3_groups", "return self.c(x)", "[torch.randn(1, 8, 3, 4, 5)]", "self.c = nn.ConvTranspose3d(8, 16, (3, 5, 7), stride=2, padding=(1, 2, 3), output_padding=1, groups=4)"},
};

/// The starting schedule with some keys of its contractions changed, as a run before could have left it.
candidate with(const task& t, const json& changes) {
  auto parsed = parse_json(first_of(t, in_triton()).schedule, "test");
  REQUIRE(parsed);
  for (auto& r : (*parsed)["regions"]) {
    r["alternatives"] = json::array();
    r["block"]["lanes"] = r["block"]["columns"] = 16; // of regions that are no contraction as well
    r["block"]["steps"] = 16;
    r["block"]["warps"] = 1;
    r.merge_patch(changes);
  }
  auto options = in_triton();
  options.known_schedule = parsed->dump();
  options.known_from = "a test";
  const auto c = first_of(t, options);
  INFO(parsed->dump());
  CHECK(c.rationale.find("a test") != std::string::npos); // taken, not replaced by the start
  return c;
}

synthesis::loop_program program_of(const task& t) {
  const auto g = synthesis::parse_graph(t.graph);
  REQUIRE(g);
  const auto lowered = synthesis::lower(*g);
  REQUIRE(lowered);
  const auto program = synthesis::build_program(*lowered, false);
  REQUIRE(program);
  return *program;
}

const std::pair<const char*, json> variants[] = {
    {"tall", {{"block", {{"lanes", 32}}}, {"group", 2}, {"precision", "ieee"}}},
    {"wide_split", {{"block", {{"columns", 32}}}, {"precision", "tf32x3"}, {"split_first", true}}},
    {"parts", {{"chunks", 3}, {"precision", "tf32x3"}, {"split_first", false}, {"by_residue", false}}},
};

} // namespace

TEST_CASE_METHOD(stand_in, "matrix products in Triton are right in every layout, with whatever follows them") {
  for (const auto& small : products) {
    INFO(small.name);
    const auto t = describe(small);
    add(small, first_of(t, in_triton()), "start");
    for (const auto& [name, changes] : variants) add(small, with(t, changes), name);
  }
  run();
}

TEST_CASE_METHOD(stand_in, "convolutions in Triton are right with strides, padding, dilation and groups") {
  for (const auto& small : convolutions) {
    INFO(small.name);
    const auto t = describe(small);
    add(small, first_of(t, in_triton()), "start");
    for (const auto& [name, changes] : variants) add(small, with(t, changes), name);
  }
  run();
}

TEST_CASE_METHOD(stand_in, "transposed convolutions in Triton are right, by residue of the stride and side by side") {
  for (const auto& small : transposed) {
    INFO(small.name);
    const auto t = describe(small);
    add(small, first_of(t, in_triton()), "start");
    for (const auto& [name, changes] : variants) add(small, with(t, changes), name);
    add(small, with(t, {{"by_residue", true}, {"precision", "tf32x3"}, {"split_first", true}}), "residues");
  }
  run();
}

TEST_CASE_METHOD(stand_in, "idle tensor cores lead to split factors, and schedules of contractions drawn at random are right") {
  const small_task small{"a_search", "return torch.relu(x @ y + z)", "[torch.randn(90, 77), torch.randn(77, 65), torch.randn(65)]", "", "x, y, z"};
  const auto t = describe(small);
  auto coder = coder_of(t);
  const auto start = coder.next(std::nullopt);
  REQUIRE(start);
  CHECK(start->source.find("input_precision=\"ieee\"") != std::string::npos); // too small to pay for a kernel before
  attempt_feedback feedback;
  feedback.candidate = start->id();
  feedback.passed = feedback.new_best = true;
  finding idle;
  idle.what = bottleneck::tensor_cores_idle;
  idle.confidence = 0.9;
  feedback.findings = {idle};
  const auto next = coder.next(feedback);
  REQUIRE(next);
  CHECK(next->rationale.find("tensor cores idle") == 0);
  CHECK(next->source.find("tf32_part(") != std::string::npos);
  CHECK(next->source.find("input_precision=\"ieee\"") == std::string::npos);
  add(small, *next, "split");
  for (uint64_t seed = 1; seed <= 8; ++seed) add(small, first_of(t, in_triton(search_mode::random, seed)), "random" + std::to_string(seed));
  run();
}

TEST_CASE_METHOD(stand_in, "large products start on tensor cores, and a parameter is split once, when it is loaded") {
  const small_task small{"a_large", "return self.l(x)", "[torch.randn(512, 1024)]", "self.l = nn.Linear(1024, 2048, bias=False)"};
  const auto c = first_of(describe(small), in_triton());
  const auto forward = c.source.find("def forward"), split = c.source.find("_split[");
  REQUIRE(split != std::string::npos);
  CHECK(split < forward);
  CHECK(c.source.find("_split[", forward) == std::string::npos);
}

TEST_CASE_METHOD(stand_in, "no sum on tensor cores is longer than they keep exact") {
  const small_task product{"a_long", "return x @ y", "[torch.randn(20, 2500), torch.randn(2500, 24)]", "", "x, y"};
  const small_task channels{"a_long_taps", "return self.c(x)", "[torch.randn(1, 140, 5, 6)]", "self.c = nn.Conv2d(140, 20, 3, padding=1)"};
  const small_task mixed{"a_long_mixed", "return self.c(x)", "[torch.randn(1, 5, 20, 21)]", "self.c = nn.Conv2d(5, 20, (16, 17))"};
  for (const auto& small : {product, channels, mixed}) {
    const auto t = describe(small);
    const json split{{"chunks", 1}, {"precision", "tf32x3"}, {"split_first", true}};
    const auto c = with(t, split);
    CHECK(c.source.find("acc += part") != std::string::npos);
    add(small, c, "split");
    auto two = split;
    two["chunks"] = 2;
    add(small, with(t, two), "two_parts");
    two["split_first"] = false;
    add(small, with(t, two), "in_the_loop");
    two["precision"] = "ieee"; // no tensor cores
    CHECK(with(t, two).source.find("acc += part") == std::string::npos);
  }
  run();
}

TEST_CASE_METHOD(stand_in, "the start of a product fits the device and what the product is bound by") {
  machine_limits limits;
  limits.backend = "cuda";
  limits.shared_bytes = 99 << 10;
  const auto start = [&](const char* x, const char* y, const char* init, const machine_limits& device) {
    auto options = in_triton();
    options.machine = device;
    const std::string inputs = std::string("[torch.randn(") + x + ")" + (*y ? std::string(", torch.randn(") + y + ")" : "") + "]";
    const small_task small{"a_start", *init ? "return self.l(x)" : "return x @ y", inputs.c_str(), init, *init ? "x" : "x, y"};
    const auto parsed = parse_json(first_of(describe(small), options).schedule, "test");
    REQUIRE(parsed);
    return (*parsed)["regions"][0];
  };
  const auto bytes = [](const json& b) { // a split factor takes twice the memory
    const int64_t m = b["lanes"], n = b["columns"], k = b["steps"], stages = b["stages"];
    return (m + n + std::max(m, n)) * k * 4 * stages;
  };
  const auto small_device = start("1024, 2048", "2048, 1024", "", limits);
  CHECK(bytes(small_device["block"]) <= limits.shared_bytes);
  for (const auto& b : small_device["alternatives"]) CHECK(bytes(b) <= limits.shared_bytes);
  limits.shared_bytes = 227 << 10;
  CHECK(start("1024, 4096", "4096, 2048", "", limits)["chunks"] == 1); // 128 tiles on 132 units
  CHECK(start("64, 8192", "8192, 64", "", limits)["chunks"] > 1);
  // Ten rows: bound by the bytes of the weights, which two parts would double.
  CHECK(start("10, 8192", "", "self.l = nn.Linear(8192, 2048)", limits)["precision"] == "ieee");
  CHECK(start("1024, 2048", "", "self.l = nn.Linear(2048, 2048)", limits)["precision"] == "tf32x3");
}

TEST_CASE_METHOD(stand_in, "views around a product cost no copies") {
  const small_task small{"a_views", "return torch.einsum('bijl,lk->bijk', x, y)", "[torch.randn(2, 3, 20, 18), torch.randn(18, 33)]", "", "x, y"};
  const auto c = first_of(describe(small), in_triton());
  CHECK(c.source.find("matmul_") != std::string::npos);
  CHECK(c.source.find("elements_") == std::string::npos);
  CHECK(c.source.find("scratch") == std::string::npos);
}

TEST_CASE_METHOD(stand_in, "a known schedule whose tiles a product cannot have is not used") {
  const small_task small{"a_tile", "return x @ y", "[torch.randn(70, 45), torch.randn(45, 83)]", "", "x, y"};
  const auto t = describe(small);
  auto options = in_triton();
  const auto start = first_of(t, options);
  auto broken = parse_json(start.schedule, "test");
  REQUIRE(broken);
  (*broken)["regions"][0]["block"]["columns"] = 8;
  options.known_schedule = broken->dump();
  CHECK(first_of(t, options).source == start.source);
}

TEST_CASE_METHOD(stand_in, "a known schedule whose parts of k sum up to more than memory should hold is not used") {
  const small_task small{"a_sums", "return x @ y", "[torch.randn(4096, 1024), torch.randn(1024, 4096)]", "", "x, y"};
  const auto t = describe(small);
  auto options = in_triton();
  const auto start = first_of(t, options);
  auto known = parse_json(start.schedule, "test");
  REQUIRE(known);
  auto& r = (*known)["regions"][0];
  r["alternatives"] = json::array();
  r["block"]["steps"] = 16;
  r["chunks"] = 8;
  options.known_schedule = known->dump();
  CHECK(first_of(t, options).source.find("k in 8 parts") != std::string::npos);
  r["chunks"] = 64; // of 4096 x 4096 results: 4 GiB
  options.known_schedule = known->dump();
  CHECK(first_of(t, options).source == start.source);
}

TEST_CASE_METHOD(stand_in, "partial sums beyond 2^31 are numbered with 64 bits") {
  using namespace synthesis;
  const small_task small{"a_far_sums", "return x @ y", "[torch.randn(8192, 1024), torch.randn(1024, 8192)]", "", "x, y"};
  const auto program = program_of(describe(small));
  triton_schedule s;
  s.regions.resize(program.regions.size());
  auto& r = s.regions.front();
  r.block = {64, 16, 64, 4, 3};
  r.chunks = 16; // 2^30 sums
  CHECK(emit_triton(program, s, "test").text.find("int64") == std::string::npos);
  r.chunks = 64; // 2^32
  const auto text = emit_triton(program, s, "test").text;
  CHECK(text.find("chunk.to(tl.int64) * 67108864 + e") != std::string::npos);
  CHECK(text.find("m = (tile_m * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)") != std::string::npos);
}

TEST_CASE_METHOD(stand_in, "TF32 splits no factor any more, so larger tiles fit again") {
  using namespace synthesis;
  const small_task small{"a_tf32", "return x @ y", "[torch.randn(512, 1024), torch.randn(1024, 512)]", "", "x, y"};
  const auto program = program_of(describe(small));
  auto options = in_triton();
  options.tf32 = tf32_use::all;
  const auto space = triton_space(program, options, "test");
  const auto move = std::find_if(space.moves.begin(), space.moves.end(), [](const auto& m) { return m.name == "TF32"; });
  REQUIRE(move != space.moves.end());
  auto s = space.start;
  s.regions.front().precision = "tf32x3";
  s.regions.front().split_first = true;
  REQUIRE(move->apply(s, program));
  CHECK(s.regions.front().precision == "tf32");
  CHECK_FALSE(s.regions.front().split_first);
}

TEST_CASE_METHOD(stand_in, "convolutions that Torch rounds to TF32 are rounded in the same way, and no others are") {
  const std::string ties = "(torch.randn(2, 32, 9, 11).view(torch.int32) & -8192 | 4096).view(torch.float32)"; // on which both ways differ at each element
  const std::string even = "self.r = lambda x: (x.view(torch.int32) + 4095 + (x.view(torch.int32) >> 13 & 1) & -8192).view(torch.float32); ";
  const std::string away = "self.r = lambda x: (x.view(torch.int32) + 4096 & -8192).view(torch.float32); ";
  const std::string exact = "self.r = lambda x: x; ";
  struct kind {
    std::string layer, call; ///< as a task has it; with self.r() round both factors
  };
  const kind kinds[] = {{"nn.Conv2d(32, 20, 3, padding=1)", "F.conv2d(self.r(x), self.r(self.c.weight), self.c.bias, padding=1)"},
                        {"nn.Conv2d(32, 24, 1)", "F.conv2d(self.r(x), self.r(self.c.weight), self.c.bias)"}, // a matrix product
                        {"nn.ConvTranspose2d(32, 20, 3, dilation=2)", "F.conv_transpose2d(self.r(x), self.r(self.c.weight), self.c.bias, dilation=2)"},
                        {"nn.ConvTranspose2d(32, 20, (1, 5), groups=4)", "F.conv_transpose2d(self.r(x), self.r(self.c.weight), self.c.bias, groups=4)"}, // few channels: taps are mixed
                        {"nn.ConvTranspose2d(32, 20, 3, stride=2)", "F.conv_transpose2d(self.r(x), self.r(self.c.weight), self.c.bias, stride=2)"}};
  std::vector<std::string> kept; // what a small_task points to
  kept.reserve(100);
  const auto keep = [&](std::string text) { return kept.emplace_back(std::move(text)).c_str(); };
  for (const auto& [layer, call] : kinds)
    for (const auto& [rounds, function] : {std::pair{"even", even}, {"away", away}, {"", exact}}) {
      const auto name = "a_tf32_" + std::to_string(kept.size());
      const small_task small{keep(name), keep("return torch.relu(self.c(x))"), keep("[" + ties + "]"), keep("self.c = " + layer)};
      auto t = describe(small);
      auto graph = json::parse(t.graph);
      for (auto& node : graph["nodes"])
        if (node["op"] == "aten.convolution.default" && *rounds) node["rounds"] = rounds;
      t.graph = graph.dump();
      auto options = in_triton();
      options.tf32 = tf32_use::convolutions;
      const auto c = first_of(t, options);
      CHECK((c.schedule.find("\"precision\":\"tf32\"") != std::string::npos) == (*rounds != 0));
      const small_task expected{keep(name + "_rounded"), keep("return torch.relu(" + call + ")"), small.inputs, keep(function + small.init)};
      describe(expected);
      add(expected, c, "start");
      options.tf32 = tf32_use::none;
      CHECK(first_of(t, options).schedule.find("\"precision\":\"tf32\"") == std::string::npos);
      options.known_schedule = c.schedule; // of a run that allowed it
      CHECK(first_of(t, options).schedule.find("\"precision\":\"tf32\"") == std::string::npos);
    }
  run();
}

TEST_CASE_METHOD(stand_in, "the stand-in counts loops in the device's integers") {
  const auto run_kernel = [&](const std::string& body) {
    const auto file = write("loop.py", "import sys\nsys.path[:0] = ['" TESTS_DIR "/synthesis/triton_stand_in']\nimport torch, triton, triton.language as tl\n\n@triton.jit\n"
                                       "def kernel(out_ptr):\n    total = tl.zeros((16,), dtype=tl.int64)\n    for i in range(0, 3):\n        " + body +
                                       "\n    tl.store(out_ptr + tl.arange(0, 16), total)\n\nout = torch.empty(16, dtype=torch.int64)\nkernel[(1,)](out)\nprint(int(out[0]))\n");
    process_spec spec;
    spec.argv = {"/usr/bin/python3", file.string()};
    spec.limits.wall_seconds = 100;
    const auto ended = run_process(spec);
    REQUIRE(ended);
    return ended->out + ended->err;
  };
  CHECK(run_kernel("total += i * 1500000000").find("a 32-bit integer overflows") != std::string::npos);
  CHECK(run_kernel("total += i.to(tl.int64) * 1500000000") == "4500000000\n");
}
