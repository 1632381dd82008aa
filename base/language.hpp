// The languages in which candidates are written: one row each. What a room does for a language (the prompt, the repairs, the search) is a
// table of that room, by the same names; everything else asks the properties here, so that no name of a language stands elsewhere.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace pragma {

struct language {
  std::string_view name;      ///< in records, manifests of backends and options: "c++", "triton"
  /// A module that a process of Python imports beside Torch, which compiles its kernels there; else one translation unit that a compiler makes
  /// an executable of, with a compiler and flags of its own.
  bool in_python = false;
  std::string_view ending;    ///< of its files: ".cpp"
  std::string_view fence;     ///< of a block of code: "cpp"
  std::string_view no_kernel; ///< a source that is none, for an attempt in which a model gave no usable answer
};

/// The language of host kernels first.
std::span<const language> languages();
/// Null where there is none of that name.
const language* find_language(std::string_view name);
/// False for an unknown name, too: whoever builds a candidate says that it is unknown.
bool in_python(std::string_view name);
/// "c++ or triton", for messages.
std::string language_names();

namespace language_name {
inline constexpr const char* cpp = "c++";
inline constexpr const char* triton = "triton";
} // namespace language_name

} // namespace pragma
