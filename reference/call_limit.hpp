// How long a candidate may take before it counts as hanging, from what the reference takes now. Used by verification and timing.
#pragma once

#include "reference/reference.hpp"

namespace pragma {

struct call_limit {
  double reference_seconds = 0; ///< of one call
  double seconds = 0;           ///< that one call of a candidate may take

  /// As many of `wanted` calls as the reference makes in a few seconds, at least `least`: what a first look, or warming up, takes.
  int64_t few(int64_t wanted, int64_t least) const;
  /// Seconds of a command of so many calls, on a device: a kernel several times slower than the reference comes back in time. It does not grow
  /// beyond `most` calls: samples are milliseconds of a device's time, so that a longer command is no honest one.
  double of(int64_t calls, int64_t most) const;
};

/// One call of the reference is timed, and waiting for its device is not its time: 100 times that, at least `shortest`, at most
/// defaults::call_timeout_seconds or three times the reference's.
expected<call_limit> limit_of_call(reference& ref, double shortest);

} // namespace pragma
