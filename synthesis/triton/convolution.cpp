// Convolutions as Triton text: m are the output channels of a group, n the output pixels of one image, k the input channels
// times taps. Image elements are found by index arithmetic. A strided transposed convolution is computed residue by residue
// of the output position modulo the stride: each is a plain correlation with the taps that reach it.
#include "synthesis/loops/anchors.hpp"
#include "synthesis/triton/anchor.hpp"

#include <algorithm>

namespace pragma::synthesis {

namespace {

constexpr int64_t pack_block = 1024; ///< elements a program of the packing kernel copies

std::string number(int64_t n) { return std::to_string(n); }

std::string times(const std::string& what, int64_t factor) { return factor == 1 ? what : what + " * " + number(factor); }

void add(std::string& sum, const std::string& term) {
  if (term.empty() || term == "0") return;
  sum += (sum.empty() ? "" : " + ") + term;
}

bool all_equal(const std::vector<int64_t>& values) {
  return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == values[0]; });
}

int64_t largest(const std::vector<int64_t>& values) { return *std::max_element(values.begin(), values.end()); }

/// Does some tap meet a position outside of the image?
bool leaves_image(const triton_dim& d) {
  if (d.divisor > 1) return true;
  for (size_t r = 0; r < d.first.size(); ++r)
    for (int64_t j = 0; j < d.taps[r]; ++j)
      for (int64_t pixel : {int64_t{0}, d.pixels - 1}) {
        const int64_t at = pixel * d.in_step + d.origin[r] + j * d.step;
        if (at < 0 || at >= d.of.in) return true;
      }
  return false;
}

} // namespace

std::vector<triton_dim> triton_dims(const contraction& c, bool by_residue) {
  std::vector<triton_dim> dims;
  for (size_t i = 0; i < c.dims.size(); ++i) {
    const auto& x = c.dims[i];
    triton_dim d;
    d.of = x;
    if (!c.transposed || x.stride == 1 || (!by_residue && i + 1 == c.dims.size())) {
      d.pixels = x.out;
      d.first = d.first_tap = {0};
      d.taps = {x.kernel};
      d.origin = {c.transposed ? x.padding : -x.padding};
      d.step = c.transposed ? -x.dilation : x.dilation;
      if (c.transposed) d.divisor = x.stride;
      else d.in_step = x.stride;
    } else {
      const auto phases = phases_of(x.in, x.out, x.kernel, x.stride, x.padding, x.dilation, true);
      d.out_step = x.stride;
      d.step = 0;
      for (const auto& p : phases) {
        d.pixels = std::max(d.pixels, p.count);
        d.first.push_back(p.first);
        d.taps.push_back(static_cast<int64_t>(p.taps.size()));
        d.first_tap.push_back(p.taps.empty() ? 0 : p.taps[0].first);
        d.origin.push_back(p.taps.empty() ? 0 : p.taps[0].second);
        if (p.taps.size() > 1) { // taps that reach one residue are equally far apart, the same in all residues
          d.tap_step = p.taps[1].first - p.taps[0].first;
          d.step = p.taps[1].second - p.taps[0].second;
        }
      }
      for (const auto& p : phases) d.ragged = d.ragged || p.count < d.pixels;
    }
    d.guarded = leaves_image(d);
    dims.push_back(std::move(d));
  }
  return dims;
}

bool steps_within_taps(int64_t channels) { return channels % 16 == 0 || channels >= 64; }

void anchor_emitter::plan_convolution() {
  dims_ = triton_dims(c_, s_.by_residue);
  channels_ = extent(c_.k);
  within_taps_ = steps_within_taps(channels_);
  columns_are_m_ = s_.precision != "ieee";
  k_ = channels_;
  for (const auto& d : dims_) {
    n_ *= d.pixels;
    k_ *= largest(d.taps);
    residues_ *= d.residues();
  }
  split_ = !halves_ && s_.precision == "tf32x3" && s_.split_first && (within_taps_ || residues_ == 1);
  laid_out_ = split_ || (!halves_ && s_.precision == "tf32" && (within_taps_ || residues_ == 1));
  if (!packs()) return;
  packed_k_ = within_taps_ ? channels_ : rounded_up(k_, largest_steps());
  packed_half_ = (c_.group >= 0 ? extent(c_.group) : 1) * m_ * packed_k_ * (within_taps_ ? taps_of_kernel() : 1);
}

int64_t anchor_emitter::taps_of_kernel() const {
  int64_t taps = 1;
  for (const auto& d : dims_) taps *= d.of.kernel;
  return taps;
}

bool anchor_emitter::packs() const { return laid_out_ || (within_taps_ && taps_of_kernel() > 1 && c_.a_at.coefficient(c_.k) != 1); }

std::string anchor_emitter::of_residue(size_t dim, const std::string& what, const std::vector<int64_t>& values) const {
  return all_equal(values) ? number(values[0]) : what + number(static_cast<int64_t>(dim));
}

/// Scalars that differ from residue to residue.
void anchor_emitter::residues() {
  if (residues_ == 1) return;
  v_.line("# output positions equal modulo the strides: which, and the taps that reach them");
  int64_t inside = residues_;
  for (size_t i = 0; i < dims_.size(); ++i) {
    const auto& d = dims_[i];
    if (d.residues() == 1) continue;
    inside /= d.residues();
    v_.line("first" + number(static_cast<int64_t>(i)) + " = residue" + (inside > 1 ? " // " + number(inside) : "") + " % " + number(d.residues()));
    const auto select = [&](const std::string& what, const std::vector<int64_t>& values) {
      if (all_equal(values)) return;
      std::string text = number(values.back());
      for (size_t r = values.size() - 1; r-- > 0;)
        text = "tl.where(first" + number(static_cast<int64_t>(i)) + " == " + number(static_cast<int64_t>(r)) + ", " + number(values[r]) + ", " + text + ")";
      v_.line(what + number(static_cast<int64_t>(i)) + " = " + text);
    };
    select("taps", d.taps);
    select("first_tap", d.first_tap);
    select("origin", d.origin);
  }
}

/// n -> the output pixel in each dimension and where its first tap meets the image.
void anchor_emitter::pixels() {
  int64_t inside = n_;
  std::string place;
  for (size_t i = 0; i < dims_.size(); ++i) {
    const auto& d = dims_[i];
    const std::string id = number(static_cast<int64_t>(i));
    inside /= d.pixels;
    std::string pixel = inside > 1 ? "n // " + number(inside) : "n";
    if (inside * d.pixels < n_) pixel += " % " + number(d.pixels);
    v_.line("pixel" + id + " = " + (d.pixels == 1 ? "n * 0" : pixel));
    const auto origin = of_residue(i, "origin", d.origin);
    v_.line("image" + id + " = " + times("pixel" + id, d.in_step) + (origin == "0" ? "" : " + " + origin));
    if (d.divisor == 1 && d.of.in > 1) add(place, times("image" + id, c_.b_at.coefficient(d.of.in_axis)));
  }
  v_.line("place = " + (place.empty() ? "n * 0" : place));
}

void anchor_emitter::bind_strided_pixels() {
  for (size_t i = 0; i < dims_.size(); ++i) {
    const auto& d = dims_[i];
    const std::string id = number(static_cast<int64_t>(i));
    const auto first = of_residue(i, "first", d.first);
    v_.line("out" + id + " = " + times("pixel" + id, d.out_step) + (first == "0" ? "" : " + " + first));
    const std::string at = "out" + id + "[None, :]";
    if (i + 1 < dims_.size()) {
      v_.bind_axis(d.of.out_axis, at, d.ragged ? at + " < " + number(d.of.out) : "");
      continue;
    }
    std::string mask = n_mask();
    if (d.ragged) mask = (mask.empty() ? "" : "(" + mask + ") & ") + std::string("(") + at + " < " + number(d.of.out) + ")";
    v_.bind_axis(d.of.out_axis, at, mask);
  }
}

/// Coordinates of a tap among those of the residue: "tap0", "tap1"; dimensions with one tap at most have none.
void anchor_emitter::coordinates(const std::string& tap) {
  size_t first = 0; // the outermost dimension that has several
  while (first < dims_.size() && largest(dims_[first].taps) <= 1) ++first;
  std::string inside;
  for (size_t i = dims_.size(); i-- > first;) {
    if (largest(dims_[i].taps) <= 1) continue;
    const auto count = of_residue(i, "taps", dims_[i].taps);
    std::string text = inside.empty() ? tap : tap + " // " + (inside.find('*') != std::string::npos ? "(" + inside + ")" : inside);
    if (i > first) text += " % " + count;
    v_.line("tap" + number(static_cast<int64_t>(i)) + " = " + text);
    inside += (inside.empty() ? "" : " * ") + count;
  }
}

/// Image elements from the first tap of a pixel to this one, in the dimensions whose positions are plain sums.
std::string anchor_emitter::shift() const {
  std::string sum;
  for (size_t i = 0; i < dims_.size(); ++i) {
    const auto& d = dims_[i];
    const int64_t step = d.step * c_.b_at.coefficient(d.of.in_axis);
    if (d.divisor == 1 && largest(d.taps) > 1 && step != 0) add(sum, times("tap" + number(static_cast<int64_t>(i)), step));
  }
  return sum;
}

/// Where the tap's weight lies, for these strides of the weights' taps.
std::string anchor_emitter::weight_of_tap(const std::vector<int64_t>& strides) const {
  std::string sum;
  for (size_t i = 0; i < dims_.size(); ++i) {
    const auto& d = dims_[i];
    if (d.of.kernel == 1 || strides[i] == 0) continue;
    const auto first = of_residue(i, "first_tap", d.first_tap);
    if (first != "0") add(sum, all_equal(d.first_tap) ? number(d.first_tap[0] * strides[i]) : times(first, strides[i]));
    if (largest(d.taps) > 1) add(sum, times("tap" + number(static_cast<int64_t>(i)), d.tap_step * strides[i]));
  }
  return sum;
}

/// Writes the positions of the tap in guarded dimensions; the mask of those inside of the image. `matrix`: taps vary along k.
std::string anchor_emitter::guards(bool matrix) {
  std::string mask;
  for (size_t i = 0; i < dims_.size(); ++i) {
    const auto& d = dims_[i];
    if (!d.guarded) continue;
    const std::string id = number(static_cast<int64_t>(i)), at = "at" + id;
    std::string text = matrix ? "image" + id + "[None, :]" : "image" + id;
    if (largest(d.taps) > 1) text += matrix ? " + (" + times("tap" + id, d.step) + ")[:, None]" : " + " + times("tap" + id, d.step);
    v_.line(at + " = " + text);
    const auto inside = [&](const std::string& what) { mask += (mask.empty() ? "" : " & ") + std::string("(") + what + ")"; };
    if (d.divisor > 1) {
      inside(at + " % " + number(d.divisor) + " == 0");
      v_.line("source" + id + " = " + at + " // " + number(d.divisor));
    }
    inside(at + " >= 0");
    inside((d.divisor > 1 ? "source" + id : at) + " < " + number(d.of.in));
  }
  if (mask.empty()) return "";
  v_.line("inside = " + mask);
  return matrix ? "inside" : "inside[None, :]";
}

/// Image elements of dimensions whose positions are quotients.
std::string anchor_emitter::quotients(bool matrix) const {
  std::string sum;
  for (size_t i = 0; i < dims_.size(); ++i)
    if (dims_[i].divisor > 1 && dims_[i].of.in > 1) {
      const std::string source = "source" + number(static_cast<int64_t>(i));
      add(sum, times(matrix ? source : source + "[None, :]", c_.b_at.coefficient(dims_[i].of.in_axis)));
    }
  return sum;
}

void anchor_emitter::open_steps(const std::string& steps) {
  if (chunks_ == 1) return v_.open("for step in range(0, " + steps + "):");
  const std::string part = "(" + steps + ") * ", of = " // " + number(chunks_);
  v_.open("for step in range(" + part + "chunk" + of + ", " + part + "(chunk + 1)" + of + "):");
}

void anchor_emitter::convolution() {
  residues();
  pixels();
  std::string taps;
  int64_t product = 1;
  for (size_t i = 0; i < dims_.size(); ++i) {
    if (all_equal(dims_[i].taps)) product *= dims_[i].taps[0];
    else taps += (taps.empty() ? "" : " * ") + of_residue(i, "taps", dims_[i].taps);
  }
  if (!taps.empty()) v_.line("taps = " + taps + (product == 1 ? "" : " * " + number(product)));
  taps = taps.empty() ? number(product) : "taps";
  v_.line("image_at = " + base(c_.b, c_.b_at));
  begin_sum();
  v_.line("k = tl.arange(0, BLOCK_K)");
  if (within_taps_) loop_within_taps(taps);
  else loop_over_mixed_taps(taps);
}

/// Pointer to the weights of this program's group, laid out anew or as they are.
std::string anchor_emitter::weights_base() {
  if (!packs()) return base(c_.a, c_.a_at);
  std::string at = "packed_ptr";
  if (c_.group >= 0 && extent(c_.group) > 1) at += " + b" + number(c_.group) + " * " + number(packed_half_ / extent(c_.group));
  return at;
}

/// `along_m`: the tile at that place is [k, m], else [m, k].
void anchor_emitter::load_weights(const std::string& at, const std::vector<std::string>& masks, bool along_m) {
  if (columns_are_m_) load_columns(at, masks, !along_m);
  else load_tile("rows", at, masks, along_m);
}

/// Each step takes BLOCK_K channels of one tap. The image is loaded as memory holds it, pixels side by side.
void anchor_emitter::loop_within_taps(const std::string& taps) {
  const int64_t w_m = packs() ? channels_ : c_.a_at.coefficient(c_.m[0]), w_k = packs() ? 1 : c_.a_at.coefficient(c_.k);
  const bool along_m = w_m == 1 && w_k != 1; // memory runs along the output channels
  const std::string m = along_m ? "m[None, :]" : "m[:, None]", channel = along_m ? "channel[:, None]" : "channel[None, :]";
  const std::string blocks = "((" + number(channels_) + " + BLOCK_K - 1) // BLOCK_K)";
  v_.line("weights_at = " + weights_base());
  open_steps(taps + " * " + blocks);
  v_.line("tap = step // " + blocks);
  v_.line("channel = step % " + blocks + " * BLOCK_K + k");
  coordinates("tap");
  std::vector<int64_t> strides;
  int64_t stride = m_ * channels_;
  for (size_t i = dims_.size(); i-- > 0;) {
    strides.insert(strides.begin(), packs() ? stride : c_.a_at.coefficient(dims_[i].of.tap_axis));
    stride *= dims_[i].of.kernel;
  }
  const auto channels_left = [&](const std::string& index) { return mask(index, channels_, &triton_block::steps); };
  const auto inside = guards(false);
  std::string at = "image_at + " + times("channel[:, None]", c_.b_at.coefficient(c_.k)) + " + place[None, :]";
  if (const auto s = shift(); !s.empty()) at += " + (" + s + ")";
  add(at, quotients(false));
  load_tile(columns_are_m_ ? "rows" : "columns", at, {channels_left("channel[:, None]"), n_mask(), inside}, columns_are_m_);
  at = "weights_at + " + times(m, w_m) + " + " + times(channel, w_k);
  add(at, weight_of_tap(strides));
  load_weights(at, {mask(m, m_, &triton_block::lanes), channels_left(channel)}, along_m);
  dot();
  v_.close();
}

/// Few channels: k counts channels and taps together, so that its steps are full.
void anchor_emitter::loop_over_mixed_taps(const std::string& taps) {
  const int64_t w_m = c_.a_at.coefficient(c_.m[0]), w_k = c_.a_at.coefficient(c_.k);
  v_.line("weights_at = " + weights_base());
  const bool fixed = taps != "taps";
  const std::string count = fixed ? number(k_) : "(taps * " + number(channels_) + ")";
  open_steps("(" + count + " + BLOCK_K - 1) // BLOCK_K");
  v_.line("of_k = step * BLOCK_K + k");
  v_.line("channel = of_k // " + taps);
  v_.line("tap = of_k % " + taps);
  coordinates("tap");
  std::vector<int64_t> strides;
  int64_t stride = 1;
  bool dense = residues_ == 1 && w_k == taps_of_kernel(); // weights lie as k counts
  for (size_t i = dims_.size(); i-- > 0;) {
    strides.insert(strides.begin(), c_.a_at.coefficient(dims_[i].of.tap_axis));
    dense = dense && (dims_[i].of.kernel == 1 || strides[0] == stride);
    stride *= dims_[i].of.kernel;
  }
  const bool whole = fixed && divides(k_, &triton_block::steps);
  const auto k_left = [&](const std::string& index) { return whole ? "" : index + " < " + count; };
  const auto inside = guards(true);
  std::string at = times("channel", c_.b_at.coefficient(c_.k));
  add(at, shift());
  at = "image_at + (" + at + ")[:, None] + place[None, :]";
  add(at, quotients(true));
  load_tile(columns_are_m_ ? "rows" : "columns", at, {k_left("of_k[:, None]"), n_mask(), inside}, columns_are_m_);
  if (packs()) {
    load_weights("weights_at + m[:, None] * " + number(packed_k_) + " + of_k[None, :]", {m_mask()}, false);
  } else {
    at = "of_k[None, :]";
    if (!dense) {
      at = times("channel", w_k);
      add(at, weight_of_tap(strides));
      at = "(" + at + ")[None, :]";
    }
    load_weights("weights_at + " + times("m[:, None]", w_m) + " + " + at, {m_mask(), k_left("of_k[None, :]")}, false);
  }
  dot();
  v_.close();
}

/// Weights as the loop reads them. Parameters do not change, so they are laid out when they are loaded.
void anchor_emitter::pack_weights(triton_kernel& k) {
  const auto& weights = p_.buffers[static_cast<size_t>(c_.a)];
  const int64_t taps = taps_of_kernel(), groups = c_.group >= 0 ? extent(c_.group) : 1;
  const bool whole = packed_half_ % pack_block == 0;
  std::string from = weights.name + "_ptr", mask = whole ? "" : "e < " + number(packed_half_);
  if (c_.a_at.offset != 0) add(from, number(c_.a_at.offset));
  if (groups > 1) add(from, times("e // " + number(packed_half_ / groups), c_.a_at.coefficient(c_.group)));
  std::string tap = "e // " + number(channels_ * m_) + " % " + number(taps), m = "e // " + number(channels_), channel = "e % " + number(channels_);
  if (!within_taps_) {
    tap = "e % " + number(packed_k_) + " % " + number(taps);
    channel = "e % " + number(packed_k_) + " // " + number(taps);
    m = "e // " + number(packed_k_);
    if (packed_k_ > k_) mask = (mask.empty() ? "" : "(" + mask + ") & ") + std::string("(e % ") + number(packed_k_) + " < " + number(k_) + ")";
  }
  int64_t inside = taps;
  for (const auto& d : dims_) {
    inside /= d.of.kernel;
    if (d.of.kernel > 1) add(from, times("(" + tap + ") // " + number(inside) + " % " + number(d.of.kernel), c_.a_at.coefficient(d.of.tap_axis)));
  }
  if (m_ > 1) add(from, times("(" + m + ") % " + number(m_), c_.a_at.coefficient(c_.m[0])));
  add(from, times("(" + channel + ")", c_.a_at.coefficient(c_.k)));
  const std::string inside_mask = whole ? "" : ", mask=e < " + number(packed_half_);
  k.text += "@triton.jit\ndef " + name_ + "_pack(" + weights.name + "_ptr, packed_ptr, BLOCK: tl.constexpr):\n    # weights as " +
            (within_taps_ ? "[group, tap, output channel, input channel]" : "[group, output channel, input channel and tap]") +
            (split_ ? ", in two parts" : s_.precision == "tf32" ? ", rounded to TF32" : "") + "\n    e = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n";
  k.text += "    weight = tl.load(" + from + (mask.empty() ? "" : ", mask=" + mask + ", other=0.0") + ")" + (widens_ ? ".to(tl.float32)" : "") + "\n";
  if (split_) {
    k.text += "    part = tf32_part(weight)\n    tl.store(packed_ptr + e, part" + inside_mask + ")\n    tl.store(packed_ptr + e + " + number(packed_half_) +
              ", tf32_rest(weight, part)" + inside_mask + ")\n\n\n";
  } else {
    k.text += "    tl.store(packed_ptr + e, " + (s_.precision == "tf32" ? rounded("weight") : "weight") + inside_mask + ")\n\n\n";
  }
  lay_out(k, name_ + "_pack", c_.a, packed_half_ * (split_ ? 2 : 1), (packed_half_ + pack_block - 1) / pack_block, ", BLOCK=" + number(pack_block));
}

} // namespace pragma::synthesis
