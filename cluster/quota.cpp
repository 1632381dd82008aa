#include "cluster/quota.hpp"

#include "base/files.hpp"
#include "base/text.hpp"

#include <charconv>
#include <cstdlib>

namespace pragma {

expected<quotas> read_quotas(const std::filesystem::path& file) {
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return quotas{};
  auto text = read_file(file);
  if (!text) return fail(text.error());
  auto settings = parse_settings(*text, file.string(), json(quotas{}));
  if (!settings) return fail(settings.error());
  json all = quotas{};
  all.update(*settings);
  return from_json_value<quotas>(all, file.string());
}

namespace {

constexpr const char* constraint_help = "constraints: mem>=64G, avx512, avx2, cuda>=9.0 (compute capability), arch=TEXT, tool=NAME, node=NAME; several with commas";

expected<uint64_t> bytes_of(const std::string& text) {
  uint64_t number = 0;
  const auto* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  static const std::string units = "KMGT";
  if (read.ec == std::errc() && read.ptr == end) return number;
  const auto unit = read.ec == std::errc() && read.ptr + 1 == end ? units.find(*read.ptr) : std::string::npos;
  if (unit == std::string::npos || number > (1ull << 20)) return fail(ec::invalid_argument, "'" + printable(text) + "' is no size", "a number with K, M, G or T: mem>=64G");
  return number << (10 * (unit + 1));
}

} // namespace

expected<job_needs> with_constraints(job_needs needs, const std::string& constraints) {
  for (const auto& part : split(constraints, ',')) {
    const auto word = trim(part);
    if (word.empty()) continue;
    if (word.starts_with("mem>=")) {
      auto bytes = bytes_of(word.substr(5));
      if (!bytes) return fail(bytes.error());
      needs.memory_bytes = *bytes;
    } else if (word == "avx512" || word == "avx2") {
      needs.simd_bits = word == "avx512" ? 512 : 256;
    } else if (word.starts_with("cuda>=")) {
      char* end = nullptr;
      const auto digits = word.substr(6);
      const double capability = std::strtod(digits.c_str(), &end);
      if (digits.empty() || *end != 0 || !(capability > 0 && capability < 100)) return fail(ec::invalid_argument, "'" + printable(word) + "' names no compute capability", "as in cuda>=9.0");
      needs.capability = static_cast<int>(capability * 10 + 0.5);
    } else if (word.starts_with("arch=")) {
      needs.arch = word.substr(5);
    } else if (word.starts_with("tool=")) {
      needs.tools.push_back(word.substr(5));
    } else if (word.starts_with("node=")) {
      needs.node = word.substr(5);
    } else {
      return fail(ec::invalid_argument, "'" + printable(word) + "' is no constraint", constraint_help);
    }
  }
  return needs;
}

} // namespace pragma
