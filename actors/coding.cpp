#include "actors/coding.hpp"

#include "base/files.hpp"
#include "base/language.hpp"
#include "base/text.hpp"
#include "kernels/task_types.hpp"
#include "verification/compare.hpp"

#include <algorithm>
#include <chrono>

namespace pragma {

namespace {

std::vector<std::string> describe(const std::vector<tensor_spec>& specs) {
  std::vector<std::string> lines;
  for (const auto& s : specs) {
    std::vector<std::string> dims;
    for (auto d : s.shape) dims.push_back(std::to_string(d));
    lines.push_back(s.name + ": " + json(s.dtype).get<std::string>() + "[" + join(dims, ", ") + "]");
  }
  return lines;
}

std::string describe_device(const machine_limits& m) {
  std::string text = m.cpu + " (" + m.arch + "), " + std::to_string(m.compute_units) + " compute units, " + format_bytes(static_cast<double>(m.memory_bytes)) +
                     ", shared memory " + format_bytes(static_cast<double>(m.shared_bytes)) + " and " + std::to_string(m.registers) + " registers a unit, " +
                     std::to_string(m.max_threads) + " threads a unit in warps of " + std::to_string(m.warp_size);
  if (!m.cache_bytes.empty()) text += ", L2 " + format_bytes(static_cast<double>(m.cache_bytes.front()));
  if (m.read_gbs.size() > 1) text += ", memory reads " + format_number(m.read_gbs[1], 0) + " GB/s, copies " + format_number(m.copy_gbs.back(), 0) + " GB/s";
  return text + ", peak " + format_number(m.peak_gflops / 1e3, 1) + " TFLOP/s float32, " + format_number(m.tf32_gflops / 1e3, 1) + " TF32, " +
         format_number(m.half_gflops / 1e3, 1) + " float16; a launch takes " + format_seconds(m.launch_seconds) + " (all measured)";
}

std::string describe(const machine_limits& m) {
  if (m.backend != "cpu") return describe_device(m);
  if (m.cpu.empty()) return "unknown CPU";
  std::string text = m.cpu + (m.microarchitecture.empty() ? "" : " (" + m.microarchitecture + ")") + ", " + std::to_string(m.simd_bits) + "-bit SIMD, " + std::to_string(m.threads) + (m.threads == 1 ? " thread" : " threads");
  if (m.clock_ghz > 0) text += ", " + format_number(m.clock_ghz, 2) + " GHz";
  static constexpr const char* levels[] = {"L1", "L2", "L3", "memory"};
  for (size_t i = 0; i < m.copy_gbs.size() && i < 4; ++i) {
    text += std::string(", ") + levels[i] + (i < m.cache_bytes.size() && i < 3 ? " " + format_bytes(static_cast<double>(m.cache_bytes[i])) : "") + " " + format_number(m.copy_gbs[i], 0) + (i < m.read_gbs.size() ? "/" + format_number(m.read_gbs[i], 0) : "");
  }
  return text + " GB/s copying/reading, peak " + format_number(m.peak_gflops, 0) + " GFLOP/s float32" +
         (m.half_gflops > 0 ? ", " + format_number(m.half_gflops, 0) + " bfloat16 on tiles (AMX; int8 up to twice that)" : "") + " (all measured). Timed calls repeat on the same inputs, so caches are warm";
}

chat_usage operator-(const chat_usage& a, const chat_usage& b) {
  return {a.prompt_tokens - b.prompt_tokens, a.completion_tokens - b.completion_tokens, a.cost - b.cost, a.seconds - b.seconds,
          a.retries - b.retries};
}

std::optional<attempt_feedback> feedback_of(const code_request& request) {
  if (!request.has_last) return std::nullopt;
  return attempt_feedback{request.last_candidate, request.last_passed, request.last_was_best, request.last_speedup,
                          request.brief.findings, request.failure};
}

} // namespace

expected<coding_task> prompt_for(const coder_setup& setup, const std::string& language) {
  const auto& t = setup.task;
  const bool on_device = setup.limits.backend != "cpu";
  coding_task prompt;
  prompt.language = language;
  prompt.tf32 = rounds_to_tf32(t, setup.tf32) ? setup.tf32 : tf32_use::none;
  prompt.allow_torch = setup.allow_torch;
  prompt.name = t.name;
  prompt.source = t.source;
  prompt.inputs = describe(t.inputs);
  prompt.params = describe(t.params);
  prompt.outputs = describe(t.outputs);
  for (const auto type : {dtype::float16, dtype::bfloat16, dtype::int8})
    if (uses(t, type)) prompt.narrow_types.push_back(json(type).get<std::string>());
  const auto result = std::find_if(t.outputs.begin(), t.outputs.end(), [](const tensor_spec& x) { return is_floating(x.dtype); });
  if (result != t.outputs.end()) prompt.tolerance = t.tolerance > 0 ? t.tolerance : default_tolerance(result->dtype);
  prompt.tiles = !on_device && setup.limits.half_gflops > 0;
  auto header = read_file(share_dir() / "pragma_kernel.h");
  if (!header) return fail(header.error());
  prompt.abi_header = std::move(*header);
  (on_device ? prompt.device : prompt.machine) = describe(setup.limits) + (setup.compiler_versions.empty() || on_device ? "" : ". Compilers: " + join(setup.compiler_versions, ", "));
  prompt.allowed_flags = {"-O2", "-O3", "-Ofast", "-march=native", "-ffast-math", "-funroll-loops", "-fopenmp", "-mprefer-vector-width=512"};
  return prompt;
}

expected<std::string> coding_session::setup(const coder_setup& setup) {
  setup_ = setup;
  builtin_.reset();
  model_.reset();
  tried_ = {setup.tried.begin(), setup.tried.end()};
  if (!setup.given.empty()) return std::string("parts");
  const bool uses_model = setup.kind == "llm";
  builtin_options options;
  const auto chosen = find_backend(setup.limits.backend);
  if (!chosen) return fail(chosen.error());
  options.language = chosen->language;
  options.tf32 = setup.tf32;
  options.threads = setup.threads;
  options.search = setup.search == "random" ? search_mode::random : setup.search == "unguided" ? search_mode::unguided : search_mode::findings;
  options.seed = setup.seed;
  options.machine = setup.limits;
  options.algebra = setup.algebra;
  options.compilers = setup.compilers;
  options.known_schedule = setup.known_schedule;
  options.known_from = setup.known_from;
  if (!uses_model || setup.seed_builtin) {
    auto made = builtin_coder::create(setup.task, options);
    if (made) builtin_.emplace(std::move(*made));
    else if (!uses_model) return fail(made.error());
  }
  // Resuming: the search is deterministic, so living through the earlier answers brings it back to where it was.
  if (builtin_ && !uses_model)
    for (const auto& request : setup.history) {
      learn_before(request);
      (void)builtin_->next(feedback_of(request));
    }
  if (!uses_model) return std::string("builtin");

  auto model = make_chat_model(setup.llm, setup.transcript, cancel_, setup.resumed ? std::optional(setup.used) : std::nullopt);
  if (!model) return fail(model.error());
  model_ = std::move(*model);
  auto prompt = prompt_for(setup, chosen->language);
  if (!prompt) return fail(prompt.error());
  prompt_ = std::move(*prompt);
  if (builtin_)
    if (auto seed = builtin_->next(std::nullopt)) prompt_.seed_source = seed->source;
  return model_->name();
}

void coding_session::learn_before(const code_request& request) {
  for (const auto& one : request.before)
    if (const auto feedback = feedback_of(one)) builtin_->learn(*feedback);
}

expected<coded> coding_session::next(const code_request& request) {
  const auto start = std::chrono::steady_clock::now();
  auto result = !setup_.given.empty() ? from_given() : model_ ? from_model(request) : from_builtin(request);
  if (result) result->seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

expected<coded> coding_session::from_given() {
  coded answer;
  const auto next = std::find_if(setup_.given.begin(), setup_.given.end(), [&](const candidate& c) { return tried_.insert(c.id()).second; });
  answer.exhausted = next == setup_.given.end();
  if (!answer.exhausted) answer.candidate = *next;
  return answer;
}

expected<coded> coding_session::from_builtin(const code_request& request) {
  if (!builtin_) return fail(ec::internal, "the coder was asked for code before it was set up");
  coded answer;
  answer.graph_findings = builtin_->graph_findings();
  learn_before(request);
  auto feedback = feedback_of(request);
  while (true) {
    auto next = builtin_->next(feedback);
    if (!next) {
      answer.exhausted = true;
      return answer;
    }
    feedback.reset(); // what was learned counts once; a candidate of an earlier session is only passed over
    if (!tried_.insert(next->id()).second) continue;
    answer.candidate = std::move(*next);
    return answer;
  }
}

expected<coded> coding_session::from_model(const code_request& request) {
  coded answer;
  if (builtin_) answer.graph_findings = builtin_->graph_findings();
  const auto before = model_->total();
  auto messages = render_prompt(prompt_, request.brief);
  auto reply = model_->ask(messages);
  if (!reply) return fail(reply.error());
  auto code = parse_answer(reply->text, prompt_.language);
  if (!code) {
    messages.push_back({"assistant", reply->text});
    messages.push_back(ask_again(code.error(), prompt_.language));
    reply = model_->ask(messages);
    if (!reply) return fail(reply.error());
    code = parse_answer(reply->text, prompt_.language);
  }
  answer.usage = model_->total() - before;
  auto& c = answer.candidate;
  c.origin = model_->name();
  c.language = prompt_.language;
  if (in_python(c.language)) c.compiler.clear();
  if (!code) {
    const auto* known = find_language(c.language);
    c.source = known ? known->no_kernel : "";
    c.rationale = "malformed answer, twice: " + code.error().message;
    return answer;
  }
  c.source = std::move(code->source);
  c.rationale = std::move(code->rationale);
  c.answers = std::move(code->answers);
  if (in_python(c.language)) return answer;
  c.compiler = code->compiler.empty() ? "gcc" : code->compiler;
  c.flags = std::move(code->flags);
  if (c.flags.empty()) c.flags = {"-O3", "-march=native"};
  return answer;
}

} // namespace pragma
