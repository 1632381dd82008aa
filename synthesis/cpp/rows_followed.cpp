// Sums over exp(x - peak) and x - peak in the pass that looks for the peak. They are taken relative to a level that is at most `slack` below the peak
// of what was read, so that no exponential overflows. It rises with blocks that exceed it, in most rows never: then what was summed is made relative to the new level.
#include "synthesis/cpp/rows.hpp"

#include "synthesis/cpp/types.hpp"

namespace pragma::synthesis {

namespace {

constexpr int slack = 16; ///< e^16 is 9e6: sums of 2^31 such terms are far from float32's end, and x - level loses nothing that matters

} // namespace

void row_writer::followed() {
  const int peak = layout_.plan.followed.peak;
  const auto n = values_.extent(layout_.vector_axis);
  const auto scales = [&](int e) { return at(e).args[0] != layout_.plan.followed.difference; }; // the exponentials' sum is multiplied, the other one shifted
  const auto exp = out_.use(all_.cheap_math ? traits(operation::exp_nonpositive).cpp_cheap : traits(operation::exp_nonpositive).cpp.text);
  const auto splat = out_.use("splat"), top = out_.use("peak");
  out_.comment("passes 1 and 2 as one: peak, and sums relative to a level that follows it");
  pass_ = 1;
  step(-1);
  out_.line("vf highest = {}(-infinity), some = {}(-3.40282347e38f);", splat, splat);
  out_.line("pass1(0, some_lanes<1>{{}}, some); // the level begins with the first element, which is seldom far below the peak");
  out_.line("vf level = {}(some[0]), limit = level + {}.0f;", splat, slack);
  pass_ = 2;
  cut_ = cut_of_row(r_, layout_, pass_, all_.lanes, s_.unroll);
  begin_totals();
  values_.name(peak, "level");
  step(-1);
  if (cut_.blocked) {
    out_.block("for (int64_t block = 0; block < {}; block += {})", n, cut_.block);
    out_.line("const int64_t end = least<int64_t>(block + {}, {});", cut_.block, n);
  } else {
    out_.block();
    out_.line("constexpr int64_t block = 0, end = {};", n);
  }
  for (int e : reductions()) {
    out_.line("vf {}_part[{}];", values_.reduction(e), cut_.unroll);
    out_.line("for (auto& part : {}_part) part = {};", values_.reduction(e), values_.beginning(e));
  }
  out_.block("const auto follow = [&](vf high, int64_t before) __attribute__((always_inline))"); // elements before this block
  out_.line("const vf old[2] = {{level, high}}, was = level;");
  out_.line("level = {}({}(old));", splat, top);
  out_.line("limit = level + {}.0f;", slack);
  for (int e : reductions()) {
    const auto name = values_.reduction(e);
    if (!scales(e)) {
      out_.line("{}_total += double(before) * (double(was[0]) - double(level[0]));", name);
      continue;
    }
    out_.line("const vf scale{} = {}(was - level);", e, exp);
    out_.line("{}_total *= double(scale{}[0]);", name, e);
    out_.line("for (auto& part : {}_part) part *= scale{};", name, e);
  }
  out_.close(";");
  followed_block("end");
  for (int e : reductions()) flush(e);
  out_.close();
  out_.line("const vf all[1] = {{highest}}, {} = {}({}(all));", values_.reduction(peak), splat, top);
  for (int e : reductions()) {
    const auto name = values_.reduction(e);
    if (scales(e)) out_.line("{}_total *= double({}(level - {})[0]);", name, exp, values_.reduction(peak));
    else out_.line("{}_total += {}.0 * (double(level[0]) - double({}[0]));", name, n, values_.reduction(peak));
  }
  values_.name(peak, values_.reduction(peak));
  values_.name_known(1);
  finish_totals();
  values_.name_known(2);
}

void row_writer::followed_block(const std::string& end) {
  const int64_t n = values_.extent(layout_.vector_axis), step = int64_t{cut_.unroll} * all_.lanes, tail = n % all_.lanes;
  const auto peak = [&](const std::string& position, const std::string& lanes) { return fmt::format("pass1({}, {}, high);", position, lanes); };
  const auto follows = [&] {
    out_.line("if ({}(high, limit)) [[unlikely]] follow(high, i);", out_.use("any_higher"));
    out_.line("highest = high > highest ? high : highest;");
  };
  const auto begin = [&] { out_.line("vf high = {}(-infinity);", out_.use("splat")); };
  out_.line("int64_t i = block;");
  out_.block("for (; i + {} <= {}; i += {})", step, end, step);
  begin();
  out_.line("for (int u = 0; u < {}; ++u) {}", cut_.unroll, peak("i + u * W", "all_lanes{}"));
  follows();
  out_.line("for (int u = 0; u < {}; ++u) {}", cut_.unroll, call(-1, "i + u * W", "all_lanes{}", "[u]"));
  out_.close();
  if (n % step == 0) return;
  out_.block("if (i < {})", end);
  begin();
  out_.line("int64_t k = i;");
  out_.line("for (; k + W <= {}; k += W) {}", end, peak("k", "all_lanes{}"));
  if (tail) out_.line("if (k < {}) {}", end, peak("k", fmt::format("some_lanes<{}>{{}}", tail)));
  follows();
  out_.line("for (k = i; k + W <= {}; k += W) {}", end, call(-1, "k", "all_lanes{}", "[0]"));
  if (tail) out_.line("if (k < {}) {}", end, call(-1, "k", fmt::format("some_lanes<{}>{{}}", tail), "[0]"));
  out_.close();
}

} // namespace pragma::synthesis
