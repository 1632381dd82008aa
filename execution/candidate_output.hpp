// What a candidate's process printed, and how it ended, in words. Used by runner_process.cpp only.
#pragma once

#include "base/subprocess.hpp"
#include "reference/reference.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace pragma {

/// Both streams of a process, bounded. The lines by which its runner explains an end (execution/runner/protocol.h) come last, after whatever
/// filled the space before: they are kept all the same. All of it is a hint, since the candidate could write it, too.
class candidate_output {
public:
  void add(std::string_view chunk);
  const std::string& text() const { return text_; }
  /// For people: without the runner's lines, printable, cut in the middle.
  std::string log() const;
  /// Operators of aten that a call left to Torch: "mm:1"; empty where the runner named none.
  std::vector<std::string> torch_operators() const;

  /// What a Python candidate raised; empty: nothing.
  struct exception {
    std::string text;
    bool no_memory = false; ///< memory was refused to it, on the device or here
  };
  exception raised() const;
  /// The latest line about a forbidden call or an address, of one of `layouts` (parameters, inputs, outputs): "wrote past the end of output
  /// out0 (byte 64 of 64)"; empty when there is none or it makes no sense.
  std::string explain(const tensor_layout* const (&layouts)[3]) const;

private:
  std::string last_line(std::initializer_list<const char*> marks) const;

  std::string text_;
  std::vector<std::string> late_; ///< the latest line of each mark that no longer fitted, as it was read
};

/// How a process ended: "was killed by SIGSEGV (...)", and what others decide by.
struct candidate_end {
  std::string how;
  cause why = cause::unknown;
};

/// `one_thread`: starting a second one is refused.
candidate_end end_of(const process_result& result, const candidate_output& printed, const tensor_layout* const (&layouts)[3], bool one_thread);

} // namespace pragma
