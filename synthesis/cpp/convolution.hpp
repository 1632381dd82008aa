// Loops of convolutions: the image is copied once with its border of zeros, patches are packed from the copy. The outputs of a
// strided transposed convolution fall into phases, each a plain correlation with the taps that reach it: nothing is multiplied
// by inserted zeros and nothing is added up in memory.
#pragma once

#include "synthesis/cpp/contraction.hpp"
#include "synthesis/cpp/convolution_plan.hpp"

namespace pragma::synthesis {

class convolution_writer : public contraction_writer {
public:
  convolution_writer(const loop_program& program, const region& r, const region_schedule& s, const schedule& all, const region_layout& layout, value_writer& values, code& out)
      : contraction_writer(program, r, s, all, layout, values, out), image_(plan_convolution(r)),
        skips_rows_(!plan_.strided && rows_met(image_, plan_.tile_columns) < 1 - worth_skipping) {}

protected:
  void loops(const code& followers) override;

private:
  void tables();
  void table(const std::string& name, std::vector<int32_t> convolution_phase::*member);
  void phases();
  void allocate();
  void open_phase() { if (plan_.strided) out_.block("for (const auto& p : phases)"); }
  void close_phase() { if (plan_.strided) out_.close(); }
  void open_channels();
  void pack_weights();
  void share();
  void copy_image();
  void copy_row(const std::string& to, const std::string& from);
  void pixels();
  void patches();                  ///< one panel of columns, and the tiles over it
  void strided_patches();
  void strided_tiles();
  std::string weights_at() const;
  std::string base(int buffer, const index_form& f) const;
  std::string first_tap() const { return plan_.strided ? "p.tap[x]" : "0"; }
  std::string taps() const { return plan_.strided ? "p.taps[x]" : std::to_string(image_.taps); }
  /// Taps that follow each other for each channel: of a row where rows of taps are left out, else all.
  std::string taps_of_row() const { return skips_rows_ ? std::to_string(image_.taps / static_cast<int64_t>(image_.phases[0].rows.size())) : taps(); }
  std::string patches_of() const;  ///< arguments of what reads patches: the image, its places, channels and taps
  int64_t channels_of_block() const { return std::min(plan_.block_steps, plan_.size.channels); }

  static constexpr double worth_skipping = 0.05; ///< of the multiplications; less is what looking for them takes (decisions/0061)
  const convolution_plan image_;
  const bool skips_rows_;          ///< a tile leaves out the rows of taps that meet the border only
  bool shares_columns_ = false; ///< threads share out pixels: what follows an image has memory of one thread
};

} // namespace pragma::synthesis
