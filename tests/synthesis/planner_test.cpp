// What holds for every program of loops, whatever the graph: nothing is read before it is stored or beside its buffer, every
// element of a buffer is stored once, values are known before they are used, and the starting schedule fits. On the golden graphs.
#include "golden.hpp"
#include "primitives.hpp"

#include "synthesis/cpp/emit.hpp"
#include "synthesis/lower/algebra.hpp"
#include "synthesis/lower/lower.hpp"
#include "synthesis/loops/region.hpp"
#include "synthesis/schedule/passes.hpp"
#include "synthesis/schedule/threads.hpp"
#include "synthesis/triton/schedule.hpp"

#include <functional>
#include <random>
#include <set>

using namespace pragma;
using namespace pragma::synthesis;
using namespace pragma::test;

namespace {

constexpr int64_t most_enumerated = 1 << 20; ///< elements of a buffer that is looked at one by one

tensor_program lowered(const golden_shape& shape) {
  const auto g = parse_graph(shape.described.graph);
  if (!g) FAIL(render(g.error()));
  auto program = lower(*g);
  if (!program) FAIL(render(program.error()));
  return simplify(*program);
}

loop_program loops_of(const golden_shape& shape, bool batches) {
  auto made = build_program(lowered(shape), batches);
  if (!made) FAIL(render(made.error()));
  return std::move(*made);
}

/// Programs with too few loops for their threads, as split_for_threads() leaves them.
std::vector<std::pair<std::string, loop_program>> programs_for_threads() {
  std::vector<std::pair<std::string, loop_program>> made;
  const auto add = [&](const char* name, const std::vector<int64_t>& shape, const std::function<std::vector<int>(node_builder&, int)>& make) {
    synthesis::test::primitives p;
    const int x = p.input(shape);
    auto program = p.loops(make(p.b, x));
    split_for_threads(program, 4, 8);
    made.push_back({name, std::move(program)});
  };
  add("elements", {1 << 16}, [](auto& b, int x) { return std::vector{b.unary(operation::exp, x)}; });
  add("elements, as many as a prime", {65537}, [](auto& b, int x) { return std::vector{b.unary(operation::exp, x)}; });
  add("columns", {64, 4096}, [](auto& b, int x) { return std::vector{b.reduce(operation::sum, x, {0})}; });
  add("a total of everything", {3, 1 << 16}, [](auto& b, int x) { return std::vector{b.reduce(operation::sum, x, {0, 1})}; });
  add("two long rows and their totals", {2, 1 << 16}, [](auto& b, int x) {
    const int largest = b.reduce(operation::max, x, {1});
    const int powers = b.unary(operation::exp, b.sub(x, largest));
    return std::vector{b.div(powers, b.reduce(operation::sum, powers, {1}))};
  });
  std::mt19937 draw(22);
  const auto of = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(draw); };
  for (int k = 0; k < 40; ++k) { // any shape: what has no equal blocks stays whole
    synthesis::test::primitives q;
    const std::vector<int64_t> shape{of(1, 6), int64_t{of(1, 60)} * (of(0, 1) ? 64 : 1), int64_t{of(1, 40)} * (of(0, 1) ? 16 : 1)};
    const int x = q.input(shape), y = q.b.unary(operation::exp, x);
    std::vector<int64_t> dims;
    for (int64_t d = 0; d < 3; ++d)
      if (of(0, 1)) dims.push_back(d);
    std::vector<int> outputs{y};
    if (!dims.empty()) {
      const int total = q.b.reduce(of(0, 1) ? operation::sum : operation::max, y, dims);
      outputs = {of(0, 1) ? q.b.div(y, q.b.reduce(operation::sum, q.b.sub(y, total), dims)) : total};
    }
    auto program = q.loops(outputs);
    split_for_threads(program, of(2, 17), of(0, 1) ? 8 : 16);
    made.push_back({"drawn " + std::to_string(k), std::move(program)});
  }
  synthesis::test::primitives p;
  const int a = p.input({32, 8192}), b = p.input({8192, 48});
  auto product = p.loops({p.b.unary(operation::exp, p.b.matmul(a, b))});
  split_for_threads(product, 4, 8);
  made.push_back({"a product of many steps", std::move(product)});
  return made;
}

/// `look(name, program)` for every golden graph, as loops for processors and for devices, and for programs for several threads.
void for_each_program(const std::function<void(const std::string&, const loop_program&, bool batches)>& look) {
  for (const auto& name : golden_names())
    for (const bool batches : {true, false}) {
      const auto program = loops_of(golden(name), batches);
      INFO(name << (batches ? ", with joined batches" : ", region by region"));
      look(name, program, batches);
    }
  for (const auto& [name, program] : programs_for_threads()) {
    INFO(name << ", for four threads");
    look(name, program, false);
  }
}

/// The least and the greatest value of an index.
std::pair<int64_t, int64_t> range_of(const region& r, const index_form& f) {
  int64_t low = f.offset, high = f.offset;
  for (const auto& [a, c] : f.terms) (c > 0 ? high : low) += c * (r.axes[static_cast<size_t>(a)].extent - 1);
  return {low, high};
}

bool guarded(const region& r, const index_form& f) {
  for (const auto& [a, c] : f.terms)
    if (r.axes[static_cast<size_t>(a)].guard.output_axis >= 0) return true;
  return false;
}

bool empty(const region& r) {
  for (const auto& a : r.axes)
    if (a.extent == 0) return true;
  return false;
}

int64_t elements_of(const loop_program& p, int buffer) { return p.buffers[static_cast<size_t>(buffer)].elements; }

/// Adds one to `times` of every element that a store writes.
void count_stores(const region& r, const index_form& f, std::vector<int>& times) {
  std::vector<int64_t> places{f.offset};
  for (const auto& [a, c] : f.terms) {
    std::vector<int64_t> more;
    for (int64_t k = 0; k < r.axes[static_cast<size_t>(a)].extent; ++k)
      for (auto place : places) more.push_back(place + k * c);
    places = std::move(more);
  }
  for (auto place : places) {
    REQUIRE(place >= 0);
    REQUIRE(place < static_cast<int64_t>(times.size()));
    ++times[static_cast<size_t>(place)];
  }
}

} // namespace

TEST_CASE("arguments come before uses, and axes and buffers exist") {
  for_each_program([](const std::string&, const loop_program& p, bool) {
    for (const auto& r : p.regions) {
      const auto axes = static_cast<int>(r.axes.size());
      for (size_t i = 0; i < r.exprs.size(); ++i) {
        for (int a : r.exprs[i].args) CHECK((a >= 0 && a < static_cast<int>(i)));
        for (const auto& t : r.exprs[i].at.terms) CHECK((t.first >= 0 && t.first < axes && t.second != 0));
        if (r.exprs[i].kind == expr_kind::load) CHECK((r.exprs[i].buffer >= 0 && r.exprs[i].buffer < static_cast<int>(p.buffers.size())));
      }
      CHECK_FALSE(r.stores.empty());
      for (const auto& s : r.stores) CHECK((s.value >= 0 && s.value < static_cast<int>(r.exprs.size())));
    }
  });
}

TEST_CASE("no load and no store leaves its buffer") {
  for_each_program([](const std::string&, const loop_program& p, bool) {
    for (const auto& r : p.regions) {
      if (empty(r)) continue;
      const auto live = live_exprs(r);
      const auto inside = [&](int buffer, const index_form& f) {
        const auto [low, high] = range_of(r, f);
        CHECK(low >= 0);
        CHECK(high < elements_of(p, buffer));
      };
      for (const auto& s : r.stores)
        if (r.item < 0) inside(s.buffer, s.at); // in a batch loop a buffer may hold one element of the batch
      for (size_t i = 0; i < r.exprs.size(); ++i) {
        const auto& e = r.exprs[i];
        if (live[i] && e.kind == expr_kind::load && e.args.empty() && !guarded(r, e.at) && r.item < 0) inside(e.buffer, e.at);
      }
    }
  });
}

TEST_CASE("every element of every result and of every scratch buffer is stored exactly once") {
  for_each_program([](const std::string&, const loop_program& p, bool batches) {
    if (batches) return; // there the same stores, some of them relative to a batch element
    std::map<int, std::vector<int>> times;
    for (size_t b = 0; b < p.buffers.size(); ++b)
      if (p.buffers[b].kind == buffer_kind::output && p.buffers[b].elements <= most_enumerated) times[static_cast<int>(b)].assign(static_cast<size_t>(p.buffers[b].elements), 0);
    for (const auto& r : p.regions)
      for (const auto& s : r.stores) {
        if (elements_of(p, s.buffer) > most_enumerated) continue;
        auto& of = times[s.buffer];
        of.resize(static_cast<size_t>(elements_of(p, s.buffer)), 0);
        count_stores(r, s.at, of);
      }
    for (const auto& [b, of] : times) {
      INFO(p.buffers[static_cast<size_t>(b)].name);
      CHECK(std::all_of(of.begin(), of.end(), [](int n) { return n == 1; }));
    }
  });
}

TEST_CASE("scratch is stored before it is read, and read at all") {
  for_each_program([](const std::string&, const loop_program& p, bool) {
    std::set<int> stored, read;
    for (const auto& r : p.regions) {
      const auto live = live_exprs(r);
      const auto reads = [&](int b) {
        read.insert(b);
        const auto kind = p.buffers[static_cast<size_t>(b)].kind;
        CHECK(kind != buffer_kind::output);
        if (kind == buffer_kind::scratch) CHECK(stored.count(b) == 1);
      };
      if (r.anchor) {
        reads(r.anchor->a);
        reads(r.anchor->b);
      }
      for (size_t i = 0; i < r.exprs.size(); ++i)
        if (live[i] && r.exprs[i].kind == expr_kind::load) reads(r.exprs[i].buffer);
      for (const auto& s : r.stores) {
        const auto kind = p.buffers[static_cast<size_t>(s.buffer)].kind;
        CHECK((kind == buffer_kind::output || kind == buffer_kind::scratch));
        stored.insert(s.buffer);
      }
    }
    for (int b : stored)
      if (p.buffers[static_cast<size_t>(b)].kind == buffer_kind::scratch) CHECK(read.count(b) == 1);
  });
}

TEST_CASE("axes that stand still are gone, but for those that a contraction or a batch loop needs") {
  for_each_program([](const std::string&, const loop_program& p, bool) {
    for (const auto& r : p.regions)
      if (!r.anchor)
        for (size_t a = 0; a < r.axes.size(); ++a) CHECK((r.axes[a].extent != 1 || r.axes[a].window || static_cast<int>(a) == r.item));
  });
}

TEST_CASE("a plan of passes: reductions after what they add, elements after the reductions that they need") {
  for_each_program([](const std::string&, const loop_program& p, bool) {
    for (const auto& r : p.regions) {
      if (r.anchor || r.reduced_mask() == 0) continue;
      for (const bool merge : {true, false}) {
        const auto plan = plan_passes(r, r.reduced_mask(), merge);
        REQUIRE(plan.ready.size() == r.exprs.size());
        std::map<int, int> pass_of;
        for (const auto& [pass, list] : plan.reduces)
          for (int e : list) {
            CHECK(pass_of.count(e) == 0);
            pass_of[e] = pass;
            CHECK(plan.ready[static_cast<size_t>(r.exprs[static_cast<size_t>(e)].args[0])] < pass);
          }
        for (size_t i = 0; i < r.exprs.size(); ++i) {
          for (int a : r.exprs[i].args)
            if (r.exprs[i].kind != expr_kind::reduce) CHECK(plan.ready[i] >= plan.ready[static_cast<size_t>(a)]);
          if (r.exprs[i].kind != expr_kind::reduce) continue;
          bool merged = false;
          for (const auto& [sum, m] : plan.moments) merged = merged || m.squares == static_cast<int>(i);
          CHECK((pass_of.count(static_cast<int>(i)) == 1) != merged);
        }
        if (!merge) CHECK(plan.moments.empty());
        size_t stores = plan.row_stores.size();
        for (const auto& [pass, list] : plan.stores) {
          stores += list.size();
          for (int s : list) CHECK(plan.ready[static_cast<size_t>(r.stores[static_cast<size_t>(s)].value)] < pass);
        }
        CHECK(stores == r.stores.size());
      }
    }
  });
}

TEST_CASE("the starting schedule fits its program: axes that can be vectorised, whole tiles, blocks no larger than need be") {
  for (const auto& name : golden_names()) {
    const auto shape = golden(name);
    const auto p = loops_of(shape, true);
    for (const int bits : {128, 256, 512}) {
      auto machine = shape.options.machine;
      machine.simd_bits = bits;
      const auto s = starting_schedule(p, machine, shape.options.threads);
      INFO(name << ", " << bits << " bits");
      REQUIRE(s.regions.size() == p.regions.size());
      CHECK(s.lanes == bits / 32);
      for (size_t i = 0; i < p.regions.size(); ++i) {
        const auto &r = p.regions[i];
        const auto& rs = s.regions[i];
        if (r.anchor) {
          CHECK(json(fitted(rs.block, r, s.lanes)) == json(rs.block));
          CHECK(rs.block.m % rs.block.rows == 0);
          CHECK(rs.block.n % (int64_t{rs.block.vectors} * s.lanes) == 0);
          continue;
        }
        const auto axes = vector_axes(r, s.lanes);
        if (axes.empty()) CHECK((rs.vector_axis == -1 && r.axes.size() == (r.item >= 0 ? 1u : 0u))); // what has axes has one for the vectors
        else CHECK(rs.vector_axis == axes.front());
        if (rs.stream) CHECK(can_stream(r, rs, s.lanes));
        CHECK(rows_together(r, rs, rs.together) == rs.together);
      }
    }
  }
}

TEST_CASE("threads get something to share out: blocks of elements and columns, parts of a total") {
  const auto shared = [](const region& r) { // iterations around the vector loop
    int64_t n = 1;
    for (size_t a = 0; a < r.axes.size(); ++a)
      if (!r.axes[a].reduced && !r.axes[a].contracted && (r.anchor || static_cast<int>(a) != vector_axes(r, 8).front())) n *= r.axes[a].extent;
    return n;
  };
  for (const auto& [name, p] : programs_for_threads()) {
    INFO(name);
    if (name.starts_with("drawn")) continue;
    const bool prime = name.find("prime") != std::string::npos; // no equal blocks
    CHECK((shared(p.regions[0]) % 4 == 0) == !prime);
    const auto text = emit_source(p, starting_schedule(p, golden("softmax_first").options.machine, 4), "t").text;
    CHECK((text.find("omp parallel for") != std::string::npos) == !prime);
  }
}

TEST_CASE("too little work for several threads is done by one") {
  const auto shape = golden("softmax_first");
  const auto s = starting_schedule(loops_of(shape, true), shape.options.machine, 4);
  CHECK(s.threads == 1);
  CHECK(std::find(s.flags.begin(), s.flags.end(), "-fopenmp") == s.flags.end());
}

TEST_CASE("a schedule's number of threads is the most that its program starts, whatever the call allows") {
  const auto p = programs_for_threads().front().second;
  auto s = starting_schedule(p, golden("softmax_first").options.machine, 4);
  const auto four = emit_source(p, s, "t").text;
  CHECK(four.find("least<int>(args->threads, 4)") != std::string::npos);
  s.threads = 2;
  CHECK(emit_source(p, s, "t").text.find("least<int>(args->threads, 2)") != std::string::npos);
}

TEST_CASE("the starting schedule of a device: sizes are powers of two and cover no more than twice the results") {
  const auto power_of_two = [](int64_t n) { return n > 0 && (n & (n - 1)) == 0; };
  for (const auto& name : golden_names()) {
    const auto shape = golden(name, "triton");
    const auto p = loops_of(shape, false);
    const auto s = starting_triton_schedule(p, shape.options.machine);
    INFO(name);
    REQUIRE(s.regions.size() == p.regions.size());
    for (size_t i = 0; i < p.regions.size(); ++i) {
      auto blocks = s.regions[i].alternatives;
      blocks.push_back(s.regions[i].block);
      for (const auto& b : blocks) {
        CHECK((power_of_two(b.lanes) && power_of_two(b.steps) && power_of_two(b.columns) && power_of_two(b.warps)));
        CHECK(b.stages >= 1);
      }
      CHECK(s.regions[i].chunks >= 1);
    }
  }
}

TEST_CASE("lowering makes equal values once, and simplifying twice changes nothing more") {
  for (const auto& name : golden_names()) {
    INFO(name);
    const auto once = lowered(golden(name)), twice = simplify(once);
    CHECK(once.nodes.size() == twice.nodes.size());
    CHECK(once.redundant.size() <= twice.redundant.size());
    for (size_t i = 0; i < once.nodes.size(); ++i)
      for (int a : once.nodes[i].args) CHECK((a >= 0 && a < static_cast<int>(i)));
  }
}

TEST_CASE("a quotient that a step follows is exact where its operands are Torch's to the bit, and no other is") {
  const auto divisions = [](const tensor_program& p) {
    std::pair<int, int> found; // exact, others
    for (const auto& n : p.nodes) {
      found.first += n.op == operation::exact_div;
      found.second += n.op == operation::div;
    }
    return found;
  };
  CHECK(divisions(lowered(golden("quantised"))) == std::pair{2, 0}); // the scale, and what is rounded
  for (const auto& name : golden_names())
    if (name != "quantised") CHECK(divisions(lowered(golden(name))).first == 0);
}

TEST_CASE("cross entropy with smoothed labels passes over its logits twice, in one region") {
  const auto shape = golden("cross_entropy_smooth");
  const auto p = loops_of(shape, true);
  int readers = 0;
  for (const auto& r : p.regions) {
    const auto live = live_exprs(r);
    bool reads = false;
    for (size_t i = 0; i < r.exprs.size(); ++i) reads = reads || (live[i] && r.exprs[i].kind == expr_kind::load && p.buffers[static_cast<size_t>(r.exprs[i].buffer)].name == "x0");
    if (!reads) continue;
    ++readers;
    CHECK(r.stores.size() == 2); // the label's part and the others'
    CHECK(plan_passes(r, r.reduced_mask(), true).passes == 2);
  }
  CHECK(readers == 1);
  const auto s = starting_schedule(p, shape.options.machine, 1);
  CHECK(s.regions[0].next_row);
  CHECK_FALSE(s.regions[1].next_row); // one row
}

TEST_CASE("a sum over everything of rows that are normalised is taken row by row: no buffer has their elements") {
  synthesis::test::primitives p;
  const std::vector<int64_t> rows{40, 300};
  const int x = p.input(rows), weights = p.input(rows);
  const int shifted = p.b.sub(x, p.b.reduce(operation::peak, x, {1}));
  const int log_softmax = p.b.sub(shifted, p.b.unary(operation::log, p.b.reduce(operation::sum, p.b.unary(operation::exp_nonpositive, shifted), {1})));
  const auto buffers_of = [](const tensor_program& program) {
    const auto made = build_program(program);
    REQUIRE(made);
    int64_t most = 0;
    for (const auto& b : made->buffers)
      if (b.kind == buffer_kind::scratch) most = std::max(most, b.elements);
    return most;
  };
  p.loops({p.b.reduce(operation::sum, p.b.mul(log_softmax, weights), {0, 1})});
  CHECK(buffers_of(p.program) == 40); // as it is written: peaks and sums are fewer than what is made of them
  CHECK(buffers_of(simplify(p.program)) == 40);
}

TEST_CASE("sums that another sum multiplies are stored, and not their many products") {
  synthesis::test::primitives p;
  const int scores = p.b.reduce(operation::sum, p.input({6, 50, 20}), {2}), values = p.input({6, 50, 30});
  const auto made = p.loops({p.b.reduce(operation::sum, p.b.mul(scores, values), {1})});
  for (const auto& b : made.buffers)
    if (b.kind == buffer_kind::scratch) CHECK(b.elements == 6 * 50);
}

TEST_CASE("attention with long rows has 16 of them in a block, and no buffer of all scores") {
  const auto scratch = [](int64_t rows) {
    synthesis::test::primitives p;
    const int scores = p.b.matmul(p.input({2, rows, 16}), p.input({2, 16, rows}));
    const int power = p.b.unary(operation::exp_nonpositive, p.b.sub(scores, p.b.reduce(operation::peak, scores, {2})));
    const auto made = p.loops({p.b.matmul(p.b.div(power, p.b.reduce(operation::sum, power, {2})), p.input({2, rows, 16}))});
    int64_t most = 0;
    for (const auto& b : made.buffers)
      if (b.kind == buffer_kind::scratch) most = std::max(most, b.elements);
    return most;
  };
  CHECK(scratch(4096) == 16 * 4096);
  CHECK(scratch(16384) == 16 * 16384);
  CHECK(scratch(128 << 10) == int64_t{2} * (128 << 10) * (128 << 10)); // neither a block nor a packed operand would stay in a cache
}

TEST_CASE("attention with few rows, as one token has them, is no block of rows: nothing is packed as a whole to be read once") {
  const auto blocks = [](int64_t rows) {
    synthesis::test::primitives p;
    const int scores = p.b.matmul(p.input({3, rows, 16}), p.input({3, 16, 64}));
    const int power = p.b.unary(operation::exp_nonpositive, p.b.sub(scores, p.b.reduce(operation::peak, scores, {2})));
    const auto made = p.loops({p.b.matmul(p.b.div(power, p.b.reduce(operation::sum, power, {2})), p.input({3, 64, 16}))});
    return std::any_of(made.regions.begin(), made.regions.end(), [](const auto& r) { return r.by_row_blocks; });
  };
  CHECK(blocks(32));
  CHECK_FALSE(blocks(4));
}

TEST_CASE("all pairs of rows multiplied element by element are a matrix product, of operands that are not expanded") {
  const auto product_of = [](int64_t rows, bool same_side) {
    synthesis::test::primitives p;
    const int x = p.input({rows, 1, 40}), y = p.input(same_side ? std::vector<int64_t>{rows, 1, 40} : std::vector<int64_t>{1, 30, 40});
    const int length = p.b.unary(operation::sqrt, p.b.reduce(operation::sum, p.b.mul(x, x), {2}));
    const int left = p.b.expand(p.b.div(x, length), {rows, 30, 40}), right = p.b.expand(y, {rows, 30, 40});
    p.loops({p.b.reduce(operation::sum, p.b.mul(left, right), {2})});
    return simplify(p.program);
  };
  const auto is_product = [](const tensor_node& n) { return n.kind == node_kind::anchor; };
  const auto made = product_of(20, false);
  CHECK(std::any_of(made.nodes.begin(), made.nodes.end(), is_product));
  for (const auto& n : made.nodes) CHECK(n.elements() <= 30 * 40);
  CHECK_FALSE(made.redundant.empty()); // it is said
  for (const auto& other : {product_of(20, true), product_of(4, false)}) CHECK(std::none_of(other.nodes.begin(), other.nodes.end(), is_product));
}

TEST_CASE("a network may be deep: 250 results of which each waits for the one before, or that meet in one sum") {
  for (bool meet : {false, true}) {
    synthesis::test::primitives p;
    const int first = p.input({8, 16});
    int x = first;
    for (int layer = 0; layer < 250; ++layer) x = p.b.sub(meet ? x : first, p.b.reduce(operation::sum, p.b.unary(operation::exp, x), {layer % 2}));
    CHECK(p.loops({x}).regions.size() >= 250);
  }
}
