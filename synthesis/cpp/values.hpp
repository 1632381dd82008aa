// Values of a region as C++. Each is a name or an expression that knows how tightly it binds, so that brackets are never guessed
// from text, and whether it depends on the vector's index, which then has to be declared.
#pragma once

#include "synthesis/cpp/code.hpp"
#include "synthesis/cpp/layout.hpp"

namespace pragma::synthesis {

enum class binding : uint8_t {
  infix,  ///< a + b
  prefix, ///< -a
  whole   ///< a name, a number, a call, an access
};

struct written {
  std::string text;
  binding binds = binding::whole;
  bool indexed = false; ///< mentions the index of the vector
};

class value_writer {
public:
  value_writer(const loop_program& program, const region& r, const region_schedule& s, const schedule& all, const region_layout& layout, code& out);

  // -- indices and memory
  std::string var(int axis) const;
  std::string affine(const index_form& f) const;
  std::string address(int buffer, const index_form& f) const;
  int lanes() const { return all_.lanes; }
  /// Of a buffer's elements in memory.
  dtype format(int buffer) const { return p_.buffers[static_cast<size_t>(buffer)].dtype; }
  int64_t extent(int axis) const { return r_.axes[static_cast<size_t>(axis)].extent; }
  /// for (int64_t AXIS = 0; ..) {
  void open_loop(int axis);
  /// Its first position and the one after its last; lines that find them where the axis is one of a window.
  std::pair<std::string, std::string> bounds(int axis);
  /// What guarded loads ask for, inside of the loop over an axis.
  void declare_place(int axis);
  /// As open_loop(), within the input where the axis is one of a window.
  void open_axis(int axis);

  // -- values
  /// How a use refers to the value here: its name, or the expression.
  written value(int e);
  std::string text(int e) { return value(e).text; }
  /// As one side of an infix operator.
  std::string operand(int e);
  /// The value has this name from now on.
  void name(int e, const std::string& name) { names_[static_cast<size_t>(e)] = name; }
  /// Names for the values of rows (in a tile: of tiles) that are known after that pass, and for reciprocals of divisors among them.
  void name_known(int ready);
  void enter_tile() { in_tile_ = true; }
  void leave_tile() { in_tile_ = false; }
  /// Lines that compute these values and what they need, for one vector of a pass; their names hold until end_elements().
  void elements(const std::vector<int>& roots, int pass);
  void end_elements() { in_elements_ = false; }
  /// A region's store of one vector, or of a value that all lanes share.
  void store_vector(const store& s);
  void store_first(const store& s);
  /// A vector joined with memory, each lane at its place.
  void store_scattered(const store& s, const char* lanes);

  // -- reductions
  std::string reduction(int e) const;  ///< its name: "sum7"
  std::string accumulator(int e);      ///< its type: "vf", "position<vf, vi>"
  std::string beginning(int e);        ///< what it starts with
  /// One more vector joins `into`; lanes beyond `lanes` keep what they have (empty: all take part).
  void join(int e, const std::string& into, const std::string& lanes);

private:
  const expr& at(int e) const { return r_.exprs[static_cast<size_t>(e)]; }
  lifetime of(int e) const { return layout_.of(r_, e); }
  bool in_scope(int e) const { return !layout_.columns || (of(e) == lifetime::tile) == in_tile_; }
  written splat(double value, dtype type);
  written build(int e);
  written load(const expr& x, bool lanes);
  written guarded(const expr& x, int axis, int64_t step);
  written scan(int e);
  written convert(const expr& x);
  /// Of a type narrower than a lane: what is left of `w` when only its low bits stay, as in memory.
  written narrowed(written w, dtype type);
  written infix(const expr& x);
  written quotient(int e);             ///< a division as a product; empty text where it is none
  written call(const std::string& function, const std::vector<int>& args);
  void name_reciprocals(int ready);
  bool inlines(int e, const written& w, int count) const;
  std::string row_index() const;

  const loop_program& p_;
  const region& r_;
  const region_schedule& s_;
  const schedule& all_;
  const region_layout& layout_;
  code& out_;
  std::vector<std::string> names_;     ///< of values that have a variable
  std::vector<written> here_;          ///< element values of the vector being written
  std::set<int> inverses_;             ///< row values whose reciprocal has a variable
  bool in_tile_ = false, in_elements_ = false;
};

} // namespace pragma::synthesis
