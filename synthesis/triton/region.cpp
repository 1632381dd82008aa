// The programs of a region without an anchor: which results and which reduced elements one program takes, its loops over the
// passes, and the kernels that share one long row. Values are in triton_values.cpp, reductions in triton_reductions.cpp.
#include "synthesis/triton/emit.hpp"
#include "synthesis/triton/reductions.hpp"

#include <algorithm>
#include <cmath>

namespace pragma::synthesis {

namespace {

constexpr int64_t farthest_index = (int64_t{1} << 31) - (int64_t{1} << 24); ///< beyond it, offsets need 64 bits
constexpr int64_t most_unrolled_taps = 32;
constexpr double least_use = 0.8; ///< of a tile's lanes along one axis; below, lanes run over all axes as one

std::string number(int64_t n) { return std::to_string(n); }

class region_writer {
public:
  region_writer(const loop_program& p, const region& r, const triton_region_schedule& s, size_t n)
      : p_(p), r_(r), s_(s), plan_(plan_triton(r, s.one_pass && s.block.steps < steps_of(r) && !r.has_window())), number_(number(static_cast<int64_t>(n + 1))) {
    for (size_t a = 0; a < r.axes.size(); ++a) {
      auto& list = r.axes[a].window ? windows_ : r.axes[a].reduced ? inner_ : outer_;
      list.push_back(static_cast<int>(a));
    }
    rows_ = lanes_of(r);
    elements_ = steps_of(r);
    has_steps_ = !inner_.empty();
    whole_ = has_steps_ && s.block.steps >= elements_;
    tiled_ = !has_steps_ || (s.block.lanes > 1 && rows_ > 1);
    if (r.scatters()) s_.alternatives.clear(); // to time one is to run it, and each run joins once more
    // Alternatives differ in sizes only: what changes the text of the kernel is a schedule of its own.
    std::erase_if(s_.alternatives, [&](const triton_block& b) {
      return b == s.block || (has_steps_ && ((b.steps >= elements_) != whole_ || (b.lanes > 1 && rows_ > 1) != tiled_ || (whole_ && b.steps != s.block.steps)));
    });
    chunks_ = has_steps_ && r.scan_axis < 0 ? std::clamp<int64_t>(s.chunks, 1, std::max<int64_t>(1, elements_ / most(&triton_block::steps))) : 1;
    if (chunks_ > 1) {
      whole_ = false;
      const int64_t step = most(&triton_block::steps);
      part_ = ((elements_ + chunks_ - 1) / chunks_ + step - 1) / step * step;
      chunks_ = (elements_ + part_ - 1) / part_;
    }
    if (chunks_ == 1) part_ = elements_;
  }

  triton_kernel write() {
    for (const auto& a : r_.axes)
      if (a.extent == 0 && !a.reduced) return {};
    if (chunks_ == 1) {
      kernel(windows_.empty() ? (r_.scan_axis >= 0 ? "scan_" : has_steps_ ? "rows_" : "elements_") : "windows_", [&](triton_values& v) {
        lanes(v);
        if (!windows_.empty()) windows(v);
        else if (has_steps_) all_passes(v);
        for (int st : plan_.row_stores) v.store(r_.stores[static_cast<size_t>(st)]);
      });
      return out_;
    }
    for (int pass = 1; pass <= plan_.passes; ++pass) chunked_pass(pass);
    if (!plan_.row_stores.empty()) joined_rows();
    return out_;
  }

private:
  const store& stored(int s) const { return r_.stores[static_cast<size_t>(s)]; }
  int64_t extent(int a) const { return r_.axes[static_cast<size_t>(a)].extent; }

  std::vector<triton_block> blocks() const {
    auto all = s_.alternatives;
    all.push_back(s_.block);
    return all;
  }
  int64_t most(int64_t triton_block::*size) const {
    int64_t n = 1;
    for (const auto& b : blocks()) n = std::max(n, b.*size);
    return n;
  }
  bool divides(int64_t triton_block::*size, int64_t n) const {
    return n > 0 && n % most(size) == 0; // powers of two: the largest stands for all
  }

  /// Some element lies so far that 32-bit offsets do not reach it.
  bool far() const {
    for (const auto& b : p_.buffers)
      if (b.elements > farthest_index) return true;
    return rows_ * std::max<int64_t>(1, chunks_) > farthest_index;
  }

  // -- one kernel ------------------------------------------------------------------------------------------------------

  template <class Body> void kernel(const std::string& kind, Body body, bool with_chunks = false, bool single_row = false) {
    triton_values v(p_, r_);
    extra_.clear();
    single_row_ = single_row;
    in_chunk_ = with_chunks;
    body(v);
    auto s = s_;
    if (single_row) {
      s.block = {1, 1, 1, 4, 1};
      s.alternatives.clear();
    }
    const bool lane_size = tiled_ && !single_row, step_size = has_steps_ && !single_row;
    const std::vector<std::string> names{lane_size ? "LANES" : "", step_size ? "STEPS" : "", ""};
    std::vector<std::string> pointers, arguments;
    for (int b : v.buffers()) {
      pointers.push_back(p_.buffers[static_cast<size_t>(b)].name + "_ptr");
      arguments.push_back(p_.buffers[static_cast<size_t>(b)].name);
    }
    for (const auto& name : extra_) {
      pointers.push_back(name + "_partials");
      arguments.push_back(partials(name));
    }
    const auto name = kind + number_;
    std::string signature, call;
    for (const auto& x : pointers) signature += (signature.empty() ? "" : ", ") + x;
    for (const auto& x : arguments) call += (call.empty() ? "" : ", ") + x;
    for (const auto& x : names)
      if (!x.empty()) signature += ", " + x + ": tl.constexpr";
    out_.text += (out_.text.empty() ? "" : "\n\n") + triton_decorators(s, names) + "def " + name + "(" + signature + "):\n" + v.text();
    out_.helpers.insert(v.helpers().begin(), v.helpers().end());
    out_.name = name;
    const std::string chunks = with_chunks && chunks_ > 1 ? number(chunks_) + " * " : "";
    std::string grid;
    if (!lane_size) grid = "(" + number(rows_ * (with_chunks ? chunks_ : 1)) + ",)";
    else grid = "lambda meta: (" + chunks + (outer_programs_ > 1 ? number(outer_programs_) + " * " : "") + "triton.cdiv(" + number(tile_extent_) + ", meta[\"LANES\"]),)";
    out_.launch += name + "[" + grid + "](" + call + triton_launch_end(s, names) + "\n";
  }

  /// Which results this program computes: binds the axes that are not reduced.
  void lanes(triton_values& v) {
    std::string program = far() ? "tl.program_id(0).to(tl.int64)" : "tl.program_id(0)";
    v.line("program = " + program);
    if (in_chunk_) {
      v.line("chunk = program % " + number(chunks_));
      v.line("program = program // " + number(chunks_));
    }
    outer_programs_ = 1;
    tile_extent_ = rows_;
    row_ = "0";
    if (single_row_ || !tiled_) {
      row_ = "program";
      return decompose(v, outer_, "program", "");
    }
    if (outer_.empty()) return; // one element
    const std::string column = has_steps_ ? "[:, None]" : "";
    const int last = outer_.back();
    bool along_last = outer_.size() > 1;
    for (const auto& b : blocks()) {
      const double n = static_cast<double>(extent(last)), step = static_cast<double>(b.lanes);
      along_last = along_last && n >= step * least_use && n / (std::ceil(n / step) * step) >= least_use;
    }
    if (!along_last) {
      const bool exact = divides(&triton_block::lanes, rows_);
      v.line("lane = (program * LANES + tl.arange(0, LANES))" + column);
      if (!exact) v.line("in_lane = lane < " + number(rows_));
      row_ = "lane";
      return decompose(v, outer_, "lane", exact ? "" : "in_lane");
    }
    const bool exact = divides(&triton_block::lanes, extent(last));
    tile_extent_ = extent(last);
    outer_programs_ = rows_ / tile_extent_;
    v.line("tiles: tl.constexpr = (" + number(tile_extent_) + " + LANES - 1) // LANES");
    v.line("lane = (program % tiles * LANES + tl.arange(0, LANES))" + column);
    if (!exact) v.line("in_lane = lane < " + number(tile_extent_));
    v.line("outer = program // tiles");
    v.bind_axis(last, "lane", exact ? "" : "in_lane");
    row_ = "outer * " + number(tile_extent_) + " + lane";
    decompose(v, {outer_.begin(), outer_.end() - 1}, "outer", "");
  }

  /// Binds axes to the digits of one index, the last axis fastest.
  void decompose(triton_values& v, const std::vector<int>& axes, const std::string& index, const std::string& mask) {
    if (axes.size() == 1) return v.bind_axis(axes[0], index, mask);
    int64_t stride = 1;
    for (size_t i = axes.size(); i-- > 0;) {
      const auto name = index + number(axes[i]);
      const std::string digit = stride == 1 ? index : index + " // " + number(stride);
      v.line(name + " = " + digit + (i == 0 ? "" : " % " + number(extent(axes[i]))));
      v.bind_axis(axes[i], name, mask);
      stride *= extent(axes[i]);
    }
  }

  // -- rows ------------------------------------------------------------------------------------------------------------

  std::string shape() const { return tiled_ ? "[LANES, STEPS]" : "[STEPS]"; }
  std::string arange() const { return std::string("tl.arange(0, STEPS)") + (far() ? ".to(tl.int64)" : "") + (tiled_ ? "[None, :]" : ""); }

  std::string step_mask() const {
    const bool exact = chunks_ == 1 ? divides(&triton_block::steps, elements_) : part_ * chunks_ == elements_;
    return exact ? "" : "in_step";
  }

  void steps(triton_values& v, const std::string& start) {
    v.line("step = " + (start.empty() ? arange() : start + " + " + arange()));
    if (!step_mask().empty()) v.line("in_step = step < " + number(elements_));
    decompose(v, inner_, "step", step_mask());
  }

  /// Values of the row that a loop needs are made before it.
  void hoist(triton_values& v, int e, std::set<int>& seen) {
    const auto& x = r_.exprs[static_cast<size_t>(e)];
    if (x.kind == expr_kind::constant || !seen.insert(e).second) return;
    if (!(x.axes & r_.reduced_mask())) {
      v.name_of(e);
      return;
    }
    for (int a : x.args) hoist(v, a, seen);
  }

  std::vector<int> roots(int pass) const {
    std::vector<int> found;
    if (const auto it = plan_.reduces.find(pass); it != plan_.reduces.end())
      for (const auto& x : it->second) found.push_back(r_.exprs[static_cast<size_t>(x.e)].args[0]);
    if (const auto it = plan_.stores.find(pass); it != plan_.stores.end())
      for (int s : it->second) found.push_back(stored(s).value);
    return found;
  }

  const std::vector<triton_reduction>& reduces(int pass) const {
    static const std::vector<triton_reduction> none;
    const auto it = plan_.reduces.find(pass);
    return it == plan_.reduces.end() ? none : it->second;
  }

  void all_passes(triton_values& v) {
    if (whole_) steps(v, "");
    for (int pass = 1; pass <= plan_.passes; ++pass) one_pass(v, pass);
  }

  void one_pass(triton_values& v, int pass) {
    if (roots(pass).empty()) return;
    reduction_writer w(v, r_, shape(), tiled_ ? 1 : 0);
    std::vector<int> scans;
    for (size_t i = 0; i < r_.exprs.size(); ++i)
      if (r_.exprs[i].kind == expr_kind::scan && plan_.ready[i] < pass) scans.push_back(static_cast<int>(i)); // of rows whose reductions are known
    if (whole_) {
      for (int e : scans) scan(v, e, false);
      for (const auto& x : reduces(pass)) w.whole(x, step_mask());
      element_stores(v, pass);
      return;
    }
    for (const auto& x : reduces(pass)) w.begin(x);
    std::set<int> seen;
    for (int e : roots(pass)) hoist(v, e, seen);
    for (int e : scans) {
      const auto& x = r_.exprs[static_cast<size_t>(e)];
      const auto zero = triton_identity(x.op, x.dtype), type = triton_values::type_name(x.dtype);
      v.line("carry" + number(e) + " = tl.full(" + (tiled_ ? "[LANES, 1]" : "[]") + ", " + zero + ", " + type + ")");
    }
    v.open("for start in range(0, " + number(part_) + ", STEPS):");
    steps(v, in_chunk_ ? "chunk * " + number(part_) + " + start" : "start");
    for (int e : scans) scan(v, e, true);
    for (const auto& x : reduces(pass)) w.update(x, step_mask());
    element_stores(v, pass);
    v.close();
    for (const auto& x : reduces(pass)) w.finish(x);
  }

  void element_stores(triton_values& v, int pass) {
    if (const auto it = plan_.stores.find(pass); it != plan_.stores.end())
      for (int s : it->second) v.store(stored(s));
  }

  /// The operand of a scan over a whole tile, `outside` where the row has ended.
  std::string scanned(triton_values& v, int e, dtype type, const std::string& outside) {
    auto source = v.name_of(e);
    const auto& of = r_.exprs[static_cast<size_t>(e)];
    if (of.kind == expr_kind::constant) source = "tl.full(" + shape() + ", " + source + ", " + triton_values::type_name(type) + ")";
    else if (!(of.axes & r_.reduced_mask())) source = "tl.broadcast_to(" + source + ", " + shape() + ")";
    return step_mask().empty() ? source : "tl.where(in_step, " + source + ", " + outside + ")";
  }

  void scan(triton_values& v, int e, bool carried) {
    const auto& x = r_.exprs[static_cast<size_t>(e)];
    if (x.op == operation::decayed_sum) return decayed_sum(v, e, carried);
    const auto axis = std::string(tiled_ ? "axis=1" : "axis=0"), name = std::string(name_of(x.op)) + number(e), carry = "carry" + number(e), part = name + "_part";
    const auto source = scanned(v, x.args[0], x.dtype, triton_identity(x.op, x.dtype));
    const bool adds = x.op == operation::sum, builtin = adds || x.op == operation::prod;
    const std::string joins = x.op == operation::log_sum ? "log_of_both" : std::string(traits(x.op).triton_finish);
    const auto along = [&](const std::string& what) { return builtin ? "tl.cum" + std::string(name_of(x.op)) + "(" + what + ", " + axis + ")" : "tl.associative_scan(" + what + ", " + axis + ", combine_fn=" + joins + ")"; };
    if (!builtin) v.use_helper(joins);
    if (!carried) {
      v.line(name + " = " + along(source));
      return v.bind(e, name);
    }
    const auto both = [&](const std::string& a, const std::string& b) { return builtin ? a + (adds ? " + " : " * ") + b : joins + "(" + a + ", " + b + ")"; };
    v.line(part + " = " + source);
    v.line(name + " = " + both(carry, along(part)));
    if (!adds) v.use_helper(joins);
    const auto all = adds ? "tl.sum(" + part + ", " + axis + ")" : "tl.reduce(" + part + ", " + axis + ", combine_fn=" + joins + ")";
    v.line(carry + " = " + both(carry, all + (tiled_ ? "[:, None]" : "")));
    v.bind(e, name);
  }

  /// Pairs of a decay and what came since: of two stretches the later one decays the earlier.
  void decayed_sum(triton_values& v, int e, bool carried) {
    const auto& x = r_.exprs[static_cast<size_t>(e)];
    const auto axis = std::string(tiled_ ? "axis=1" : "axis=0"), name = "decayed_sum" + number(e), decay = "decay" + number(e), carry = "carry" + number(e);
    v.use_helper("decayed");
    v.line(decay + ", " + name + " = tl.associative_scan((" + scanned(v, x.args[1], x.dtype, "1.0") + ", " + scanned(v, x.args[0], x.dtype, "0.0") + "), " + axis + ", combine_fn=decayed)");
    if (carried) {
      v.line(name + " = " + decay + " * " + carry + " + " + name);
      v.line(carry + " = tl.sum(tl.where(" + std::string(tiled_ ? "tl.arange(0, STEPS)[None, :]" : "tl.arange(0, STEPS)") + " == STEPS - 1, " + name + ", 0.0), " + axis + ")" + (tiled_ ? "[:, None]" : ""));
    }
    v.bind(e, name);
  }

  // -- windows ---------------------------------------------------------------------------------------------------------

  void windows(triton_values& v) {
    reduction_writer w(v, r_, "[LANES]", 0);
    for (const auto& x : reduces(1)) w.begin(x);
    hoist_values(v);
    int64_t taps = 1;
    for (int a : windows_) taps *= extent(a);
    // Inner loops are unrolled as far as the text stays short.
    int64_t unrolled = 1;
    std::vector<bool> is_static(windows_.size(), false);
    for (size_t i = windows_.size(); i-- > 0;) {
      unrolled *= extent(windows_[i]);
      is_static[i] = unrolled <= most_unrolled_taps;
    }
    uint32_t guarded = 0;
    for (size_t i = 0; i < windows_.size(); ++i) {
      const int a = windows_[i];
      const auto& x = r_.axes[static_cast<size_t>(a)];
      const auto k = "k" + number(a);
      v.open("for " + k + " in " + (is_static[i] ? "tl.static_range(" : "range(") + number(x.extent) + "):");
      std::string mask;
      if (x.guard.output_axis >= 0) {
        const auto place = "place" + number(a), o = v.index({0, {{x.guard.output_axis, x.guard.stride}}, -1, 0});
        v.line(place + " = " + o + " + " + number(x.guard.dilation) + " * " + k + " - " + number(x.guard.padding));
        mask = "inside" + number(a);
        v.line(mask + " = (" + place + " >= 0) & (" + place + " < " + number(x.guard.limit) + ")");
        guarded |= 1u << a;
      }
      v.bind_axis(a, k, mask);
    }
    for (const auto& x : reduces(1)) w.update(x, v.mask(guarded));
    for (size_t i = 0; i < windows_.size(); ++i) v.close();
    for (const auto& x : reduces(1)) w.finish_lanes(x);
  }

  void hoist_values(triton_values& v) {
    std::set<int> seen;
    for (const auto& x : reduces(1)) hoist(v, r_.exprs[static_cast<size_t>(x.e)].args[0], seen);
  }

  // -- rows that several programs share -------------------------------------------------------------------------------

  std::string partials(const std::string& name) const { return "partials" + number_ + "_" + name; }

  /// Reductions that the values `from` rest on, all of finished passes.
  std::vector<triton_reduction> needed(const std::vector<int>& from) const {
    std::set<int> found;
    std::vector<int> open = from;
    std::vector<bool> seen(r_.exprs.size(), false);
    while (!open.empty()) {
      const int e = open.back();
      open.pop_back();
      if (seen[static_cast<size_t>(e)]) continue;
      seen[static_cast<size_t>(e)] = true;
      if (r_.exprs[static_cast<size_t>(e)].kind == expr_kind::reduce) found.insert(e);
      else
        for (int a : r_.exprs[static_cast<size_t>(e)].args) open.push_back(a);
    }
    std::vector<triton_reduction> list;
    for (const auto& [pass, all] : plan_.reduces)
      for (const auto& x : all)
        if (found.count(x.e) || (x.second >= 0 && found.count(x.second))) list.push_back(x);
    return list;
  }

  void name_partials(const triton_reduction& x) {
    for (const auto& c : x.components) extra_.push_back(x.name + c.suffix);
  }

  void load_finished(triton_values& v, const std::vector<int>& from) {
    const auto list = needed(from);
    if (list.empty()) return;
    const int64_t width = power_above(chunks_);
    const bool two = tiled_ && !single_row_;
    v.line("part = tl.arange(0, " + number(width) + ")" + (two ? "[None, :]" : ""));
    std::string mask = width == chunks_ ? "" : "part < " + number(chunks_);
    if (two && !lane_limit().empty()) mask = mask.empty() ? lane_limit() : lane_limit() + " & (" + mask + ")";
    reduction_writer w(v, r_, "", two ? 1 : 0);
    for (const auto& x : list) {
      name_partials(x);
      w.load_partials(x, "(" + row_ + ") * " + number(chunks_) + " + part", mask);
    }
  }

  /// The mask of rows that do not exist, where lanes() made one.
  std::string lane_limit() const { return !tiled_ || single_row_ || divides(&triton_block::lanes, tile_extent_) ? "" : "in_lane"; }

  void chunked_pass(int pass) {
    if (roots(pass).empty()) return;
    kernel("rows_pass" + number(pass) + "_", [&](triton_values& v) {
      lanes(v);
      load_finished(v, roots(pass));
      one_pass(v, pass);
      reduction_writer w(v, r_, "", 0);
      for (const auto& x : reduces(pass)) {
        name_partials(x);
        w.store_partials(x, "(" + row_ + ") * " + number(chunks_) + " + chunk", lane_limit());
        for (const auto& c : x.components)
          out_.launch += partials(x.name + c.suffix) + " = torch.empty(" + number(rows_ * chunks_) + ", dtype=" + triton_values::torch_name(c.dtype) + ", device=device)\n";
      }
    }, true);
  }

  void joined_rows() {
    kernel("rows_joined_", [&](triton_values& v) {
      lanes(v);
      std::vector<int> values;
      for (int s : plan_.row_stores) values.push_back(stored(s).value);
      load_finished(v, values);
      for (int s : plan_.row_stores) v.store(stored(s));
    }, false, true);
  }

  const loop_program& p_;
  const region& r_;
  triton_region_schedule s_;
  triton_plan plan_;
  std::string number_;
  std::vector<int> outer_, inner_, windows_;
  int64_t rows_ = 1, elements_ = 1;
  int64_t chunks_ = 1, part_ = 0;           ///< programs that share a row; elements of each
  bool has_steps_ = false, whole_ = false;  ///< the row lies in registers
  bool tiled_ = true;                       ///< several rows a program: tiles of [LANES, STEPS]
  // Of the kernel being written
  bool in_chunk_ = false, single_row_ = false;
  int64_t outer_programs_ = 1, tile_extent_ = 1;
  std::string row_;
  std::vector<std::string> extra_;          ///< partial results that it reads or writes
  triton_kernel out_;
};

} // namespace

triton_kernel emit_triton_region(const loop_program& program, const region& r, const triton_region_schedule& s, size_t n, size_t kept) {
  if (r.anchor) return emit_triton_anchor(program, r, s, n, kept);
  return region_writer(program, r, s, n).write();
}

} // namespace pragma::synthesis
