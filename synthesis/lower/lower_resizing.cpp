// Images of other sizes: pixel shuffles, interpolation, padding by an image's own elements, adaptive pooling to sizes that do not divide.
// Positions and weights are known when the graph is, so they are tables; formulas are Torch's (documentation of nn.functional).
#include "synthesis/lower/lower.hpp"

#include <algorithm>
#include <cmath>

namespace pragma::synthesis {

namespace {

using results = std::vector<int>;

/// The channels of each pixel become a square of pixels, or the reverse.
rule pixel_shuffle(bool reverse) {
  return [reverse](const op_call& c) -> results {
    const int x = c.tensor("self");
    const auto from = c.b.at(x).shape, to = c.result().shape;
    const int64_t r = c.integer(reverse ? "downscale_factor" : "upscale_factor");
    const size_t front = from.size() - 3;
    const auto& few = reverse ? to : from; // the side with few pixels
    std::vector<int64_t> apart(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(front)), order;
    for (size_t i = 0; i < front; ++i) order.push_back(static_cast<int64_t>(i));
    const int64_t channels = few[front] / (r * r), height = few[front + 1], width = few[front + 2];
    if (reverse) apart.insert(apart.end(), {channels, height, r, width, r});
    else apart.insert(apart.end(), {channels, r, r, height, width});
    const auto at = static_cast<int64_t>(front);
    if (reverse) order.insert(order.end(), {at, at + 2, at + 4, at + 1, at + 3});
    else order.insert(order.end(), {at, at + 3, at + 1, at + 4, at + 2});
    return {c.b.reshape(c.b.permute(c.b.reshape(x, apart), order), to)};
  };
}

/// Elements from beyond the edges: those of the edge (`mirrored` false), or those that a mirror on it shows.
rule edge_padding(size_t dims, bool mirrored) {
  return [dims, mirrored](const op_call& c) -> results {
    int x = c.tensor("self");
    const auto pad = c.integers("padding");
    for (size_t i = 0; i < dims && 2 * i + 1 < pad.size(); ++i) { // the last dimension first
      const auto shape = c.b.at(x).shape;
      const auto dim = static_cast<int64_t>(shape.size() - 1 - i);
      const int64_t n = shape[static_cast<size_t>(dim)], low = pad[2 * i], high = pad[2 * i + 1];
      if (low < 0 || high < 0) throw not_lowered{"padding that cuts"};
      const auto part = [&](int64_t first, int64_t count) {
        if (mirrored) return c.b.flip(c.b.slice(x, dim, first, 1, count), {dim});
        auto wide = shape;
        wide[static_cast<size_t>(dim)] = count;
        return c.b.expand(c.b.slice(x, dim, first, 1, 1), wide);
      };
      std::vector<int> parts;
      if (low > 0) parts.push_back(part(mirrored ? 1 : 0, low));
      parts.push_back(x);
      if (high > 0) parts.push_back(part(mirrored ? n - 1 - high : n - 1, high));
      x = c.b.concat(parts, dim);
    }
    return {x};
  };
}

/// For each new position along a dimension: where one of its sources lies, and its weight.
struct tap {
  std::vector<double> place, weight;
};

int sum_of_taps(node_builder& b, int x, int64_t dim, const std::vector<tap>& taps) {
  int sum = -1;
  for (const auto& t : taps) {
    const auto count = static_cast<int64_t>(t.place.size());
    int value = b.take(x, dim, b.table(t.place, dtype::int64, {count}));
    if (!t.weight.empty()) {
      std::vector<int64_t> along(b.at(value).shape.size(), 1);
      along[static_cast<size_t>(dim)] = count;
      value = b.mul(value, b.reshape(b.table(t.weight, b.at(value).dtype, {count}), along));
    }
    sum = sum < 0 ? value : b.add2(sum, value);
  }
  return sum;
}

enum class interpolation { nearest, nearest_exact, linear, cubic };

struct resized_dim {
  int64_t from, to;
  double scale; ///< old positions per new one, where the call says a factor; 0: from / to
  bool corners; ///< the outermost elements stay the outermost
};

std::vector<tap> nearest_taps(const resized_dim& d, bool exact) {
  tap t;
  // Torch finds these positions in float32, with this scale.
  const float scale = d.scale > 0 ? static_cast<float>(d.scale) : static_cast<float>(d.from) / static_cast<float>(d.to);
  for (int64_t i = 0; i < d.to; ++i) {
    const float at = std::floor((static_cast<float>(i) + (exact ? 0.5f : 0.0f)) * scale);
    t.place.push_back(std::min(static_cast<double>(at), static_cast<double>(d.from - 1)));
  }
  return {t};
}

/// Of the third degree with the parameter -3/4, at distances up to 2.
double cubic_weight(double x) {
  constexpr double a = -0.75;
  x = std::fabs(x);
  return x <= 1 ? ((a + 2) * x - (a + 3)) * x * x + 1 : ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

std::vector<tap> smooth_taps(const resized_dim& d, bool cubic) {
  std::vector<tap> taps(cubic ? 4 : 2);
  const double scale = d.corners ? (d.to > 1 ? static_cast<double>(d.from - 1) / static_cast<double>(d.to - 1) : 0)
                       : d.scale > 0 ? d.scale : static_cast<double>(d.from) / static_cast<double>(d.to);
  for (int64_t i = 0; i < d.to; ++i) {
    double at = d.corners ? scale * static_cast<double>(i) : (static_cast<double>(i) + 0.5) * scale - 0.5;
    if (!cubic) at = std::max(at, 0.0);
    const double first = std::floor(at) - (cubic ? 1 : 0);
    for (size_t k = 0; k < taps.size(); ++k) {
      const double place = first + static_cast<double>(k), distance = std::fabs(at - place);
      taps[k].place.push_back(std::clamp(place, 0.0, static_cast<double>(d.from - 1)));
      taps[k].weight.push_back(cubic ? cubic_weight(distance) : 1 - distance);
    }
  }
  return taps;
}

std::vector<double> factors_of(const op_call& c, size_t dims) {
  if (c.has("scale_factors")) return c.node().args.at("scale_factors").get<std::vector<double>>();
  std::vector<double> found;
  const std::vector<const char*> names = dims == 1 ? std::vector{"scales"} : dims == 2 ? std::vector{"scales_h", "scales_w"} : std::vector{"scales_d", "scales_h", "scales_w"};
  for (const char* name : names) found.push_back(c.number(name, 0));
  return found;
}

/// Every element `factor` times side by side along a dimension.
int repeated(node_builder& b, int x, int64_t dim, int64_t factor) {
  auto to = b.at(x).shape;
  const int apart = b.unsqueeze(x, dim + 1);
  auto wide = b.at(apart).shape;
  wide[static_cast<size_t>(dim) + 1] = factor;
  to[static_cast<size_t>(dim)] *= factor;
  return b.reshape(b.expand(apart, wide), to);
}

rule interpolated(interpolation way, size_t dims) {
  return [way, dims](const op_call& c) -> results {
    int x = c.tensor(c.has("input") ? "input" : "self");
    const auto factors = factors_of(c, dims);
    for (size_t i = 0; i < dims; ++i) {
      const size_t dim = c.b.at(x).shape.size() - dims + i;
      const double factor = i < factors.size() ? factors[i] : 0;
      const resized_dim d{c.b.at(x).shape[dim], c.result().shape[dim], factor > 0 ? 1 / factor : 0, c.flag("align_corners")};
      const bool nearest = way == interpolation::nearest || way == interpolation::nearest_exact;
      if (d.from == d.to && (nearest || d.corners || d.scale == 0 || d.scale == 1)) continue;
      if (nearest && d.to % d.from == 0 && (d.scale == 0 || d.scale * static_cast<double>(d.to) == static_cast<double>(d.from)))
        x = repeated(c.b, x, static_cast<int64_t>(dim), d.to / d.from);
      else
        x = sum_of_taps(c.b, x, static_cast<int64_t>(dim), nearest ? nearest_taps(d, way == interpolation::nearest_exact) : smooth_taps(d, way == interpolation::cubic));
    }
    return {x};
  };
}

} // namespace

int adaptive_along(node_builder& b, int x, operation op, int64_t dim, int64_t out) {
  const int64_t in = b.at(x).shape.at(static_cast<size_t>(dim));
  const auto first = [&](int64_t i) { return i * in / out; };
  const auto end = [&](int64_t i) { return ((i + 1) * in + out - 1) / out; };
  int64_t longest = 0;
  for (int64_t i = 0; i < out; ++i) longest = std::max(longest, end(i) - first(i));
  std::vector<double> places, weights;
  for (int64_t i = 0; i < out; ++i)
    for (int64_t k = 0; k < longest; ++k) { // shorter windows meet their last element again, with no weight
      places.push_back(static_cast<double>(std::min(first(i) + k, end(i) - 1)));
      weights.push_back(first(i) + k < end(i) ? 1 / static_cast<double>(end(i) - first(i)) : 0);
    }
  int value = b.take(x, dim, b.table(places, dtype::int64, {out, longest}));
  if (op == operation::sum) {
    std::vector<int64_t> along(b.at(value).shape.size(), 1);
    along[static_cast<size_t>(dim)] = out;
    along[static_cast<size_t>(dim) + 1] = longest;
    value = b.mul(value, b.reshape(b.table(weights, b.at(value).dtype, {out, longest}), along));
  }
  return b.squeeze(b.reduce(op, value, {dim + 1}), {dim + 1});
}

void add_resizing_rules(rule_table& t) {
  t["aten.pixel_shuffle"] = pixel_shuffle(false);
  t["aten.pixel_unshuffle"] = pixel_shuffle(true);
  for (size_t n = 1; n <= 3; ++n) {
    const std::string d = std::to_string(n) + "d";
    t["aten.reflection_pad" + d] = edge_padding(n, true);
    t["aten.replication_pad" + d] = edge_padding(n, false);
    t["aten.upsample_nearest" + d] = interpolated(interpolation::nearest, n);
    t["aten._upsample_nearest_exact" + d] = interpolated(interpolation::nearest_exact, n);
  }
  t["aten.upsample_linear1d"] = interpolated(interpolation::linear, 1);
  t["aten.upsample_bilinear2d"] = interpolated(interpolation::linear, 2);
  t["aten.upsample_trilinear3d"] = interpolated(interpolation::linear, 3);
  t["aten.upsample_bicubic2d"] = interpolated(interpolation::cubic, 2);
}

} // namespace pragma::synthesis
