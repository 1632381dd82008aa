// Segment -> summary (the paper's first stage, III.B). With a chat model where the user configured one, extractive otherwise. A model
// gets no tools, sees the text inside a random fence and returns JSON of a fixed form; names and numbers that do not stand in the
// segment make its answer worthless, and the extractive summary is taken instead.
#pragma once

#include "crawler/records.hpp"
#include "llm/chat.hpp"

namespace pragma {

/// Part of summary::by: a change of the rules or of the prompt changes it, and stored summaries are made anew.
inline constexpr const char* extractive_version = "extractive 2";
inline constexpr const char* prompt_version = "prompt 3";

/// Deterministic; never fails. by == extractive_version.
summary summarise_extractive(const segment& s);

/// One exchange. Falls back to summarise_extractive() with a note where the answer is malformed or not grounded; errors are the
/// model's own (remote_failed, timeout, limit_exceeded: budget, interrupted).
expected<summary> summarise_with(chat_model& model, const segment& s);

/// The version that summarise_with() would write into summary::by, for the cache.
std::string summariser_name(const chat_model* model);

/// Empty when each metric name, number and quote of the summary stands in the segment; else what does not.
std::string ungrounded(const segment& s, const summary& made);

/// The same for one sentence and any text that it should rest on: its numbers, names, negations and most of its words, nothing reversed and
/// nothing that speaks to a model. Empty: it may stand; else what is wrong, for people.
std::string ungrounded(const std::string& sentence, const std::string& source);

} // namespace pragma
