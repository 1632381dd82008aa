// What several threads compute is what one computes: the same graph, shared out and not.
#include "kernel_fixture.hpp"

using namespace pragma;
using namespace pragma::test;

namespace {

/// Regions of every kind that split_for_threads() splits, as outputs of one task.
task everything() {
  graph_text g;
  const auto ref = &graph_text::ref;
  const auto x = g.input({3, 1 << 16}), y = g.input({64, 4096}), z = g.input({1 << 17}), w = g.input({2, 1 << 16});
  std::vector<std::string> outputs;
  outputs.push_back(g.node("aten.exp.default", {{"self", ref(z)}}, {1 << 17}));
  outputs.push_back(g.node("aten._softmax.default", {{"self", ref(w)}, {"dim", 1}, {"half_to_float", false}}, {2, 1 << 16}));
  outputs.push_back(g.node("aten.sum.dim_IntList", {{"self", ref(y)}, {"dim", {0}}, {"keepdim", false}, {"dtype", nullptr}}, {4096}));
  outputs.push_back(g.node("aten._softmax.default", {{"self", ref(y)}, {"dim", 0}, {"half_to_float", false}}, {64, 4096}));
  outputs.push_back(g.node("aten.mean.default", {{"self", ref(z)}, {"dtype", nullptr}}, {}));
  outputs.push_back(g.node("aten.amax.default", {{"self", ref(w)}, {"dim", {1}}, {"keepdim", false}}, {2}));
  const auto squares = g.node("aten.sum.default", {{"self", ref(g.node("aten.mul.Tensor", {{"self", ref(x)}, {"other", ref(x)}}, {3, 1 << 16}))}, {"dtype", nullptr}}, {});
  outputs.push_back(g.node("aten.div.Tensor", {{"self", ref(x)}, {"other", ref(squares)}}, {3, 1 << 16}));
  const auto a = g.input({40, 8192}), b = g.input({8192, 48}), c = g.input({704, 256});
  outputs.push_back(g.node("aten.exp.default", {{"self", ref(g.node("aten.mm.default", {{"self", ref(a)}, {"mat2", ref(b)}}, {40, 48}))}}, {40, 48}));
  outputs.push_back(g.node("aten.mm.default", {{"self", ref(g.node("aten.view.default", {{"self", ref(x)}, {"size", {96, 2048}}}, {96, 2048}))},
                                               {"mat2", ref(g.node("aten.view.default", {{"self", ref(y)}, {"size", {2048, 128}}}, {2048, 128}))}}, {96, 128}));
  outputs.push_back(g.node("aten.mm.default", {{"self", ref(g.node("aten.t.default", {{"self", ref(c)}}, {256, 704}))}, {"mat2", ref(c)}}, {256, 256}));
  const auto convolution = [&](const std::vector<int64_t>& image, const std::vector<int64_t>& weight, int stride, const std::vector<int64_t>& out) {
    outputs.push_back(g.node("aten.convolution.default", {{"input", ref(g.input(image))}, {"weight", ref(g.input(weight))}, {"bias", nullptr}, {"stride", {stride, stride}}, {"padding", {1, 1}},
                                                          {"dilation", {1, 1}}, {"transposed", false}, {"output_padding", {0, 0}}, {"groups", 1}}, out));
  };
  convolution({1, 24, 40, 40}, {33, 24, 3, 3}, 1, {1, 33, 40, 40}); // a single image: its pixels are shared out
  convolution({3, 40, 30, 26}, {20, 40, 3, 3}, 2, {3, 20, 15, 13});
  return g.finish(outputs);
}

const std::vector<size_t> sizes{1 << 17, 2 << 16, 4096, 64 * 4096, 1, 2, 3 << 16, 40 * 48, 96 * 128, 256 * 256, 33 * 1600, 60 * 195};

std::vector<tensor<float>> computed(int threads) {
  auto options = test_machine();
  options.threads = threads;
  auto coder = coder_for(everything(), options);
  const auto made = coder.next(std::nullopt);
  REQUIRE(made);
  CHECK((made->source.find("omp parallel for") != std::string::npos) == (threads > 1));
  const loaded kernel(made->source, made->flags);
  auto x = random_floats(3 << 16, 1), y = random_floats(64 * 4096, 2), z = random_floats(1 << 17, 3), w = random_floats(2 << 16, 7);
  auto a = random_floats(40 * 8192, 4, -0.01f, 0.01f), b = random_floats(8192 * 48, 5, -1, 1), c = random_floats(704 * 256, 6);
  auto image = random_floats(24 * 1600, 8), weight = random_floats(33 * 216, 9), images = random_floats(120 * 780, 10), weights = random_floats(20 * 360, 11);
  std::vector<tensor<float>> results;
  std::vector<void*> outputs;
  for (size_t n : sizes) {
    results.push_back(tensor<float>(n));
    std::fill(results.back().data(), results.back().data() + n, -77.0f);
    outputs.push_back(results.back().data());
  }
  call(kernel, {x.data(), y.data(), z.data(), w.data(), a.data(), b.data(), c.data(), image.data(), weight.data(), images.data(), weights.data()}, outputs, threads);
  return results;
}

} // namespace

TEST_CASE("what several threads compute is what one computes") {
  const auto one = computed(1);
  for (int threads : {2, 3, 4}) {
    const auto several = computed(threads);
    for (size_t i = 0; i < one.size(); ++i) {
      INFO("output " << i << ", " << threads << " threads");
      float largest = 0, difference = 0;
      for (size_t k = 0; k < one[i].size(); ++k) {
        largest = std::max(largest, std::fabs(one[i][k]));
        difference = std::max(difference, std::fabs(one[i][k] - several[i][k]));
      }
      CHECK(difference <= 2e-6f * largest);
    }
  }
}
