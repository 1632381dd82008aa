// What the core needs for a loop, by llvm-mca's cycles and the measured clock and peak. Internal to diagnosis/: the time table and the predictions share it.
#pragma once

#include "diagnosis/rules.hpp"

#include <vector>

namespace pragma::core {

/// The loops of a profile; of a record without them the one that the metrics hot_loop.* and llvm_mca.* describe.
std::vector<loop_cost> loops_of(const profile& p);

constexpr double instructions_per_cycle = 4; ///< that cores sustain on code that divides
constexpr double mispredict_cycles = 15; ///< pipeline refill, see the table of thresholds

/// Cycles in a second: measured, else what the measured peak implies with two fused multiply-adds of full width a cycle; infinity when unknown.
double hertz(const diagnosis_input& in);

/// FLOP in a cycle of one core at the measured peak; 0 = unknown.
double peak_flops_per_cycle(const diagnosis_input& in);

/// Cycles of one trip as written: llvm-mca's, but never fewer than the measured peak allows for its FLOPs, as the scheduling model may be another processor's.
double cycles_of(const loop_cost& l, const diagnosis_input& in);

/// The same if nothing waited for an earlier result.
double least_cycles_of(const loop_cost& l, const diagnosis_input& in);

/// Cycles that divisions and square roots alone keep the divider busy, by its measured speed where there is one; and their share of a trip, 0..1.
double divider_cycles(const loop_cost& l, const diagnosis_input& in);
double divider_share(const loop_cost& l, const diagnosis_input& in);

/// A floating-point value goes from one trip to the next, and a trip takes far longer than the units need. Where it is known how many operations follow one
/// another on that way, their latency must account for the trip: a sum beside a long polynomial waits for nothing.
bool waits_for_itself(const loop_cost& l);

/// How many float32 operations a full vector saves: by the peak against two scalar multiply-adds a cycle, as some cores split their widest vectors.
double vector_gain(const diagnosis_input& in, double from_bits);

} // namespace pragma::core
