// A verdict by its stage in words, for tables of tests.
#pragma once

#include "kernels/verdict.hpp"

namespace pragma::test {

inline verdict refused(const std::string& stage, std::string reason = {}, std::string log = {}) {
  verdict v;
  v.stage = json(stage).get<verdict_stage>();
  v.reason = std::move(reason);
  v.log = std::move(log);
  return v;
}

} // namespace pragma::test
