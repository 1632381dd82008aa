// Pulls one output through the primitives into a region: expressions whose loads are affine in the loop axes. What cannot join
// the loops is thrown as a reason to begin anew. Used by region.cpp only; pull.cpp has the walk, pull_reductions.cpp and
// pull_contractions.cpp what gives a region its shape.
#pragma once

#include "synthesis/loops/region.hpp"

#include <map>
#include <tuple>

namespace pragma::synthesis {

// Reasons to begin a region anew. They unwind a deep recursion; build_program() is the only place that catches them.
struct needs_buffer { int node; };                   // store this node first
struct needs_split { int axis; int64_t inner; };     // a domain axis must become two
struct needs_flip { int axis; };                     // a domain axis must run backwards
struct impossible { std::string what; };

/// The index space of a region's root: how each of its dimensions follows from the axes.
struct domain {
  std::vector<int64_t> extents;
  std::vector<index_form> dims;

  static domain of(const std::vector<int64_t>& shape) {
    domain d;
    for (auto extent : shape) {
      index_form form;
      if (extent != 1) {
        form.terms.push_back({static_cast<int>(d.extents.size()), 1});
        d.extents.push_back(extent);
      }
      d.dims.push_back(form);
    }
    return d;
  }
  void split(int a, int64_t inner) {
    extents[static_cast<size_t>(a)] /= inner;
    extents.insert(extents.begin() + a + 1, inner);
    for (auto& form : dims) {
      std::vector<std::pair<int, int64_t>> terms;
      for (const auto& [which, c] : form.terms) {
        if (which < a) terms.push_back({which, c});
        else if (which > a) terms.push_back({which + 1, c});
        else { terms.push_back({a, c * inner}); terms.push_back({a + 1, c}); }
      }
      form.terms = terms;
    }
  }
  void flip(int a) {
    for (auto& form : dims)
      for (auto& [which, c] : form.terms)
        if (which == a) {
          form.offset += c * (extents[static_cast<size_t>(a)] - 1);
          c = -c;
        }
  }
};

uint32_t mask_of(const index_form& f); ///< bit per axis
index_form scaled(const index_form& f, int64_t factor);
index_form sum(const index_form& a, const index_form& b);

class puller {
public:
  puller(const tensor_program& program, const std::map<int, int>& stored, const std::map<int, int>& tails, const domain& space);

  region r;

  /// All of node `root` into `buffer`, over `space`.
  void pull(int root, int buffer, const domain& space);
  /// As pull(), into a slice of a larger tensor.
  void pull_into(int root, int buffer, const domain& space, const index_form& where);
  /// The values of a scatter (`space` is theirs), each joined with what its place in `buffer` holds.
  void pull_scattered(int n, int buffer, const domain& space);

private:
  const tensor_node& at(int n) const { return p_.nodes[static_cast<size_t>(n)]; }
  uint32_t domain_mask() const { return domain_axes_ >= 32 ? ~0u : (1u << domain_axes_) - 1; }
  int add_axis(int64_t extent, bool reduced);
  int intern(expr e);
  int constant(double value, dtype type);
  int load(int buffer, dtype type, const index_form& where);
  index_form linear(const std::vector<int64_t>& shape, const std::vector<index_form>& idx);
  int eval(int n, const std::vector<index_form>& idx);
  int make(int n, const std::vector<index_form>& idx);
  bool follows_from_places(int n) const;
  /// On an anchor's tiles only pointwise values are computed; what does not need the anchor and is small is made before.
  void keep_tail_simple(int n, const tensor_node& node);
  /// The domain axes that an index walks like one dimension, outermost first; an axis of extent 1 when it stands still.
  std::vector<int> dense_axes(int n, const index_form& f, int64_t extent);
  index_form along(const std::vector<int>& axes) const;
  /// An operand of a contraction must lie in memory.
  std::pair<int, index_form> operand(int n, const std::vector<index_form>& idx);
  int without_views(int n) const;
  int contracted_axis(int64_t extent);
  void contract_product(int n, const tensor_node& node, const std::vector<index_form>& idx, contraction& c);
  void contract_convolution(int n, const tensor_node& node, const std::vector<index_form>& idx, contraction& c);
  void contract_recurrence(int n, const tensor_node& node, const std::vector<index_form>& idx, contraction& c, expr& e);
  int contract(int n, const tensor_node& node, const std::vector<index_form>& idx);
  int pointwise(const tensor_node& node, const std::vector<index_form>& idx);
  int folded(const expr& e);
  /// Splits a linear index back into dimensions, when the axes' strides allow it.
  int reshape(const tensor_node& node, const std::vector<index_form>& idx);
  /// The axes that reduced dimensions run over, and how each dimension follows from them. Empty when they don't match.
  bool match(const std::vector<int64_t>& extents, const std::vector<int>& axes, std::vector<index_form>& forms) const;
  std::vector<int> axes_in(uint32_t mask) const;
  /// Gives up on fusing this node with its surroundings.
  [[noreturn]] void refuse(int n) const;
  int reduce(int n, const tensor_node& node, const std::vector<index_form>& idx);
  int scan(int n, const tensor_node& node, const std::vector<index_form>& idx);
  struct window_dim { size_t dim; int64_t first; bool varies; };
  /// An element of a window, times its weight where the window has any.
  int weighted(int value, const tensor_node& node, const std::vector<window_dim>& positions, const std::vector<int>& numbers, const std::vector<index_form>& idx);
  bool window_fits(const std::vector<axis>& wanted) const;
  std::pair<axis, window_dim> window_axis(int n, const tensor_node& node, size_t s, size_t d, const index_form& f);
  std::vector<int> window_axes(const std::vector<axis>& wanted);
  int window(int n, const tensor_node& node, const std::vector<index_form>& idx);

  const tensor_program& p_;
  const std::map<int, int>& stored_;
  const std::map<int, int>& tails_;
  int anchor_ = -1;             ///< the anchor whose tail is the root, or -1
  std::vector<bool> in_tail_;   ///< nodes that depend on it
  std::map<std::tuple<int, identity, std::vector<index_form>>, int> memo_; ///< by node, what lies outside of the input, and index
  places_of<expr> known_;
  identity outside_ = identity::none; ///< of the window whose argument is being pulled
  std::vector<int> inside_; ///< arguments of the reductions that we are in
  int root_ = -1, domain_axes_ = 0;
};

} // namespace pragma::synthesis
