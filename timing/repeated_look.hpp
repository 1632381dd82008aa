// Does one thing take longer than another? The two are done in random order after the same preparation, round by round. Other work makes a time longer, never shorter: so the least
// times of many rounds are those of the work itself, and who does more has no round in which it did less. To be innocent, the least times suffice; to accuse, nearly all rounds have
// to show it as well, which no single disturbance can make. Used by the audits of speed.
#pragma once

#include <algorithm>

namespace pragma {

class repeated_look {
public:
  static constexpr int most_rounds = 20, rounds_that_show = 18; ///< by chance: 2e-4, and two independent looks have to agree

  /// Slower is what takes more than `factor` times the other and `slack` seconds.
  repeated_look(double factor, double slack) : factor_(factor), slack_(slack) {}

  /// One round: seconds of what may be slower, and of the other.
  void add(double one, double other) {
    ++rounds_;
    slower_ += slower(one, other);
    one_ = std::min(one_, one);
    other_ = std::min(other_, other);
  }
  /// Least seconds of either side.
  double one() const { return one_; }
  double other() const { return other_; }
  int rounds() const { return rounds_; }
  /// No more rounds are needed: in its best round the one was no slower than the other in its best, and chance explains the rest.
  bool innocent() const { return !slower(one_, other_) && (2 * slower_ <= rounds_ || rounds_ >= most_rounds); }
  bool shown() const { return rounds_ >= most_rounds && slower_ * most_rounds >= rounds_that_show * rounds_ && slower(one_, other_); }
  /// All rounds were made, and they decide nothing.
  bool undecided() const { return rounds_ >= most_rounds && !innocent() && !shown(); }

private:
  bool slower(double one, double other) const { return one > factor_ * other + slack_; }

  double factor_, slack_;
  int rounds_ = 0, slower_ = 0;
  double one_ = 1e300, other_ = 1e300;
};

} // namespace pragma
