// Does one thing take longer than another? Decided by how often, not by how much, so that a busy machine cannot decide it: the two are done
// in random order after the same preparation, and where nothing but chance makes the first one slower, it is slower in a round with
// a probability of at most one half. Used by the audits of speed.
#pragma once

namespace pragma {

class repeated_look {
public:
  static constexpr int most_rounds = 20, rounds_that_show = 18; ///< by chance: 2e-4, and two independent looks have to agree

  void add(bool slower) {
    ++rounds_;
    slower_ += slower;
  }
  int rounds() const { return rounds_; }
  /// Chance explains it: no more rounds are needed.
  bool innocent() const { return 2 * slower_ <= rounds_; }
  bool shown() const { return rounds_ >= most_rounds && slower_ * most_rounds >= rounds_that_show * rounds_; }
  /// All rounds were made, and they decide nothing.
  bool undecided() const { return rounds_ >= most_rounds && !innocent() && !shown(); }

private:
  int rounds_ = 0, slower_ = 0;
};

} // namespace pragma
