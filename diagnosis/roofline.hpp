// Where a time lies on the measured roofline of its machine: the one place that decides it, for the audits of speed, the findings, the terminal and the reports.
#pragma once

#include "base/tf32.hpp"
#include "diagnosis/profile.hpp"
#include "kernels/task.hpp"

namespace pragma {

/// The least precision that a task lets its products have. It decides which units of a device bound them.
enum class product_precision {
  float32, ///< or three products of TF32
  tf32,
  half     ///< the operands are float16 or bfloat16
};
NLOHMANN_JSON_SERIALIZE_ENUM(product_precision, {{product_precision::float32, "float32"}, {product_precision::tf32, "tf32"}, {product_precision::half, "half"}})
/// Half where all of the task's inputs and parameters of floating type have two bytes; else TF32 where that is allowed.
product_precision products_of(const task& t, tf32_use allowed);

/// What of a task decides where a time of one call lies on the roofline.
struct roofline_work {
  double flops = 0, bytes = 0;           ///< of the reference's way to the answer; compulsory bytes of one call
  double written_bytes = -1;             ///< the outputs' part of `bytes`; < 0 = unknown
  product_precision products = product_precision::float32; ///< devices
  bool contracts = true;                 ///< products of matrices or convolutions are among it, as far as is known
};
PRAGMA_JSON(roofline_work, flops, bytes, written_bytes, products, contracts)
/// Of a task as it was loaded or as run.json has it, which needs its flops, bytes, category, inputs, params and outputs. Of a task without outputs what is written is unknown.
roofline_work work_of(const task& t, tf32_use allowed);

/// Position on the measured roofline.
struct roofline_point {
  double gflops = 0, gbs = 0;            ///< achieved
  double intensity = 0;                  ///< flops per byte
  double attainable_seconds = 0;         ///< the least time of one call that nothing contradicts: by bandwidth, and by the peak unless `skips_work`
  double likely_seconds = 0;             ///< the same at what was measured with as many bytes as the call's: no limit for an audit, the better promise. At least attainable_seconds
  double needed_share = 0;               ///< attainable / achieved time, 0..1 (above 1.05 the measurement is suspect)
  double share = 0;                      ///< the same for the work as the reference writes it: never falls when speed rises; above 1 where `skips_work`
  bool skips_work = false;               ///< CPUs: the time rules out that all FLOPs of the reference's formula were executed (a skipped triangle, algebra)
  std::string limit;                     ///< "memory bandwidth", "L2 bandwidth", "L3 bandwidth", "peak FLOP/s", "peak FLOP/s (bfloat16 tiles)"; of a device
                                         ///< "DRAM bandwidth", "peak FLOP/s (FP32)" and the like, "launch latency"
};
/// Which level serves `bytes` per call is decided by the working set against cache_bytes. With `written_bytes`
/// reads and writes are charged at their own measured cost; without it the faster of copying
/// and reading is taken, so that attainable_seconds is never too long and share never too high.
/// `flops` are those of the reference's way to the answer: a time that they rule out shows that there is a shorter one (a diagonal
/// factor, a sum that is pulled out of a product), and then only bytes are known to be needed (`skips_work`).
/// On a device (limits.backend is not "cpu") L2 is flushed before each call: inputs come from its memory, outputs beyond half of
/// L2 go there, and a launch is part of every call. A share above 1 then means less time than the work alone needs.
roofline_point place_on_roofline(double seconds, const roofline_work& work, const machine_limits& limits);

/// "63% of the measured peak FLOP/s"; of a kernel that skips work "more FLOP/s than the peak for the work as the reference writes it: part of that is not
/// executed; its bytes need 5% of the time at the measured L3 bandwidth". Empty for a point without a limit.
std::string roofline_text(const roofline_point& point);

/// Of two measurements of one machine's limits the higher figures, and the shorter launch: other work makes a limit look lower, and nothing makes it look higher.
/// What was not measured is the first one's.
machine_limits better_of(machine_limits limits, const machine_limits& others);

} // namespace pragma
