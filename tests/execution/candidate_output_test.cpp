// What is made of a candidate's last words and of its end: codes where somebody decides, and sentences for people.
#include "execution/candidate_output.hpp"
#include "execution/runner/protocol.h"

#include <catch2/catch.hpp>
#include <csignal>

using namespace pragma;

namespace {

tensor_layout one_tensor(const std::string& name) {
  tensor_layout layout;
  layout.specs = {{name, dtype::float32, {4, 4}}};
  layout.offsets = {0};
  return layout;
}

const tensor_layout params = one_tensor("weight"), inputs = one_tensor("x"), outputs = one_tensor("out0");

candidate_output printed(const std::string& text) {
  candidate_output out;
  out.add(text);
  return out;
}

candidate_end ended(int exit_code, int signal, const std::string& text = "", bool one_thread = false) {
  process_result result;
  result.exit_code = signal ? -1 : exit_code;
  result.signal = signal;
  return end_of(result, printed(text), {&params, &inputs, &outputs}, one_thread);
}

} // namespace

TEST_CASE("memory that was refused is a cause of its own, whatever the message says") {
  const auto full = ended(3, 0, PRAGMA_HINT_NO_MEMORY " raised OutOfMemoryError in line 7: CUDA ran full\n");
  CHECK(full.why == cause::out_of_memory);
  CHECK(full.how == "raised OutOfMemoryError in line 7: CUDA ran full");
  const auto words = ended(3, 0, PRAGMA_HINT_RAISED " raised ValueError: out of memory, says somebody\n");
  CHECK(words.why == cause::unknown);
  CHECK(words.how == "raised ValueError: out of memory, says somebody");
}

TEST_CASE("an instruction that the processor does not have is a cause of its own") {
  CHECK(ended(0, SIGILL).why == cause::illegal_instruction);
  CHECK(ended(0, SIGILL).how.find("SIGILL") != std::string::npos);
  CHECK(ended(0, SIGSEGV, "it says SIGILL\n").why == cause::unknown);
}

TEST_CASE("how a process ended is said with what it touched or asked for") {
  CHECK(ended(0, SIGSEGV, PRAGMA_HINT_FAULT " w 2 0 0 64\n").how.find("wrote past the end of output out0 (byte 64 of 64)") != std::string::npos);
  CHECK(ended(0, SIGSEGV, PRAGMA_HINT_FAULT " r 0 0 0 -8\n").how.find("read 8 bytes before the start of parameter weight") != std::string::npos);
  CHECK(ended(0, SIGSEGV, PRAGMA_HINT_FAULT " w 1 0 7 64\n").how.find("x") == std::string::npos); // there is no such tensor
  CHECK(ended(0, SIGSYS, PRAGMA_HINT_FORBIDDEN " 2 /etc/passwd\n").how == "used a forbidden system call (open of /etc/passwd)");
  CHECK(ended(0, SIGSYS, "", true).how.find("second thread") != std::string::npos);
  CHECK(ended(0, SIGKILL).how.find("ran out") != std::string::npos);
  CHECK(ended(7, 0).how == "ended its process by itself (exit code 7)");
}

TEST_CASE("what the runner said last is found although the candidate filled the space before") {
  candidate_output out;
  for (int i = 0; i < 100; ++i) out.add(std::string(1000, 'a') + "\n");
  out.add(PRAGMA_HINT_TORCH " mm:1,add:2\n");
  out.add(std::string(PRAGMA_HINT_NO_MEMORY) + " raised MemoryError\n");
  CHECK(out.text().size() < 70000);
  CHECK(out.torch_operators() == std::vector<std::string>{"mm:1", "add:2"});
  CHECK(out.raised().no_memory);
  CHECK(out.raised().text == "raised MemoryError");
  CHECK(out.log().find("pragma-") == std::string::npos);
  CHECK(printed("").raised().text.empty());
  CHECK(printed("pragma-raisedX nonsense\npragma-fault\n").raised().text.empty());
}
