// Contractions as text: blocks for the caches, packed panels, a register tile, and what follows on each tile. The order of
// loops is Goto's; every operand layout differs in its packing only. Convolutions are in emit_convolution.cpp.
#include "kernels/synthesis/anchors.hpp"
#include "kernels/synthesis/emit_region.hpp"

#include <algorithm>

namespace pragma::synthesis {

namespace {

std::string number(int64_t n) { return std::to_string(n); }

} // namespace

void region_emitter::scratch(const std::string& name, int64_t elements) {
  line(std::string("alignas(64) static ") + (all_.threads > 1 ? "thread_local " : "") + "float " + name + "[" + number(elements) + "];");
}

int64_t region_emitter::batch_count(const std::vector<int>& axes) const {
  int64_t n = 1;
  for (int a : axes) n *= extent(a);
  return n;
}

void region_emitter::open_batch(const std::vector<int>& axes, bool parallel) {
  if (parallel && all_.threads > 1 && !axes.empty())
    line("#pragma omp parallel for num_threads(threads) schedule(static)" + (axes.size() > 1 ? " collapse(" + number(static_cast<int64_t>(axes.size())) + ")" : ""));
  for (int a : axes) open("for (int64_t " + var(a) + " = 0; " + var(a) + " < " + number(extent(a)) + "; ++" + var(a) + ") {");
}

void region_emitter::anchor() {
  line("constexpr int MR = " + number(s_.block.rows) + ", NR = " + number(s_.block.vectors) + " * W; // tile in registers: rows x columns");
  if (r_.anchor->op == "matmul") matmul_loops();
  else convolution_loops();
}

void region_emitter::follow() {
  size_t begin = 0;
  while (begin < followers_.size()) {
    const auto end = followers_.find('\n', begin);
    const auto text = followers_.substr(begin, end - begin);
    if (!text.empty()) out_ << (text[0] == '#' ? "" : std::string(static_cast<size_t>(indent_ - 2), ' ')) << text << "\n";
    begin = end == std::string::npos ? followers_.size() : end + 1;
  }
}

/// What follows the contraction, row by row of a tile. `sum` is the contraction's vector.
void region_emitter::finish_tile() {
  const auto& c = *r_.anchor;
  const auto size = size_of_contraction(r_);
  const bool strided = c.strided_store();
  const std::string m = var(c.m[0]);
  open(std::string("const auto finish = [&](const vf (&tile)") + (strided ? "[SX]" : "") + "[MR][NR / W], int64_t m, " + (strided ? "int64_t" : "int64_t n") +
       ") __attribute__((always_inline)) {");
  open("for (int r = 0; r < MR" + (size.m % s_.block.rows == 0 ? "" : " && m + r < " + number(size.m)) + "; ++r) {");
  line("[[maybe_unused]] const int64_t " + m + " = m + r;");
  in_elements_ = false;
  named_values(0);
  std::vector<int> roots;
  for (const auto& s : r_.stores) roots.push_back(s.value);
  if (strided) { // nothing that follows depends on the column
    line("vf line[SX][NR / W];");
    open("for (int x = 0; x < SX; ++x)");
    open("for (int t = 0; t < NR / W; ++t) {");
    line("const vf sum = tile[x][r][t];");
    line("[[maybe_unused]] constexpr all_lanes lanes{};");
    element_values(roots, false);
    line("line[x][t] = " + ref(r_.stores[0].value) + ";");
    in_elements_ = false;
    close();
    indent_ -= 2;
    index_form fixed = r_.stores[0].at;
    std::erase_if(fixed.terms, [&](const auto& t) { return std::find(c.n.begin(), c.n.end(), t.first) != c.n.end(); });
    line("store_interleaved(" + address(r_.stores[0].buffer, fixed, true) + " + p.out, line, runs);");
    close();
    close("};");
    return;
  }
  open(std::string("const auto columns_at = [&](int64_t i, vf sum, auto lanes) __attribute__((always_inline)) {"));
  element_values(roots, false);
  if (gathers_lines()) {
    const std::string row = s_.block.m < size.m ? "(" + m + " - m0)" : m;
    line("store(lines + " + row + " * " + number(partial_columns()) + " + (i - n0), " + ref(r_.stores[0].value) + ", lanes);");
  } else {
    for (const auto& s : r_.stores) store_value(s, true);
  }
  in_elements_ = false;
  close("};");
  const int64_t tail = size.n % all_.lanes, columns = int64_t{s_.block.vectors} * all_.lanes;
  const bool ragged = size.n % columns != 0;
  const std::string end = number(size.n);
  if (size.n >= columns) {
    open(ragged ? "if (n + NR <= " + end + ") {" : "{");
    line("for (int t = 0; t < NR / W; ++t) columns_at(n + t * W, tile[r][t], all_lanes{});");
    if (ragged) line("continue;");
    close();
  }
  if (ragged) {
    open("for (int t = 0; t < NR / W; ++t) {");
    line("const int64_t i = n + t * W;");
    if (size.n >= all_.lanes) line("if (i + W <= " + end + ") columns_at(i, tile[r][t], all_lanes{});");
    if (tail && size.n >= all_.lanes) line("else if (i < " + end + ") columns_at(i, tile[r][t], some_lanes<" + number(tail) + ">{});");
    else if (tail) line("if (i < " + end + ") columns_at(i, tile[r][t], some_lanes<" + number(tail) + ">{});");
    close();
  }
  close();
  close("};");
}

void region_emitter::stream_lines() {
  const auto size = size_of_contraction(r_);
  const auto& c = *r_.anchor;
  auto fixed = r_.stores[0].at;
  std::erase_if(fixed.terms, [&](const auto& t) { return t.first == c.m[0] || t.first == c.n[0]; });
  const bool convolution = c.op == "convolution", blocks = s_.block.m < size.m;
  const bool several = convolution ? s_.block.k / size.taps < size.channels : s_.block.k < size.k;
  const std::string row = number(r_.stores[0].at.coefficient(c.m[0]));
  line(std::string(several ? "if (k0 + " + std::string(convolution ? "channels" : "depth") + " >= steps) " : "") + "stream_rows(" +
       address(r_.stores[0].buffer, fixed, true) + (blocks ? " + m0 * " + row : "") + " + n0, " + row + ", lines, " + number(partial_columns()) + ", " +
       (blocks ? "m1 - m0" : number(size.m)) + ", n1 - n0);");
}

int64_t region_emitter::partial_columns() const {
  const int64_t columns = int64_t{s_.block.vectors} * all_.lanes;
  if (!r_.anchor->strided_store()) return rounded_up(s_.block.n, columns);
  int64_t n = 1; // the largest phase
  for (const auto& d : r_.anchor->dims) n *= (d.out + d.stride - 1) / d.stride;
  return rounded_up(n, columns);
}

/// `panels`: address of the first panel of a of this block.
void region_emitter::tile_loop(const std::string& panels) {
  const auto size = size_of_contraction(r_);
  const auto& b = s_.block;
  const bool convolution = r_.anchor->op == "convolution"; // k counts channels there
  const bool several = convolution ? b.k / size.taps < size.channels : b.k < size.k, blocks = b.m < size.m;
  open("for (int64_t m = " + std::string(blocks ? "m0" : "0") + "; m < " + (blocks ? "m1" : number(size.m)) + "; m += MR) {");
  const auto half = triangle_of(r_);
  const std::string guarded = half ? "if (needed) " : "";
  if (half) {
    const std::string d = number(half->diagonal);
    line("// tiles " + std::string(half->upper ? "below" : "above") + " the diagonal are zeros");
    line("const bool needed = " + (half->upper ? "n + NR > m + " + d : "n < m + MR + " + d) + ";");
  }
  line(std::string("vf tile[MR][NR / W]") + (half ? " = {};" : ";"));
  line(guarded + "multiply_tile(depth, " + panels + ", b, tile);");
  if (several) {
    line("float* partial_tile = partial + m * " + number(partial_columns()) + " + (n - n0) * MR;");
    line("if (k0 > 0" + std::string(half ? " && needed" : "") + ") add_partial(tile, partial_tile);");
    const std::string last = std::string("k0 + ") + (convolution ? "channels" : "depth") + " >= steps";
    line("if (" + last + ") finish(tile, m, n);");
    line(std::string("else ") + guarded + "keep_partial(tile, partial_tile);");
  } else {
    line("finish(tile, m, n);");
  }
  close();
}

void region_emitter::matmul_loops() {
  const auto& c = *r_.anchor;
  const auto& b = s_.block;
  const auto size = size_of_contraction(r_);
  const int64_t columns = int64_t{b.vectors} * all_.lanes;
  const int64_t m_all = rounded_up(size.m, b.rows);
  const bool several_k = b.k < size.k, several_m = b.m < size.m, several_n = b.n < size.n;
  const bool whole = b.whole || several_n;
  // Loops that a depends on lie outside, so that it is packed once.
  std::vector<int> outside, inside;
  for (int a : c.batch) (c.a_at.coefficient(a) != 0 ? outside : inside).push_back(a);
  const bool parallel_outside = batch_count(outside) >= 2 * all_.threads;
  const bool parallel_inside = !parallel_outside && batch_count(inside) >= 2 * all_.threads;
  const bool parallel_columns = all_.threads > 1 && !parallel_outside && !parallel_inside && several_n;
  if (all_.threads > 1 && whole && !parallel_outside) line("alignas(64) static float a_panels[" + number(m_all * size.k + all_.lanes) + "];");
  else scratch("a_panels", whole ? m_all * size.k + all_.lanes : rounded_up(b.m, b.rows) * b.k + all_.lanes);
  scratch("b_panels", b.k * (several_m ? rounded_up(b.n, columns) : columns));
  if (several_k) scratch("partial", m_all * rounded_up(b.n, columns));
  if (gathers_lines()) scratch("lines", rounded_up(b.m, b.rows) * partial_columns());

  const auto strides = [&](const index_form& f, int axis) { return number(f.coefficient(axis)); };
  const auto base = [&](int buffer, index_form f) {
    std::erase_if(f.terms, [&](const auto& t) { return t.first == c.k || t.first == c.m[0] || t.first == c.n[0]; });
    return address(buffer, f, true);
  };
  const auto pack_a = [&](const std::string& to, const std::string& depth, const std::string& from_k) {
    line("pack_rows<MR, " + strides(c.a_at, c.m[0]) + ", " + strides(c.a_at, c.k) + ">(" + to + ", " + base(c.a, c.a_at) + " + " +
         strides(c.a_at, c.m[0]) + " * m + " + strides(c.a_at, c.k) + " * " + from_k + ", " + number(size.m) + " - m, " + depth + ");");
  };
  open_batch(outside, parallel_outside);
  if (whole) {
    if (several_k) {
      open("for (int64_t k0 = 0; k0 < " + number(size.k) + "; k0 += " + number(b.k) + ") {");
      line("const int64_t depth = std::min<int64_t>(" + number(b.k) + ", " + number(size.k) + " - k0);");
      line("for (int64_t m = 0; m < " + number(size.m) + "; m += MR)");
      indent_ += 2;
      pack_a("a_panels + k0 * " + number(m_all) + " + m * depth", "depth", "k0");
      indent_ -= 2;
      close();
    } else {
      line("for (int64_t m = 0; m < " + number(size.m) + "; m += MR)");
      indent_ += 2;
      pack_a("a_panels + m * " + number(size.k), number(size.k), "0");
      indent_ -= 2;
    }
  }
  open_batch(inside, parallel_inside);
  if (!gathers_lines()) finish_tile();
  if (several_k) line("constexpr int64_t steps = " + number(size.k) + ";");
  if (parallel_columns) line("#pragma omp parallel for num_threads(threads) schedule(static)");
  if (several_n) {
    open("for (int64_t n0 = 0; n0 < " + number(size.n) + "; n0 += " + number(b.n) + ") {");
    line("const int64_t n1 = std::min<int64_t>(n0 + " + number(b.n) + ", " + number(size.n) + ");");
  } else {
    line("constexpr int64_t n0 = 0, n1 = " + number(size.n) + ";");
  }
  if (several_k) {
    open("for (int64_t k0 = 0; k0 < steps; k0 += " + number(b.k) + ") {");
    line("const int64_t depth = std::min<int64_t>(" + number(b.k) + ", steps - k0);");
  } else {
    line("constexpr int64_t k0 = 0, depth = " + number(size.k) + ";");
  }
  if (several_m) {
    open("for (int64_t m0 = 0; m0 < " + number(size.m) + "; m0 += " + number(b.m) + ") {");
    line("const int64_t m1 = std::min<int64_t>(m0 + " + number(b.m) + ", " + number(size.m) + ");");
  }
  if (!whole) {
    line("for (int64_t m = " + std::string(several_m ? "m0" : "0") + "; m < " + (several_m ? "m1" : number(size.m)) + "; m += MR)");
    indent_ += 2;
    pack_a(std::string("a_panels + ") + (several_m ? "(m - m0)" : "m") + " * depth", "depth", "k0");
    indent_ -= 2;
  }
  if (gathers_lines()) finish_tile();
  open("for (int64_t n = n0; n < n1; n += NR) {");
  line(std::string("float* b = b_panels") + (several_m ? " + (n - n0) * depth;" : ";"));
  line(std::string(several_m ? "if (m0 == 0) " : "") + "pack_columns<NR, " + strides(c.b_at, c.n[0]) + ", " + strides(c.b_at, c.k) + ">(b, " +
       base(c.b, c.b_at) + " + " + strides(c.b_at, c.n[0]) + " * n + " + strides(c.b_at, c.k) + " * k0, " + number(size.n) + " - n, depth);");
  tile_loop(whole ? "a_panels + k0 * " + number(m_all) + " + m * depth" : std::string("a_panels + ") + (several_m ? "(m - m0)" : "m") + " * depth");
  close();
  if (gathers_lines()) stream_lines();
  if (several_m) close();
  if (several_k) close();
  if (several_n) close();
  follow();
  for (size_t i = 0; i < inside.size(); ++i) close();
  for (size_t i = 0; i < outside.size(); ++i) close();
}

} // namespace pragma::synthesis
