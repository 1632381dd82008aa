#include "actors/machine_lease.hpp"

namespace pragma {

namespace {

/// For another process: what it holds the processor for takes a minute or two. Who holds it for longer was stopped (Ctrl-Z), and would be waited for in vain.
constexpr auto longest_turn = std::chrono::seconds(300);

} // namespace

machine_lease::machine_lease(const device_choice& where, const std::filesystem::path& turns, const std::atomic<bool>* cancel) {
  // Those who share it come one after the other without a gap where several devices are at work: who wants it alone waits in the door, and nobody gets past.
  static std::mutex door;
  static std::shared_mutex machine;
  static std::atomic<bool> in_vain = false, in_vain_before_the_door = false; // nobody else waits for so long until somebody has had it again
  const std::lock_guard in_the_door(door);
  if (where.on_device()) beside_ = std::shared_lock(machine);
  else alone_ = std::unique_lock(machine);
  if (turns.empty()) return;
  const auto in_the_door_of_all = file_lock::take_or_go_on(turns.string() + ".door", file_lock::kind::exclusive, longest_turn, cancel, in_vain_before_the_door);
  turn_ = file_lock::take_or_go_on(turns, where.on_device() ? file_lock::kind::shared : file_lock::kind::exclusive, longest_turn, cancel, in_vain);
  // Without: a measurement says itself whether others worked meanwhile.
}

} // namespace pragma
