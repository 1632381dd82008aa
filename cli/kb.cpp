// pragma kb build|status|verify|show|export|import: the compendium and what it is made from.
#include "cli/commands.hpp"
#include "cli/knowledge.hpp"

#include "base/files.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>

namespace pragma::cli {

namespace {

constexpr size_t most_places = 200;   ///< unread ones that `kb coverage` lists
constexpr int unfinished = 6;         ///< exit code of a build that is not complete
constexpr size_t max_line_bytes = 4u << 20;

struct build_settings {
  std::vector<std::string> profilers;
  bool dry_run = false, json = false, offline = false, no_crawl = false;
  int workers = 4;
  model_options models;
};

expected<std::vector<profiler_manifest>> chosen_manifests(const library_paths& paths, const std::vector<std::string>& wanted) {
  auto all = all_manifests(paths);
  if (!all || wanted.empty()) return all;
  std::vector<profiler_manifest> chosen;
  std::vector<std::string> names;
  for (const auto& m : *all) names.push_back(m.name);
  for (const auto& name : wanted) {
    const auto it = std::find_if(all->begin(), all->end(), [&](const profiler_manifest& m) {
      return m.name == name || std::find(m.aliases.begin(), m.aliases.end(), name) != m.aliases.end();
    });
    if (it == all->end()) {
      const auto near = nearest_names(name, names, 1);
      return fail(ec::not_found, "no profiler '" + printable(name) + "' is registered",
                  near.empty() ? "`pragma profiler list` shows all" : "did you mean " + near.front() + "? `pragma profiler add` registers another");
    }
    chosen.push_back(*it);
  }
  return chosen;
}

std::string counted(int64_t n, const char* what) { return std::to_string(n) + " " + what; }

void print_coverage(terminal& out, const source_coverage& c) {
  if (c.metrics + c.options + c.concepts + c.unread == 0) return;
  out.line("  found " + counted(c.metrics, "metrics, ") + counted(c.options, "options, ") + counted(c.concepts, "concepts") + " in " + counted(c.records, "records of catalogues, ") +
           counted(c.rows, "rows of tables, ") + counted(c.definitions, "definitions") + "; " + format_number(100 * c.unread_share(), 1) + " % of tables and lists gave nothing");
  for (const auto& example : c.examples) out.line(out.dim("    e.g. ") + printable(example));
}

int dry_run(terminal& out, knowledge_store& store, const std::vector<profiler_manifest>& profilers, const crawl_options& options) {
  json document = json::array();
  for (const auto& m : profilers) {
    std::vector<std::string> missing;
    const auto source = source_of(m, missing);
    auto plan = plan_crawl(source, store, options);
    if (!plan) return report(out, plan.error());
    document.push_back({{"profiler", m.name}, {"plan", *plan}, {"missing", missing}, {"catalogue", m.catalogue}});
    out.line(out.bold(m.name));
    for (const auto& rule : plan->rules) out.line("  rule      " + printable(rule));
    for (const auto& page : plan->pages)
      out.line("  " + json(page.state).get<std::string>() + std::string(10 - json(page.state).get<std::string>().size(), ' ') + printable(page.url) +
               (page.reason.empty() ? "" : out.dim("  " + printable(page.reason))));
    for (const auto& path : missing) out.line("  absent    " + path + out.dim("  not installed here"));
    for (const auto& c : m.catalogue) out.line("  command   " + join(c.argv, " "));
    auto known = coverage_of(store, m.name);
    if (!known) return report(out, known.error());
    document.back()["coverage"] = *known;
    print_coverage(out, *known); // of what an earlier build read
    for (const auto& place : known->unread_places) out.line(out.dim("  not read  ") + printable(place));
  }
  out.result(document);
  return 0;
}

void print_source(terminal& out, const build_source_result& s) {
  const auto& c = s.crawl;
  out.line(out.bold(s.profiler) + ": " + counted(c.fetched, "pages read, ") + counted(c.unchanged, "unchanged, ") + counted(c.failed, "failed, ") +
           counted(c.excluded, "left out, ") + counted(c.gone, "gone; ") + counted(s.segments, "segments, ") + counted(s.summarised, "summarised now, ") +
           counted(s.cached, "known") + (s.refused ? ", " + counted(s.refused, "model summaries refused") : ""));
  print_coverage(out, s.coverage);
  if (!s.problem.empty()) out.line(out.red("  nothing found: ") + printable(s.problem));
  for (const auto& line : s.catalogues) out.line("  " + printable(line));
  for (const auto& line : s.failed) out.line(out.red("  failed  ") + printable(line));
  if (!s.missing.empty()) out.line(out.dim("  not installed here: " + join(s.missing, ", ")));
}

int build(const build_settings& s) {
  terminal out(s.json);
  const auto paths = library_paths::usual();
  auto embedding = s.models.embedding();
  if (!embedding) return report(out, embedding.error());
  auto config = s.models.chat();
  if (!config) return report(out, config.error());
  auto profilers = chosen_manifests(paths, s.profilers);
  if (!profilers) return report(out, profilers.error());
  auto store = knowledge_store::open(paths.store, knowledge_store::mode::read_write);
  if (!store) return report(out, store.error());

  knowledge_build_options options;
  options.crawling.offline = s.offline;
  options.crawling.cancel = &cancelled();
  if (s.dry_run) return dry_run(out, *store, *profilers, options.crawling);
  options.profilers = *profilers;
  options.starter = paths.starter;
  options.indexes = paths.indexes;
  options.embedding = *embedding;
  auto words = read_glossary(paths);
  if (!words) return report(out, words.error());
  options.words = std::move(*words);
  options.workers = s.workers;
  options.crawl = !s.no_crawl;
  options.cancel = &cancelled();
  if (*config) {
    if (auto probe = make_chat_model(**config, {}, &cancelled()); !probe) return report(out, probe.error());
    options.make_model = [&] { return std::move(*make_chat_model(**config, {}, &cancelled())); };
  }
  const auto start = std::chrono::steady_clock::now();
  options.on_progress = [&](const std::string& stage, const std::string& what, int64_t done, int64_t of) {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    out.status(stage + (of > 0 ? " " + std::to_string(done) + "/" + std::to_string(of) : "") + "  " + format_number(seconds, 0) + " s  " + printable(what));
  };
  auto result = build_knowledge(*store, options);
  if (!result) return report(out, result.error());
  out.result(*result);
  for (const auto& source : result->sources) print_source(out, source);
  const auto& c = result->compendium;
  out.line(counted(c.entries, "entries, generation ") + std::to_string(c.generation) + (result->changed ? "" : " (unchanged)") + ", content " + c.content_hash.substr(0, 12) +
           "; index: " + result->index.embedder + ", " + result->index.vectors + " vectors, " + format_bytes(static_cast<double>(result->index.bytes)));
  if (result->usage.prompt_tokens > 0)
    out.line("model: " + counted(result->usage.prompt_tokens, "tokens in, ") + counted(result->usage.completion_tokens, "out") +
             (result->usage.cost > 0 ? ", cost " + format_number(result->usage.cost, 4) : "") + (result->usage.estimated ? " (estimated)" : ""));
  out.line("crawl " + format_seconds(result->crawl_seconds) + ", summaries " + format_seconds(result->summary_seconds) + ", entries " +
           format_seconds(result->entry_seconds) + ", indexes " + format_seconds(result->index_seconds));
  if (result->complete) return 0;
  out.line(out.red("not complete: ") + result->reason);
  return cancelled() ? 130 : unfinished;
}

int status(bool json_output) {
  terminal out(json_output);
  auto embedding = model_options{}.embedding();
  if (!embedding) return report(out, embedding.error());
  const auto paths = library_paths::usual();
  auto all = all_manifests(paths);
  if (!all) return report(out, all.error());
  auto store = knowledge_store::open(paths.store, knowledge_store::mode::read_only);
  if (!store) return report(out, store.error());
  auto state = store->state();
  if (!state) return report(out, state.error());
  json document = {{"compendium", *state}, {"sources", json::array()}};
  for (const auto& m : *all) {
    auto pages = store->pages(m.name);
    if (!pages) return report(out, pages.error());
    std::map<std::string, int64_t> states;
    std::map<std::string, int64_t> reasons;
    std::string latest;
    for (const auto& p : *pages) {
      ++states[json(p.state).get<std::string>()];
      if (!p.reason.empty() && p.state != page_state::excluded) ++reasons[p.url + ": " + p.reason];
      latest = std::max(latest, p.fetched);
    }
    int64_t segments = 0;
    auto read = store->each_segment(m.name, [&](const segment&) -> expected<void> {
      ++segments;
      return {};
    });
    if (!read) return report(out, read.error());
    document["sources"].push_back({{"profiler", m.name}, {"origin", m.origin}, {"pages", states}, {"segments", segments}, {"latest", latest}, {"problems", reasons}});
    std::string line = out.bold(m.name) + ": ";
    if (pages->empty() && segments == 0) line += "not read yet";
    for (const auto& [name, n] : states) line += std::to_string(n) + " " + name + ", ";
    if (!pages->empty() || segments > 0) line += std::to_string(segments) + " segments" + (latest.empty() ? "" : ", latest " + latest);
    out.line(line);
    size_t shown = 0;
    for (const auto& [reason, n] : reasons)
      if (++shown <= 5) out.line(out.dim("  " + printable(reason)));
  }
  int64_t of_starter = 0, metrics = 0, options = 0;
  auto counted_entries = store->each_entry([&](const entry& e) -> expected<void> {
    metrics += e.kind == "metric";
    options += e.kind == "option";
    of_starter += e.trust == source_trust::shipped;
    return {};
  });
  if (!counted_entries) return report(out, counted_entries.error());
  document["metrics"] = metrics;
  document["options"] = options;
  document["of_starter"] = of_starter;
  auto lib = retriever::open(paths.indexes, state->generation, *embedding, {}, false);
  document["index"] = lib ? json(lib->info()) : json(lib.error().message);
  out.line("compendium: " + std::to_string(state->entries) + " entries (" + std::to_string(metrics) + " metrics, " + std::to_string(options) + " options; " + std::to_string(of_starter) +
           " led by the starter), generation " + std::to_string(state->generation) + ", built " + state->built + ", summaries by " + state->summarised_by);
  out.line("index: " + (lib ? lib->info().embedder + ", " + lib->info().vectors + " vectors, " + format_bytes(static_cast<double>(lib->info().bytes)) : lib.error().message));
  out.result(document);
  return 0;
}

int verify(bool json_output) {
  terminal out(json_output);
  auto embedding = model_options{}.embedding();
  if (!embedding) return report(out, embedding.error());
  const auto paths = library_paths::usual();
  auto store = knowledge_store::open(paths.store, knowledge_store::mode::read_write);
  if (!store) return report(out, store.error());
  out.status("verifying the store ...");
  if (auto good = store->verify(); !good) return report(out, good.error());
  auto state = store->state();
  if (!state) return report(out, state.error());
  auto entries = store->entry_ids();
  if (!entries) return report(out, entries.error());
  out.line("store: every checksum is right, " + std::to_string(entries->size()) + " entries");
  out.status("verifying the indexes ...");
  auto index = retriever::open(paths.indexes, state->generation, *embedding, {}, true);
  std::string why;
  if (!index) {
    why = index.error().message;
    auto built = build_indexes(*store, paths.indexes, *embedding);
    if (!built) return report(out, built.error());
  }
  out.line(why.empty() ? "indexes: every checksum is right" : "indexes: built anew from the store: " + why);
  out.result({{"entries", entries->size()}, {"generation", state->generation}, {"indexes", why.empty() ? "right" : "rebuilt"}, {"why", why}});
  return 0;
}

int show(const std::string& name, const std::string& profiler, bool json_output, const model_options& models) {
  terminal out(json_output);
  auto embedding = models.embedding();
  if (!embedding) return report(out, embedding.error());
  std::string built;
  auto lib = library::open(library_paths::usual(), *embedding, true, &built);
  if (!lib) return report(out, lib.error());
  if (!built.empty()) out.line(out.dim(built));
  bool exact = false;
  auto entries = lib->show(name, profiler, 5, &exact);
  if (!entries) return report(out, entries.error());
  if (entries->empty())
    return report(out, {ec::not_found, "no metric like '" + printable(name) + "' is in the compendium", "ask in your own words: pragma ask \"...\""});
  out.result({{"exact", exact}, {"entries", *entries}});
  if (exact) {
    print_entry(out, entries->front());
    // Other sources that have this name, the less trusted after.
    for (size_t i = 1; i < entries->size(); ++i) {
      const auto& e = (*entries)[i];
      if (entry_id({}, e.name) == entry_id({}, entries->front().name))
        out.line(out.dim("  also from " + (e.profiler.empty() ? "concepts" : e.profiler) + " (" + json(e.trust).get<std::string>() + "): ") + printable(e.summary.empty() ? e.meaning : e.summary) +
                 out.dim("  " + printable(first_source(e))));
    }
    return 0;
  }
  out.line("no metric is called '" + printable(name) + "'; nearest:");
  print_entry(out, entries->front());
  for (size_t i = 1; i < entries->size(); ++i) out.line(out.dim("  also near: " + (*entries)[i].name + " (" + (*entries)[i].profiler + ")"));
  return 0;
}

/// What was understood of one source, and what was not.
int coverage(const std::string& name, bool json_output) {
  terminal out(json_output);
  const auto paths = library_paths::usual();
  auto chosen = chosen_manifests(paths, {name});
  if (!chosen) return report(out, chosen.error());
  auto store = knowledge_store::open(paths.store, knowledge_store::mode::read_only);
  if (!store) return report(out, store.error());
  auto found = coverage_of(*store, chosen->front().name, most_places);
  if (!found) return report(out, found.error());
  out.result(*found);
  out.line(out.bold(chosen->front().name));
  print_coverage(out, *found);
  for (const auto& place : found->unread_places) out.line(out.dim("  not read  ") + printable(place));
  if (found->metrics + found->options + found->concepts > 0) return 0;
  out.line("nothing was found; `pragma kb build --profiler " + chosen->front().name + "` reads it, `--dry-run` shows what would be read");
  return exit_code(ec::not_found);
}

int export_entries(const std::string& file, bool json_output) {
  terminal out(json_output);
  auto store = knowledge_store::open(library_paths::usual().store, knowledge_store::mode::read_only);
  if (!store) return report(out, store.error());
  std::string lines;
  int64_t n = 0;
  auto read = store->each_entry([&](const entry& e) -> expected<void> {
    lines += json(e).dump(-1, ' ', true, json::error_handler_t::replace) + "\n";
    ++n;
    return {};
  });
  if (!read) return report(out, read.error());
  if (file == "-") {
    std::fputs(lines.c_str(), stdout);
    return 0;
  }
  if (auto written = write_file_atomic(file, lines); !written) return report(out, written.error());
  out.result({{"entries", n}, {"file", file}});
  out.line("wrote " + std::to_string(n) + " entries to " + file);
  return 0;
}

/// Entries of another machine, as they are; the next `kb build` makes them anew from what is stored here.
int import_entries(const std::string& file, bool json_output) {
  terminal out(json_output);
  auto embedding = model_options{}.embedding();
  if (!embedding) return report(out, embedding.error());
  std::ifstream in(file);
  if (!in) return report(out, {ec::not_found, "cannot read " + file, "`pragma kb export FILE` writes such a file"});
  std::map<std::string, entry> all;
  auto store = knowledge_store::open(library_paths::usual().store, knowledge_store::mode::read_write);
  if (!store) return report(out, store.error());
  auto kept = store->each_entry([&](const entry& e) -> expected<void> {
    all[e.id] = e;
    return {};
  });
  if (!kept) return report(out, kept.error());
  std::string line;
  int64_t number = 0, taken = 0;
  while (std::getline(in, line)) {
    ++number;
    if (trim(line).empty()) continue;
    const auto where = file + " line " + std::to_string(number);
    if (line.size() > max_line_bytes) return report(out, {ec::limit_exceeded, where + " is longer than " + format_bytes(static_cast<double>(max_line_bytes)), "nothing was changed"});
    auto value = parse_json(line, where);
    if (!value) return report(out, {value.error().code, value.error().message, "nothing was changed"});
    auto e = from_json_value<entry>(*value, where);
    if (!e) return report(out, {e.error().code, e.error().message, "nothing was changed"});
    if (e->name.empty() || e->id != entry_id(e->profiler, e->name))
      return report(out, {ec::parse_error, where + ": the entry's id does not belong to its name", "nothing was changed"});
    all[e->id] = std::move(*e);
    ++taken;
  }
  std::vector<entry> list;
  for (auto& [id, e] : all) list.push_back(std::move(e));
  auto state = store->put_entries(list, "import " + std::filesystem::path(file).filename().string());
  if (!state) return report(out, state.error());
  auto built = build_indexes(*store, library_paths::usual().indexes, *embedding);
  if (!built) return report(out, built.error());
  out.result({{"imported", taken}, {"entries", state->entries}, {"generation", state->generation}});
  out.line("imported " + std::to_string(taken) + " entries; the compendium has " + std::to_string(state->entries));
  return 0;
}

} // namespace

void add_kb(CLI::App& app, action& chosen) {
  auto* group = app.add_subcommand("kb", "the compendium of metrics: build it, look at it");
  group->require_subcommand(1);
  group->footer("Example:\n  pragma kb build && pragma kb show Bcm");
  {
    auto s = std::make_shared<build_settings>();
    auto* command = group->add_subcommand("build", "read the documentation, summarise, merge, index; goes on where it was stopped");
    command->add_option("--profiler", s->profilers, "only these (default: all that are registered)");
    command->add_flag("--dry-run", s->dry_run, "show what would be read, and the rules");
    command->add_flag("--offline", s->offline, "read only what is installed on this machine");
    command->add_flag("--no-crawl", s->no_crawl, "only summarise, merge and index what was read before");
    command->add_option("--workers", s->workers, "summaries asked of the model at once")->check(CLI::Range(1, 64))->capture_default_str();
    command->add_flag("--json", s->json, "print JSON");
    s->models.add_to(*command);
    command->footer("Exit code 6: not complete (a limit, a source that gave nothing, or the model stopped answering).\nExample:\n  pragma kb build --profiler perf --profiler valgrind");
    command->callback([s, &chosen] { chosen = [s] { return build(*s); }; });
  }
  const auto simple = [&](const char* name, const char* help, const char* example, int (*run)(bool)) {
    auto s = std::make_shared<bool>(false);
    auto* command = group->add_subcommand(name, help);
    command->add_flag("--json", *s, "print JSON");
    command->footer(std::string("Example:\n  ") + example);
    command->callback([s, run, &chosen] { chosen = [s, run] { return run(*s); }; });
  };
  simple("status", "what was read of each source, and how it went", "pragma kb status", status);
  {
    struct settings {
      std::string name;
      bool json = false;
    };
    auto s = std::make_shared<settings>();
    auto* command = group->add_subcommand("coverage", "what was understood of one source, and the places that were not");
    command->add_option("source", s->name, "the profiler")->required();
    command->add_flag("--json", s->json, "print JSON");
    command->footer("Exit code 6: nothing was found in it.\nExample:\n  pragma kb coverage valgrind");
    command->callback([s, &chosen] { chosen = [s] { return coverage(s->name, s->json); }; });
  }
  simple("verify", "check every checksum; build damaged indexes anew", "pragma kb verify", verify);
  {
    struct settings {
      std::string name, profiler;
      bool json = false;
      model_options models;
    };
    auto s = std::make_shared<settings>();
    auto* command = group->add_subcommand("show", "the entry of one metric, by its name or nearly");
    command->add_option("metric", s->name, "name, in any spelling")->required();
    command->add_option("--profiler", s->profiler, "of this profiler");
    command->add_flag("--json", s->json, "print JSON");
    command->footer("Example:\n  pragma kb show Bcm");
    command->callback([s, &chosen] { chosen = [s] { return show(s->name, s->profiler, s->json, s->models); }; });
  }
  for (const bool import : {false, true}) {
    struct settings {
      std::string file;
      bool json = false;
    };
    auto s = std::make_shared<settings>();
    auto* command = import ? group->add_subcommand("import", "add entries from a file of JSON lines") : group->add_subcommand("export", "write all entries as JSON lines");
    command->add_option("file", s->file, import ? "as `pragma kb export` writes it" : "where to; - for stdout")->required();
    command->add_flag("--json", s->json, "print JSON");
    command->footer(import ? "Example:\n  pragma kb import compendium.jsonl" : "Example:\n  pragma kb export compendium.jsonl");
    command->callback([s, import, &chosen] { chosen = [s, import] { return import ? import_entries(s->file, s->json) : export_entries(s->file, s->json); }; });
  }
}

} // namespace pragma::cli
