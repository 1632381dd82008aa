// What the Verifier says of one candidate. Plain data: it travels between nodes and is stored with the iteration.
#pragma once

#include "base/error.hpp"
#include "base/json.hpp"

#include <string>
#include <vector>

namespace pragma {

/// A verdict has three values: right (`passed`), wrong or cheating (the stage where that was shown), and `not_established`, which says
/// nothing of the candidate.
/// `measure` and `confirm`: it passed, and failed while it was timed, or in a fresh process with unseen seeds.
enum class verdict_stage { build, load, run, compare, audit, measure, confirm, passed, not_established };
NLOHMANN_JSON_SERIALIZE_ENUM(verdict_stage, {{verdict_stage::build, "build"},
                                             {verdict_stage::load, "load"},
                                             {verdict_stage::run, "run"},
                                             {verdict_stage::compare, "compare"},
                                             {verdict_stage::audit, "audit"},
                                             {verdict_stage::measure, "measure"},
                                             {verdict_stage::confirm, "confirm"},
                                             {verdict_stage::passed, "passed"},
                                             {verdict_stage::not_established, "not established"}})

/// Why nothing could be established.
enum class doubt { none, machine_busy, our_limit, out_of_memory, unbelievable };
NLOHMANN_JSON_SERIALIZE_ENUM(doubt, {{doubt::none, "none"},
                                     {doubt::machine_busy, "machine busy"},
                                     {doubt::our_limit, "limit of ours"},
                                     {doubt::out_of_memory, "out of memory"},
                                     {doubt::unbelievable, "unbelievable"}})

/// A failure that the candidate is to blame for: any other is the machine's or ours.
inline bool is_candidates_fault(const error& e) { return e.code == ec::candidate_failed || e.code == ec::timeout; }
inline doubt doubt_about(const error& e) { return e.why == cause::out_of_memory ? doubt::out_of_memory : doubt::none; }

struct mismatch {
  std::string input_set;              ///< "own inputs, seed 3" / "large values"
  std::string output;                 ///< tensor name
  std::vector<int64_t> index;         ///< position in the output tensor
  std::string expected, got;          ///< numbers as text: NaN and Inf survive JSON
  double error = 0;                   ///< |got - expected| / allowed; 1 is the limit (1e300 when not finite)
  int64_t wrong_elements = 0, total_elements = 0;
  std::vector<std::string> elements;  ///< the first wrong ones in order, at most eight: "[3, 17] is 5, expected 9; ..."
  std::string judge;                  ///< "the float64 oracle", "the reference's own result"
};
PRAGMA_JSON(mismatch, input_set, output, index, expected, got, error, wrong_elements, total_elements, elements, judge)

struct verdict {
  verdict_stage stage = verdict_stage::build;
  doubt why_not = doubt::none;        ///< with `not_established`; `out_of_memory` also with a stage, of a process to which memory was refused
  std::string reason;                 ///< one sentence for people: "element [3, 17] of out0 is 0, expected 0.731"
  std::string log;                    ///< compiler or runtime output, cut to what helps
  std::vector<mismatch> mismatches;   ///< worst first, at most a few
  double worst_error = 0;             ///< over all input sets: error / allowed
  double tolerance = 0;               ///< what was applied, to the first output of floating type
  std::vector<std::string> checked;   ///< the input sets and audits that it passed
  std::vector<std::string> torch_operators; ///< Python: operators of aten that a call left to Torch, as "mm:1"
  std::string binary;                 ///< sha256 of the executable that was verified
  double build_seconds = 0, verify_seconds = 0;
  bool passed() const { return stage == verdict_stage::passed; }
  bool established() const { return stage != verdict_stage::not_established; }
};
/// Of a machine that was too busy to say anything.
inline verdict not_established(const error& e) {
  verdict v;
  v.stage = verdict_stage::not_established;
  v.why_not = doubt::machine_busy;
  v.reason = e.message;
  return v;
}
PRAGMA_JSON(verdict, stage, why_not, reason, log, mismatches, worst_error, tolerance, checked, torch_operators, binary, build_seconds, verify_seconds)

} // namespace pragma
