// What all contractions share as Triton text: which tile a program computes, what follows on it, parts of k that are summed
// by a second kernel, and the launch.
#include "synthesis/triton/anchor.hpp"

#include "base/text.hpp"

#include <algorithm>

namespace pragma::synthesis {

namespace {

const std::string split_comment = "    # Each factor is a sum of two TF32 numbers; three products on tensor cores are right to about 2^-22 of their size.\n";
const std::vector<std::string> block_names{"BLOCK_M", "BLOCK_K", "BLOCK_N"}; ///< lanes, steps, columns
constexpr int64_t sum_block = 1024; ///< elements a program of the second kernel adds up

std::string number(int64_t n) { return std::to_string(n); }

} // namespace

anchor_emitter::anchor_emitter(const loop_program& program, const region& r, const triton_region_schedule& s, size_t number, size_t kept)
    : p_(program), r_(r), c_(*r.anchor), s_(s), v_(program, r) {
  suffix_ = std::to_string(number);
  kept_ = std::to_string(kept);
  name_ = std::string(name_of(c_.op)) + "_" + suffix_;
  for (int a : c_.batch) batches_ *= extent(a);
  for (int a : c_.m) m_ *= extent(a);
  k_ = extent(c_.k);
  const auto format = [&](int b) { return p_.buffers[static_cast<size_t>(b)].dtype; };
  halves_ = multiplies_halves(program, c_);
  widens_ = !halves_ && (is_half(format(c_.a)) || is_half(format(c_.b)));
  if (c_.op == operation::matmul) {
    for (int a : c_.n) n_ *= extent(a);
    plan_matmul();
  } else {
    plan_convolution();
  }
  wide_ = 2 * packed_half_ > INT32_MAX;
  for (int b : {c_.a, c_.b, r.stores[0].buffer}) wide_ = wide_ || p_.buffers[static_cast<size_t>(b)].elements > INT32_MAX;
  const int64_t longest = largest_steps(), steps = (k_ + longest - 1) / longest; // of the longest block
  if (s.chunks > 1 && !c_.strided_store() && steps > 1) {
    chunk_ = (steps + s.chunks - 1) / s.chunks * longest;
    chunks_ = (k_ + chunk_ - 1) / chunk_;
    wide_ = wide_ || chunks_ * batches_ * m_ * n_ > INT32_MAX; // the partial sums
  }
}

int64_t anchor_emitter::largest_steps() const {
  int64_t longest = s_.block.steps;
  for (const auto& b : s_.alternatives) longest = std::max(longest, b.steps);
  return longest;
}

bool anchor_emitter::divides(int64_t extent, int64_t triton_block::*size) const {
  bool whole = extent % (s_.block.*size) == 0;
  for (const auto& b : s_.alternatives) whole = whole && extent % (b.*size) == 0;
  return whole;
}

std::string anchor_emitter::mask(const std::string& index, int64_t extent, int64_t triton_block::*size) const {
  return divides(extent, size) ? "" : index + " < " + number(extent);
}

void anchor_emitter::tiles() {
  const auto wide = [&](const std::string& e) { return wide_ ? "(" + e + ").to(tl.int64)" : e; };
  v_.line("program = tl.program_id(0)");
  if (residues_ > 1) {
    v_.line("residue = program % " + number(residues_));
    v_.line("program = program // " + number(residues_));
  }
  v_.line("tiles_m = (" + number(m_) + " + BLOCK_M - 1) // BLOCK_M");
  v_.line("tiles_n = (" + number(n_) + " + BLOCK_N - 1) // BLOCK_N");
  v_.line("tile = program % (tiles_m * tiles_n)");
  if (batches_ * chunks_ > 1) v_.line("outer = program // (tiles_m * tiles_n)");
  if (c_.op == operation::matmul && s_.group > 1 && m_ > s_.block.lanes) {
    v_.line("# " + number(s_.group) + " rows of tiles at a time: programs that run together share rows and columns in the L2 cache");
    v_.line("group = tile // (" + number(s_.group) + " * tiles_n)");
    v_.line("rows_here = tl.minimum(tiles_m - group * " + number(s_.group) + ", " + number(s_.group) + ")");
    v_.line("tile_m = group * " + number(s_.group) + " + tile % (" + number(s_.group) + " * tiles_n) % rows_here");
    v_.line("tile_n = tile % (" + number(s_.group) + " * tiles_n) // rows_here");
  } else {
    v_.line("tile_m = tile % tiles_m");
    v_.line("tile_n = tile // tiles_m");
  }
  if (chunks_ > 1) {
    v_.line("chunk = outer % " + number(chunks_));
    if (batches_ > 1) v_.line("batch = " + wide("outer // " + number(chunks_)));
  } else if (batches_ > 1) {
    v_.line("batch = " + wide("outer"));
  }
  v_.line("m = " + wide("tile_m * BLOCK_M + tl.arange(0, BLOCK_M)"));
  v_.line("n = " + wide("tile_n * BLOCK_N + tl.arange(0, BLOCK_N)"));
  bind_batch(v_, "");
}

/// Axes of the batch, from the number `batch`.
void anchor_emitter::bind_batch(triton_values& v, const std::string& mask) {
  int64_t inside = batches_;
  for (int a : c_.batch) {
    if (extent(a) == 1) {
      v.bind_axis(a, "0");
      continue;
    }
    inside /= extent(a);
    const std::string name = "b" + number(a);
    std::string text = inside > 1 ? "batch // " + number(inside) : "batch";
    if (inside * extent(a) < batches_) text += " % " + number(extent(a));
    v.line(name + " = " + text);
    v.bind_axis(a, name, mask);
  }
}

std::string anchor_emitter::base(int buffer, index_form f) {
  std::erase_if(f.terms, [&](const auto& t) { return std::find(c_.batch.begin(), c_.batch.end(), t.first) == c_.batch.end(); });
  const auto at = v_.index(f);
  return v_.pointer(buffer) + (at == "0" ? "" : " + " + at);
}

void anchor_emitter::load_tile(const std::string& name, const std::string& at, const std::vector<std::string>& masks, bool transposed) {
  std::string mask;
  for (const auto& m : masks)
    if (!m.empty()) mask += (mask.empty() ? "(" : " & (") + m + ")";
  const std::string text = "tl.load(" + at + (mask.empty() ? "" : ", mask=" + mask + ", other=0.0") + ")" + (widens_ ? ".to(tl.float32)" : "");
  v_.line(name + " = " + (transposed ? "tl.trans(" + text + ")" : text));
}

void anchor_emitter::load_columns(const std::string& at, const std::vector<std::string>& masks, bool transposed) {
  if (!split_) return load_tile("columns", at, masks, transposed);
  load_tile("columns_part", at, masks, transposed);
  load_tile("columns_rest", at + " + " + number(packed_half_), masks, transposed);
}

/// Tensor cores cut what they add to a sum instead of rounding it, so that errors add up with the length of a sum: where a product is to be as good as float32's own, each
/// step sums for itself, its small parts first, and is added to the rest in float32.
void anchor_emitter::dot() {
  const auto add = [&](const std::string& to, const std::string& rows, const std::string& columns, const std::string& sum, const std::string& precision) {
    v_.line(to + " = tl.dot(" + rows + ", " + columns + (sum.empty() ? "" : ", " + sum) + ", input_precision=\"" + precision + "\")");
  };
  if (halves_) return v_.line("acc = tl.dot(rows, columns, acc)"); // products of half types are exact in float32, in which tensor cores add them up
  if (s_.precision == "tf32") {
    v_.line("rows = " + rounded("rows"));
    if (!(c_.op == operation::matmul ? laid_out_ : packs())) v_.line("columns = " + rounded("columns")); // else a kernel of its own has
  }
  if (s_.precision != "tf32x3") return add("acc", "rows", "columns", "acc", s_.precision);
  v_.use_helper("tf32_part");
  v_.use_helper("tf32_rest");
  for (const std::string side : {"rows", "columns"}) {
    if (split_ && side == "columns") continue; // a kernel of its own has split it
    v_.line(side + "_part = tf32_part(" + side + ")");
    v_.line(side + "_rest = tf32_rest(" + side + ", " + side + "_part)");
  }
  add("part", "rows_rest", "columns_part", "", "tf32");
  add("part", "rows_part", "columns_rest", "part", "tf32");
  add("part", "rows_part", "columns_part", "part", "tf32");
  v_.line("acc += part");
}

/// Tensor cores cut a float32 factor to TF32, which is three times as wrong as rounding it, and wrong to one side.
std::string anchor_emitter::rounded(const std::string& values) {
  const std::string helper = c_.rounding == tf32_rounding::even ? "tf32_even" : "tf32_part";
  v_.use_helper(helper);
  return helper + "(" + values + ")";
}

void anchor_emitter::lay_out(triton_kernel& k, const std::string& kernel, int buffer, int64_t elements, int64_t programs, const std::string& end) {
  const auto& from = p_.buffers[static_cast<size_t>(buffer)];
  const bool once = from.kind == buffer_kind::param;
  const std::string to = (once ? "self." : "") + std::string("packed") + kept_;
  (once ? k.setup : k.launch) += to + " = torch.empty(" + number(elements) + ", dtype=" + (halves_ ? triton_values::torch_name(from.dtype) : "torch.float32") + ", device=" + from.name + ".device)\n" + kernel + "[(" + number(programs) +
                                 ",)](" + from.name + ", " + to + end + ")\n";
  extra_.push_back({"packed_ptr", to});
}

void anchor_emitter::begin_sum() {
  v_.line(columns_are_m_ ? "acc = tl.zeros((BLOCK_N, BLOCK_M), dtype=tl.float32)" : "acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)");
}

void anchor_emitter::finish() {
  if (columns_are_m_) v_.line("acc = tl.trans(acc)"); // what follows has n last: neighbouring threads store neighbours
  if (chunks_ > 1) {
    v_.line("# the sum of this part of k; " + name_ + "_sum adds the parts up, always in one order");
    const std::string row = batches_ > 1 ? "((chunk * " + number(batches_) + " + batch) * " + number(m_) + " + m[:, None])"
                                         : "(chunk * " + number(m_) + " + m[:, None])";
    std::string mask = m_mask();
    if (const auto n = n_mask(); !n.empty()) mask = mask.empty() ? n : "(" + mask + ") & (" + n + ")";
    v_.line("tl.store(partial_ptr + " + row + " * " + number(n_) + " + n[None, :], acc" + (mask.empty() ? "" : ", mask=" + mask) + ")");
    return;
  }
  v_.bind_axis(c_.m[0], "m[:, None]", m_mask());
  if (dims_.empty() || !c_.strided_store()) v_.bind_axis(c_.n[0], "n[None, :]", n_mask());
  else bind_strided_pixels();
  v_.bind(anchor_expression(), "acc");
  // Of a choice between a sum and something else ptxas 12.8 narrows the sum before it has waited for the matrix units; past a branch it does not (decision 0089).
  const bool chooses = std::any_of(r_.exprs.begin(), r_.exprs.end(), [](const expr& e) { return e.op == operation::select; });
  const bool apart = halves_ && chooses;
  if (apart) v_.open("if tl.program_id(0) < tl.num_programs(0):  # always; what the compiler cannot know");
  for (const auto& s : r_.stores) store_tile(s);
  if (apart) v_.close();
}

/// As triton_values::store(), for a whole tile also where the tensor has one row or one column only.
void anchor_emitter::store_tile(const store& s) {
  uint32_t rows = 0, columns = 0, used = 0;
  for (int a : c_.m) rows |= 1u << a;
  for (int a : c_.n) columns |= 1u << a;
  for (const auto& t : s.at.terms) used |= 1u << t.first;
  auto index = v_.index(s.at);
  if (!(used & rows)) index += " + m[:, None]";
  if (!(used & columns)) index += " + n[None, :]";
  const auto value = v_.value(s.value);
  v_.line(v_.store_text(v_.pointer(s.buffer), index, value, v_.mask(used | rows | columns)));
}

int anchor_emitter::anchor_expression() const {
  for (size_t i = 0; i < r_.exprs.size(); ++i)
    if (r_.exprs[i].kind == expr_kind::anchor) return static_cast<int>(i);
  return -1;
}

std::string anchor_emitter::parameters(const triton_values& v, const std::string& more) const {
  std::string text;
  for (int b : v.buffers()) text += p_.buffers[static_cast<size_t>(b)].name + "_ptr, ";
  for (const auto& [name, argument] : extra_) text += name + ", ";
  return text + more;
}

std::string anchor_emitter::arguments(const triton_values& v) const {
  std::vector<std::string> all;
  for (int b : v.buffers()) all.push_back(p_.buffers[static_cast<size_t>(b)].name);
  for (const auto& [name, argument] : extra_) all.push_back(argument);
  return join(all, ", ");
}

std::string anchor_emitter::grid() const {
  const int64_t outer = batches_ * chunks_ * residues_;
  if (s_.alternatives.empty()) {
    const auto parts = [](int64_t n, int64_t block) { return (n + block - 1) / block; };
    return "(" + number(outer * parts(m_, s_.block.lanes) * parts(n_, s_.block.columns)) + ",)";
  }
  return "lambda meta: (" + number(outer) + " * triton.cdiv(" + number(m_) + ", meta[\"BLOCK_M\"]) * triton.cdiv(" + number(n_) + ", meta[\"BLOCK_N\"]),)";
}

/// Adds up the chunks' sums and computes what follows, element by element.
void anchor_emitter::combine(triton_kernel& k) {
  triton_values v(p_, r_);
  const int64_t elements = batches_ * m_ * n_;
  const bool whole = elements % sum_block == 0;
  const std::string mask = whole ? "" : "e < " + number(elements);
  v.line("e = tl.program_id(0)" + std::string(wide_ ? ".to(tl.int64)" : "") + " * BLOCK + tl.arange(0, BLOCK)");
  v.line("acc = tl.zeros((BLOCK,), dtype=tl.float32)");
  v.open("for chunk in range(0, " + number(chunks_) + "):");
  v.line("acc += tl.load(partial_ptr + " + std::string(wide_ ? "chunk.to(tl.int64)" : "chunk") + " * " + number(elements) + " + e" + (whole ? "" : ", mask=" + mask + ", other=0.0") + ")");
  v.close();
  v.line("n = e % " + number(n_));
  v.line("m = e // " + number(n_) + (batches_ > 1 ? " % " + number(m_) : ""));
  if (batches_ > 1) v.line("batch = e // " + number(m_ * n_));
  bind_batch(v, mask); // of elements that do not exist the batch does not exist either
  v.bind_axis(c_.m[0], "m", mask);
  v.bind_axis(c_.n[0], "n", mask);
  v.bind(anchor_expression(), "acc");
  for (const auto& s : r_.stores) v.store(s);
  k.helpers.insert(v.helpers().begin(), v.helpers().end());
  k.name = name_ + "_sum";
  k.text += "\n\n@triton.jit\ndef " + k.name + "(" + parameters(v, "partial_ptr, BLOCK: tl.constexpr") + "):\n" + v.text();
  const auto given = arguments(v);
  k.launch += k.name + "[(" + number((elements + sum_block - 1) / sum_block) + ",)](" + given + (given.empty() ? "" : ", ") + "partial" + suffix_ + ", BLOCK=" +
              number(sum_block) + ")\n";
}

triton_kernel anchor_emitter::kernel() {
  triton_kernel k;
  k.name = name_;
  tiles();
  if (c_.op == operation::matmul) {
    if (laid_out_) lay_out_factor(k);
    matmul();
  } else {
    if (packs()) pack_weights(k);
    convolution();
  }
  finish();
  k.helpers.insert(v_.helpers().begin(), v_.helpers().end());
  const std::string partial = chunks_ > 1 ? "partial_ptr, " : "";
  k.text += triton_decorators(s_, block_names) + "def " + name_ + "(" + parameters(v_, partial + "BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_N: tl.constexpr") +
            "):\n    # " + description() + "\n" + (split_ || (!halves_ && s_.precision == "tf32x3") ? split_comment : "") + v_.text();
  if (chunks_ > 1)
    k.launch += "partial" + suffix_ + " = torch.empty(" + number(chunks_ * batches_ * m_ * n_) + ", dtype=torch.float32, device=" +
                p_.buffers[static_cast<size_t>(r_.stores[0].buffer)].name + ".device)\n";
  k.launch += name_ + "[" + grid() + "](" + arguments(v_) + (chunks_ > 1 ? ", partial" + suffix_ : "") + triton_launch_end(s_, block_names) + "\n";
  extra_.clear(); // packed weights are of the first kernel only
  if (chunks_ > 1) combine(k);
  return k;
}

std::string anchor_emitter::description() const {
  const std::string what = c_.op == operation::matmul ? "matrix product" : c_.transposed ? "transposed convolution" : "convolution";
  std::string text = what + ", m x n x k = " + number(m_) + " x " + number(n_) + " x " + number(k_);
  if (batches_ > 1) text += ", " + number(batches_) + " of them";
  if (residues_ > 1) text += ", for each of " + number(residues_) + " residues of output positions";
  if (chunks_ > 1) text += ", k in " + number(chunks_) + " parts";
  return text;
}

triton_kernel emit_triton_anchor(const loop_program& program, const region& r, const triton_region_schedule& s, size_t number, size_t kept) {
  return anchor_emitter(program, r, s, number, kept).kernel();
}

} // namespace pragma::synthesis
