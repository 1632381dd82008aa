// Kernels of bench/diagnosis_truth as an H200 measured them (data/h200_truth.csv): the planted cause comes first, unspoilt ones are at their limit, and each rule keeps quiet
// without the counter that it rests on.
#include "diagnosis/what_limits.hpp"
#include "tests/diagnosis/device_profiles.hpp"

using namespace pragma;

namespace {

struct work {
  double flops, bytes, written;
  product_precision products = product_precision::float32;
};
// By the tasks' names.
constexpr work bias_small = {2.6e6, 4202496, 2097152}, column_sum = {16.8e6, 67109376, 512}, dot_product = {33.6e6, 134217732, 4}, halves = {0, 134217728, 67108864},
               product = {2.0 * 4096 * 2048 * 4224, 68681728, 34603008, product_precision::half};

constexpr const char* dot_source = "total = tl.dot(tl.load(a), tl.load(b), total)";
constexpr const char* bytes_of_loads = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio";
constexpr const char* tensor = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active";

/// What that machine can do, as the rooflines of the same profiles have it.
machine_limits as_measured() {
  auto m = h200();
  m.cache_bytes = {62'914'560};
  m.copy_gbs = m.read_gbs = {5000, 4254};
  m.peak_gflops = 51.4e3;
  m.tf32_gflops = 398e3;
  m.half_gflops = 756e3;
  m.launch_seconds = 3.5e-6;
  return m;
}

profile measured(const std::string& kernel) {
  static const auto all = recorded_in("h200_truth.csv");
  return all.at(kernel);
}

profile with(profile p, const std::string& name, double value) {
  for (auto& m : p.metrics)
    if (m.name == name) m.value = value;
  return p;
}

std::vector<finding> told(const profile& p, const work& w, const std::string& source = "tl.load tl.store") {
  const auto limits = as_measured();
  return run(p, source, w.flops, w.bytes, w.written, &limits, nullptr, w.products);
}

double confidence(const std::vector<finding>& found, bottleneck what) {
  const auto* f = find(found, what);
  return f ? f->confidence : 0;
}

} // namespace

TEST_CASE("measured kernels with a planted defect: it comes first, and its promise is of the right size") {
  struct expectation {
    const char* kernel;
    work of;
    const char* source;
    bottleneck what;
    const char* good; ///< made from it
    double within;    ///< promise over real gain, or the other way round, at most
  };
  const expectation table[] = {
      {"bias_small_five_launches", bias_small, "tl.load tl.store", bottleneck::launch_bound, "bias_small_good", 1.25},
      {"column_sum_atomics", column_sum, "tl.atomic_add(y + c, tl.load(x))", bottleneck::atomic_contention, "", 0},
      {"halves_apart", halves, "tl.load tl.store", bottleneck::uncoalesced_access, "halves_good", 1.25},
      {"product_144", product, dot_source, bottleneck::tail_effect, "product_persistent_good", 1.25},
      {"product_deep", product, dot_source, bottleneck::occupancy_limited, "product_good", 1.6},
      {"product_one_stage", product, dot_source, bottleneck::latency_bound, "product_good", 1.25},
      {"product_small_tiles", product, dot_source, bottleneck::memory_bandwidth_bound, "product_good", 1.25},
      {"product_spilled", product, dot_source, bottleneck::register_spills, "product_good", 1.25},
      {"product_widened", product, dot_source, bottleneck::tensor_cores_idle, "product_good", 1.25},
  };
  for (const auto& e : table) {
    const auto p = measured(e.kernel);
    const auto found = told(p, e.of, e.source);
    INFO(e.kernel);
    REQUIRE_FALSE(found.empty());
    CHECK(found.front().what == e.what);
    CHECK(found.front().confidence > 0.65);
    CHECK_FALSE(found.front().at_limit);
    if (e.within <= 0) continue;
    const double real = p.time.candidate_seconds / measured(e.good).time.candidate_seconds;
    REQUIRE(found.front().seconds_without > 0);
    const double promised = found.front().seconds / found.front().seconds_without;
    CHECK(promised < real * e.within);
    CHECK(promised > real / e.within);
  }
}

TEST_CASE("measured kernels without a defect: nothing to follow, and what they are at is said") {
  const struct {
    const char* kernel;
    work of;
    const char* source;
  } table[] = {{"bias_small_good", bias_small, ""}, {"dot_good", dot_product, ""}, {"halves_good", halves, ""}, {"product_good", product, dot_source}, {"product_persistent_good", product, dot_source}};
  for (const auto& e : table) {
    const auto p = measured(e.kernel);
    const auto found = told(p, e.of, e.source);
    INFO(e.kernel);
    REQUIRE_FALSE(found.empty());
    for (const auto& f : found) CHECK(f.confidence < explaining_confidence);
    const auto limit = std::find_if(found.begin(), found.end(), [](const finding& f) { return f.at_limit; });
    REQUIRE(limit != found.end());
    CHECK(limit->why.find("at its limit") != std::string::npos);
    CHECK_FALSE(worth_following(*limit));
    if (limit == found.begin()) CHECK(what_limits(found, &p).find("at its limit") != std::string::npos);
  }
}

TEST_CASE("DRAM is a cause where bytes move more than once") {
  CHECK(confidence(told(measured("halves_good"), halves), bottleneck::memory_bandwidth_bound) < explaining_confidence);
  const auto twice = with(measured("halves_good"), "dram__bytes_read.sum", 2 * 67.1e6);
  CHECK(confidence(told(twice, halves), bottleneck::memory_bandwidth_bound) > 0.8);
  CHECK_FALSE(find(told(twice, halves), bottleneck::memory_bandwidth_bound)->at_limit);
  // Each byte once, and yet half of the roofline only: no cause, and no limit that is reached either.
  auto slow = measured("halves_good");
  slow.time.candidate_seconds *= 1.5;
  const auto of_slow = told(slow, halves);
  const auto* f = find(of_slow, bottleneck::memory_bandwidth_bound);
  REQUIRE(f);
  CHECK(f->confidence < explaining_confidence);
  CHECK_FALSE(f->at_limit);
}

TEST_CASE("operands of two bytes are judged by the matrix units' full rate") {
  const auto m = as_measured();
  CHECK(place_on_roofline(180e-6, {product.flops, product.bytes, product.written}, m).limit == "peak FLOP/s (TF32)");
  const auto half = place_on_roofline(180e-6, {product.flops, product.bytes, product.written, product_precision::half}, m);
  CHECK(half.limit == "peak FLOP/s (FP16)");
  CHECK(half.share == Approx(0.54).epsilon(0.01));
  // With the roofline of TF32 it is at its end, and nothing else is said.
  auto wrong = product;
  wrong.products = product_precision::tf32;
  CHECK(told(measured("product_144"), wrong, dot_source).front().what == bottleneck::at_roofline);

  task t;
  tensor_spec x;
  x.dtype = dtype::float16;
  t.inputs = {x, x};
  CHECK(products_of(t, tf32_use::none) == product_precision::half);
  t.inputs[1].dtype = dtype::int64; // indices are no operands
  CHECK(products_of(t, tf32_use::none) == product_precision::half);
  x.dtype = dtype::float32;
  t.params = {x};
  CHECK(products_of(t, tf32_use::none) == product_precision::float32);
  CHECK(products_of(t, tf32_use::all) == product_precision::tf32);
  CHECK(products_of(task{}, tf32_use::none) == product_precision::float32);
  CHECK(products_of(t, tf32_use::convolutions) == product_precision::float32);
  t.graph = R"({"nodes":[{"op":"aten.convolution.default","rounds":"even"}]})"; // as the reference found it
  CHECK(products_of(t, tf32_use::convolutions) == product_precision::tf32);
  CHECK(products_of(t, tf32_use::none) == product_precision::float32);
}

TEST_CASE("a product that waits for its operands: ordinary loads, and warps that wait for data") {
  const auto p = measured("product_one_stage");
  const auto found = told(p, product, dot_source);
  CHECK(found.front().why.find("nothing is loaded ahead") != std::string::npos);
  CHECK(found.front().remedies.front().find("num_stages") != std::string::npos);
  // Asynchronous loads do not count; a source without a product has no operands; and units that are busy wait for nothing.
  CHECK_FALSE(find(told(with(p, bytes_of_loads, 0), product, dot_source), bottleneck::latency_bound));
  CHECK_FALSE(find(told(p, product), bottleneck::latency_bound));
  CHECK_FALSE(find(told(with(p, tensor, 80), product, dot_source), bottleneck::latency_bound));
}

TEST_CASE("few warps are enough for matrix units that are busy") {
  CHECK(confidence(told(measured("product_deep"), product, dot_source), bottleneck::occupancy_limited) > 0.65);
  CHECK_FALSE(find(told(with(measured("product_deep"), tensor, 80), product, dot_source), bottleneck::occupancy_limited));
}

TEST_CASE("matrix units that are idle come before the units that do their work") {
  auto strict = product; // float32: there the FMA units are near their peak
  strict.products = product_precision::float32;
  const auto found = told(measured("product_widened"), strict, dot_source);
  CHECK(found.front().what == bottleneck::tensor_cores_idle);
  CHECK(found.front().seconds / found.front().seconds_without > 2); // three products of TF32, and not the roofline of the FMA units
  CHECK(confidence(found, bottleneck::compute_bound) < found.front().confidence);
  CHECK(confidence(told(with(measured("product_widened"), tensor, 10), strict, dot_source), bottleneck::compute_bound) > 0.8);
  // Its remedy is the operands' own dtype.
  CHECK(told(measured("product_widened"), product, dot_source).front().remedies.front().find("as they are loaded") != std::string::npos);
}

TEST_CASE("atomic operations that were not counted: in the source, and no unit is busy") {
  const auto p = measured("column_sum_atomics");
  CHECK_FALSE(find(told(p, column_sum), bottleneck::atomic_contention));
  CHECK(told(p, column_sum).front().what == bottleneck::latency_bound);
  CHECK_FALSE(find(told(with(p, "dram__throughput.avg.pct_of_peak_sustained_elapsed", 70), column_sum, "tl.atomic_add(y, x)"), bottleneck::atomic_contention));
  // Counted, the counter decides.
  auto counted = p;
  counted.metrics.push_back({"lts__d_atomic_input_cycles_active.max.pct_of_peak_sustained_elapsed", 5, "%", "ncu", provenance::measured, ""});
  CHECK_FALSE(find(told(counted, column_sum, "tl.atomic_add(y, x)"), bottleneck::atomic_contention));
}

TEST_CASE("a launch is no time in which warps wait") {
  const auto five = told(measured("bias_small_five_launches"), bias_small), one = told(measured("bias_small_good"), bias_small);
  CHECK_FALSE(find(five, bottleneck::latency_bound)); // the launches alone take as long as the call
  CHECK(one.front().what == bottleneck::launch_bound);
  CHECK(one.front().at_limit);
  CHECK(confidence(one, bottleneck::latency_bound) < explaining_confidence);
  // The same counters in a call that is a hundred times as long.
  auto longer = measured("bias_small_good");
  longer.time.candidate_seconds *= 100;
  CHECK(confidence(told(longer, bias_small), bottleneck::latency_bound) > 0.8);
}
