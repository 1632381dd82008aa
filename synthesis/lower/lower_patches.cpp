// Patches of images as columns, and columns added up to images again (unfold, fold).
#include "synthesis/lower/lower.hpp"

#include <algorithm>

namespace pragma::synthesis {

namespace {

using results = std::vector<int>;
using sizes = std::vector<int64_t>;

constexpr int64_t most_taps = 64; ///< of a patch: each is copied by a region of its own, which walks memory in order

/// One spatial dimension of all patches.
struct patch_dim {
  int64_t kernel, stride, padding, dilation, extent; ///< of the image
  int64_t places() const { return (extent + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1; }
  bool tiles() const { return stride == kernel && dilation == 1 && padding == 0 && extent % kernel == 0; }
};

std::vector<patch_dim> dims_of(const op_call& c, const sizes& image) {
  const auto at = [&](const char* name, size_t d) {
    const auto list = c.integers(name);
    return list.size() == 1 ? list[0] : list.at(d);
  };
  std::vector<patch_dim> dims;
  for (size_t d = 0; d < 2; ++d) dims.push_back({at("kernel_size", d), at("stride", d), at("padding", d), at("dilation", d), image[image.size() - 2 + d]});
  return dims;
}

int padded(node_builder& b, int x, int64_t dim, int64_t by) {
  if (by == 0) return x;
  auto shape = b.at(x).shape;
  shape[static_cast<size_t>(dim)] = by;
  const int zeros = b.constant(0, b.at(x).dtype, shape);
  return b.concat({zeros, x, zeros}, dim);
}

/// Where each tap of each patch lies along a dimension of the padded image: [kernel, places].
int positions(node_builder& b, const patch_dim& d) {
  const sizes shape{d.kernel, d.places()};
  const auto times = [&](int x, int64_t n) { return b.mul(x, b.constant(static_cast<double>(n), dtype::int64)); };
  return b.add2(times(b.convert(b.index(shape, 0), dtype::int64), d.dilation), times(b.convert(b.index(shape, 1), dtype::int64), d.stride));
}

results im2col(const op_call& c) {
  auto& b = c.b;
  int x = c.tensor("self");
  const auto image = b.at(x).shape;
  if (c.result().elements() == 0) throw not_lowered{"no patches"};
  const auto dims = dims_of(c, image);
  const int64_t outer = b.at(x).elements() / (dims[0].extent * dims[1].extent), rows = dims[0].places(), columns = dims[1].places(), taps = dims[0].kernel * dims[1].kernel;
  x = b.reshape(x, {outer, dims[0].extent, dims[1].extent});
  if (dims[0].tiles() && dims[1].tiles()) {
    const int apart = b.reshape(x, {outer, rows, dims[0].kernel, columns, dims[1].kernel});
    return {b.reshape(b.permute(apart, {0, 2, 4, 1, 3}), c.result().shape)};
  }
  for (int64_t d = 0; d < 2; ++d) x = padded(b, x, d + 1, dims[static_cast<size_t>(d)].padding);
  if (taps > most_taps) { // [outer, kernel, rows, kernel, columns]
    const int all = b.take(b.take(x, 2, positions(b, dims[1])), 1, positions(b, dims[0]));
    return {b.reshape(b.permute(all, {0, 1, 3, 2, 4}), c.result().shape)};
  }
  std::vector<int> parts;
  for (int64_t i = 0; i < dims[0].kernel; ++i)
    for (int64_t j = 0; j < dims[1].kernel; ++j)
      parts.push_back(b.unsqueeze(b.slice(b.slice(x, 1, i * dims[0].dilation, dims[0].stride, rows), 2, j * dims[1].dilation, dims[1].stride, columns), 1));
  return {b.reshape(b.concat(parts, 1), c.result().shape)};
}

/// Along a dimension, which patch meets an element of the image with which tap: [kernel, extent]; and whether there is one.
struct meeting {
  int patch, there;
};

meeting meets(node_builder& b, const patch_dim& d) {
  const sizes shape{d.kernel, d.extent};
  const auto whole = [&](int64_t n) { return b.constant(static_cast<double>(n), dtype::int64); };
  const int tap = b.convert(b.index(shape, 0), dtype::int64), element = b.convert(b.index(shape, 1), dtype::int64);
  const int from = b.sub(b.add2(element, whole(d.padding)), b.mul(tap, whole(d.dilation)));
  const auto both = [&](int p, int q) { return b.pointwise(operation::bit_and, dtype::boolean, {p, q}); };
  int there = both(b.compare(operation::greater_equal, from, whole(0)), b.compare(operation::less, from, whole(d.places() * d.stride)));
  int patch = from;
  if (d.stride > 1) {
    patch = b.pointwise(operation::floor_divide, dtype::int64, {from, whole(d.stride)});
    there = both(there, b.compare(operation::equal, b.mul(patch, whole(d.stride)), from));
  }
  return {patch, there};
}

results col2im(const op_call& c) {
  auto& b = c.b;
  const int x = c.tensor("self");
  const auto image = c.result().shape;
  const auto dims = dims_of(c, image);
  if (c.result().elements() == 0 || b.at(x).elements() == 0) throw not_lowered{"no patches"};
  const int64_t outer = c.result().elements() / (dims[0].extent * dims[1].extent), rows = dims[0].places(), columns = dims[1].places();
  if (dims[0].tiles() && dims[1].tiles()) {
    const int apart = b.reshape(x, {outer, dims[0].kernel, dims[1].kernel, rows, columns});
    return {b.reshape(b.permute(apart, {0, 3, 1, 4, 2}), image)};
  }
  const auto down = meets(b, dims[0]), across = meets(b, dims[1]);
  const sizes all{dims[0].kernel, dims[1].kernel, dims[0].extent, dims[1].extent};
  const auto spread = [&](int node, bool of_rows) { // [kernel, extent] among all four
    const auto& d = dims[of_rows ? 0 : 1];
    return b.expand(b.reshape(node, of_rows ? sizes{d.kernel, 1, d.extent, 1} : sizes{1, d.kernel, 1, d.extent}), all);
  };
  const auto whole = [&](int64_t n) { return b.constant(static_cast<double>(n), dtype::int64); };
  const auto along = [&](int64_t dim) { return b.convert(b.index(all, dim), dtype::int64); };
  const int tap = b.add2(b.mul(along(0), whole(dims[1].kernel)), along(1));
  const int place = b.add2(b.mul(b.add2(b.mul(tap, whole(rows)), spread(down.patch, true)), whole(columns)), spread(across.patch, false));
  const int there = b.pointwise(operation::bit_and, dtype::boolean, {spread(down.there, true), spread(across.there, false)});
  const int taken = b.take(b.reshape(x, {outer, b.at(x).elements() / outer}), 1, place);
  const int sum = b.reduce(operation::sum, b.select(there, taken, b.number(0, taken)), {1, 2});
  return {b.reshape(sum, image)};
}

} // namespace

void add_patch_rules(rule_table& t) {
  t["aten.im2col"] = im2col;
  t["aten.col2im"] = col2im;
}

} // namespace pragma::synthesis
