#include "reference/call_limit.hpp"

#include "devices/device_lease.hpp"

#include <algorithm>
#include <chrono>

namespace pragma {

namespace {

constexpr double slowest = 100;      ///< times the reference's call
constexpr double slowest_of_slow = 3; ///< ... where that is longer than any call should be; and of each further call in a command
constexpr double further_call = 0.1; ///< ... or this much of the first one's limit
constexpr double few_seconds = 4;

using steady = std::chrono::steady_clock;

} // namespace

int64_t call_limit::few(int64_t wanted, int64_t least) const {
  return std::max(least, std::min(wanted, static_cast<int64_t>(few_seconds / std::max(reference_seconds, 1e-6))));
}

double call_limit::of(int64_t calls, int64_t most) const {
  return seconds + static_cast<double>(std::min(calls, most)) * std::max(further_call * seconds, slowest_of_slow * reference_seconds);
}

expected<call_limit> limit_of_call(reference& ref, double shortest) {
  const auto lease = lease_device(ref.device());
  const auto start = steady::now();
  if (auto ran = ref.run(1); !ran) return fail(ran.error());
  call_limit limit;
  limit.reference_seconds = std::chrono::duration<double>(steady::now() - start).count();
  limit.seconds = std::min(std::max(shortest, slowest * limit.reference_seconds),
                           std::max(defaults::call_timeout_seconds, slowest_of_slow * limit.reference_seconds));
  return limit;
}

} // namespace pragma
