// pragma ask: a question to the compendium.
#include "cli/commands.hpp"
#include "cli/knowledge.hpp"
#include "cli/member.hpp"
#include "cli/terminal.hpp"

#include "base/text.hpp"

namespace pragma::cli {

namespace {

constexpr size_t full_readings = 2; ///< hits of which it is told how to read them
constexpr size_t most_also = 4;    ///< named of what stands behind a hit
constexpr int not_covered = 3; ///< exit code: the compendium does not know

struct ask_settings {
  std::string text, profiler, hardware;
  size_t count = 5;
  bool json = false, explain = false;
  model_options models;
  head_choice head;
};

/// Of this machine's compendium. `index` gets a line about it.
expected<library_answer> ask_here(const ask_settings& s, terminal& out, std::string& index) {
  auto embedding = s.models.embedding();
  if (!embedding) return fail(embedding.error());
  auto config = s.models.chat();
  if (!config) return fail(config.error());
  std::unique_ptr<chat_model> model;
  if (*config) {
    auto made = make_chat_model(**config, {}, &cancelled());
    if (!made) return fail(made.error());
    model = std::move(*made);
  }
  out.status("opening the compendium ...");
  std::string built;
  auto lib = library::open(library_paths::usual(), *embedding, true, &built);
  if (!lib) return fail(lib.error());
  if (!built.empty()) out.line(out.dim(built));
  if (model) out.status("asking " + model->name() + " ...");
  index = std::to_string(lib->index().entries) + " entries, " + lib->index().embedder + ", " + lib->index().vectors + " vectors";
  return lib->ask({s.text, s.count, s.profiler, s.hardware}, model.get());
}

expected<library_answer> ask_head(const ask_settings& s, head_client& head) {
  auto answer = head.ask({{"text", s.text}, {"count", s.count}, {"profiler", s.profiler}, {"hardware", s.hardware}});
  if (!answer) return fail(answer.error());
  return from_json_value<library_answer>(*answer, "the head's answer");
}

/// Whether this machine can count it.
std::string where_text(const hit& h, const entry& e) {
  const auto hardware = e.hardware.empty() ? std::string() : " (" + join(e.hardware, ", ") + ")";
  if (e.kind == "option") return "  an option";
  if (h.where == "here") return "  for this machine" + hardware;
  if (h.where == "simulated") return "  simulated";
  if (h.where == "elsewhere") return "  for other machines" + hardware;
  return e.hardware.empty() ? "" : "  " + join(e.hardware, ", ");
}

/// What stands behind a hit as the same event: "perf/assists.any, spr/assists.any and 3 more".
std::string also_text(std::vector<std::string> ids) {
  const auto left_out = ids.size() > most_also ? ids.size() - most_also : 0;
  ids.resize(ids.size() - left_out);
  return printable(join(ids, ", ")) + (left_out ? " and " + std::to_string(left_out) + " more" : "");
}

int ask(const ask_settings& s) {
  terminal out(s.json);
  auto head = s.head.connect();
  if (!head) return report(out, head.error());
  std::string index = "the head's compendium";
  auto answer = *head ? ask_head(s, **head) : ask_here(s, out, index);
  if (!answer) return report(out, answer.error());
  out.result(*answer);
  const auto& found = answer->found;
  if (!found.in_scope) out.line("The compendium does not cover this" + (found.why_not.empty() ? "." : ": " + found.why_not + "."));
  for (const auto& sentence : answer->sentences) out.line(printable(sentence.text) + " " + out.dim("[" + join(sentence.entries, ", ") + "]"));
  if (!answer->sentences.empty()) out.line("");
  if (!answer->note.empty()) out.line(out.dim(answer->note));
  if (s.explain) {
    if (!found.profiler.empty() || !found.hardware.empty())
      out.line(out.dim("scope: " + found.profiler + (found.profiler.empty() || found.hardware.empty() ? "" : ", ") + found.hardware));
    if (!found.expansions.empty()) out.line(out.dim("understood: " + join(found.expansions, "; ")));
    out.line(out.dim("lexical " + format_seconds(found.seconds.lexical) + ", dense " + format_seconds(found.seconds.dense) + ", fusion " +
                     format_seconds(found.seconds.fusion) + "; " + index));
  }
  if (!found.in_scope && !answer->entries.empty()) out.line(out.dim("nearest all the same:"));
  for (size_t i = 0; i < answer->entries.size(); ++i) {
    const auto& e = answer->entries[i];
    const auto& h = found.hits[i];
    out.line(std::to_string(i + 1) + ". " + out.bold(e.name) + (e.profiler.empty() ? "  (concept)" : "  " + e.profiler) + (e.unit.empty() ? "" : "  [" + e.unit + "]") + out.dim(where_text(h, e)));
    if (s.explain)
      out.line(out.dim("   score " + format_number(h.score, 3) + " from lexical " + format_number(h.lexical, 3) + ", dense " + format_number(h.dense, 3) +
                       ", scope " + format_number(h.scope, 3) + "; by " + h.why));
    if (!h.family.empty()) out.line(out.dim("   also: " + also_text(h.family)));
    // The first in full, the others in a sentence.
    const auto text = e.meaning.empty() ? e.measurement : i > 0 && !e.summary.empty() ? e.summary : e.meaning;
    if (!text.empty()) out.line("   " + printable(text));
    if (!e.reading.empty() && i < full_readings) out.line("   " + out.dim("how to read it: ") + printable(e.reading));
    for (const auto& source : e.sources) {
      if (!source.quote.empty()) out.line("   \"" + printable(source.quote) + "\"");
      out.line(out.dim("   " + printable(source.url)));
      if (&source == &e.sources[std::min<size_t>(1, e.sources.size() - 1)]) break;
    }
  }
  return found.in_scope ? 0 : not_covered;
}

} // namespace

void add_ask(CLI::App& app, action& chosen) {
  auto s = std::make_shared<ask_settings>();
  auto* command = app.add_subcommand("ask", "ask the compendium what a metric means or which one shows something");
  command->add_option("question", s->text, "in your own words, or a metric's name")->required();
  command->add_option("-k", s->count, "most entries")->check(CLI::Range(1, 100))->capture_default_str();
  command->add_option("--profiler", s->profiler, "only of this profiler");
  command->add_option("--hardware", s->hardware, "for this hardware, e.g. \"zen 3\" or sm_90");
  command->add_flag("--explain", s->explain, "show how each entry was scored");
  command->add_flag("--json", s->json, "print JSON");
  s->models.add_to(*command);
  s->head.add_to(*command);
  command->footer("Exit code 3: the compendium does not cover it.\nExample:\n  pragma ask \"which counter shows branch mispredictions\" --profiler perf");
  command->callback([s, &chosen] { chosen = [s] { return ask(*s); }; });
}

} // namespace pragma::cli
