// What is wrong with an output, in words: where, what was expected, how many elements.
#include "base/text.hpp"
#include "verification/compare.hpp"

#include <charconv>
#include <cmath>
#include <cstdio>

namespace pragma {

std::string number_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::general, 6).ptr;
  return std::string(buffer, end);
}

std::vector<int64_t> position_of(const tensor_spec& spec, int64_t index) {
  std::vector<int64_t> position(spec.shape.size());
  for (size_t d = spec.shape.size(); d-- > 0;) {
    const int64_t extent = std::max<int64_t>(spec.shape[d], 1);
    position[d] = index % extent;
    index /= extent;
  }
  return position;
}

mismatch describe_mismatch(const tensor_spec& spec, std::span<const std::byte> reference_output, std::span<const double> oracle,
                           const std::byte* got, const comparison& found, const std::string& input_set) {
  mismatch m;
  m.input_set = input_set;
  m.output = spec.name;
  m.error = found.worst;
  m.wrong_elements = found.wrong;
  m.total_elements = spec.elements();
  if (found.worst_index < 0) return m;
  m.index = position_of(spec, found.worst_index);
  m.got = element_text(spec.dtype, got, found.worst_index);
  m.expected = element_text(spec.dtype, reference_output.data(), found.worst_index);
  const double reference_value = element_value(spec.dtype, reference_output.data(), found.worst_index);
  const double truth = oracle.empty() ? reference_value : oracle[static_cast<size_t>(found.worst_index)];
  if (is_floating(spec.dtype) && std::isfinite(truth)) m.expected = number_text(truth);
  if (m.expected == m.got && is_floating(spec.dtype)) { // too close for six digits
    char buffer[64];
    std::snprintf(buffer, sizeof buffer, "%.12g", truth);
    m.expected = buffer;
    std::snprintf(buffer, sizeof buffer, "%.12g", element_value(spec.dtype, got, found.worst_index));
    m.got = buffer;
  }
  m.judge = oracle.empty() ? "the reference's own result" : "the float64 oracle";
  for (size_t k = 0; k < found.where.size(); ++k) {
    const auto i = found.where[k];
    std::vector<std::string> at;
    for (auto n : position_of(spec, i)) at.push_back(std::to_string(n));
    const double wanted = oracle.empty() ? element_value(spec.dtype, reference_output.data(), i) : oracle[static_cast<size_t>(i)];
    m.elements.push_back("[" + join(at, ", ") + "] is " + element_text(spec.dtype, got, i) + ", expected " +
                         (is_floating(spec.dtype) && std::isfinite(wanted) ? number_text(wanted) : element_text(spec.dtype, reference_output.data(), i)) +
                         (k < found.notes.size() ? "; " + found.notes[k] : ""));
  }
  return m;
}

std::string sentence(const mismatch& m) {
  std::string text = m.output;
  if (!m.index.empty()) {
    std::vector<std::string> parts;
    for (auto i : m.index) parts.push_back(std::to_string(i));
    text += "[" + join(parts, ", ") + "]";
  }
  text += (m.got == unwritten_text ? " was not written, expected " : " is " + m.got + ", expected ") + m.expected + " (" + m.input_set + ")";
  if (m.total_elements > 1)
    text += "; " + std::to_string(m.wrong_elements) + " of " + std::to_string(m.total_elements) +
            (m.wrong_elements == 1 ? " elements is wrong" : " elements are wrong");
  return text;
}

} // namespace pragma
