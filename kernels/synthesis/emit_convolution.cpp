// Convolutions as matrix products: m are the output channels of a group, n the output pixels of one image, k the input
// channels times taps. The image is copied once with its border of zeros; patches are packed from the copy. The outputs of a
// strided transposed convolution fall into phases, each a plain correlation with the taps that reach it: nothing is
// multiplied by inserted zeros and nothing is added up in memory.
#include "kernels/synthesis/anchors.hpp"
#include "kernels/synthesis/emit_region.hpp"

#include <algorithm>

namespace pragma::synthesis {

namespace {

std::string number(int64_t n) { return std::to_string(n); }

/// The copy of an image: how far each dimension is padded, and the strides of the copy.
struct padded_image {
  int64_t before[3] = {0, 0, 0}, extent[3] = {1, 1, 1}, stride[3] = {0, 0, 1};
  int64_t step = 1;      ///< of the last dimension in the convolution: columns of one residue lie side by side
  int64_t lane_row = 1;  ///< elements of one residue
  int64_t channel = 1;
  int64_t at(size_t d, int64_t position) const {
    if (d < 2) return position * stride[d];
    return position % step * lane_row + position / step;
  }
};

/// Output pixels of one residue in planes and rows. Those of all residues in columns belong to it, each with taps of its own:
/// they are computed side by side and interleaved when they are stored.
struct phase {
  std::vector<int32_t> image, weight; ///< per tap
  std::vector<int64_t> taps;          ///< how many each residue of columns has
  int64_t count[3] = {1, 1, 1}, first[3] = {0, 0, 0};
};

} // namespace

void region_emitter::convolution_loops() {
  const auto& c = *r_.anchor;
  const auto& b = s_.block;
  const auto size = size_of_contraction(r_);
  const int64_t columns = int64_t{b.vectors} * all_.lanes, m_all = rounded_up(size.m, b.rows);

  // Three dimensions always; the leading ones may be of extent 1.
  image_dim dims[3];
  for (size_t i = 0; i < c.dims.size(); ++i) dims[3 - c.dims.size() + i] = c.dims[i];
  std::vector<phase_dim> by_dim[3];
  padded_image image;
  image.step = c.transposed ? 1 : dims[2].stride;
  for (size_t d = 0; d < 3; ++d) {
    by_dim[d] = phases_of(dims[d].in, dims[d].out, dims[d].kernel, dims[d].stride, dims[d].padding, dims[d].dilation, c.transposed);
    int64_t low = 0, high = dims[d].in - 1;
    for (const auto& p : by_dim[d])
      for (const auto& [tap, offset] : p.taps) {
        low = std::min(low, offset);
        high = std::max(high, offset + (p.count - 1) * (c.transposed ? 1 : dims[d].stride));
      }
    image.before[d] = -low;
    image.extent[d] = high - low + 1;
  }
  image.lane_row = (image.extent[2] + image.step - 1) / image.step;
  image.stride[1] = image.lane_row * image.step;
  image.stride[0] = image.stride[1] * image.extent[1];
  image.channel = image.stride[0] * image.extent[0];

  const int64_t tap_stride[3] = {dims[0].tap_axis < 0 ? 0 : c.a_at.coefficient(dims[0].tap_axis),
                                 dims[1].tap_axis < 0 ? 0 : c.a_at.coefficient(dims[1].tap_axis), c.a_at.coefficient(dims[2].tap_axis)};
  std::vector<phase> phases;
  for (const auto& p0 : by_dim[0])
    for (const auto& p1 : by_dim[1]) {
      phase p;
      const phase_dim* parts[3] = {&p0, &p1, &by_dim[2][0]};
      for (size_t d = 0; d < 3; ++d) {
        p.count[d] = parts[d]->count;
        p.first[d] = parts[d]->first;
      }
      for (const auto& p2 : by_dim[2]) {
        p.taps.push_back(static_cast<int64_t>(p0.taps.size() * p1.taps.size() * p2.taps.size()));
        for (const auto& [k0, i0] : p0.taps)
          for (const auto& [k1, i1] : p1.taps)
            for (const auto& [k2, i2] : p2.taps) {
              p.image.push_back(static_cast<int32_t>(image.at(0, i0 + image.before[0]) + image.at(1, i1 + image.before[1]) + image.at(2, i2 + image.before[2])));
              p.weight.push_back(static_cast<int32_t>(k0 * tap_stride[0] + k1 * tap_stride[1] + k2 * tap_stride[2]));
            }
      }
      phases.push_back(std::move(p));
    }
  const bool strided = c.strided_store();
  const int64_t residues = static_cast<int64_t>(by_dim[2].size());
  int64_t taps = 0;
  for (const auto& p : phases) taps += static_cast<int64_t>(p.image.size());

  const auto table = [&](const std::string& name, auto member) {
    std::string text = "constexpr int32_t " + name + "[] = {";
    bool first = true;
    for (const auto& p : phases)
      for (auto v : p.*member) {
        text += (first ? "" : ", ") + number(v);
        first = false;
      }
    line(text + (first ? "0};" : "};"));
  };
  line("// Taps: where each meets the padded image and where its weight lies.");
  table("tap_image", &phase::image);
  table("tap_weight", &phase::weight);
  int64_t out_stride[3] = {0, 0, 0};
  const auto& where = r_.stores[0].at;
  for (size_t d = 0; d < 3; ++d) out_stride[d] = dims[d].out_axis < 0 || !strided ? 0 : where.coefficient(dims[d].out_axis);
  if (strided) {
    line("// Output pixels whose planes and rows are equal modulo the strides form a phase; SX pixels of a row lie side by side.");
    line("constexpr int SX = " + number(residues) + ";");
    line("struct phase { int64_t tap[SX], taps[SX], planes, rows, columns, out; };");
    std::string text = "constexpr phase phases[] = {";
    int64_t tap = 0;
    for (size_t i = 0; i < phases.size(); ++i) {
      const auto& p = phases[i];
      std::string first, count;
      for (auto n : p.taps) {
        first += (first.empty() ? "" : ", ") + number(tap);
        count += (count.empty() ? "" : ", ") + number(n);
        tap += n;
      }
      text += std::string(i ? ", " : "") + "{{" + first + "}, {" + count + "}, " + number(p.count[0]) + ", " + number(p.count[1]) + ", " + number(p.count[2]) + ", " +
              number(p.first[0] * out_stride[0] + p.first[1] * out_stride[1]) + "}";
    }
    line(text + "};");
  }
  const int64_t channels = size.channels, k_all = channels * taps;
  const int64_t block_channels = std::max<int64_t>(1, b.k / std::max<int64_t>(1, size.taps));
  const bool several_k = block_channels < channels, several_m = b.m < size.m, several_n = strided ? false : b.n < size.n;

  // Loops that the weights depend on (groups) lie outside, so that they are packed once.
  std::vector<int> outside, inside;
  for (int a : c.batch) (c.a_at.coefficient(a) != 0 ? outside : inside).push_back(a);
  int64_t longest = 1;
  for (const auto& p : phases)
    for (auto n : p.taps) longest = std::max(longest, n);
  const int64_t n_block = partial_columns();
  const bool parallel_outside = batch_count(outside) >= 2 * all_.threads;
  const std::string weights_type = all_.threads > 1 && !parallel_outside ? "alignas(64) static float weights[" + number(m_all * k_all) + "];" : "";
  if (weights_type.empty()) scratch("weights", std::max<int64_t>(1, m_all * k_all));
  else line(weights_type);
  scratch("image", channels * image.channel + 4 * columns + 2 * image.stride[1]);
  scratch("b_panels", residues * longest * std::min(block_channels, channels) * (several_m ? n_block : columns));
  if (several_k) scratch("partial", residues * m_all * n_block);
  if (gathers_lines()) scratch("lines", rounded_up(b.m, b.rows) * n_block);

  open_batch(outside, parallel_outside);
  // weights: channel blocks of panels, phase after phase
  const auto base = [&](int buffer, index_form f) {
    std::erase_if(f.terms, [&](const auto& t) {
      const auto& x = r_.axes[static_cast<size_t>(t.first)];
      return x.contracted || t.first == c.m[0];
    });
    return address(buffer, f, true);
  };
  const std::string p_tap = strided ? "p.tap[x]" : "0", p_taps = strided ? "p.taps[x]" : number(taps);
  const auto open_phase = [&] { if (strided) open("for (const auto& p : phases) {"); };
  const auto open_channels = [&] {
    if (several_k) {
      open("for (int64_t k0 = 0; k0 < " + number(channels) + "; k0 += " + number(block_channels) + ") {");
      line("const int64_t channels = std::min<int64_t>(" + number(block_channels) + ", " + number(channels) + " - k0)" +
           (strided ? ";" : ", depth = channels * " + p_taps + ";"));
    } else {
      line("constexpr int64_t k0 = 0, channels = " + number(channels) + (strided ? ";" : ", depth = channels * " + p_taps + ";"));
    }
  };
  const std::string weights_at = "weights + (" + (strided ? number(channels) + " * p.tap[x] + " : std::string()) + "k0 * " + p_taps + ") * " + number(m_all) + " + m * " +
                                 (strided ? "channels * p.taps[x]" : "depth");
  open_phase();
  if (!strided && !several_k) open("{");
  open_channels();
  if (strided) line("for (int x = 0; x < SX; ++x)");
  if (strided) indent_ += 2;
  line("for (int64_t m = 0; m < " + number(size.m) + "; m += MR)");
  indent_ += 2;
  line("pack_weights<MR>(" + weights_at + ", " + base(c.a, c.a_at) + " + m * " + number(c.a_at.coefficient(c.m[0])) + " + k0 * " +
       number(c.a_at.coefficient(c.k)) + ", " + number(size.m) + " - m, " + number(c.a_at.coefficient(c.m[0])) + ", channels, " +
       number(c.a_at.coefficient(c.k)) + ", tap_weight + " + p_tap + ", " + p_taps + ");");
  indent_ -= strided ? 4 : 2;
  if (several_k) close();
  if (strided || !several_k) close();

  open_batch(inside, !parallel_outside);
  // the image with its border, which stays zero from the start
  line("// the image, inside of a border of zeros" + std::string(image.step > 1 ? "; every " + number(image.step) + " columns side by side" : ""));
  const int64_t in_stride[3] = {dims[0].in_axis < 0 ? 0 : c.b_at.coefficient(dims[0].in_axis), dims[1].in_axis < 0 ? 0 : c.b_at.coefficient(dims[1].in_axis),
                                c.b_at.coefficient(dims[2].in_axis)};
  open("for (int64_t c = 0; c < " + number(channels) + "; ++c) {");
  std::string to = "image + c * " + number(image.channel), from = base(c.b, c.b_at) + " + c * " + number(c.b_at.coefficient(c.k));
  int loops = 1;
  for (size_t d = 0; d < 2; ++d) {
    const std::string v = d == 0 ? "z" : "y";
    if (dims[d].in > 1) {
      open("for (int64_t " + v + " = 0; " + v + " < " + number(dims[d].in) + "; ++" + v + ") {");
      ++loops;
      to += " + (" + v + " + " + number(image.before[d]) + ") * " + number(image.stride[d]);
      from += " + " + v + " * " + number(in_stride[d]);
    } else if (image.before[d] > 0) {
      to += " + " + number(image.before[d] * image.stride[d]);
    }
  }
  if (image.step == 1) {
    line("copy_row<" + number(in_stride[2]) + ">(" + to + " + " + number(image.before[2]) + ", " + from + ", " + number(dims[2].in) + ");");
  } else {
    open("for (int64_t r = 0; r < " + number(image.step) + "; ++r) {");
    line("const int64_t begin = (r + " + number(image.step * image.before[2]) + " - " + number(image.before[2]) + ") % " + number(image.step) + ";");
    line("float* lane = " + to + " + r * " + number(image.lane_row) + ";");
    line("for (int64_t x = begin; x < " + number(dims[2].in) + "; x += " + number(image.step) + ") lane[(x + " + number(image.before[2]) + ") / " +
         number(image.step) + "] = (" + from + ")[x * " + number(in_stride[2]) + "];");
    close();
  }
  for (int i = 0; i < loops; ++i) close();

  open_phase();
  if (strided) {
    line("const int64_t columns = p.planes * p.rows * p.columns;");
    line("const grid pixels{p.planes, p.rows, p.columns, " + number(image.stride[0]) + ", " + number(image.stride[1]) + ", 1};");
  } else {
    const int64_t s0 = c.transposed ? 1 : dims[0].stride, s1 = c.transposed ? 1 : dims[1].stride;
    line("const grid pixels{" + number(dims[0].out) + ", " + number(dims[1].out) + ", " + number(dims[2].out) + ", " + number(s0 * image.stride[0]) + ", " +
         number(s1 * image.stride[1]) + ", 1};");
  }
  if (!strided && !gathers_lines()) finish_tile();
  if (several_k) line("constexpr int64_t steps = " + number(channels) + ";");
  if (several_n) {
    open("for (int64_t n0 = 0; n0 < " + number(size.n) + "; n0 += " + number(b.n) + ") {");
    line("const int64_t n1 = std::min<int64_t>(n0 + " + number(b.n) + ", " + number(size.n) + ");");
  } else {
    line(std::string(strided ? "const" : "constexpr") + " int64_t n0 = 0, n1 = " + (strided ? "columns" : number(size.n)) + ";");
  }
  open_channels();
  if (several_m) {
    open("for (int64_t m0 = 0; m0 < " + number(size.m) + "; m0 += " + number(b.m) + ") {");
    line("const int64_t m1 = std::min<int64_t>(m0 + " + number(b.m) + ", " + number(size.m) + ");");
  }
  if (gathers_lines()) finish_tile();
  open("for (int64_t n = n0; n < n1; n += NR) {");
  const std::string patches = "image + k0 * " + number(image.channel) + ", at, channels, " + number(image.channel) + ", tap_image + " + p_tap + ", " + p_taps + ");";
  if (strided) {
    const std::string panel = number(longest * std::min(block_channels, channels));
    line("constexpr int64_t panel = " + panel + " * NR;");
    line(std::string("float* b = b_panels") + (several_m ? " + (n - n0) / NR * SX * panel;" : ";"));
    open(several_m ? "if (m0 == 0) {" : "{");
    line("const pixel_places<NR> at(n, pixels);");
    line("for (int x = 0; x < SX; ++x) pack_patches(b + x * panel, " + patches);
    close();
    line("const row_runs<NR> runs(n, pixels, " + number(out_stride[0] * dims[0].stride) + ", " + number(out_stride[1] * dims[1].stride) + ", SX, " + number(dims[2].out) + ");");
    finish_tile();
    open("for (int64_t m = " + std::string(several_m ? "m0" : "0") + "; m < " + (several_m ? "m1" : number(size.m)) + "; m += MR) {");
    line("vf tile[SX][MR][NR / W];");
    open("for (int x = 0; x < SX; ++x) {");
    line("multiply_tile(channels * p.taps[x], " + weights_at + ", b + x * panel, tile[x]);");
    if (several_k) {
      line("float* partial_tile = partial + SX * (m * " + number(n_block) + " + (n - n0) * MR) + x * MR * NR;");
      line("if (k0 > 0) add_partial(tile[x], partial_tile);");
      line("if (k0 + channels < steps) keep_partial(tile[x], partial_tile);");
    }
    close();
    line(std::string(several_k ? "if (k0 + channels >= steps) " : "") + "finish(tile, m, n);");
    close();
  } else {
    line(std::string("float* b = b_panels") + (several_m ? " + (n - n0) * depth;" : ";"));
    open(several_m ? "if (m0 == 0) {" : "{");
    line("const pixel_places<NR> at(n, pixels);");
    line("pack_patches(b, " + patches);
    close();
    tile_loop(weights_at);
  }
  close();
  if (gathers_lines()) stream_lines();
  if (several_m) close();
  if (several_k) close();
  if (several_n) close();
  if (strided) close();
  follow();
  for (size_t i = 0; i < inside.size(); ++i) close();
  for (size_t i = 0; i < outside.size(); ++i) close();
}

} // namespace pragma::synthesis
