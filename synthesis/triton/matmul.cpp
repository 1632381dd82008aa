// Matrix products as Triton text: the loop over k. A factor is loaded in the order in which memory holds it and turned in the
// kernel where needed, so that neighbouring threads read neighbouring elements in every layout.
#include "synthesis/loops/anchors.hpp"
#include "synthesis/triton/anchor.hpp"

namespace pragma::synthesis {

namespace {

constexpr int64_t split_outer = 64, split_k = 32; ///< tile of the kernel that splits a factor

std::string number(int64_t n) { return std::to_string(n); }

std::string times(const std::string& what, int64_t factor) { return factor == 1 ? what : what + " * " + number(factor); }

} // namespace

int64_t anchor_emitter::batches_of(const factor& f) const {
  int64_t n = 1;
  for (int a : c_.batch)
    if (f.at.coefficient(a) != 0) n *= extent(a);
  return n;
}

void anchor_emitter::plan_matmul() {
  rows_ = {c_.a, c_.a_at, c_.m[0], "m", m_, &triton_block::lanes};
  columns_ = {c_.b, c_.b_at, c_.n[0], "n", n_, &triton_block::columns};
  const auto kept = [&](const factor& f) { return p_.buffers[static_cast<size_t>(f.buffer)].kind == buffer_kind::param; };
  split_ = !halves_ && s_.precision == "tf32x3" && s_.split_first;
  laid_out_ = split_ || (!halves_ && s_.precision == "tf32" && (kept(rows_) || kept(columns_)));
  if (!laid_out_) return;
  // The factor that costs less to lay out anew becomes the second: a parameter nothing, else the smaller one.
  const auto elements = [&](const factor& f) {
    return kept(f) ? 0 : batches_of(f) * f.extent * k_;
  };
  if (elements(rows_) < elements(columns_)) {
    std::swap(rows_, columns_);
    columns_are_m_ = true;
  }
  packed_k_ = rounded_up(k_, std::max(largest_steps(), split_k));
  packed_half_ = batches_of(columns_) * columns_.extent * packed_k_;
}

bool anchor_emitter::along_k(const factor& f, bool rows) const {
  const int64_t outer = f.at.coefficient(f.outer), k = f.at.coefficient(c_.k);
  return rows ? outer != 1 || k == 1 : k == 1 && outer != 1;
}

/// `rest`: what is left of k from k0 on, where less than a step is.
void anchor_emitter::load_factor(const factor& f, bool rows, const std::string& k0, const std::string& rest) {
  const bool packed = laid_out_ && !rows, turned = packed || along_k(f, rows);
  const int64_t k_stride = packed ? 1 : f.at.coefficient(c_.k);
  const std::string name = rows ? "rows" : "columns", index = f.index + (turned ? "[:, None]" : "[None, :]");
  const std::string k_left = rest.empty() || packed ? "" : std::string(turned ? "k[None, :]" : "k[:, None]") + " < " + rest;
  const auto at = name + "_at + " + times(k0, k_stride), left = mask(index, f.extent, f.size);
  if (rows) load_tile(name, at, {left, k_left}, !turned);
  else load_columns(at, {left, k_left}, turned);
}

void anchor_emitter::matmul() {
  v_.line("k = tl.arange(0, BLOCK_K)");
  for (const bool rows : {true, false}) {
    const auto& f = rows ? rows_ : columns_;
    const bool packed = laid_out_ && !rows, turned = packed || along_k(f, rows);
    const int64_t outer = packed ? packed_k_ : f.at.coefficient(f.outer), step = packed ? 1 : f.at.coefficient(c_.k);
    std::string from = packed ? "packed_ptr" : base(f.buffer, f.at);
    if (int64_t inside = packed ? batches_of(f) : 1; inside > 1)
      for (int a : c_.batch)
        if (f.at.coefficient(a) != 0 && extent(a) > 1) {
          inside /= extent(a);
          from += " + b" + number(a) + " * " + number(inside * f.extent * packed_k_);
        }
    v_.line(std::string(rows ? "rows" : "columns") + "_at = " + from + " + " +
            (turned ? times(f.index + "[:, None]", outer) + " + " + times("k[None, :]", step) : times("k[:, None]", step) + " + " + times(f.index + "[None, :]", outer)));
  }
  begin_sum();

  std::string first = "0", end = number(k_);
  if (chunks_ > 1) {
    first = "chunk * " + number(chunk_);
    v_.line("end = tl.minimum((chunk + 1) * " + number(chunk_) + ", " + number(k_) + ")");
    end = "end";
  }
  if (const auto half = triangle_of(r_)) {
    v_.line(std::string("# tiles ") + (half->upper ? "below" : "above") + " the diagonal are zeros");
    const std::string d = half->diagonal == 0 ? "" : " + " + number(half->diagonal);
    v_.line("needed = " + (half->upper ? "(tile_n + 1) * BLOCK_N > tile_m * BLOCK_M" + d : "tile_n * BLOCK_N < (tile_m + 1) * BLOCK_M" + d));
    v_.line("end = tl.where(needed, " + end + ", 0)");
    end = "end";
  }
  const bool whole = divides(k_, &triton_block::steps), peeled = !whole && end != "end";
  const auto step = [&](const std::string& k0, const std::string& rest) {
    load_factor(rows_, true, k0, rest);
    load_factor(columns_, false, k0, rest);
    dot();
  };
  v_.open("for k0 in range(" + first + ", " + (peeled ? number(k_) + " // BLOCK_K * BLOCK_K" : end) + ", BLOCK_K):");
  step(wide_ ? "k0.to(tl.int64)" : "k0", whole || peeled ? "" : number(k_) + " - k0");
  v_.close();
  if (peeled) {
    v_.line("rest = " + number(k_) + " // BLOCK_K * BLOCK_K");
    step("rest", number(k_) + " - rest");
  }
}

/// Writes the second factor as [batch, column, k], rounded or in two parts, k filled up with zeros.
void anchor_emitter::lay_out_factor(triton_kernel& k) {
  const auto& f = columns_;
  const auto& from = p_.buffers[static_cast<size_t>(f.buffer)];
  const int64_t tiles_k = packed_k_ / split_k, tiles = (f.extent + split_outer - 1) / split_outer, batches = batches_of(f);
  const int64_t outer = f.at.coefficient(f.outer), step = f.at.coefficient(c_.k);
  const auto wide = [&](const std::string& e) { return wide_ ? "(" + e + ").to(tl.int64)" : e; };
  const bool turned = outer == 1 && step != 1; // neighbours in memory are columns
  const std::string name = name_ + (split_ ? "_split" : "_round");
  std::string text = "@triton.jit\ndef " + name + "(" + from.name + "_ptr, packed_ptr, OUTER: tl.constexpr, BLOCK_K: tl.constexpr):\n";
  text += std::string("    # one factor as [batch, column, k], ") + (split_ ? "in two parts" : "rounded to TF32") + "\n    program = tl.program_id(0)\n";
  text += "    k = " + wide("program % " + number(tiles_k) + " * BLOCK_K + tl.arange(0, BLOCK_K)") + "\n";
  text += "    outer = " + wide("program // " + number(tiles_k) + (batches > 1 ? " % " + number(tiles) : "") + " * OUTER + tl.arange(0, OUTER)") + "\n";
  std::string base = from.name + "_ptr";
  if (f.at.offset != 0) base += " + " + number(f.at.offset);
  if (batches > 1) {
    text += "    batch = " + wide("program // " + number(tiles_k * tiles)) + "\n";
    int64_t inside = batches;
    for (int a : c_.batch) {
      if (f.at.coefficient(a) == 0 || extent(a) == 1) continue;
      inside /= extent(a);
      base += " + " + times("(batch // " + number(inside) + " % " + number(extent(a)) + ")", f.at.coefficient(a));
    }
  }
  const bool rows_whole = f.extent % split_outer == 0, k_whole = k_ % split_k == 0;
  const std::string o = turned ? "outer[None, :]" : "outer[:, None]", along = turned ? "k[:, None]" : "k[None, :]";
  std::string mask = rows_whole ? "" : "(" + o + " < " + number(f.extent) + ")";
  if (!k_whole || packed_k_ > k_) mask += (mask.empty() ? "" : " & ") + std::string("(") + along + " < " + number(k_) + ")";
  const std::string load = "tl.load(" + base + " + " + times(o, outer) + " + " + times(along, step) + (mask.empty() ? "" : ", mask=" + mask + ", other=0.0") + ")" + (widens_ ? ".to(tl.float32)" : "");
  text += "    value = " + (turned ? "tl.trans(" + load + ")" : load) + "\n    part = " + (split_ ? "tf32_part(value)" : rounded("value")) + "\n";
  const std::string row = batches > 1 ? "(batch * " + number(f.extent) + " + outer[:, None])" : "outer[:, None]";
  text += "    at = packed_ptr + " + row + " * " + number(packed_k_) + " + k[None, :]\n";
  const std::string inside = rows_whole ? "" : ", mask=(outer[:, None] < " + number(f.extent) + ") & (k[None, :] < " + number(packed_k_) + ")";
  text += "    tl.store(at, part" + inside + ")\n";
  if (split_) text += "    tl.store(at + " + number(packed_half_) + ", tf32_rest(value, part)" + inside + ")\n";
  k.text += text + "\n\n";
  lay_out(k, name, f.buffer, (split_ ? 2 : 1) * packed_half_, tiles_k * tiles * batches, ", OUTER=" + number(split_outer) + ", BLOCK_K=" + number(split_k));
}

} // namespace pragma::synthesis
