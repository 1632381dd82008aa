#include "knowledge/build.hpp"

#include "base/subprocess.hpp"
#include "base/text.hpp"
#include "base/utc.hpp"
#include "crawler/document.hpp"
#include "crawler/summarise.hpp"
#include "knowledge/consolidate.hpp"
#include "knowledge/hardware_words.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>

namespace pragma {

namespace {

using clock = std::chrono::steady_clock;
double since(clock::time_point start) { return std::chrono::duration<double>(clock::now() - start).count(); }

constexpr size_t summaries_per_batch = 256;   ///< synced together: a kill loses at most these
constexpr size_t model_batch = 16;            ///< ... of a model, which cost more
constexpr size_t shown_failures = 20, shown_places = 20;
constexpr double catalogue_seconds = 60;
constexpr size_t max_catalogue_bytes = 64u << 20;

/// Counts what the segments of one source give.
class coverage_counter {
public:
  explicit coverage_counter(size_t places) : places_(places) {}

  void add(const segment& s, const summary& told) {
    if (s.kind == "row") ++c_.rows;
    else if (s.kind == "definition") ++c_.definitions;
    else if (s.kind == "catalogue") ++c_.records;
    c_.unread += s.unread;
    if (s.unread > 0 && c_.unread_places.size() < places_)
      c_.unread_places.push_back(s.url + (s.anchor.empty() ? "" : "#" + s.anchor) + ": " + cut_lines(s.text, 1, 1, shown_bytes));
    for (const auto& claim : told.claims) {
      if (!names_.insert(claim.kind + "/" + claim.name).second) continue;
      ++(claim.kind == "option" ? c_.options : claim.kind == "concept" ? c_.concepts : c_.metrics);
      if (!claim.meaning.empty() && c_.examples.size() < shown_examples && claim.kind == "metric") c_.examples.push_back(claim.name + ": " + claim.summary);
    }
  }
  source_coverage take() { return std::move(c_); }

private:
  static constexpr size_t shown_examples = 3, shown_bytes = 120;
  source_coverage c_;
  size_t places_;
  std::set<std::string> names_;
};

class builder {
public:
  builder(knowledge_store& store, const knowledge_build_options& options) : store_(store), options_(options) {}

  expected<build_result> run() {
    for (const auto& m : options_.profilers) {
      build_source_result source;
      source.profiler = m.name;
      if (options_.crawl)
        if (auto ok = fetch(m, source); !ok) return fail(ok.error());
      result_.sources.push_back(std::move(source));
      if (cancelled()) break;
    }
    if (auto ok = summarise(); !ok) return fail(ok.error());
    if (auto ok = consolidate(); !ok) return fail(ok.error());
    if (auto ok = index(); !ok) return fail(ok.error());
    if (cancelled()) incomplete("interrupted; run the same command again to go on");
    return result_;
  }

private:
  bool cancelled() const { return options_.cancel && options_.cancel->load(); }
  void tell(const std::string& stage, const std::string& what, int64_t done, int64_t of) const {
    if (options_.on_progress) options_.on_progress(stage, what, done, of);
  }
  void incomplete(const std::string& reason) {
    result_.complete = false;
    if (result_.reason.empty()) result_.reason = reason;
  }

  expected<void> fetch(const profiler_manifest& m, build_source_result& source) {
    const auto start = clock::now();
    auto from = source_of(m, source.missing);
    if (!from.docs.empty()) {
      auto crawling = options_.crawling;
      crawling.cancel = options_.cancel;
      crawling.on_progress = [&](const crawl_progress& p) { tell("crawl " + m.name, p.url, p.done, p.done + p.queued); };
      auto crawled = crawl(from, store_, crawling);
      if (!crawled) return fail(crawled.error());
      source.crawl = std::move(*crawled);
      if (!source.crawl.complete) incomplete("the crawl of " + m.name + " is not complete: " + source.crawl.reason);
      auto pages = store_.pages(m.name);
      if (!pages) return fail(pages.error());
      for (const auto& page : *pages)
        if (page.state == page_state::failed && source.failed.size() < shown_failures) source.failed.push_back(page.url + ": " + page.reason);
    }
    for (const auto& command : m.catalogue)
      if (auto ok = list_metrics(m, command, source); !ok) return ok;
    result_.crawl_seconds += since(start);
    return {};
  }

  /// A tool that is missing or fails is a line in the result; what it said earlier stays.
  expected<void> list_metrics(const profiler_manifest& m, const catalogue_command& command, build_source_result& source) {
    const auto origin = "catalogue: " + join(command.argv, " ");
    if (find_program(command.argv.front()).empty()) {
      source.catalogues.push_back(join(command.argv, " ") + ": " + command.argv.front() + " is not installed");
      return {};
    }
    tell("catalogue " + m.name, join(command.argv, " "), 0, 1);
    process_spec spec;
    spec.argv = command.argv;
    spec.max_output = max_catalogue_bytes;
    spec.limits.wall_seconds = catalogue_seconds;
    spec.env = {{"LC_ALL", "C"}, {"PAGER", "cat"}};
    spec.cancel = options_.cancel;
    auto ran = run_process(spec);
    if (!ran) return fail(ran.error());
    const auto complain = [&](const std::string& why) {
      source.catalogues.push_back(join(command.argv, " ") + ": " + why);
      return expected<void>{};
    };
    if (!ran->ok()) return complain(describe_end(*ran, catalogue_seconds) + (ran->err.empty() ? "" : ": " + cut_lines(printable(ran->err), 1, 1, 200)));
    if (ran->output_truncated) return complain("its answer is longer than " + format_bytes(max_catalogue_bytes));
    const auto format = command.format == "json"   ? page_format::json_catalogue
                        : command.format == "csv"  ? page_format::csv_catalogue
                        : command.format == "yaml" ? page_format::yaml_catalogue
                                                   : page_format::text;
    auto segments = catalogue_segments(format, ran->out, m.name, origin, utc_now());
    if (!segments) return complain(segments.error().message);
    source.catalogues.push_back(join(command.argv, " ") + ": " + std::to_string(segments->size()) + " metrics");
    return store_.put_catalogue(m.name, origin, *segments);
  }

  build_source_result& of(const std::string& profiler) {
    for (auto& s : result_.sources)
      if (s.profiler == profiler) return s;
    result_.sources.push_back({});
    result_.sources.back().profiler = profiler;
    return result_.sources.back();
  }

  expected<void> summarise() {
    const auto start = clock::now();
    const auto model = options_.make_model ? options_.make_model() : nullptr;
    by_ = summariser_name(model.get());
    auto names = store_.profilers_with_segments();
    if (!names) return fail(names.error());
    for (const auto& name : *names) {
      std::vector<segment> wanted;
      auto& source = of(name);
      auto read = store_.each_segment(name, [&](segment s) -> expected<void> {
        ++source.segments;
        auto known = store_.get_summary(s.id, by_);
        if (!known) return fail(known.error());
        if (*known) ++source.cached;
        else wanted.push_back(std::move(s));
        return {};
      });
      if (!read) return read;
      auto made = model ? with_models(name, wanted) : extractive(name, wanted);
      if (!made) return made;
      if (cancelled()) break;
    }
    result_.summary_seconds = since(start);
    return {};
  }

  expected<void> extractive(const std::string& name, const std::vector<segment>& wanted) {
    std::vector<summary> made;
    auto& source = of(name);
    for (size_t i = 0; i < wanted.size() && !cancelled(); ++i) {
      made.push_back(summarise_extractive(wanted[i]));
      ++source.summarised;
      if (made.size() < summaries_per_batch && i + 1 < wanted.size()) continue;
      if (auto kept = store_.put_summaries(made); !kept) return kept;
      made.clear();
      tell("summarise " + name, "", static_cast<int64_t>(i + 1), static_cast<int64_t>(wanted.size()));
    }
    return store_.put_summaries(made);
  }

  /// Several models at once, each worker with its own; one thread at a time writes. A model that cannot be reached ends the build's
  /// summaries, not the build: what is missing is made extractively, under the extractive name, so that the next build asks again.
  expected<void> with_models(const std::string& name, const std::vector<segment>& wanted) {
    std::mutex lock;
    size_t next = 0, done = 0;
    std::vector<summary> made;
    expected<void> failed;
    std::optional<error> gave_up;
    auto& source = of(name);
    const auto work = [&] {
      const auto model = options_.make_model();
      for (;;) {
        size_t mine;
        {
          const std::lock_guard hold(lock);
          if (next >= wanted.size() || gave_up || !failed || cancelled()) break;
          mine = next++;
        }
        auto answer = summarise_with(*model, wanted[mine]);
        const std::lock_guard hold(lock);
        if (!answer) {
          if (!gave_up) gave_up = answer.error();
          break;
        }
        source.refused += !answer->note.empty();
        answer->by = by_; // also a refused one: it is not asked for again
        ++source.summarised;
        made.push_back(std::move(*answer));
        tell("summarise " + name, "", static_cast<int64_t>(++done), static_cast<int64_t>(wanted.size()));
        if (made.size() < model_batch) continue;
        failed = store_.put_summaries(made);
        made.clear();
      }
      const std::lock_guard hold(lock);
      const auto used = model->total();
      result_.usage.prompt_tokens += used.prompt_tokens;
      result_.usage.completion_tokens += used.completion_tokens;
      result_.usage.cost += used.cost;
      result_.usage.retries += used.retries;
      result_.usage.estimated = result_.usage.estimated || used.estimated;
    };
    std::vector<std::thread> workers;
    for (int i = 0; i < std::max(1, std::min<int>(options_.workers, static_cast<int>(wanted.size()))); ++i) workers.emplace_back(work);
    for (auto& w : workers) w.join();
    if (failed) failed = store_.put_summaries(made);
    if (gave_up) incomplete("the model stopped answering (" + gave_up->message + "): the other summaries are extractive until the next build");
    return failed;
  }

  expected<void> consolidate() {
    const auto start = clock::now();
    consolidation all(options_.words);
    auto starter = read_starter(options_.starter);
    if (!starter) return fail(starter.error());
    for (auto& e : *starter) all.add_starter(std::move(e));
    auto names = store_.profilers_with_segments();
    if (!names) return fail(names.error());
    auto registered = store_.manifests();
    if (!registered) return fail(registered.error());
    const hardware_words words(options_.words);
    for (const auto& name : *names) {
      tell("consolidate", name, 0, 0);
      // Who is not registered by the user is shipped with us.
      const auto own = std::find_if(registered->begin(), registered->end(), [&](const auto& m) { return m.name == name; });
      const auto trust = own == registered->end() ? source_trust::vendor : own->prefer ? source_trust::preferred : source_trust::user;
      coverage_counter counter(shown_places);
      std::string page;
      std::vector<std::string> hardware;
      auto read = store_.each_segment(name, [&](const segment& s) -> expected<void> {
        auto made = store_.get_summary(s.id, by_);
        if (!made) return fail(made.error());
        const auto told = *made ? **made : summarise_extractive(s);
        if (page != s.url) {
          page = s.url;
          hardware = own != registered->end() ? own->hardware : std::vector<std::string>();
          if (hardware.empty()) hardware = words.in_address(s.url);
          if (hardware.empty() && !s.headings.empty()) hardware = words.in_title(s.headings.front());
        }
        counter.add(s, told);
        all.add(s, told, trust, hardware);
        return {};
      });
      if (!read) return read;
      auto& source = of(name);
      source.coverage = counter.take();
    }
    for (auto& source : result_.sources) judge(source);
    const auto before = store_.state();
    if (!before) return fail(before.error());
    const auto entries = all.finish();
    auto after = store_.put_entries(entries, by_);
    if (!after) return fail(after.error());
    result_.changed = after->generation != before->generation;
    result_.compendium = std::move(*after);
    auto garbage = store_.collect_garbage();
    if (!garbage) return fail(garbage.error());
    result_.garbage = *garbage;
    result_.entry_seconds = since(start);
    return {};
  }

  /// Documentation of which nothing came is a failure, however well the pages were read.
  void judge(build_source_result& source) {
    const auto& c = source.crawl;
    if (!options_.crawl || options_.crawling.offline || cancelled()) return;
    const auto asked = c.fetched + c.unchanged + c.failed + c.excluded + c.gone;
    if (asked == 0) return; // nothing of it is installed here
    if (source.segments == 0) {
      source.problem = c.failed > 0 ? "none of its pages could be read" : c.excluded > 0 ? "every page of it was left out" : "its pages hold nothing that could be read";
      if (!source.failed.empty()) source.problem += " (" + source.failed.front() + ")";
    } else if (source.coverage.metrics + source.coverage.options + source.coverage.concepts == 0) {
      source.problem = std::to_string(c.fetched + c.unchanged) + " pages were read, and no metric, option or concept was found in them";
    }
    if (!source.problem.empty()) incomplete(source.profiler + ": " + source.problem);
  }

  expected<void> index() {
    const auto start = clock::now();
    if (auto known = retriever::open(options_.indexes, result_.compendium.generation, options_.embedding, {}, true)) {
      result_.index = known->info();
    } else {
      auto built = build_indexes(store_, options_.indexes, options_.embedding, options_.on_progress, options_.cancel);
      if (!built) return fail(built.error());
      result_.index = std::move(*built);
    }
    result_.index_seconds = since(start);
    return {};
  }

  knowledge_store& store_;
  const knowledge_build_options& options_;
  std::string by_;
  build_result result_;
};

} // namespace

expected<source_coverage> coverage_of(const knowledge_store& store, const std::string& profiler, size_t places) {
  coverage_counter counter(places);
  auto read = store.each_segment(profiler, [&](const segment& s) -> expected<void> {
    counter.add(s, summarise_extractive(s));
    return {};
  });
  if (!read) return fail(read.error());
  return counter.take();
}

expected<index_info> build_indexes(const knowledge_store& store, const std::filesystem::path& folder, const embedding_config& embedding,
                                   const build_progress& on_progress, const std::atomic<bool>* cancel) {
  auto state = store.state();
  if (!state) return fail(state.error());
  auto ids = store.entry_ids();
  if (!ids) return fail(ids.error());
  size_t at = 0;
  std::optional<entry> current;
  std::optional<error> trouble;
  retriever::corpus corpus;
  corpus.rewind = [&] { at = 0; };
  corpus.next = [&]() -> const entry* {
    if (at >= ids->size() || trouble) return nullptr;
    auto found = store.get_entry((*ids)[at++]);
    if (!found) trouble = found.error();
    if (trouble || !*found) return nullptr;
    current = std::move(**found);
    return &*current;
  };
  auto built = retriever::build(corpus, state->generation, embedding, folder,
                                [&](std::string_view what, int64_t done, int64_t of) {
                                  if (on_progress) on_progress("index", std::string(what), done, of);
                                },
                                cancel);
  if (trouble) return fail(*trouble);
  return built;
}

expected<build_result> build_knowledge(knowledge_store& store, const knowledge_build_options& options) {
  return builder(store, options).run();
}

expected<retriever> open_retriever(const knowledge_store& store, const std::filesystem::path& indexes, const embedding_config& embedding,
                                   const glossary& words, bool may_rebuild, std::string* rebuilt) {
  auto state = store.state();
  if (!state) return fail(state.error());
  auto opened = retriever::open(indexes, state->generation, embedding, words);
  if (opened || !may_rebuild || opened.error().code == ec::remote_failed) return opened;
  if (rebuilt) *rebuilt = opened.error().message;
  if (auto built = build_indexes(store, indexes, embedding); !built) return fail(built.error());
  return retriever::open(indexes, state->generation, embedding, words);
}

} // namespace pragma
