#include "synthesis/cpp/convolution_plan.hpp"

#include "synthesis/loops/anchors.hpp"

#include <algorithm>

namespace pragma::synthesis {

namespace {

padded_image pad(const convolution_plan& plan, const std::array<std::vector<phase_dim>, 3>& by_dim) {
  padded_image image;
  image.step = plan.pixel_step(2);
  for (size_t d = 0; d < 3; ++d) {
    int64_t low = 0, high = plan.dims[d].in - 1;
    for (const auto& p : by_dim[d])
      for (const auto& [tap, offset] : p.taps) {
        low = std::min(low, offset);
        high = std::max(high, offset + (p.count - 1) * plan.pixel_step(d));
      }
    image.before[d] = -low;
    image.extent[d] = high - low + 1;
  }
  image.lane_row = (image.extent[2] + image.step - 1) / image.step;
  image.stride[1] = image.lane_row * image.step;
  image.stride[0] = image.stride[1] * image.extent[1];
  image.channel = image.stride[0] * image.extent[0];
  return image;
}

/// The pixels, from the first to before the second, that an offset leads to a position of the image.
std::array<int64_t, 2> pixels_inside(const phase_dim& pixels, int64_t offset, int64_t step, int64_t in) {
  const auto at_least = [&](int64_t position) { return std::clamp<int64_t>((position - offset + step - 1) / step, 0, pixels.count); }; // of a negative number the quotient is 0 or less
  return {at_least(0), at_least(in)};
}

convolution_phase phase_of(const phase_dim& planes, const phase_dim& rows, const std::vector<phase_dim>& columns, const convolution_plan& plan,
                           const std::array<int64_t, 3>& tap_stride) {
  const auto& image = plan.image;
  convolution_phase p;
  for (const auto& [k0, i0] : planes.taps)
    for (const auto& [k1, i1] : rows.taps) {
      const auto z = pixels_inside(planes, i0, plan.pixel_step(0), plan.dims[0].in), y = pixels_inside(rows, i1, plan.pixel_step(1), plan.dims[1].in);
      p.rows.push_back({{z[0], y[0]}, {z[1], y[1]}});
    }
  p.count = {planes.count, rows.count, columns[0].count};
  p.first = {planes.first, rows.first, columns[0].first};
  for (const auto& residue : columns) {
    p.taps.push_back(static_cast<int64_t>(planes.taps.size() * rows.taps.size() * residue.taps.size()));
    for (const auto& [k0, i0] : planes.taps)
      for (const auto& [k1, i1] : rows.taps)
        for (const auto& [k2, i2] : residue.taps) {
          const int64_t place = image.at(0, i0 + image.before[0]) + image.at(1, i1 + image.before[1]) + image.at(2, i2 + image.before[2]);
          p.image.push_back(static_cast<int32_t>(place));
          p.weight.push_back(static_cast<int32_t>(k0 * tap_stride[0] + k1 * tap_stride[1] + k2 * tap_stride[2]));
        }
  }
  return p;
}

} // namespace

convolution_plan plan_convolution(const region& r) {
  const auto& c = *r.anchor;
  convolution_plan plan;
  plan.transposed = c.transposed;
  for (size_t i = 0; i < c.dims.size(); ++i) plan.dims[3 - c.dims.size() + i] = c.dims[i];
  std::array<std::vector<phase_dim>, 3> by_dim;
  std::array<int64_t, 3> tap_stride{};
  for (size_t d = 0; d < 3; ++d) {
    const auto& x = plan.dims[d];
    by_dim[d] = phases_of(x.in, x.out, x.kernel, x.stride, x.padding, x.dilation, c.transposed);
    if (x.tap_axis < 0) continue;
    tap_stride[d] = c.a_at.coefficient(x.tap_axis);
    plan.in_stride[d] = c.b_at.coefficient(x.in_axis);
    if (c.strided_store()) plan.out_stride[d] = r.stores[0].at.coefficient(x.out_axis);
  }
  plan.image = pad(plan, by_dim);
  for (const auto& planes : by_dim[0])
    for (const auto& rows : by_dim[1]) plan.phases.push_back(phase_of(planes, rows, by_dim[2], plan, tap_stride));
  plan.residues = static_cast<int64_t>(by_dim[2].size());
  for (const auto& p : plan.phases) {
    plan.taps += static_cast<int64_t>(p.image.size());
    for (auto n : p.taps) plan.longest = std::max(plan.longest, n);
  }
  return plan;
}

double rows_met(const convolution_plan& plan, int64_t tile_pixels) {
  const auto& p = plan.phases[0];
  const int64_t lines = p.count[0] * p.count[1], pixels = lines * p.count[2];
  int64_t met = 0, tiles = 0;
  for (int64_t n = 0; n < pixels; n += tile_pixels, ++tiles) {
    const int64_t begin = n / p.count[2], end = std::min(lines, (n + tile_pixels - 1) / p.count[2] + 1);
    for (const auto& row : p.rows) {
      int64_t line = begin;
      while (line < end && !row.meets(line / p.count[1], line % p.count[1])) ++line;
      met += line < end ? 1 : 0;
    }
  }
  return static_cast<double>(met) / static_cast<double>(tiles * static_cast<int64_t>(p.rows.size()));
}

} // namespace pragma::synthesis
