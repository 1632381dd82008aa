// Random tasks in KernelBench form: a matrix product, a convolution or nothing, then a tail of element-wise operators, reductions,
// normalisations, pooling and views, on sizes that nobody chose kindly. From seed 1,000,000 on also the operators of everyday modules
// (look-ups, rearranging, resizing, padding, rotary embedding) and bfloat16, from 2,000,000 on also those that scatter or carry along, from 10,000,000 on with a second output, taken half
// way; the seeds below keep the tasks that they always named. And the check of the built-in coder on one: traced,
// written, built and verified against the float64 oracle like any other candidate. For tests and bench/random_graphs.
#pragma once

#include "base/files.hpp"
#include "execution/build.hpp"
#include "reference/reference.hpp"
#include "synthesis/search/builtin.hpp"
#include "verification/verify.hpp"

#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace pragma {

/// Writes one task. The same seed gives the same text everywhere.
class random_task {
public:
  static constexpr uint64_t first_everyday = 1'000'000, first_scattering = 2'000'000, first_of_two = 10'000'000;
  explicit random_task(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ull + 0x1234567), everyday_(seed >= first_everyday), scattering_(seed >= first_scattering), two_(seed >= first_of_two) { make(); }
  const std::string& text() const { return text_; }

private:
  using sizes = std::vector<int64_t>;

  uint64_t next() { // splitmix64
    uint64_t z = state_ += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  int64_t below(int64_t n) { return static_cast<int64_t>(next() % static_cast<uint64_t>(n)); }
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  bool chance(int64_t percent) { return below(100) < percent; }
  template <class T> const T& pick(const std::vector<T>& from) { return from[static_cast<size_t>(below(static_cast<int64_t>(from.size())))]; }
  static std::string str(int64_t n) { return std::to_string(n); }
  static std::string tuple(const sizes& s) {
    std::string out = "(";
    for (auto n : s) out += str(n) + ", ";
    return out + ")";
  }
  static std::string listed(const sizes& s) {
    auto out = tuple(s);
    return out.substr(1, out.size() - 4);
  }

  std::string fresh(const char* stem) { return stem + str(names_++); }
  std::string input(const sizes& shape) {
    const auto name = fresh("x");
    arguments_ += (arguments_.empty() ? "" : ", ") + name;
    std::string make = "torch.randn" + tuple(shape);
    if (shape.size() >= 2 && chance(25)) { // not contiguous as the user hands it over
      auto turned = shape;
      std::swap(turned[shape.size() - 1], turned[shape.size() - 2]);
      make = "torch.randn" + tuple(turned) + ".transpose(-1, -2)";
    }
    if (half_) make += ".bfloat16()";
    inputs_ += (inputs_.empty() ? "" : ", ") + make;
    return name;
  }
  std::string member(const std::string& value) {
    const auto name = fresh("m");
    init_ += "        self." + name + " = " + value + "\n";
    return "self." + name;
  }
  std::string buffer(const std::string& value) {
    const auto name = fresh("b");
    init_ += "        self.register_buffer('" + name + "', " + value + ")\n";
    return "self." + name;
  }
  std::string parameter(const sizes& shape) { return member("nn.Parameter(torch.randn" + tuple(shape) + ")"); }
  void line(const std::string& value) { forward_ += "        v = " + value + "\n"; }

  /// One of the dimensions may be 1: it broadcasts.
  sizes broadcast(sizes shape) {
    for (auto& n : shape)
      if (chance(50)) n = 1;
    return sizes(shape.begin() + below(static_cast<int64_t>(shape.size())), shape.end());
  }

  void start() {
    if (everyday_ && chance(20)) return looked_up();
    // Torch 1.13 has no convolutions of bfloat16 for every shape.
    if (half_) return chance(30) ? plain() : chance(50) ? linear() : product();
    switch (below(6)) {
      case 0: return plain();
      case 1: return linear();
      case 2: return product();
      case 3: return convolution(false);
      case 4: return convolution(true);
      default: return chance(25) ? attention() : convolution(chance(50));
    }
  }
  /// Rows of a table, or attention as Torch's one function.
  void looked_up() {
    const auto rows = between(2, 30), width = 2 * between(1, 12), batch = between(1, 4), length = between(2, 15);
    shape_ = {batch, length, width};
    if (chance(30)) {
      shape_ = {batch, 2, length, width};
      const auto keys = between(2, 20);
      const bool causal = chance(50);
      const auto q = input(shape_), k = input({batch, 2, causal ? length : keys, width}), v = input({batch, 2, causal ? length : keys, width});
      const auto mask = causal ? buffer("torch.ones(" + str(length) + ", " + str(length) + ", dtype=torch.bool).tril()") : "";
      forward_ += "        s = torch.matmul(" + q + ", " + k + ".transpose(-2, -1)) * 0.3\n";
      if (causal) forward_ += "        s = s.masked_fill(~" + mask + ", float('-inf'))\n";
      return line("torch.matmul(torch.softmax(s, dim=-1), " + v + ")");
    }
    const auto name = fresh("x");
    arguments_ += (arguments_.empty() ? "" : ", ") + name;
    inputs_ += (inputs_.empty() ? "" : ", ") + ("torch.randint(0, " + str(rows) + ", (" + str(batch) + ", " + str(length) + "))");
    if (chance(60)) return line(member("nn.Embedding(" + str(rows) + ", " + str(width) + ")") + "(" + name + ")");
    const auto table = parameter({rows, width});
    line("torch.matmul(F.one_hot(" + name + ", " + str(rows) + ").to(" + table + ".dtype), " + table + ")");
  }
  void plain() {
    const auto rank = between(1, 4);
    for (int64_t d = 0; d < rank; ++d) shape_.push_back(chance(10) ? 1 : between(2, 23));
    line(input(shape_));
  }
  void linear() {
    for (int64_t d = between(0, 2); d >= 0; --d) shape_.push_back(between(1, 9));
    const auto in = between(1, 40), out = between(1, 40);
    shape_.push_back(in);
    line(member("nn.Linear(" + str(in) + ", " + str(out) + (chance(70) ? "" : ", bias=False") + ")") + "(" + input(shape_) + ")");
    shape_.back() = out;
  }
  void product() {
    const auto m = between(1, 40), k = between(1, 70), n = chance(15) ? 1 : between(1, 40), batch = between(1, 4);
    switch (below(8)) {
      case 0: line("torch.matmul(" + input({m, k}) + ", " + input({k, n}) + ")"), shape_ = {m, n}; return;
      case 1: line("torch.matmul(" + input({k, m}) + ".t(), " + input({n, k}) + ".t())"), shape_ = {m, n}; return;
      case 2: line("torch.bmm(" + input({batch, m, k}) + ", " + input({batch, k, n}) + ")"), shape_ = {batch, m, n}; return;
      case 3: line("torch.matmul(" + input({batch, 2, m, k}) + ", " + parameter({k, n}) + ")"), shape_ = {batch, 2, m, n}; return;
      case 4: line("torch.einsum('bik,kj->bij', " + input({batch, m, k}) + ", " + input({k, n}) + ")"), shape_ = {batch, m, n}; return;
      case 5: line("torch.matmul(" + input({m, k}) + ", " + input({k}) + ")"), shape_ = {m}; return;
      case 6: line("torch.matmul(torch.tril(" + input({m, m}) + "), torch.triu(" + input({m, m}) + "))"), shape_ = {m, m}; return;
      default: line("torch.diag(" + input({m}) + ") @ " + input({m, n})), shape_ = {m, n}; return;
    }
  }
  void convolution(bool transposed) {
    const auto dims = between(1, 3);
    const int64_t groups = chance(30) ? pick(sizes{2, 3}) : 1;
    const bool depthwise = chance(15);
    const int64_t in = depthwise ? between(2, 6) : groups * between(1, 4), out = depthwise ? in : groups * between(1, 9);
    shape_ = {between(1, 3), in};
    sizes kernel, stride, padding, dilation, extra, result = {shape_[0], out};
    for (int64_t d = 0; d < dims; ++d) {
      kernel.push_back(between(1, dims == 3 ? 3 : 5));
      stride.push_back(chance(60) ? 1 : between(1, 3));
      dilation.push_back(chance(75) ? 1 : 2);
      const auto reach = dilation.back() * (kernel.back() - 1);
      padding.push_back(between(0, transposed ? std::min<int64_t>(reach, 2) : 2));
      extra.push_back(transposed ? below(std::max(stride.back(), dilation.back())) : 0);
      const auto extent = std::max<int64_t>(reach + 1 - 2 * padding.back(), 1) + between(0, dims == 3 ? 6 : 13);
      shape_.push_back(extent);
      result.push_back(transposed ? (extent - 1) * stride.back() - 2 * padding.back() + reach + extra.back() + 1
                                  : (extent + 2 * padding.back() - reach - 1) / stride.back() + 1);
    }
    for (auto n : result)
      if (n < 1) return shape_.clear(), plain();
    std::string layer = std::string("nn.Conv") + (transposed ? "Transpose" : "") + str(dims) + "d(" + str(in) + ", " + str(out) + ", " + tuple(kernel) +
                        ", stride=" + tuple(stride) + ", padding=" + tuple(padding) + ", dilation=" + tuple(dilation) +
                        ", groups=" + str(depthwise ? in : groups) + (chance(70) ? "" : ", bias=False");
    if (transposed) layer += ", output_padding=" + tuple(extra);
    line(member(layer + ")") + "(" + input(shape_) + ")");
    shape_ = result;
  }
  void attention() {
    const auto batch = between(1, 3), heads = between(1, 3), rows = between(2, 20), keys = between(2, 20), depth = between(2, 17), out = between(1, 17);
    forward_ += "        s = torch.matmul(" + input({batch, heads, rows, depth}) + ", " + input({batch, heads, keys, depth}) +
                ".transpose(-2, -1)) / " + str(depth) + " ** 0.5\n";
    line("torch.matmul(torch.softmax(s, dim=-1), " + input({batch, heads, keys, out}) + ")");
    shape_ = {batch, heads, rows, out};
  }

  /// Along one dimension of any tensor: rearranged, repeated, looked up, scanned.
  void along_one() {
    const auto rank = static_cast<int64_t>(shape_.size()), dim = below(rank);
    auto& n = shape_[static_cast<size_t>(dim)];
    const auto d = ", dim=" + str(dim) + ")", at = ", " + str(dim);
    const auto indices = [&](int64_t count) { return buffer("torch.randint(0, " + str(n) + ", (" + str(count) + ",))"); };
    switch (below(14)) {
      case 0: return line("torch.flip(v, dims=(" + str(dim) + ",))");
      case 1: return line("torch.roll(v, " + str(between(-3, 5)) + at + ")");
      case 2: line("torch.cat([v, torch.tanh(v)]" + d), n *= 2; return;
      case 3: line("torch.stack([v, v * 0.5]" + d + ".flatten(" + str(dim) + at + " + 1)"), n *= 2; return;
      case 4: line("torch.cat(torch.chunk(v, 3" + d + "[::-1]" + d); return;
      case 5: {
        const auto times = between(2, 3);
        line("v.repeat_interleave(" + str(times) + d), n *= times;
        return;
      }
      case 6: {
        const auto count = between(1, 9);
        line("torch.index_select(v" + at + ", " + indices(count) + ")"), n = count;
        return;
      }
      case 7: {
        auto shape = shape_;
        shape[static_cast<size_t>(dim)] = between(1, 7);
        line("torch.gather(v" + at + ", " + buffer("torch.randint(0, " + str(n) + ", " + tuple(shape) + ")") + ")");
        shape_ = shape;
        return;
      }
      case 8: return line("torch.cumprod(torch.sigmoid(v) + 0.5" + d);
      case 9: return line("torch.tanh(torch.cumsum(v" + d + ")");
      case 10:
        if (n < 3) break;
        line("torch.narrow(v" + at + ", 1, " + str(n - 2) + ")"), n -= 2;
        return;
      case 11:
        if (n < 2) break;
        line("v.diff(" + d.substr(2)), n -= 1;
        return;
      case 12:
        if (n < 2) break;
        return line("(v - v.mean(dim=" + str(dim) + ", keepdim=True)) / (v.std(dim=" + str(dim) + ", keepdim=True) + 0.1)");
      default: {
        line("sum(torch.unbind(v" + d + ")"), shape_.erase(shape_.begin() + dim);
        return;
      }
    }
    line("torch.where(v > 0, v, v * v)");
  }
  /// Written to places of one dimension, or carried along it.
  void scattered() {
    const auto rank = static_cast<int64_t>(shape_.size()), dim = below(rank);
    auto& n = shape_[static_cast<size_t>(dim)];
    const auto at = str(dim) + ", ";
    const auto places = between(1, 9);
    const auto line_of = [&](int64_t count, int64_t below_n) { return buffer("torch.randint(0, " + str(below_n) + ", (" + str(count) + ",))"); };
    const auto chosen = [&](int64_t count) { return buffer("torch.randperm(" + str(n) + ")[:" + str(count) + "]"); };
    const auto each = [&] { return buffer("torch.randint(0, " + str(places) + ", " + tuple(shape_) + ")"); };
    const auto fewer = between(1, n);
    const auto part = ".narrow(" + at + "0, " + str(fewer) + ")";
    auto shape = shape_;
    shape[static_cast<size_t>(dim)] = places;
    switch (below(half_ ? 7 : 14)) {
      case 12: {
        if (n < 8 || rank < 2) break;
        const auto step = "v.select(" + at + "t)", decay = pick(std::vector<std::string>{"0.9", "torch.sigmoid(" + step + ")", "torch.exp(-" + step + ".abs() * 0.3)"});
        forward_ += "        h, s = " + std::string(chance(50) ? "0" : "torch.tanh(v.select(" + at + "0))") + ", []\n        for t in range(" + str(n) + "):\n            h = " + decay + " * h + " + step + " * 0.5\n            s.append(" +
                    (chance(50) ? "h" : "h * torch.tanh(" + step + ")") + ")\n";
        return line("torch.stack(s, " + str(dim) + ")");
      }
      case 0: line("v.new_zeros(" + tuple(shape) + ").index_add(" + at + line_of(n, places) + ", v)"), n = places; return;
      case 1: return line("v.index_add(" + at + line_of(fewer, n) + ", torch.tanh(v)" + part + ", alpha=0.5)");
      case 2: line("v.new_zeros(" + tuple(shape) + ").scatter_add(" + at + each() + ", v)"), n = places; return;
      case 3: return line("torch.zeros_like(v).scatter(" + at + buffer("torch.argsort(torch.rand(" + tuple(shape_) + "), dim=" + str(dim) + ")") + ", v * 2)");
      case 4: return line("v.index_copy(" + at + chosen(fewer) + ", torch.sigmoid(v)" + part + ")");
      case 5: return line("v.index_fill(" + at + line_of(fewer, n) + ", 0.25)");
      case 6: {
        const auto rows = between(1, 5);
        const auto index = buffer("torch.randint(-" + str(shape_[0]) + ", " + str(shape_[0]) + ", (" + str(rows) + ",))");
        return line("v.index_put((" + index + ",), v[:1] * 0.5, accumulate=True)");
      }
      case 7: return line("torch." + pick(std::vector<std::string>{"cummax", "cummin"}) + "(v, dim=" + str(dim) + ")[0]");
      case 8: return line("torch.logcumsumexp(v, dim=" + str(dim) + ")");
      case 9: {
        const auto how = pick(std::vector<std::string>{"sum", "mean", "amax", "amin"});
        line("v.new_ones(" + tuple(shape) + ").scatter_reduce(" + at + each() + ", v, '" + how + "', include_self=" + (chance(50) ? "True" : "False") + ")"), n = places;
        return;
      }
      case 10: return line("v.masked_scatter(v > 0.5, torch.tanh(v))");
      case 11: {
        if (rank < 2) break;
        const auto count = between(1, 9);
        line("v[" + line_of(count, shape_[0]) + ", " + line_of(count, shape_[1]) + "] * 1.5"), shape_.erase(shape_.begin()), shape_[0] = count;
        return;
      }
      default: {
        if (rank != 4 || shape_[2] < 3 || shape_[3] < 3 || elements() > 2000) break;
        const auto rows = shape_[2], columns = shape_[3];
        line("F.unfold(v, 3, padding=1)"), shape_ = {shape_[0], shape_[1] * 9, rows * columns};
        if (chance(50)) line("F.fold(torch.tanh(v), " + tuple({rows, columns}) + ", 3, padding=1)"), shape_ = {shape_[0], shape_[1] / 9, rows, columns};
        return;
      }
    }
    line("torch.where(v > 0, v, v * v)");
  }
  /// Images [batch, channels, rows, columns]: padded, resized, normalised over channels; and the last dimension in halves.
  void of_images() {
    auto &channels = shape_[1], &rows = shape_[2], &columns = shape_[3];
    switch (below(9)) {
      case 0: line("F.pad(v, (1, 2, 0, 3))"), rows += 3, columns += 3; return;
      case 1: line("F.pad(v, (2, 1, 1, 0), mode='replicate')"), rows += 1, columns += 3; return;
      case 2:
        if (rows < 2 || columns < 3) break;
        line("F.pad(v, (2, 1, 1, 1), mode='reflect')"), rows += 2, columns += 3;
        return;
      case 3: {
        const auto to = sizes{between(1, 20), between(1, 20)};
        const auto mode = pick(std::vector<std::string>{"nearest", "bilinear", "bicubic", "area"});
        line("F.interpolate(v, size=" + tuple(to) + ", mode='" + mode + "')"), rows = to[0], columns = to[1];
        return;
      }
      case 4: line("F.local_response_norm(v, " + str(between(1, 4)) + ")"); return;
      case 5:
        if (channels % 4) break;
        line("F.pixel_shuffle(v, 2)"), channels /= 4, rows *= 2, columns *= 2;
        return;
      case 6:
        if (rows % 2 || columns % 2) break;
        line("F.pixel_unshuffle(v, 2)"), channels *= 4, rows /= 2, columns /= 2;
        return;
      case 7: {
        const auto to = sizes{between(1, 5), between(1, 5)};
        line("F.adaptive_avg_pool2d(v, " + tuple(to) + ")"), rows = to[0], columns = to[1];
        return;
      }
      default:
        if (columns % 2) break;
        forward_ += "        p, q = v.chunk(2, -1)\n";
        line("torch.cat([p * " + parameter({rows, columns / 2}) + " - q, q + p], -1)");
        return;
    }
    along_one();
  }

  void tail() {
    if (scattering_ && !shape_.empty() && elements() < 20'000 && chance(50)) return scattered();
    if (everyday_ && !shape_.empty() && elements() < 20'000 && chance(60)) return shape_.size() == 4 && !half_ && chance(60) ? of_images() : along_one();
    static const std::vector<std::string> functions = {
        "torch.relu(v)", "torch.sigmoid(v)", "torch.tanh(v)", "F.gelu(v)", "F.silu(v)", "F.softplus(v)", "F.hardswish(v)", "F.leaky_relu(v, 0.2)",
        "F.mish(v)", "F.elu(v)", "torch.abs(v)", "v * 2.5", "v + 0.3", "v / 1.7", "torch.clamp(v, -0.8, 1.2)", "0.5 - v", "v * torch.sigmoid(v)",
        "torch.exp(-v * v)", "F.hardtanh(v)", "v - v.mean()"};
    const auto rank = static_cast<int64_t>(shape_.size());
    if (rank == 0) return line(pick(functions));
    const auto dim = below(rank);
    auto& extent = shape_[static_cast<size_t>(dim)];
    const bool spatial = rank >= 3;
    switch (below(13)) {
      case 0: return line("v " + std::string(pick(std::vector<std::string>{"+", "*", "-"})) + " " + parameter(broadcast(shape_)));
      case 1: return line("v + " + input(broadcast(shape_)));
      case 2: return line("torch." + pick(std::vector<std::string>{"softmax", "log_softmax", "cumsum"}) + "(v, dim=" + str(dim) + ")");
      case 3: {
        const auto op = pick(std::vector<std::string>{"v.sum", "v.mean", "v.amax", "v.amin", "torch.logsumexp"});
        const bool keep = chance(60);
        line(op + (op[0] == 't' ? "(v, " : "(") + "dim=" + str(dim) + (keep ? ", keepdim=True)" : ")"));
        if (keep) extent = 1;
        else shape_.erase(shape_.begin() + dim);
        return;
      }
      case 4:
        if (spatial && elements() / shape_[1] > 1) return line(member("nn.BatchNorm" + str(rank - 2) + "d(" + str(shape_[1]) + ")" + (chance(30) ? ".eval()" : "")) + "(v)");
        break;
      case 5:
        if (spatial && elements() / shape_[0] / shape_[1] > 1) return line(member("nn.GroupNorm(1, " + str(shape_[1]) + ")") + "(v)");
        break;
      case 6:
        if (shape_.back() > 1) return line(member("nn.LayerNorm(" + str(shape_.back()) + ")") + "(v)");
        break;
      case 7:
        if (spatial && rank <= 5) {
          for (size_t d = 2; d < shape_.size(); ++d)
            if (shape_[d] < 2) return line(pick(functions));
          line("F." + pick(std::vector<std::string>{"max", "avg"}) + "_pool" + str(rank - 2) + "d(v, 2)");
          for (size_t d = 2; d < shape_.size(); ++d) shape_[d] /= 2;
          return;
        }
        break;
      case 8:
        if (rank >= 2) {
          line("v.transpose(" + str(dim) + ", -1)");
          std::swap(shape_[static_cast<size_t>(dim)], shape_.back());
          return;
        }
        break;
      case 9:
        if (spatial) { // over all positions
          std::string over;
          for (int64_t d = 2; d < rank; ++d) over += str(d) + ", ";
          line("v." + pick(std::vector<std::string>{"sum", "mean"}) + "(dim=(" + over + "), keepdim=True)");
          std::fill(shape_.begin() + 2, shape_.end(), 1);
          return;
        }
        break;
      default: break;
    }
    line(pick(functions));
  }
  int64_t elements() const {
    int64_t n = 1;
    for (auto d : shape_) n *= d;
    return n;
  }

  void make() {
    half_ = everyday_ && chance(25);
    start();
    const auto steps = between(two_ ? 1 : 0, 5), second = two_ ? between(1, steps) : 0;
    for (auto left = steps; left > 0; --left) {
      if (left == second) forward_ += "        w = v\n";
      tail();
    }
    if (half_) init_ += "        self.to(torch.bfloat16)\n";
    text_ = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n\nclass Model(nn.Module):\n    def __init__(self):\n"
            "        super().__init__()\n" + init_ + "\n    def forward(self, " + arguments_ + "):\n" + forward_ + "        return v" + (two_ ? ", w" : "") + "\n\n\n"
            "def get_inputs():\n    return [" + inputs_ + "]\n\n\ndef get_init_inputs():\n    return []\n";
  }

  uint64_t state_;
  bool everyday_ = false, scattering_ = false, two_ = false, half_ = false;
  int names_ = 0;
  sizes shape_;
  std::string text_, init_, forward_, arguments_, inputs_;
};

/// What became of one random task.
struct random_outcome {
  enum class kind { right, wrong, unsupported, unverifiable, failed } what = kind::failed;
  std::string reason, source; ///< the kernel's, where there is one
};

/// How many of each kind.
using random_counts = std::map<random_outcome::kind, int>;

/// All that was tried is right, and at most a tenth was not tried: tasks are made of operators that the coder has, so what it does not write is no answer.
inline bool all_well(random_counts found) {
  using kind = random_outcome::kind;
  int count = 0;
  for (const auto& [what, n] : found) count += n;
  return found[kind::wrong] + found[kind::failed] == 0 && 10 * found[kind::unsupported] <= count;
}

/// `draws`: the seed of each look at its inputs; 0: any. `options`: what the kernel is planned for.
inline random_outcome check_random_task(reference& ref, const std::filesystem::path& folder, uint64_t seed, const std::vector<uint64_t>& draws = {0}, const builtin_options& options = {}) {
  using kind = random_outcome::kind;
  const auto path = folder / ("random_" + std::to_string(seed) + ".py");
  std::ofstream(path) << random_task(seed).text();
  auto loaded = ref.load(path, 2);
  if (!loaded) return {kind::failed, loaded.error().message, ""};
  auto coder = builtin_coder::create(*loaded, options);
  if (!coder) return {coder.error().code == ec::unsupported ? kind::unsupported : kind::failed, coder.error().message, ""};
  const auto first = coder->next(std::nullopt);
  if (!first) return {kind::failed, "the coder has nothing to offer", ""};
  verify_options checks;
  checks.seeds = 2;
  const auto audit = audit_task(*loaded, ref, checks);
  if (!audit) return {kind::failed, audit.error().message, first->source};
  if (const auto why = why_unverifiable(audit->passing_nulls); !why.empty()) return {kind::unverifiable, why, first->source};
  const auto built = build_candidate(*first, {});
  if (!built) return {built.error().code == ec::busy ? kind::failed : kind::wrong, built.error().message + "\n" + built.error().hint, first->source};
  for (const auto draw : draws) {
    checks.seed = draw;
    const auto checked = verify(*loaded, *audit, ref, *built, checks);
    if (!checked) return {kind::failed, checked.error().message, first->source};
    if (!checked->passed()) return {kind::wrong, checked->reason, first->source};
  }
  return {kind::right, "", first->source};
}

} // namespace pragma
