#include "synthesis/cpp/convolution.hpp"

#include <algorithm>

namespace pragma::synthesis {

void convolution_writer::table(const std::string& name, std::vector<int32_t> convolution_phase::*member) {
  std::vector<int32_t> all;
  for (const auto& p : image_.phases) all.insert(all.end(), (p.*member).begin(), (p.*member).end());
  if (all.empty()) all.push_back(0);
  out_.line("constexpr int32_t {}[] = {{{}}};", name, fmt::join(all, ", "));
}

void convolution_writer::tables() {
  out_.comment("Taps: where each meets the padded image and where its weight lies.");
  table("tap_image", &convolution_phase::image);
  table("tap_weight", &convolution_phase::weight);
  if (plan_.strided) phases();
  if (!skips_rows_) return;
  std::vector<std::string> rows;
  for (const auto& r : image_.phases[0].rows) rows.push_back(fmt::format("{{{}, {}, {}, {}}}", r.begin[0], r.end[0], r.begin[1], r.end[1]));
  out_.use("met_rows");
  out_.line("constexpr tap_row tap_rows[] = {{{}}};", fmt::join(rows, ", "));
}

void convolution_writer::phases() {
  out_.comment("Output pixels whose planes and rows are equal modulo the strides form a phase; SX pixels of a row lie side by side.");
  out_.line("constexpr int SX = {};", image_.residues);
  out_.line("struct phase {{ int64_t tap[SX], taps[SX], planes, rows, columns, out; }};");
  std::vector<std::string> rows;
  int64_t tap = 0;
  for (const auto& p : image_.phases) {
    std::vector<int64_t> first;
    for (auto n : p.taps) {
      first.push_back(tap);
      tap += n;
    }
    const int64_t out = p.first[0] * image_.out_stride[0] + p.first[1] * image_.out_stride[1];
    rows.push_back(fmt::format("{{{{{}}}, {{{}}}, {}, {}, {}, {}}}", fmt::join(first, ", "), fmt::join(p.taps, ", "), p.count[0], p.count[1], p.count[2], out));
  }
  out_.line("constexpr phase phases[] = {{{}}};", fmt::join(rows, ", "));
}

void convolution_writer::allocate() {
  const int64_t all_weights = plan_.all_rows * plan_.size.channels * image_.taps;
  if (all_.threads > 1 && !plan_.parallel_outside) shared_scratch("weights", all_weights);
  else scratch("weights", std::max<int64_t>(1, all_weights));
  const int64_t image = plan_.size.channels * image_.image.channel + 4 * plan_.tile_columns + 2 * image_.image.stride[1];
  if (shares_columns_) shared_scratch("image", image);
  else scratch("image", image);
  scratch("b_panels", image_.residues * image_.longest * channels_of_block() * (plan_.several_m ? plan_.block_columns : plan_.tile_columns));
  if (plan_.several_k) scratch("partial", image_.residues * plan_.all_rows * plan_.block_columns);
  if (plan_.gathers_lines) scratch("lines", rounded_up(s_.block.m, s_.block.rows) * plan_.block_columns);
}

std::string convolution_writer::base(int buffer, const index_form& f) const {
  std::vector<int> gone{c_.m[0]};
  for (size_t a = 0; a < r_.axes.size(); ++a)
    if (r_.axes[a].contracted) gone.push_back(static_cast<int>(a));
  return values_.address(buffer, without(f, gone));
}

void convolution_writer::open_channels() {
  const auto depth = plan_.strided ? std::string() : fmt::format(", depth = channels * {}", taps());
  const int64_t channels = plan_.size.channels;
  if (plan_.several_k) {
    out_.block("for (int64_t k0 = 0; k0 < {}; k0 += {})", channels, plan_.block_steps);
    out_.line("const int64_t channels = least<int64_t>({}, {} - k0){};", plan_.block_steps, channels, depth);
  } else {
    out_.line("constexpr int64_t k0 = 0, channels = {}{};", channels, depth);
  }
}

std::string convolution_writer::weights_at() const {
  const auto phase = plan_.strided ? fmt::format("{} * p.tap[x] + ", plan_.size.channels) : "";
  return fmt::format("weights + ({}k0 * {}) * {} + m * {}", phase, taps(), plan_.all_rows, plan_.strided ? "channels * p.taps[x]" : "depth");
}

/// Channel blocks of panels, phase after phase.
void convolution_writer::pack_weights() {
  const bool scope = !plan_.strided && !plan_.several_k;
  open_phase();
  if (scope) out_.block();
  open_channels();
  if (plan_.strided) out_.head("for (int x = 0; x < SX; ++x)");
  share();
  out_.head("for (int64_t m = 0; m < {}; m += MR)", plan_.size.m);
  const int64_t row = c_.a_at.coefficient(c_.m[0]), channel = c_.a_at.coefficient(c_.k);
  if (skips_rows_) out_.head("for (int64_t r = 0; r < {}; ++r)", image_.phases[0].rows.size());
  const auto to = weights_at() + (skips_rows_ ? fmt::format(" + r * channels * {} * MR", taps_of_row()) : "");
  out_.line("{}<MR>({}, {} + m * {} + k0 * {}, {} - m, {}, channels, {}, tap_weight + {}, {});", out_.use("pack_weights"), to, base(c_.a, c_.a_at), row, channel,
            plan_.size.m, row, channel, skips_rows_ ? fmt::format("r * {}", taps_of_row()) : first_tap(), taps_of_row());
  if (skips_rows_) out_.end();
  out_.end();
  if (plan_.strided) out_.end();
  if (plan_.several_k) out_.close();
  if (scope) out_.close();
  close_phase();
}

/// The image with its border, which stays zero from the start.
void convolution_writer::copy_image() {
  const auto& image = image_.image;
  out_.comment("the image, inside of a border of zeros{}", image.step > 1 ? fmt::format("; every {} columns side by side", image.step) : "");
  share();
  out_.block("for (int64_t c = 0; c < {}; ++c)", plan_.size.channels);
  auto to = fmt::format("image + c * {}", image.channel), from = fmt::format("{} + c * {}", base(c_.b, c_.b_at), c_.b_at.coefficient(c_.k));
  int opened = 1;
  for (size_t d = 0; d < 2; ++d) {
    const char v = d == 0 ? 'z' : 'y';
    if (image_.dims[d].in > 1) {
      out_.block("for (int64_t {0} = 0; {0} < {1}; ++{0})", v, image_.dims[d].in);
      ++opened;
      to += fmt::format(" + ({} + {}) * {}", v, image.before[d], image.stride[d]);
      from += fmt::format(" + {} * {}", v, image_.in_stride[d]);
    } else if (image.before[d] > 0) {
      to += fmt::format(" + {}", image.before[d] * image.stride[d]);
    }
  }
  copy_row(to, from);
  for (int i = 0; i < opened; ++i) out_.close();
}

void convolution_writer::copy_row(const std::string& to, const std::string& from) {
  const auto& image = image_.image;
  const int64_t before = image.before[2], in = image_.dims[2].in, step = image.step;
  if (step == 1) {
    out_.line("{}<{}>({} + {}, {}, {});", out_.use("copy_row"), image_.in_stride[2], to, before, from, in);
    return;
  }
  out_.block("for (int64_t r = 0; r < {}; ++r)", step);
  out_.line("const int64_t begin = (r + {} - {}) % {};", step * before, before, step);
  out_.line("float* lane = {} + r * {};", to, image.lane_row);
  out_.line("for (int64_t x = begin; x < {}; x += {}) lane[(x + {}) / {}] = ({})[x * {}];", in, step, before, step, from, image_.in_stride[2]);
  out_.close();
}

void convolution_writer::pixels() {
  const auto& stride = image_.image.stride;
  const auto grid = out_.use("grid");
  if (plan_.strided) {
    out_.line("const int64_t columns = p.planes * p.rows * p.columns;");
    out_.line("const {} pixels{{p.planes, p.rows, p.columns, {}, {}, 1}};", grid, stride[0], stride[1]);
  } else {
    const auto& d = image_.dims;
    out_.line("const {} pixels{{{}, {}, {}, {}, {}, 1}};", grid, d[0].out, d[1].out, d[2].out, image_.pixel_step(0) * stride[0], image_.pixel_step(1) * stride[1]);
  }
}

std::string convolution_writer::patches_of() const {
  const int64_t channel = image_.image.channel;
  return fmt::format("image + k0 * {}, at, channels, {}, tap_image + {}, {}", channel, channel, first_tap(), taps_of_row());
}

/// Of few rows, or with 32 registers: the first rows are multiplied with the patches as they lie in the image, which packs these for the others (decisions/0060).
void convolution_writer::patches() {
  constexpr int64_t few_tiles = 4;
  const int64_t tile_rows = s_.block.rows;
  const bool others = plan_.size.m > tile_rows;
  const auto multiply = skips_rows_ ? fmt::format("{}(rows, channels * {}, {}, b, tile);", out_.use("multiply_met"), taps_of_row(), weights_at())
                                 : fmt::format("{}(depth, {}, b, tile);", out_.use("multiply_tile"), weights_at());
  const auto met = skips_rows_ ? ", rows" : "";
  out_.line("float* b = b_panels{};", plan_.several_m ? " + (n - n0) * depth" : "");
  out_.line("const {}<NR> at(n, pixels);", out_.use("pixel_places"));
  if (skips_rows_) out_.line("const {} rows(n, NR, pixels, tap_rows);", out_.use("met_rows"));
  if (all_.lanes < 16 && plan_.size.m > few_tiles * tile_rows) {
    out_.line("{}{}(b, {}{});", plan_.several_m ? "if (m0 == 0) " : "", out_.use("pack_patches"), patches_of(), met);
    tile_loop([&](const std::string&) { out_.line("{}", multiply); });
    return;
  }
  tile_loop([&](const std::string&) {
    out_.line("{}{}<{}>({}, b, {}, tile{});", others ? "if (m == 0) " : "", out_.use("multiply_patches"), others, weights_at(), patches_of(), met);
    if (others) out_.line("else {}", multiply);
  });
}

void convolution_writer::strided_patches() {
  const auto& d = image_.dims;
  out_.line("constexpr int64_t panel = {} * NR;", image_.longest * channels_of_block());
  out_.line("float* b = b_panels{};", plan_.several_m ? " + (n - n0) / NR * SX * panel" : "");
  if (plan_.several_m) out_.block("if (m0 == 0)");
  else out_.block();
  out_.line("const {}<NR> at(n, pixels);", out_.use("pixel_places"));
  out_.line("for (int x = 0; x < SX; ++x) {}(b + x * panel, {});", out_.use("pack_patches"), patches_of());
  out_.close();
  out_.line("const {}<NR> runs(n, pixels, {}, {}, SX, {});", out_.use("row_runs"), image_.out_stride[0] * d[0].stride, image_.out_stride[1] * d[1].stride, d[2].out);
  finish_tile();
  strided_tiles();
}

void convolution_writer::strided_tiles() {
  out_.block("for (int64_t m = {}; m < {}; m += MR)", rows_begin(), rows_end());
  out_.line("vf tile[SX][MR][NR / W];");
  out_.block("for (int x = 0; x < SX; ++x)");
  out_.line("{}(channels * p.taps[x], {}, b + x * panel, tile[x]);", out_.use("multiply_tile"), weights_at());
  if (plan_.several_k) {
    out_.line("float* partial_tile = partial + SX * (m * {} + (n - n0) * MR) + x * MR * NR;", plan_.block_columns);
    out_.line("if (k0 > 0) {}(tile[x], partial_tile);", out_.use("add_partial"));
    out_.line("if (k0 + channels < steps) {}(tile[x], partial_tile);", out_.use("keep_partial"));
  }
  out_.close();
  out_.line("{}finish(tile, m, n);", plan_.several_k ? "if (" + last_steps() + ") " : "");
  out_.close();
}

/// The loop that follows is shared out where pixels are.
void convolution_writer::share() {
  if (shares_columns_) out_.directive("pragma omp parallel for num_threads(threads) schedule(static)");
}

void convolution_writer::loops(const code& followers) {
  shares_columns_ = plan_.shares_columns && followers.empty();
  tables();
  allocate();
  open_batch(plan_.outside, plan_.parallel_outside);
  pack_weights();
  open_batch(plan_.inside, plan_.parallel_inside || (plan_.shares_columns && !shares_columns_));
  copy_image();
  open_phase();
  pixels();
  if (!plan_.strided && !plan_.gathers_lines) finish_tile();
  if (plan_.several_k) out_.line("constexpr int64_t steps = {};", plan_.size.channels);
  if (plan_.strided) out_.line("const int64_t n0 = 0, n1 = columns;");
  else {
    share();
    open_columns();
  }
  open_channels();
  open_rows();
  if (plan_.gathers_lines) finish_tile();
  out_.block("for (int64_t n = n0; n < n1; n += NR)");
  if (plan_.strided) strided_patches();
  else patches();
  out_.close();
  if (plan_.gathers_lines) stream_lines();
  close_rows();
  if (plan_.several_k) out_.close();
  if (plan_.several_n) out_.close();
  close_phase();
  out_.append(followers);
  close_batch(plan_.inside);
  close_batch(plan_.outside);
}

} // namespace pragma::synthesis
