// Matrix products as Triton text: the loop over k. An operand is loaded in the order in which memory holds it and turned in
// the kernel where needed, so that neighbouring threads read neighbouring elements in every layout.
#include "kernels/synthesis/anchors.hpp"
#include "kernels/synthesis/triton_anchor.hpp"

namespace pragma::synthesis {

namespace {

std::string number(int64_t n) { return std::to_string(n); }

std::string times(const std::string& what, int64_t factor) { return factor == 1 ? what : what + " * " + number(factor); }

} // namespace

void anchor_emitter::matmul() {
  const int64_t a_m = c_.a_at.coefficient(c_.m[0]), a_k = c_.a_at.coefficient(c_.k), b_k = c_.b_at.coefficient(c_.k), b_n = c_.b_at.coefficient(c_.n[0]);
  const bool a_turned = a_m == 1 && a_k != 1, b_turned = b_k == 1 && b_n != 1; // memory runs along the other axis
  v_.line("k = tl.arange(0, BLOCK_K)");
  v_.line("a_at = " + base(c_.a, c_.a_at) + " + " +
          (a_turned ? times("k[:, None]", a_k) + " + " + times("m[None, :]", a_m) : times("m[:, None]", a_m) + " + " + times("k[None, :]", a_k)));
  v_.line("b_at = " + base(c_.b, c_.b_at) + " + " +
          (b_turned ? times("n[:, None]", b_n) + " + " + times("k[None, :]", b_k) : times("k[:, None]", b_k) + " + " + times("n[None, :]", b_n)));
  v_.line("acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)");

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
  const bool m_whole = m_mask().empty(), n_whole = n_mask().empty();
  const auto step = [&](bool last) {
    const std::string first_k = last && peeled ? "rest" : "k0", at_k = wide_ && !(last && peeled) ? "k0.to(tl.int64)" : first_k;
    const std::string left = last ? "k[AXIS] < " + number(k_) + " - " + first_k : "";
    const auto along = [](std::string mask, bool row) {
      if (const auto i = mask.find("[AXIS]"); i != std::string::npos) mask.replace(i, 6, row ? "[None, :]" : "[:, None]");
      return mask;
    };
    load_tile("a", "a_at + " + times(at_k, a_k), {m_whole ? "" : along("m[AXIS] < " + number(m_), a_turned), along(left, !a_turned)}, a_turned);
    load_tile("b", "b_at + " + times(at_k, b_k), {along(left, b_turned), n_whole ? "" : along("n[AXIS] < " + number(n_), !b_turned)}, b_turned);
    dot();
  };
  v_.open("for k0 in range(" + first + ", " + (peeled ? number(k_) + " // BLOCK_K * BLOCK_K" : end) + ", BLOCK_K):");
  step(!whole && !peeled);
  v_.close();
  if (peeled) {
    v_.line("rest = " + number(k_) + " // BLOCK_K * BLOCK_K");
    step(true);
  }
}

} // namespace pragma::synthesis
