// The live page: runs, attempts, findings, nodes, the compendium, suites. It reads what the given functions read and touches no engine;
// what it shows is text from outside, so it goes out as JSON and into the page as text, never as markup.
#pragma once

#include "web/listener.hpp"

#include "base/json.hpp"

#include <functional>
#include <string>

namespace pragma::dashboard {

/// Where everything comes from, whoever asks: what a visitor may see of it is decided here, by "owner". Called from several threads.
struct source {
  std::function<expected<json>()> runs;                            ///< [{id, task, state, started, owner, ..., stamp}], newest first; the stamp changes with the run
  std::function<expected<json>(const std::string& id)> run;        ///< as run.json
  std::function<json(const std::string& id, uint64_t from)> log;   ///< its lines from number `from` on: [{n, time, attempt, stage, text}], n growing
  std::function<json(const std::string& before, const std::string& after)> diff; ///< [{kind, text}] of two sources
  std::function<expected<json>()> cluster;                         ///< nodes, queue, runs with "owner"; null where there is no head
  std::function<expected<json>(const std::string& text)> ask;      ///< {covered, entries}
  std::function<expected<json>()> suites;                          ///< [{name, tasks, overall}]
};

/// A run without what is long: header fields and one short row an attempt.
json overview(const json& document);
/// One attempt whole, with its difference from attempt `against` (0: from the best before it). not_found.
expected<json> attempt_of(const json& document, int number, int against, const source& from);

/// Registers the page and its data; `page` is the folder of index.html, app.js, style.css.
void serve(web::listener& where, source from, const std::filesystem::path& page);

} // namespace pragma::dashboard
