// A recurrent layer over all its steps: the weights of the state are packed once; each step is a product of the states before it with them, tile by tile, and the
// gates in registers behind it. Used by nest.cpp.
#pragma once

#include "synthesis/cpp/values.hpp"

namespace pragma::synthesis {

/// How many steps the layer of a recurrence makes.
int64_t time_steps(const region& r);

/// Multiplications of a step that are worth a meeting of threads behind it: some 10 us of one thread, of which a meeting takes one or two where all run.
constexpr int64_t least_shared_step = 500'000;

class recurrence_writer {
public:
  recurrence_writer(const region& r, const region_schedule& s, const schedule& all, value_writer& values, code& out)
      : r_(r), c_(*r.anchor), s_(s), values_(values), out_(out), size_(size_of_contraction(r)), gates_(gates_of(c_.op)), together_(gates_together(c_.op, all.lanes)), units_(size_.n / gates_), steps_(time_steps(r)),
        shared_(all.threads > 1 && !s.one_thread && size_.m * size_.n * size_.k >= least_shared_step) {}
  void write();

private:
  void pack_weights();
  void first_states();
  void all_steps();
  /// A lambda: the gates of one vector of units, from the sums of a tile.
  void one_vector();
  void tile_loops();
  const expr& argument(size_t i) const;
  bool lstm() const { return c_.op == operation::lstm; }
  bool has_bias() const;
  /// Address of an element, its index along an axis left out.
  std::string without(int buffer, index_form f, int axis) const;
  /// What is added up for a gate: from the input, and from the state.
  std::string from_input(int gate);
  std::string from_state(int gate);
  std::string both(int gate) { return from_input(gate) + " + " + from_state(gate); }
  void parallel_loop(const char* more) { if (shared_) out_.directive("pragma omp {}", more); }

  const region& r_;
  const contraction& c_;
  const region_schedule& s_;
  value_writer& values_;
  code& out_;
  const contraction_size size_;
  const int64_t gates_, together_, units_, steps_;
  const bool shared_; ///< by several threads
};

} // namespace pragma::synthesis
