// Plans of the C++ writers as numbers: what they cover is computed here and compared with what has to be covered.
#include "primitives.hpp"
#include "synthesis/cpp/columns.hpp"
#include "synthesis/cpp/contraction.hpp"
#include "synthesis/cpp/convolution_plan.hpp"
#include "synthesis/cpp/rows.hpp"

#include <cmath>
#include <random>

using namespace pragma;
using namespace pragma::synthesis;
using namespace pragma::synthesis::test;

namespace {

struct conv_case {
  std::vector<int64_t> in, kernel, stride, padding, dilation;
  bool transposed = false;
};

std::vector<int64_t> out_of(const conv_case& c) {
  std::vector<int64_t> out;
  for (size_t d = 0; d < c.in.size(); ++d) {
    const int64_t reach = c.dilation[d] * (c.kernel[d] - 1) + 1;
    out.push_back(c.transposed ? (c.in[d] - 1) * c.stride[d] - 2 * c.padding[d] + reach : (c.in[d] + 2 * c.padding[d] - reach) / c.stride[d] + 1);
  }
  return out;
}

/// One image of one channel, one output channel: [1, 1, dims..].
loop_program program_of(const conv_case& c, primitives& p) {
  std::vector<int64_t> image{1, 2}, weights{c.transposed ? 2 : 3, c.transposed ? 3 : 2}, out{1, 3};
  const auto spatial = out_of(c);
  image.insert(image.end(), c.in.begin(), c.in.end());
  weights.insert(weights.end(), c.kernel.begin(), c.kernel.end());
  out.insert(out.end(), spatial.begin(), spatial.end());
  const int x = p.input(image), w = p.input(weights);
  return p.loops({p.b.convolution(x, w, {c.kernel, c.stride, c.padding, c.dilation}, 1, c.transposed, out)});
}

/// Three dimensions, the leading ones of extent 1.
std::array<int64_t, 3> three(const std::vector<int64_t>& v, int64_t otherwise) {
  std::array<int64_t, 3> r{otherwise, otherwise, otherwise};
  for (size_t i = 0; i < v.size(); ++i) r[3 - v.size() + i] = v[i];
  return r;
}

/// The pairs (input position, tap) that each output position sums, by definition. Positions and taps in row-major order.
std::vector<std::vector<std::pair<int64_t, int64_t>>> by_definition(const conv_case& c) {
  const auto in = three(c.in, 1), kernel = three(c.kernel, 1), stride = three(c.stride, 1), padding = three(c.padding, 0), dilation = three(c.dilation, 1),
             out = three(out_of(c), 1);
  std::vector<std::vector<std::pair<int64_t, int64_t>>> sums(static_cast<size_t>(out[0] * out[1] * out[2]));
  std::array<int64_t, 3> o{}, k{};
  for (o[0] = 0; o[0] < out[0]; ++o[0])
    for (o[1] = 0; o[1] < out[1]; ++o[1])
      for (o[2] = 0; o[2] < out[2]; ++o[2])
        for (k[0] = 0; k[0] < kernel[0]; ++k[0])
          for (k[1] = 0; k[1] < kernel[1]; ++k[1])
            for (k[2] = 0; k[2] < kernel[2]; ++k[2]) {
              int64_t place = 0;
              bool inside = true;
              for (size_t d = 0; d < 3; ++d) {
                int64_t i = o[d] * stride[d] - padding[d] + k[d] * dilation[d];
                if (c.transposed) {
                  i = o[d] + padding[d] - k[d] * dilation[d];
                  inside = inside && i % stride[d] == 0;
                  i /= stride[d];
                }
                inside = inside && i >= 0 && i < in[d];
                place = place * in[d] + i;
              }
              if (inside) sums[static_cast<size_t>((o[0] * out[1] + o[1]) * out[2] + o[2])].push_back({place, (k[0] * kernel[1] + k[1]) * kernel[2] + k[2]});
            }
  return sums;
}

/// The same from a plan: what the emitted loops would meet, without rows of taps where they add zeros only.
std::vector<std::vector<std::pair<int64_t, int64_t>>> by_plan(const conv_case& c, const convolution_plan& plan) {
  const auto out = three(out_of(c), 1), in = three(c.in, 1), stride = three(c.stride, 1);
  std::map<int64_t, int64_t> copied; // element of the copy -> position in the image
  for (int64_t z = 0; z < in[0]; ++z)
    for (int64_t y = 0; y < in[1]; ++y)
      for (int64_t x = 0; x < in[2]; ++x) {
        const int64_t at = plan.image.at(0, z + plan.image.before[0]) + plan.image.at(1, y + plan.image.before[1]) + plan.image.at(2, x + plan.image.before[2]);
        CHECK(at < plan.image.channel);
        CHECK(copied.emplace(at, (z * in[1] + y) * in[2] + x).second);
      }
  std::vector<std::vector<std::pair<int64_t, int64_t>>> sums(static_cast<size_t>(out[0] * out[1] * out[2]));
  for (const auto& p : plan.phases) {
    size_t tap = 0;
    for (int64_t residue = 0; residue < plan.residues; ++residue) {
      const auto taps = p.taps[static_cast<size_t>(residue)];
      for (int64_t t = 0; t < taps; ++t, ++tap)
        for (int64_t z = 0; z < p.count[0]; ++z)
          for (int64_t y = 0; y < p.count[1]; ++y) {
            if (!p.rows[static_cast<size_t>(t) * p.rows.size() / static_cast<size_t>(taps)].meets(z, y)) continue;
            for (int64_t x = 0; x < p.count[2]; ++x) {
              const auto step = [&](size_t d) { return c.transposed ? stride[d] : 1; };
              const std::array<int64_t, 3> o{p.first[0] + z * step(0), p.first[1] + y * step(1), residue + x * plan.residues};
              if (o[2] >= out[2]) continue; // a residue with fewer pixels
              const int64_t at = p.image[tap] + z * plan.pixel_step(0) * plan.image.stride[0] + y * plan.pixel_step(1) * plan.image.stride[1] + x;
              CHECK(at >= 0);
              CHECK(at < plan.image.channel + plan.image.stride[1]); // short rows may be read past their end, never past the slack
              if (const auto it = copied.find(at); it != copied.end()) sums[static_cast<size_t>((o[0] * out[1] + o[1]) * out[2] + o[2])].push_back({it->second, p.weight[tap]});
            }
          }
    }
  }
  for (auto& s : sums) std::sort(s.begin(), s.end());
  return sums;
}

} // namespace

TEST_CASE("a plan of a convolution meets every tap where the definition says") {
  const std::vector<conv_case> cases{
      {{7}, {3}, {1}, {1}, {1}},
      {{9, 8}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
      {{9, 11}, {3, 5}, {2, 1}, {1, 2}, {1, 1}},
      {{13, 12}, {3, 3}, {3, 3}, {2, 2}, {2, 2}},
      {{17}, {4}, {3}, {0}, {2}},
      {{5, 6, 7}, {3, 2, 3}, {1, 2, 1}, {1, 0, 1}, {1, 1, 1}},
      {{5}, {3}, {1}, {1}, {1}, true},
      {{5, 6}, {3, 4}, {2, 3}, {1, 1}, {1, 1}, true},
      {{4, 5}, {2, 2}, {3, 3}, {0, 0}, {1, 1}, true},
      {{3, 4, 5}, {3, 3, 3}, {2, 2, 2}, {1, 1, 1}, {1, 1, 1}, true},
      {{7}, {5}, {2}, {1}, {2}, true},
      {{4, 5}, {3, 3}, {1, 1}, {5, 6}, {5, 6}},
      {{4, 5}, {1, 3}, {2, 1}, {3, 1}, {1, 1}},
      {{3, 4, 5}, {3, 3, 3}, {1, 1, 1}, {0, 0, 0}, {1, 2, 1}, true},
  };
  for (const auto& c : cases) {
    primitives p;
    const auto program = program_of(c, p);
    REQUIRE(program.regions.size() == 1);
    REQUIRE(program.regions[0].anchor);
    auto expected = by_definition(c);
    for (auto& s : expected) std::sort(s.begin(), s.end());
    CHECK(by_plan(c, plan_convolution(program.regions[0])) == expected);
  }
}

TEST_CASE("rows of taps are left out where they meet the border only, tile by tile, if that spares enough") {
  primitives p;
  const conv_case full{{16, 32, 64}, {3, 5, 7}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}, true};
  const auto program = program_of(full, p);
  const auto plan = plan_convolution(program.regions[0]);
  CHECK(std::abs(rows_met(plan, 1) - 16.0 / 18 * 32 / 36) < 1e-9); // of 18 planes and 36 rows of results
  CHECK(std::abs(rows_met(plan, 48) - 0.81) < 0.01); // a tile meets what one of its rows meets
  CHECK(contains(emit_source(program, start_of(program), "test").text, "met_rows rows"));
  primitives q;
  const auto padded = program_of({{16, 32, 64}, {3, 5, 7}, {1, 1, 1}, {1, 2, 3}, {1, 1, 1}, true}, q);
  CHECK(rows_met(plan_convolution(padded.regions[0]), 48) > rows_met(plan, 48));
  primitives o;
  const auto inner = program_of({{16, 32, 64}, {3, 5, 7}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}}, o);
  CHECK(rows_met(plan_convolution(inner.regions[0]), 48) == 1);
  CHECK_FALSE(contains(emit_source(inner, start_of(inner), "test").text, "met_rows rows"));
}

TEST_CASE("sums over some steps are kept where a block holds fewer steps than there are, in all writers alike") {
  primitives p; // 81 taps of one channel: more than a block of steps, but not several blocks of channels
  const conv_case wide{{40, 40}, {9, 9}, {1, 1}, {0, 0}, {1, 1}};
  const int x = p.input({1, 1, 40, 40}), w = p.input({16, 1, 9, 9});
  const auto program = p.loops({p.b.convolution(x, w, {wide.kernel, wide.stride, wide.padding, wide.dilation}, 1, false, {1, 16, 32, 32})});
  auto s = start_of(program);
  s.regions[0].block.k = 64;
  CHECK_FALSE(plan_contraction(program, program.regions[0], s.regions[0], s).several_k);
  const auto source = emit_source(program, s, "test").text;
  CHECK_FALSE(contains(source, "partial"));
}

TEST_CASE("tiles of columns cover every column, stay in range, and take care at borders only") {
  std::mt19937 random(3);
  const auto draw = [&](int low, int high) { return std::uniform_int_distribution<int64_t>(low, high)(random); };
  for (int i = 0; i < 2000; ++i) {
    region r;
    r.axes.resize(2);
    auto& window = r.axes[1];
    window.reduced = window.window = true;
    window.extent = draw(1, 6);
    window.guard = {0, draw(1, 3), draw(1, 3), 0, draw(4, 70)};
    window.guard.padding = draw(0, static_cast<int>(window.extent));
    const auto& g = window.guard;
    r.axes[0].extent = std::max<int64_t>(1, (g.limit + 2 * g.padding - g.dilation * (window.extent - 1) - 1) / g.stride + 1);
    const int64_t n = r.axes[0].extent;
    const int lanes = draw(0, 1) ? 8 : 4;
    std::vector<int> covered(static_cast<size_t>(n), 0);
    for (const auto& t : tiles_of_columns(r, 0, lanes, static_cast<int>(draw(1, 8)))) {
      for (int64_t begin = t.begin; begin == t.begin || begin < t.end; begin += std::max<int64_t>(1, t.step)) {
        const int64_t count = t.vectors == 1 ? t.lanes : int64_t{t.vectors} * lanes;
        for (int64_t j = begin; j < begin + count; ++j) {
          REQUIRE((j >= 0 && j < n));
          ++covered[static_cast<size_t>(j)];
          if (t.border) continue;
          CHECK(j * g.stride - g.padding >= 0);
          CHECK(j * g.stride - g.padding + g.dilation * (window.extent - 1) < g.limit);
        }
        if (t.step == 0) break;
      }
    }
    CHECK(std::count(covered.begin(), covered.end(), 0) == 0);
  }
}

TEST_CASE("a row is cut so that no accumulator adds up more than a block") {
  for (const auto& shape : std::vector<std::vector<int64_t>>{{4, 100}, {4, 70000}, {4, 300, 300}, {2, 3, 5000, 7}}) {
    primitives p;
    const int x = p.input(shape);
    std::vector<int64_t> dims;
    for (size_t d = 1; d < shape.size(); ++d) dims.push_back(static_cast<int64_t>(d));
    const auto exponent = p.b.unary(operation::exp, x); // keeps the axes apart only where memory does
    const auto program = p.loops({p.b.reduce(operation::sum, exponent, dims)});
    const auto& r = program.regions[0];
    const auto s = start_of(program);
    const auto layout = layout_of(r, s.regions[0]);
    if (layout.columns) continue;
    const auto cut = cut_of_row(r, layout, 1, s.lanes, s.regions[0].unroll);
    int64_t together = cut.blocked ? cut.block : r.axes[static_cast<size_t>(layout.vector_axis)].extent;
    for (size_t d = cut.flush_depth; d < layout.inner.size(); ++d) together *= r.axes[static_cast<size_t>(layout.inner[d])].extent;
    CHECK(together <= cut.block);
    CHECK(cut.unroll * s.lanes <= std::max<int64_t>(s.lanes, together));
  }
}

TEST_CASE("tiles of whole cache lines are streamed as they are, where the third level is measured to be hardly faster than memory") {
  const auto product = [](int64_t columns) {
    primitives p;
    const int x = p.input({2048, 256}), y = p.input({256, columns});
    return p.loops({p.b.matmul(x, y)});
  };
  machine_limits limits;
  limits.simd_bits = 512;
  limits.cache_bytes = {48 << 10, 2 << 20, 480 << 20};
  const auto planned = [&](const loop_program& program, double third_level) {
    limits.copy_gbs = {500, 100, third_level, 26};
    const auto s = starting_schedule(program, limits, 1);
    return std::pair(s.regions[0].stream, plan_contraction(program, program.regions[0], s.regions[0], s).gathers_lines);
  };
  CHECK(planned(product(2048), 30) == std::pair(true, false));
  CHECK(planned(product(2048), 90) == std::pair(false, false)); // the cache keeps the results
  CHECK(planned(product(2040), 30) == std::pair(false, false)); // the last tile of a row is no whole line
  auto wide = starting_schedule(product(2040), limits, 1);
  wide.regions[0].stream = true;
  CHECK(plan_contraction(product(2040), product(2040).regions[0], wide.regions[0], wide).gathers_lines);
}

TEST_CASE("a product on tiles keeps all steps of a block of rows in half of the second level, and multiplies by vectors where the machine has no tiles") {
  const auto product = [](int64_t m, int64_t k, int64_t n, bool turned) {
    primitives p;
    const int x = p.input({m, k}, dtype::bfloat16), y = p.input(turned ? std::vector<int64_t>{n, k} : std::vector<int64_t>{k, n}, dtype::bfloat16);
    return p.loops({p.b.matmul(x, turned ? p.b.permute(y, {1, 0}) : y)});
  };
  machine_limits limits;
  limits.simd_bits = 512;
  limits.cache_bytes = {48 << 10, 2 << 20, 480 << 20};
  limits.half_gflops = 3000;
  const auto block = [&](const loop_program& program) { return starting_schedule(program, limits, 1).regions[0].block; };
  const auto square = block(product(1024, 1024, 1024, true)), deep = block(product(4096, 4096, 4096, true)), few = block(product(16, 4096, 4096, true)), side = block(product(16, 4096, 4096, false));
  CHECK(square.tiles());
  CHECK(json(square) == json(blocking{32, 2, 512, 32, 256, true}));
  CHECK(deep.m == 128);                                         // 1 MiB of bfloat16
  CHECK(json(few) == json(blocking{16, 2, 16, 32, 4096, true})); // no sums wait
  CHECK(side.n == 512);                                         // a step of 16 panels is read at once
  const auto same = product(1024, 1024, 1024, true);
  CHECK(plan_contraction(same, same.regions[0], starting_schedule(same, limits, 1).regions[0], starting_schedule(same, limits, 1)).words == dtype::bfloat16);
  limits.half_gflops = 0;
  CHECK_FALSE(block(same).tiles());
  CHECK(plan_contraction(same, same.regions[0], starting_schedule(same, limits, 1).regions[0], starting_schedule(same, limits, 1)).words == dtype::float32);
}
