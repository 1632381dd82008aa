// Loops for several threads: threads share out the loops around the vector axis, and some programs have none, or too few.
#pragma once

#include "synthesis/loops/region.hpp"

namespace pragma::synthesis {

/// Splits axes where that gives `threads` threads something to share out: a long axis of elements or columns into blocks, and
/// a reduction of everything (a loss, a norm) into parts with one more region that joins them, the steps of a product of few
/// results in the same way. Convolutions, scans and windows stay as they are.
void split_for_threads(loop_program& program, int threads, int lanes);

/// What a region computes, in multiples of one addition of a processor with wide vectors (some 0.04 ns): loads, stores and
/// operators of all elements, a function of the mathematics library as several.
double work_of(const region& r);

/// Less work than this takes longer in several threads than in one: what it costs to start them and to wait for them (4 us
/// with 4 to 16 threads that are awake, 16 Xeon cores; Torch draws the line at 32,768 elements).
constexpr double least_shared_work = 100'000;

} // namespace pragma::synthesis
