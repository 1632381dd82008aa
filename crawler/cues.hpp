// What the words of a sentence give away about a metric: its unit, that the sentence tells how it is measured or how to read it, and which
// bottlenecks it reveals. Used by the extractive summariser.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pragma::crawler {

/// The unit that a description implies ("percentage of ..." -> "%", "number of cycles ..." -> "cycles"); empty when it does not say.
std::string implied_unit(std::string_view description);

/// It says how a value comes about: computed, counted, a ratio, a formula.
bool tells_measurement(std::string_view sentence);
/// It says what a value tells: high, low, indicates, should.
bool tells_reading(std::string_view sentence);

/// It speaks to a language model instead of describing something ("ignore previous instructions"): no part of a definition.
bool addresses_a_model(std::string_view sentence);

/// Names of the bottleneck classes (diagnosis/finding.hpp) that the words point to, most telling first, at most four.
std::vector<std::string> implied_diagnoses(std::string_view text);

/// The names of all classes, as JSON has them.
const std::vector<std::string>& diagnosis_names();

} // namespace pragma::crawler
