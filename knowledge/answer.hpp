// A model's short answer from retrieved entries, held to its sources. Inside this room only.
#pragma once

#include "knowledge/library.hpp"

namespace pragma {

/// Asks the model which entries answer the question, and puts those first; what the question names keeps its place. Anything but a list of
/// different numbers of entries changes nothing, and `note` says so. False: the model gave no answer.
bool reorder_with(chat_model& model, const std::string& question, library_answer& answer);

/// Fills `sentences` (or `note`, when the model could not be used or no sentence could be kept) and `usage`.
void answer_with(chat_model& model, const std::string& question, library_answer& answer);

/// Splits a model's text into sentences with their [n] marks; drops what cites none of the entries, and what those cited do not say
/// (ungrounded() in crawler/summarise.hpp). `why_dropped`: of the first such sentence, for people.
std::vector<cited_sentence> kept_sentences(const std::string& text, const std::vector<entry>& entries, std::string* why_dropped = nullptr);

} // namespace pragma
