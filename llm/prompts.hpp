// Brief -> prompt, and answer -> candidate. The only place that knows how we talk to a model about kernels.
#pragma once

#include "base/tf32.hpp"
#include "diagnosis/brief.hpp"
#include "llm/chat.hpp"

namespace pragma {

/// What the model must know of the task and the machine, as plain text facts (llm/ does not know kernels/).
struct coding_task {
  std::string name, source;                ///< the KernelBench file
  std::vector<std::string> inputs, params, outputs; ///< "x: float32[16, 16384]"
  std::string abi_header;                  ///< pragma_kernel.h
  std::string machine;                     ///< "AMD EPYC, AVX2 (256 bit), 1 thread, L1d 32 KiB, L2 512 KiB, ..., 12.9 GB/s copy, 95 GFLOP/s peak"
  std::string language = "c++";            ///< what candidates are written in (base/language.hpp)
  std::string device;                      ///< Triton: "NVIDIA H200, sm_90, 132 multiprocessors, ..."; `machine` describes the host
  bool allow_torch = false;                ///< Triton: forward() may let Torch compute
  tf32_use tf32 = tf32_use::none;          ///< Triton: which products may be of TF32
  std::vector<std::string> narrow_types;   ///< of "float16", "bfloat16", "int8" those that the task has tensors of or computes in; none: its products are of float32 (or wider)
  double tolerance = 0;                    ///< of results, relative to |value| + mean absolute deviation; 0 = unknown, or they are integers
  bool tiles = false;                      ///< C++: the processor has AMX, and a narrow type of the task is one that it takes
  std::vector<std::string> allowed_flags;  ///< examples; C++ only
  std::string seed_source;                 ///< --seed builtin: a strong kernel to start from; may be empty
};

/// System and user messages for this brief; the user message has the paper's five parts under fixed headings
/// ("1. Your last code", "2. Errors: causes and remedies", "3. What the metrics mean", "4. Results", "5. Best version so far").
std::vector<chat_message> render_prompt(const coding_task& t, const brief& b);

/// What an answer must contain: one fenced source (C++, or a Python module for Triton), for C++ an optional flags line, a short rationale.
struct coded_answer {
  std::string source, compiler, rationale;
  std::string answers; ///< the class of finding that it sets out to remove, from a line "answers: CLASS"; "" = none, or no such class
  std::vector<std::string> flags;
};
/// Strict: parse_error says what is missing, in words that can be sent back to the model ("no fenced code block", "two fenced sources", "pragma_kernel is not defined").
expected<coded_answer> parse_answer(std::string_view text, const std::string& language = "c++");
/// The message that asks once more after a malformed answer.
chat_message ask_again(const error& reason, const std::string& language = "c++");

} // namespace pragma
