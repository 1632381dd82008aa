// Which kernels that do no work would pass? Compared on the reference's outputs alone, before any candidate exists.
#include "base/text.hpp"
#include "kernels/seeds.hpp"
#include "verification/slot_checker.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

namespace pragma {

namespace {

constexpr double never = std::numeric_limits<double>::infinity();
constexpr double margin = 4;          ///< a tightened tolerance misses the null kernel's error by this factor
constexpr double large_share = 1e-3;  ///< of the largest value: what a kernel that computes little would compute
constexpr double zero_factor = 10;    ///< tolerances; smaller values may be taken for zero in any rule
constexpr double honest_roundings = 8; ///< epsilons of the output's type, which no null kernel that is partly right takes away: an honest kernel needs them
constexpr double beyond_rounding = 4; ///< times the largest rounding of the reference so far: what is beyond it is not looked at on further sets
constexpr double hopeless_error = 1;  ///< reference_error_factor * error over spread: above it a kind tells nothing
constexpr int64_t piece = 1 << 14;    ///< elements that are judged at a time
constexpr double random_distance = 1e-2; ///< relative: float32 and float64 of one computation are closer
/// The most telling first: a slow reference gets through the first few only.
constexpr input_kind other_kinds[] = {input_kind::large, input_kind::negative, input_kind::constant_rows,
                                      input_kind::ties,  input_kind::tiny,     input_kind::near_one};
constexpr double kinds_seconds = 40; ///< no further kind is added after this; each costs every attempt two calls, too

constexpr const char* another_answer = "the answer to another input";
constexpr const char* random_reference = "the reference draws random numbers, so its own answer changes from call to call"; ///< stands for a null kernel: none can be told from a right one
constexpr const char* lost_in_rounding = "Torch's own result is decided by its rounding: computed in float64 most of it is another"; ///< the same

using buffer = std::vector<std::byte>;

/// A kernel that does no work, and what tolerance each output would need to let it through on all sets so far.
struct null_kernel {
  std::string name;
  bool partial = false;       ///< right in part: where the rest drowns in the reference's rounding, it is as right as any
  std::vector<double> needed; ///< per output, in units of the output's tolerance; max over the sets
};

struct output_view {
  const tensor_spec& spec;
  std::span<const std::byte> reference;
  std::span<const double> oracle;
  output_scale scale;
};

bool is_reference_refusal(const error& e) {
  return e.code == ec::task_invalid || e.code == ec::unsupported || e.code == ec::torch_only || e.code == ec::invalid_argument;
}

/// How large an output is beside its largest error: of one with few large values these, since they have that error.
double size_of_all(const output_scale& scale) { return (scale.heavy_tail ? scale.largest : scale.mad) + std::fabs(scale.mean); }

bool is_random(const std::vector<std::string>& passing_nulls) { return !passing_nulls.empty() && passing_nulls.front() == random_reference; }
bool is_lost(const std::vector<std::string>& passing_nulls) { return !passing_nulls.empty() && passing_nulls.front() == lost_in_rounding; }

class auditor {
public:
  auditor(const task& t, reference& ref, const verify_options& options) : task_(t), ref_(ref), options_(options), first_seed_(options.seed ? options.seed : seed_source().next()) {
    for (const auto& spec : t.outputs) {
      const double tolerance = options.tolerance > 0 ? options.tolerance : t.tolerance > 0 ? t.tolerance : default_tolerance(spec.dtype);
      tolerances_.push_back(tolerance);
    }
    returned_ = t.outputs.size() - static_cast<size_t>(std::count_if(t.updates.begin(), t.updates.end(), [](const auto& u) { return u.output >= 0; }));
  }

  expected<task_audit> run() {
    const auto start = std::chrono::steady_clock::now();
    result_.usable.push_back(input_kind::own);
    if (auto made = make_set(input_kind::own, 1); !made) return fail(made.error());
    remember_first_answer();
    add_set(input_kind::own);
    look_for_randomness();
    if (auto made = make_set(input_kind::own, 2); !made) return fail(made.error());
    have_second_ = true;
    add_set(input_kind::own);
    if (!random_) look_for_randomness(); // two draws may be close by chance
    for (auto kind : other_kinds) {
      if (options_.cancel && options_.cancel->load()) return fail(ec::interrupted, "checking the task was interrupted");
      if (!has_floating_input()) break; // every kind would be the task's own distribution again
      if (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > kinds_seconds) {
        result_.notes.push_back(input_set_name(kind, 0) + ": left out, the reference and its float64 twin are slow");
        continue;
      }
      if (auto made = make_set(kind, 0); !made) {
        if (!is_reference_refusal(made.error())) return fail(made.error());
        result_.notes.push_back(input_set_name(kind, 0) + ": left out, the reference refuses them (" + made.error().message + ")");
        continue;
      }
      if (!informative(kind)) continue;
      result_.usable.push_back(kind);
      add_set(kind);
    }
    conclude();
    return result_;
  }

private:
  expected<void> make_set(input_kind kind, int number) {
    return ref_.make_inputs(0, seed_of_set(first_seed_, static_cast<int>(kind), number), kind, options_.keep_sets);
  }

  bool has_floating_input() const {
    return std::any_of(task_.inputs.begin(), task_.inputs.end(), [](const auto& spec) { return is_floating(spec.dtype); });
  }

  output_view view(int slot, size_t i) const {
    const auto& spec = task_.outputs[i];
    const auto out = ref_.reference_output(slot, i);
    const auto oracle = ref_.oracle(slot, i);
    return {spec, out, oracle, scale_of(spec, out, oracle)};
  }

  void remember_first_answer() {
    for (size_t i = 0; i < task_.outputs.size(); ++i) {
      const auto v = view(0, i);
      first_answer_.emplace_back(v.reference.begin(), v.reference.end());
      first_mean_.push_back(v.scale.mean);
      own_sizes_.push_back(v.scale.mad);
    }
  }

  /// A random reference (Dropout in training mode) cannot be imitated. Its float64 twin draws other numbers, so that the
  /// two are far apart; mere reordering of sums leaves them close.
  void look_for_randomness() {
    if (task_.deterministic || !ref_.oracle_is_float64()) return;
    for (size_t i = 0; i < task_.outputs.size(); ++i) {
      auto v = view(0, i);
      v.scale.reference_error = 0;
      v.scale.relative_error = 0;
      v.scale.part = {};
      if (!is_floating(v.spec.dtype)) continue;
      const auto found = compare_output(v.spec, v.reference, v.oracle, v.scale, v.reference.data(), random_distance);
      if (found.wrong == 0) continue;
      random_ = true;
      return;
    }
  }

  /// A kind whose outputs are mostly NaN or Inf, or drowned in the reference's own rounding, tells nothing.
  bool informative(input_kind kind) {
    const auto what = input_set_name(kind, 0);
    bool any = false;
    for (size_t i = 0; i < task_.outputs.size(); ++i) {
      const auto v = view(0, i);
      if (!is_floating(v.spec.dtype)) {
        any = true;
        continue;
      }
      const int64_t lost = v.spec.elements() - v.scale.finite;
      if (lost > 0)
        result_.notes.push_back(what + ": the reference gives NaN or Inf at " + std::to_string(lost) + " of " +
                                std::to_string(v.spec.elements()) + " elements of " + v.spec.name);
      const double size = size_of_all(v.scale);
      const bool drowned = defaults::reference_error_factor * v.scale.reference_error > hopeless_error * size && size > 0;
      if (drowned) result_.notes.push_back(what + ": the reference's rounding error is as large as " + v.spec.name + " itself");
      any = any || (2 * lost <= v.spec.elements() && !drowned);
    }
    if (!any) result_.notes.push_back(what + ": left out");
    return any;
  }

  void add_set(input_kind kind) {
    for (size_t i = 0; i < task_.outputs.size(); ++i) {
      auto v = view(0, i);
      judge_at_own_size(v.scale, kind, own_sizes_[i]);
      note_rounding(v, i);
      if (kind == input_kind::own && i < returned_) certain_ = certain_ || !is_lost_in_rounding(v, i);
      const auto constant = [&](double value) {
        return [this, &v, value](int64_t, int64_t count) {
          for (int64_t e = 0; e < count; ++e) set_element(v.spec.dtype, scratch_.data(), e, value);
        };
      };
      consider("zeros", v, i, constant(0));
      consider("ones", v, i, constant(1));
      consider("a constant", v, i, constant(first_mean_[i]));
      consider("uninitialised memory", v, i, [&](int64_t, int64_t) { std::fill(scratch_.begin(), scratch_.end(), std::byte{0xa5}); });
      consider_partial(v, i);
      if (have_second_)
        consider(another_answer, v, i, [&](int64_t first, int64_t count) {
          const auto width = size_of(v.spec.dtype);
          std::memcpy(scratch_.data(), first_answer_[i].data() + static_cast<size_t>(first) * width, static_cast<size_t>(count) * width);
        });
      const auto& in = ref_.inputs_layout();
      for (size_t k = 0; k < in.specs.size(); ++k) {
        const auto name = "a copy of input " + in.specs[k].name;
        const std::byte* data = ref_.inputs_data() + in.offsets[k];
        if (in.specs[k].elements() != v.spec.elements()) {
          note(name, i, never);
          continue;
        }
        consider(name, v, i, [&](int64_t first, int64_t count) {
          for (int64_t e = 0; e < count; ++e)
            set_element(v.spec.dtype, scratch_.data(), e, element_value(in.specs[k].dtype, data, first + e));
        });
      }
    }
  }

  /// Little computed: right answers where they are large, in one slice, in half of the channels; zero elsewhere.
  void consider_partial(const output_view& v, size_t i) {
    if (!is_floating(v.spec.dtype)) return;
    const int64_t n = v.spec.elements(), channels = v.spec.shape.size() > 1 ? v.spec.shape[1] : 1;
    const int64_t behind = channels > 0 && v.spec.shape.size() > 1 ? n / std::max<int64_t>(1, v.spec.shape[0] * channels) : 1;
    const double cut = std::max(large_share * v.scale.largest, zero_factor * tolerances_[i] * v.scale.mad);
    const auto truth = [&](int64_t e) { return v.oracle.empty() ? element_value(v.spec.dtype, v.reference.data(), e) : v.oracle[static_cast<size_t>(e)]; };
    const auto channel = [&](int64_t e) { return e / std::max<int64_t>(1, behind) % std::max<int64_t>(1, channels); };
    const auto right_where = [&](const std::string& name, auto&& chosen) {
      entry(name).partial = true;
      consider(name, v, i, [&](int64_t first, int64_t count) {
        for (int64_t e = 0; e < count; ++e) set_element(v.spec.dtype, scratch_.data(), e, chosen(first + e) ? truth(first + e) : 0);
      });
    };
    right_where("the answer where it is large", [&](int64_t e) { return std::fabs(truth(e)) >= cut; });
    if (channels < 2) return;
    int64_t largest = 0;
    for (int64_t e = 0, best = 0; e < n; ++e)
      if (std::fabs(truth(e)) > std::fabs(truth(best))) largest = channel(best = e);
    right_where("one slice of the answer", [&](int64_t e) { return channel(e) == largest; });
    right_where("half of the answer", [&](int64_t e) { return channel(e) < channels / 2; });
  }

  /// `fill(first, count)` writes those elements of the null kernel's output into scratch_. Piece by piece: most null
  /// kernels fail at once, and outputs may be large.
  template <class F> void consider(const std::string& name, const output_view& v, size_t output, F&& fill) {
    const int64_t n = v.spec.elements();
    scratch_.resize(static_cast<size_t>(std::min(n, piece)) * size_of(v.spec.dtype));
    for (int64_t first = 0; first < n && !is_known_to_fail(name, output); first += piece) {
      const int64_t count = std::min(piece, n - first);
      fill(first, count);
      const double needed = needed_tolerance(v.spec, v.reference, v.oracle, v.scale, scratch_.data(), first, count);
      note(name, output, needed == 0 ? 0 : tolerances_[output] > 0 ? needed / tolerances_[output] : never);
    }
  }

  null_kernel& entry(const std::string& name) {
    for (auto& n : nulls_)
      if (n.name == name) return n;
    nulls_.push_back({name, false, std::vector<double>(task_.outputs.size(), 0)});
    return nulls_.back();
  }
  void note(const std::string& name, size_t output, double needed) {
    auto& worst = entry(name).needed[output];
    worst = std::max(worst, needed);
  }
  /// Far above any tolerance and the reference's rounding already: the other sets cannot change that.
  bool is_known_to_fail(const std::string& name, size_t output) {
    const double needed = entry(name).needed[output];
    const auto& known = roundings_[output];
    const double rounding = known.empty() ? 0 : *std::max_element(known.begin(), known.end());
    return needed > 1 && needed * tolerances_[output] > beyond_rounding * rounding;
  }

  /// What tolerance the reference's own rounding would need on this set, as an average over the elements.
  void note_rounding(const output_view& v, size_t i) {
    roundings_.resize(task_.outputs.size());
    const double size = size_of_all(v.scale);
    if (is_floating(v.spec.dtype) && size > 0) roundings_[i].push_back(defaults::reference_error_factor * v.scale.reference_error / size);
  }
  /// Of most elements: of one, a step (a rounding, a comparison) may be taken to either side.
  bool is_lost_in_rounding(const output_view& v, size_t i) const {
    if (!is_floating(v.spec.dtype) || v.oracle.empty() || roundings_[i].empty() || roundings_[i].back() <= hopeless_error) return false;
    const double size = size_of_all(v.scale);
    int64_t lost = 0;
    for (int64_t e = 0; e < v.spec.elements(); ++e)
      lost += defaults::reference_error_factor * std::fabs(element_value(v.spec.dtype, v.reference.data(), e) - v.oracle[static_cast<size_t>(e)]) > hopeless_error * size;
    return 2 * lost > v.spec.elements();
  }
  /// The rounding of an output, from all sets: of few elements the reference's error on one set is small by luck (a running mean of one channel, random_graphs, seed 5079). Not the
  /// largest: one kind may be rounded far more than the others.
  double rounding(size_t i) const {
    auto all = roundings_[i];
    if (all.empty()) return 0;
    const auto upper_quartile = static_cast<std::ptrdiff_t>(all.size() / 4);
    std::nth_element(all.begin(), all.begin() + upper_quartile, all.end(), std::greater<>());
    return all[static_cast<size_t>(upper_quartile)];
  }

  /// The factor on the tolerance of output `i` that refuses this null kernel there; 1 where it is refused, or drowned, as it is.
  double tightened_by(const null_kernel& null, size_t i) const {
    const double needed = null.needed[i];
    if (is_drowned(null, i) || needed <= 0 || needed > 1) return 1;
    // Of few different values, as in half types, by chance none may lie between what any rule takes for zero and what the null kernel leaves out.
    const double honest = null.partial ? honest_roundings * epsilon_of(task_.outputs[i].dtype) / tolerances_[i] : 0;
    if (needed < honest) return 1;
    // Where the null kernel stays refused by far with what the output's rounding needs, an honest one gets that.
    const double roundings = rounding(i) / tolerances_[i];
    return std::max({needed / margin, 2 * roundings < needed ? roundings : 0, honest});
  }
  bool is_drowned(const null_kernel& null, size_t i) const { return tolerances_[i] > 0 && null.needed[i] * tolerances_[i] <= rounding(i); }

  void conclude() {
    std::vector<std::string> because(task_.outputs.size());
    result_.tightening.assign(task_.outputs.size(), 1);
    for (const auto& null : nulls_) {
      bool refused = false;
      for (size_t i = 0; i < null.needed.size(); ++i) {
        refused = refused || (null.needed[i] > 0 && !is_drowned(null, i));
        if (const double factor = tightened_by(null, i); factor < result_.tightening[i]) {
          result_.tightening[i] = factor;
          because[i] = null.name;
        }
      }
      if (!refused && !null.partial && !task_.outputs.empty()) result_.passing_nulls.push_back(null.name);
    }
    for (size_t i = 0; i < because.size(); ++i)
      if (!because[i].empty())
        result_.notes.push_back("tolerance " + (because.size() > 1 ? "of " + task_.outputs[i].name + " " : std::string()) + "tightened to " + short_number(result_.tightening[i]) +
                                " of the default: otherwise " + because[i] + " would pass");
    if (random_ || !certain_) result_.passing_nulls.insert(result_.passing_nulls.begin(), random_ ? random_reference : lost_in_rounding);
  }

  static std::string short_number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2g", value);
    return text;
  }

  const task& task_;
  reference& ref_;
  const verify_options& options_;
  uint64_t first_seed_;
  std::vector<double> tolerances_, first_mean_, own_sizes_;
  std::vector<std::vector<double>> roundings_; ///< per output, of each set
  std::vector<buffer> first_answer_;
  buffer scratch_;
  std::vector<null_kernel> nulls_;
  size_t returned_ = 0; ///< outputs: those of forward(), before the buffers that it updates
  bool random_ = false, certain_ = false; ///< does something that forward() returns depend on more than the rounding?
  bool have_second_ = false;
  task_audit result_;
};

} // namespace

expected<task_audit> audit_task(const task& t, reference& ref, const verify_options& options) {
  return auditor(t, ref, options).run();
}

std::string why_unverifiable(const std::vector<std::string>& passing_nulls) {
  if (passing_nulls.empty()) return {};
  if (is_random(passing_nulls) || is_lost(passing_nulls)) return "this task cannot be verified: " + passing_nulls.front();
  return "this task cannot be verified: " + join(passing_nulls, ", ") + (passing_nulls.size() == 1 ? "" : " each") +
         " would pass on every input set (its output hardly depends on the input, or is lost in the reference's rounding error)";
}

error unverifiable_task(const std::vector<std::string>& passing_nulls) {
  const bool alike = passing_nulls == std::vector<std::string>{another_answer};
  return {ec::task_invalid, why_unverifiable(passing_nulls),
          is_random(passing_nulls) ? "take the random numbers out of forward(), or call eval() on the layers that draw them"
          : is_lost(passing_nulls) ? "batch norms in training mode over few values enlarge every rounding some hundred times: use a larger batch, or call self.eval() at the end of Model.__init__()"
          : alike ? "let the output depend on the inputs: attention without batch_first=True takes the first dimension for the sequence, and many layers with initial weights may let nothing through; "
                    "or set a smaller tolerance in the task's sidecar"
                  : "change the task so that its output depends on its inputs, or set a smaller tolerance in its sidecar"};
}

} // namespace pragma
