// Does one thing take longer than another? Decided by how often, not by how much, so that a busy machine cannot decide it: the two are done
// in random order after the same preparation, and where nothing but chance makes the first one slower, it is slower in a round with
// a probability of at most one half. What is slower for a reason of the machine's (a core that was woken, a cache that others use) is slower in most rounds, too: so the least
// time of either side has to show it as well. Other work makes a time longer, never shorter, and who does more has no round in which it did less. Used by the audits of speed.
#pragma once

#include <algorithm>

namespace pragma {

class repeated_look {
public:
  static constexpr int most_rounds = 20, rounds_that_show = 18; ///< by chance: 2e-4, and two independent looks have to agree

  static constexpr double least_ratio = 1.25; ///< of the least times

  /// One round: seconds of what may be slower, of the other, and whether it was.
  void add(double one, double other, bool slower) {
    ++rounds_;
    slower_ += slower;
    one_ = std::min(one_, one);
    other_ = std::min(other_, other);
  }
  /// Least seconds of either side.
  double one() const { return one_; }
  double other() const { return other_; }
  int rounds() const { return rounds_; }
  /// Chance explains it: no more rounds are needed.
  bool innocent() const { return 2 * slower_ <= rounds_; }
  bool shown() const { return rounds_ >= most_rounds && slower_ * most_rounds >= rounds_that_show * rounds_ && one_ > least_ratio * other_; }
  /// All rounds were made, and they decide nothing.
  bool undecided() const { return rounds_ >= most_rounds && !innocent() && !shown(); }

private:
  int rounds_ = 0, slower_ = 0;
  double one_ = 1e300, other_ = 1e300;
};

} // namespace pragma
