// Where factors of float32 may be rounded to TF32 (11 significant bits) on a device, by Torch and by kernels alike.
#pragma once

#include <nlohmann/json.hpp>

namespace pragma {

/// `convolutions` is what a Torch program has that says nothing: those for which its library then chooses a kernel that rounds.
enum class tf32_use { none, convolutions, all };
NLOHMANN_JSON_SERIALIZE_ENUM(tf32_use, {{tf32_use::none, "none"}, {tf32_use::convolutions, "convolutions"}, {tf32_use::all, "all"}})

/// How: to the nearest, ties away from zero or to the even one. Tensor cores by themselves cut.
enum class tf32_rounding { none, away, even };
NLOHMANN_JSON_SERIALIZE_ENUM(tf32_rounding, {{tf32_rounding::none, ""}, {tf32_rounding::away, "away"}, {tf32_rounding::even, "even"}})

} // namespace pragma
