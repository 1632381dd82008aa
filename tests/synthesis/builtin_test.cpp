// The built-in coder against real Torch: small tasks of every family, odd shapes and dtypes, traced, written, built in the
// sandbox and verified like any other candidate. And the search: steered by findings, deterministic, finite.
#include "base/files.hpp"
#include "base/text.hpp"
#include "execution/build.hpp"
#include "synthesis/search/builtin.hpp"
#include "verification/verify.hpp"
#include "small_tasks.hpp"

#include <catch2/catch.hpp>
#include <fstream>
#include <set>

using namespace pragma;

namespace {

struct torch_fixture {
  temp_dir dir = std::move(*temp_dir::create("pragma-synthesis-"));
  expected<reference> ref = reference::start({});

  task describe(const small_task& t) {
    const auto path = write(t);
    REQUIRE(ref);
    auto described = ref->describe(path);
    if (!described) FAIL(render(described.error()));
    return *described;
  }
  std::filesystem::path write(const small_task& t) {
    const auto path = dir.path() / (std::string(t.name) + ".py");
    std::ofstream(path) << text_of(t);
    return path;
  }
};

builtin_coder coder_for(const task& t) {
  auto coder = builtin_coder::create(t, {});
  if (!coder) FAIL(render(coder.error()));
  return std::move(*coder);
}

finding seen(bottleneck what) {
  finding f;
  f.what = what;
  f.confidence = 0.8;
  return f;
}

} // namespace

TEST_CASE_METHOD(torch_fixture, "the first kernel of every family is right, on shapes that nobody chose kindly") {
  REQUIRE(ref);
  for (const auto& small : tasks) {
    INFO(small.name);
    auto loaded = ref->load(write(small), 2);
    if (!loaded) FAIL(render(loaded.error()));
    auto coder = coder_for(*loaded);
    const auto first = coder.next(std::nullopt);
    REQUIRE(first);
    INFO(first->source);
    build_options options;
    const auto built = build_candidate(*first, options);
    if (!built) FAIL(render(built.error()));
    verify_options checks;
    checks.seeds = 2;
    const auto audit = audit_task(*loaded, *ref, checks);
    if (!audit) FAIL(render(audit.error()));
    const auto v = verify(*loaded, *audit, *ref, *built, checks);
    if (!v) FAIL(render(v.error()));
    INFO(v->reason);
    CHECK(v->passed());
  }
}

TEST_CASE_METHOD(torch_fixture, "a recurrent layer of many steps is a loop, which threads share out, and in float64 it is Torch's") {
  const small_task layer{"many_steps", "return self.l(x)[0]", "[torch.randn(70, 40, 24)]", "self.l = nn.LSTM(24, 72)"};
  REQUIRE(ref);
  auto loaded = ref->load(write(layer), 2);
  if (!loaded) FAIL(render(loaded.error()));
  builtin_options options;
  options.threads = 2;
  auto coder = builtin_coder::create(*loaded, options);
  if (!coder) FAIL(render(coder.error()));
  const auto first = coder->next(std::nullopt);
  REQUIRE(first);
  CHECK(first->source.find("lstm, steps x rows x units = 70 x 40 x 72") != std::string::npos);
  CHECK(first->source.find("pragma omp for") != std::string::npos);
  const auto built = build_candidate(*first, build_options{});
  if (!built) FAIL(render(built.error()));
  verify_options checks;
  checks.seeds = 2;
  const auto audit = audit_task(*loaded, *ref, checks);
  if (!audit) FAIL(render(audit.error()));
  const auto v = verify(*loaded, *audit, *ref, *built, checks);
  if (!v) FAIL(render(v.error()));
  INFO(v->reason);
  CHECK(v->passed());
  const small_task wide{"many_steps_wide", "return self.l(x)[0]", "[torch.randn(70, 2, 4, dtype=torch.float64)]", "self.l = nn.GRU(4, 5).double()"};
  const auto refused = builtin_coder::create(describe(wide), builtin_options{});
  REQUIRE_FALSE(refused);
  CHECK(render(refused.error()).find("more than 64 steps") != std::string::npos);
}

// Debian's Torch computes exp(x) - 1 here; newer ones, and all on devices, what is asked for.
TEST_CASE_METHOD(torch_fixture, "what an ELU makes of tiny inputs is not lost in a rounding of 1") {
  const auto first = coder_for(describe({"elu", "return F.elu(x, 1.3)", "[torch.randn(64, 512) * 1e-7]"})).next(std::nullopt);
  REQUIRE(first);
  const auto built = build_candidate(*first, build_options{});
  if (!built) FAIL(render(built.error()));
  REQUIRE(ref);
  auto exact = ref->load(write({"exact", "return torch.where(x > 0, x, 1.3 * torch.expm1(x))", "[torch.randn(64, 512) * 1e-7]"}), 2);
  if (!exact) FAIL(render(exact.error()));
  const auto audit = audit_task(*exact, *ref, {});
  if (!audit) FAIL(render(audit.error()));
  const auto v = verify(*exact, *audit, *ref, *built, {});
  if (!v) FAIL(render(v.error()));
  INFO(v->reason);
  CHECK(v->passed());
}

TEST_CASE_METHOD(torch_fixture, "what is computed on the way may be larger than arrays can be") {
  const auto described = describe({"outer", "return torch.cumsum(x.unsqueeze(1) * x.unsqueeze(0), 1).sum(0)", "[torch.randn(24000)]"}); // 2.1 GiB
  auto coder = coder_for(described);
  const auto first = coder.next(std::nullopt);
  REQUIRE(first);
  CHECK(first->source.find("aligned_alloc") != std::string::npos);
  const auto built = build_candidate(*first, {});
  if (!built) FAIL(render(built.error()));
}

TEST_CASE_METHOD(torch_fixture, "an operation that cannot be lowered is named") {
  auto described = describe({"sorted", "return torch.sort(x)[0]", "[torch.randn(3, 8)]"});
  const auto coder = builtin_coder::create(described, {});
  REQUIRE(!coder);
  CHECK(coder.error().code == ec::unsupported);
  CHECK(coder.error().message.find("aten.sort") != std::string::npos);
}

TEST_CASE_METHOD(torch_fixture, "the search never repeats itself, is deterministic, and ends") {
  const auto t = describe(tasks[10]);
  auto one = coder_for(t), two = coder_for(t);
  std::set<std::string> ids;
  std::optional<attempt_feedback> feedback;
  for (int i = 0; i < 500; ++i) {
    const auto a = one.next(feedback), b = two.next(feedback);
    REQUIRE(a.has_value() == b.has_value());
    if (!a) break;
    CHECK(a->id() == b->id());
    CHECK(ids.insert(a->id()).second);
    feedback = attempt_feedback{a->id(), true, i == 0, 2.0, {seen(bottleneck::port_pressure)}, ""};
  }
  CHECK(ids.size() > 3);
  CHECK(ids.size() < 500);
}

TEST_CASE_METHOD(torch_fixture, "different findings lead to different moves") {
  const auto t = describe(tasks[0]);
  std::set<std::string> second;
  for (auto what : {bottleneck::store_bandwidth_bound, bottleneck::dependency_chain, bottleneck::front_end_bound}) {
    auto coder = coder_for(t);
    const auto first = coder.next(std::nullopt);
    REQUIRE(first);
    const auto next = coder.next(attempt_feedback{first->id(), true, true, 1.5, {seen(what)}, ""});
    REQUIRE(next);
    second.insert(next->id());
  }
  CHECK(second.size() > 1);
}

namespace {

const small_task& named(const std::string& name) {
  for (const auto& t : tasks)
    if (name == t.name) return t;
  FAIL("no task " << name);
  return tasks[0];
}

} // namespace

TEST_CASE_METHOD(torch_fixture, "after all single moves each is made twice, and what lost most of the speed is not tried beside others") {
  const auto t = describe(named("max_pool_tall"));
  auto coder = coder_for(t);
  std::optional<attempt_feedback> feedback;
  std::vector<std::string> said;
  while (const auto c = coder.next(feedback)) {
    said.push_back(c->rationale);
    const bool axis = c->rationale.find("another vector axis") != std::string::npos;
    feedback = attempt_feedback{c->id(), true, said.size() == 1, axis ? 0.5 : 2.0, {seen(bottleneck::dependency_chain)}, ""};
  }
  INFO(join(said, "\n"));
  const auto starting = [&](const std::string& words) {
    return std::find_if(said.begin(), said.end(), [&](const std::string& s) { return s.find(words) != std::string::npos; });
  };
  const auto first = starting("another vector axis:"), twice = starting("another vector axis, twice"), pair = starting("each alone was tried");
  CHECK(first < twice);
  CHECK(twice < pair);
  REQUIRE(pair != said.end());
  CHECK(std::none_of(pair, said.end(), [](const std::string& s) { return s.find("vector axis") != std::string::npos; }));
}

namespace {

/// Verifies up to `most` candidates of a coder on a task.
void check_candidates(torch_fixture& torch, const small_task& small, const builtin_options& options, int most) {
  INFO(small.name);
  auto loaded = torch.ref->load(torch.write(small), 2);
  REQUIRE(loaded);
  verify_options checks;
  checks.seeds = 1;
  const auto audit = audit_task(*loaded, *torch.ref, checks);
  REQUIRE(audit);
  auto coder = builtin_coder::create(*loaded, options);
  if (!coder) FAIL(render(coder.error()));
  std::optional<attempt_feedback> feedback;
  for (int i = 0; i < most; ++i) {
    const auto c = coder->next(feedback);
    if (!c) break;
    INFO(c->rationale << "\n" << c->schedule);
    const auto built = build_candidate(*c);
    if (!built) FAIL(render(built.error()));
    const auto v = verify(*loaded, *audit, *torch.ref, *built, checks);
    REQUIRE(v);
    INFO(v->reason);
    CHECK(v->passed());
    feedback = attempt_feedback{c->id(), v->passed(), i == 0, 2.0, {seen(bottleneck::memory_bandwidth_bound), seen(bottleneck::port_pressure)}, ""};
  }
}

} // namespace

TEST_CASE_METHOD(torch_fixture, "every schedule that the search offers is right, not only the first") {
  REQUIRE(ref);
  for (size_t which : {10u, 15u, 21u, 30u}) check_candidates(*this, tasks[which], {}, 7);
  check_candidates(*this, named("rows_at_once"), {}, 7);
}

TEST_CASE_METHOD(torch_fixture, "schedules drawn blindly are right: windows along every axis") {
  REQUIRE(ref);
  builtin_options blind;
  blind.search = search_mode::random;
  for (const char* name : {"max_pool_tall", "avg_pool_2d"}) check_candidates(*this, named(name), blind, 10);
}

// What is left of nearly equal elements after their mean was taken from them is the mean's error.
TEST_CASE_METHOD(torch_fixture, "column sums are exact enough for what their means are subtracted from") {
  REQUIRE(ref);
  builtin_options blind; // rows as well as columns
  blind.search = search_mode::random;
  check_candidates(*this, {"norm_of_nearly_equal", "return self.n(torch.sigmoid(x + 8))", "[torch.randn(2, 6, 40, 33)]", "self.n = nn.GroupNorm(3, 6)"}, blind, 10);
}
