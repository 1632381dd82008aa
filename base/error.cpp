#include "base/error.hpp"

namespace pragma {

const char* name(ec code) {
  switch (code) {
    case ec::invalid_argument: return "invalid_argument";
    case ec::not_found: return "not_found";
    case ec::io_error: return "io_error";
    case ec::parse_error: return "parse_error";
    case ec::timeout: return "timeout";
    case ec::limit_exceeded: return "limit_exceeded";
    case ec::task_invalid: return "task_invalid";
    case ec::unsupported: return "unsupported";
    case ec::build_failed: return "build_failed";
    case ec::candidate_failed: return "candidate_failed";
    case ec::measurement_failed: return "measurement_failed";
    case ec::tool_failed: return "tool_failed";
    case ec::remote_failed: return "remote_failed";
    case ec::locked: return "locked";
    case ec::interrupted: return "interrupted";
    case ec::internal: return "internal";
    case ec::no_compiler: return "no_compiler";
    case ec::busy: return "busy";
    case ec::left_as_it_is: return "left_as_it_is";
    case ec::torch_only: return "torch_only";
  }
  return "internal";
}

std::string render(const error& e) {
  std::string text = (e.code == ec::left_as_it_is ? "" : "error: ") + e.message;
  if (!e.hint.empty()) text += "\n  hint: " + e.hint;
  return text;
}

int exit_code(ec code) {
  switch (code) {
    case ec::left_as_it_is: return 0;
    case ec::invalid_argument:
    case ec::parse_error: return 2;
    case ec::not_found:
    case ec::no_compiler:
    case ec::torch_only:
    case ec::unsupported: return 3;
    case ec::task_invalid: return 4;
    case ec::build_failed:
    case ec::candidate_failed: return 5;
    case ec::interrupted: return 130;
    case ec::internal: return 70;
    default: return 6;
  }
}

} // namespace pragma
