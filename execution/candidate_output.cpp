#include "execution/candidate_output.hpp"

#include "base/text.hpp"
#include "execution/runner/protocol.h"
#include "sandbox/sandbox_filter.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>

namespace pragma {

namespace {

constexpr size_t max_captured = 64 << 10; ///< bytes kept of the candidate's stdout and stderr
constexpr const char* marks[] = {PRAGMA_HINT_FORBIDDEN, PRAGMA_HINT_FAULT, PRAGMA_HINT_RAISED, PRAGMA_HINT_NO_MEMORY, PRAGMA_HINT_TORCH};

bool begins_with(const std::string& line, const char* mark) { return line.rfind(std::string(mark) + " ", 0) == 0; }

std::string without_mark(const std::string& line) {
  const auto space = line.find(' ');
  return space == std::string::npos ? "" : line.substr(space + 1);
}

std::string forbidden(const std::string& line, const std::vector<std::string>& words) {
  if (words[2] == PRAGMA_THREAD) return "used a second thread, but it has one (--threads says how many)";
  auto text = "used a forbidden system call (" + system_call_name(static_cast<int>(std::strtol(words[1].c_str(), nullptr, 10)));
  if (words[2] != "-") text += " of " + line.substr(words[0].size() + words[1].size() + 2, 80);
  return printable(text) + ")";
}

} // namespace

void candidate_output::add(std::string_view chunk) {
  text_.append(chunk.substr(0, max_captured - std::min(max_captured, text_.size())));
  if (text_.size() < max_captured) return;
  for (const char* mark : marks) {
    const auto at = chunk.rfind(std::string(mark) + " ");
    if (at == std::string_view::npos) continue;
    std::erase_if(late_, [mark](const auto& line) { return begins_with(line, mark); });
    late_.emplace_back(chunk.substr(at, chunk.find('\n', at) - at));
  }
}

std::string candidate_output::log() const {
  std::string kept;
  for (const auto& line : split(text_, '\n'))
    if (line.rfind("pragma-", 0) != 0) kept += line + "\n";
  return cut_lines(printable(trim(kept)), 40, 10);
}

std::string candidate_output::last_line(std::initializer_list<const char*> wanted) const {
  std::string found;
  const auto look_at = [&](const std::string& line) {
    for (const char* mark : wanted)
      if (begins_with(line, mark)) found = line;
  };
  for (const auto& line : split(text_, '\n')) look_at(line);
  for (const auto& line : late_) look_at(line);
  return found;
}

std::vector<std::string> candidate_output::torch_operators() const {
  const auto line = last_line({PRAGMA_HINT_TORCH});
  return line.empty() ? std::vector<std::string>{} : split(printable(trim(without_mark(line))), ',');
}

candidate_output::exception candidate_output::raised() const {
  const auto line = last_line({PRAGMA_HINT_RAISED, PRAGMA_HINT_NO_MEMORY});
  return {printable(without_mark(line)), begins_with(line, PRAGMA_HINT_NO_MEMORY)};
}

std::string candidate_output::explain(const tensor_layout* const (&layouts)[3]) const {
  const auto line = last_line({PRAGMA_HINT_FORBIDDEN, PRAGMA_HINT_FAULT});
  const auto words = split(printable(line), ' ');
  if (words.size() < 3) return "";
  if (words[0] == PRAGMA_HINT_FORBIDDEN) return forbidden(line, words);
  const auto value = [&](size_t i) { return i < words.size() ? std::strtol(words[i].c_str(), nullptr, 10) : -1; };
  const std::string verb = words[1] == "w" ? "wrote" : words[1] == "r" ? "read" : "went";
  if (words.size() < 6) return verb + (verb == "went" ? " to" : " at") + " an address outside all tensors (a null or wild pointer, or the stack ran out)";
  if (value(2) < 0 || value(2) > 2) return "";
  const auto group = static_cast<size_t>(value(2));
  const auto tensor = static_cast<size_t>(value(4));
  if (tensor >= layouts[group]->specs.size()) return "";
  const auto& spec = layouts[group]->specs[tensor];
  const long at = value(5), size = static_cast<long>(spec.bytes());
  const std::string name = std::string(group == 0 ? "parameter " : group == 1 ? "input " : "output ") + spec.name;
  if (at < 0) return verb + " " + std::to_string(-at) + " bytes before the start of " + name;
  if (at >= size) return verb + " past the end of " + name + " (byte " + std::to_string(at) + " of " + std::to_string(size) + ")";
  return verb + " to " + name + ", which is read-only";
}

candidate_end end_of(const process_result& result, const candidate_output& printed, const tensor_layout* const (&layouts)[3], bool one_thread) {
  const auto hint = printed.explain(layouts);
  const bool forbidden = hint.rfind("used", 0) == 0;
  if (result.signal == 0 && forbidden) return {hint};
  if (const auto raised = printed.raised(); result.signal == 0 && !raised.text.empty()) return {raised.text, raised.no_memory ? cause::out_of_memory : cause::unknown};
  // The C library starts threads with all signals blocked: then nobody can say which call it was.
  if (result.signal == SIGSYS || result.exit_code == 128 + SIGSYS)
    return {forbidden    ? hint
            : one_thread ? "used a forbidden system call and was killed (starting a second thread is one where it has one, see --threads)"
                         : "used a forbidden system call and was killed"};
  if (result.signal == 0) return {"ended its process by itself (exit code " + std::to_string(result.exit_code) + ")"};
  if (result.out_of_memory) return {"was " + describe_end(result), cause::out_of_memory};
  if (result.signal == SIGKILL) return {"was killed by SIGKILL (CPU time or memory ran out)"};
  candidate_end end{"was " + describe_end(result), result.signal == SIGILL ? cause::illegal_instruction : cause::unknown};
  if (!hint.empty() && (result.signal == SIGSEGV || result.signal == SIGBUS)) end.how += ": it " + hint;
  return end;
}

} // namespace pragma
