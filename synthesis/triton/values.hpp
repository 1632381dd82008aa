// Values of a region as lines of a Triton kernel: index arithmetic, masked loads, operators, stores. The emitters of loops
// (triton_region.cpp) and of contractions (triton_anchor*.cpp) say how each axis is indexed; this writes what is computed there.
#pragma once

#include "synthesis/loops/region.hpp"

#include <map>
#include <set>

namespace pragma::synthesis {

/// How an axis is indexed in a kernel.
struct triton_axis {
  std::string text;   ///< an integer expression: "row", "k", "columns[None, :]". It stands in products, so a sum has brackets
  std::string mask;   ///< where it lies inside of the extent, in the same shape: "columns[None, :] < 100"; empty: everywhere
  bool bound = false;
};

class triton_values {
public:
  triton_values(const loop_program& program, const region& r);

  /// All of these hold until changed. Values that depend on a changed axis are computed anew when asked for again.
  void bind_axis(int axis, const std::string& text, const std::string& mask = "");
  /// The expression has this name from now on: an accumulator, a finished reduction, a value loaded elsewhere.
  void bind(int e, const std::string& name);
  /// Forgets the names of values that depend on one of these axes (bits), but not those that were bound.
  void forget(uint32_t axes);

  /// A name or literal of the expression. Lines that compute it, and what it needs, are written before. An anchor, a
  /// reduction or a scan must have been bound.
  std::string value(int e);
  /// As value(), but never a longer expression: for texts that name it more than once.
  std::string name_of(int e);
  /// What the load `e` gives where its mask is false, instead of zero. False where it gives something else already.
  bool outside(int e, const std::string& text);
  /// Element number of an access or value of an index, without the part that is computed from values.
  std::string index(const index_form& f) const;
  /// Conjunction of the masks of these axes; empty: no mask is needed.
  std::string mask(uint32_t axes) const;
  /// The axes whose masks the load `e` has.
  uint32_t masked_axes(int e) const;
  /// tl.store of a region's store, or the atomic operation that joins it with memory.
  void store(const pragma::synthesis::store& s);
  /// tl.store and tl.load as texts, for memory that is no access of the region.
  std::string store_text(const std::string& pointer, const std::string& index, const std::string& value, const std::string& mask) const;
  std::string load_text(const std::string& pointer, const std::string& index, const std::string& mask, const std::string& other) const;

  void line(const std::string& text);
  void open(const std::string& text) { line(text); ++depth_; } ///< what follows is one level deeper
  void close();                                            ///< names that were made inside are gone

  /// What was written so far: the body of a function.
  std::string text() const { return out_; }
  /// Buffers that loads and stores have named, as kernel parameters: "x0_ptr".
  const std::set<int>& buffers() const { return used_; }
  std::string pointer(int buffer);
  /// Jitted helper functions that the lines call (triton_helpers()).
  const std::set<std::string>& helpers() const { return helpers_; }
  void use_helper(const std::string& name) { helpers_.insert(name); }

  /// A Python literal of this value that Triton takes as this dtype.
  static std::string literal(double value, dtype type);
  /// "tl.float32"
  static std::string type_name(dtype type);
  /// "torch.float32"
  static std::string torch_name(dtype type);

private:
  const expr& at(int e) const { return r_.exprs[static_cast<size_t>(e)]; }
  void scatter(const pragma::synthesis::store& s);
  std::string build(int e);
  std::string named(int e, const std::string& text);
  std::string operand(int e);
  std::string load(int e);
  std::string operation(int e);

  const loop_program& p_;
  const region& r_;
  std::vector<triton_axis> axes_;
  std::vector<std::string> names_;
  std::vector<bool> fixed_;       ///< bound from outside
  std::vector<int> uses_, name_depth_;
  std::map<int, std::string> otherwise_; ///< by load
  std::set<int> used_;
  std::set<std::string> helpers_;
  std::map<std::string, int> defined_;   ///< by name: how often
  std::string out_;
  int depth_ = 1;
};

/// The jitted helper function of that name, as text of a module.
std::string triton_helper(const std::string& name);

} // namespace pragma::synthesis
