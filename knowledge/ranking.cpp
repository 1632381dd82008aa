// One question -> ranked hits: names first, then BM25 and cosine fused by score (docs/knowledge.md has the measurements).
#include "base/seconds.hpp"
#include "base/text.hpp"
#include "knowledge/event_group.hpp"
#include "knowledge/retrieval_state.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

namespace pragma {

namespace {

using clock_type = std::chrono::steady_clock;

constexpr double scope_bonus = 0.25;        // of a profiler or hardware that the question's words name; other hardware loses as much
constexpr double here_bonus = 0.1, elsewhere_loss = 0.15; // of entries that this machine can count, and of those of other machines, where the question names neither
constexpr double concept_loss = 0.15;       // of concepts where the question asks for a counter, an event or a metric
constexpr double option_loss = 0.3;         // of a tool's switches where the question asks for none; what they gain where it does
constexpr double expansion_weight = 0.25;   // of BM25 over the glossary's words, beside that over the question's own
// "Not in the compendium": fitted by bench/fit_rerank on the questions that may be learnt from (docs/retrieval.md).
constexpr double evidence_part = 5.71, known_part = 5.48, words_part = 0.65, fit_part = 9.81, least_confidence = 13.5;
constexpr size_t most_counted_words = 6;     // of a question: that a long one has less evidence for each word is no reason to refuse it
constexpr double usual_similarity = 0.6;    // stands in for the cosine where there are no vectors
constexpr double unknown_weight = 0.35;     // of a word that no entry has, in the most that a question could give: one everyday word must not refuse it
constexpr double least_fuzzy = 0.6;         // trigram similarity from which an unknown identifier means a known name
constexpr double least_listed = 0.3;        // the same for `pragma kb show`, which lists what is near
constexpr size_t lexical_pool = 200, dense_pool = 50; // candidates that are scored by both, before families collapse
constexpr double no_idf = 1e-5;              // FTS5 gives 1e-6 to words of more than half of the entries
constexpr size_t rerank_depth = 100;         // of candidates that are put in order by rerank.hpp
constexpr size_t name_pool = 200;           // names with a piece of the one asked for


} // namespace

// -- scope ---------------------------------------------------------------------------------------------------------

scope_rule::scope_rule(const question& q, const understood_question& u, const phrase_book& book, const name_index& names) : names_(names) {
  filter_profiler_ = !q.profiler.empty();
  filter_hardware_ = !q.hardware.empty();
  profiler_ = filter_profiler_ ? book.canonical_profiler(q.profiler) : u.profiler;
  hardware_ = filter_hardware_ ? book.canonical_hardware(q.hardware) : u.hardware;
  if (!profiler_.empty()) {
    const auto wanted = fold_name(profiler_);
    for (const auto& name : names.profilers()) same_profiler_.push_back(!name.empty() && fold_name(name) == wanted);
    unknown_profiler_ = filter_profiler_ && std::find(same_profiler_.begin(), same_profiler_.end(), true) == same_profiler_.end();
  }
  if (!hardware_.empty())
    for (const auto& name : names.hardware_names()) same_hardware_.push_back(book.same_hardware(name, hardware_));
  asks_option_ = u.asks_option;
  asks_metric_ = u.asks_metric;
  machine_known_ = q.machine.known();
  if (!machine_known_) return;
  const auto in = [](const std::vector<std::string>& list, const std::string& name) { return std::find(list.begin(), list.end(), name) != list.end(); };
  for (const auto& name : names.profilers()) {
    counts_here_.push_back(in(q.machine.profilers, name));
    simulates_.push_back(in(q.machine.simulators, name));
  }
  for (const auto& name : names.hardware_names())
    hardware_here_.push_back(std::any_of(q.machine.hardware.begin(), q.machine.hardware.end(), [&](const auto& own) { return book.same_hardware(name, own); }));
}

scope_rule::place scope_rule::place_of(uint32_t row) const {
  const auto profiler = names_.profiler(row);
  if (!machine_known_ || profiler >= names_.profilers().size() || names_.profilers()[profiler].empty()) return place::unknown;
  const auto hardware = names_.hardware(row);
  const bool fits = std::any_of(hardware.begin(), hardware.end(), [&](uint32_t n) { return n < hardware_here_.size() && hardware_here_[n]; });
  if (!hardware.empty() && !fits) return place::elsewhere;
  if (simulates_[profiler]) return place::simulated;
  if (counts_here_[profiler] || fits) return place::here;
  return place::elsewhere;
}

const char* scope_rule::where(uint32_t row) const {
  switch (place_of(row)) {
    case place::here: return "here";
    case place::simulated: return "simulated";
    case place::elsewhere: return "elsewhere";
    case place::unknown: break;
  }
  return "";
}

int scope_rule::nearness(uint32_t row) const {
  if (!profiler_.empty() || !hardware_.empty()) return 1; // the question means that one, whatever this machine has
  switch (place_of(row)) {
    case place::here: return 0;
    case place::unknown: return 1;
    case place::simulated: return 2;
    case place::elsewhere: return 3;
  }
  return 1;
}

scope_rule::relation scope_rule::profiler_of(uint32_t row) const {
  const auto number = names_.profiler(row);
  if (profiler_.empty() || number >= names_.profilers().size() || names_.profilers()[number].empty()) return relation::any; // concepts
  return same_profiler_[number] ? relation::same : relation::other;
}

scope_rule::relation scope_rule::hardware_of(uint32_t row) const {
  if (hardware_.empty()) return relation::any;
  const auto numbers = names_.hardware(row);
  if (numbers.empty()) return relation::any;
  const bool same = std::any_of(numbers.begin(), numbers.end(), [&](uint32_t n) { return n < same_hardware_.size() && same_hardware_[n]; });
  return same ? relation::same : relation::other;
}

bool scope_rule::admits(uint32_t row) const {
  if (filter_profiler_ && profiler_of(row) == relation::other) return false;
  return !filter_hardware_ || hardware_of(row) != relation::other;
}

double scope_rule::bonus(uint32_t row) const {
  double sum = 0;
  if (profiler_of(row) == relation::same) sum += scope_bonus;
  const auto hardware = hardware_of(row);
  if (hardware == relation::same) sum += scope_bonus;
  if (hardware == relation::other) sum -= scope_bonus;
  const auto profiler = names_.profiler(row);
  if (asks_metric_ && profiler < names_.profilers().size() && names_.profilers()[profiler].empty()) sum -= concept_loss;
  if (names_.is_option(row)) sum += asks_option_ ? option_loss : -option_loss;
  // A question that names a profiler or hardware means that one, whatever this machine has.
  if (profiler_.empty() && hardware_.empty()) {
    const auto its = place_of(row);
    if (its == place::here) sum += here_bonus;
    if (its == place::elsewhere) sum -= elsewhere_loss;
  }
  return sum;
}

// -- gathering -----------------------------------------------------------------------------------------------------

/// The candidates of one question, each once.
class retriever::impl::pool {
public:
  candidate& at(uint32_t row) {
    auto& c = all_[row];
    c.row = row;
    return c;
  }
  std::vector<candidate> take() {
    std::vector<candidate> list;
    for (auto& [row, c] : all_) list.push_back(c);
    all_.clear();
    return list;
  }
  template <class F> void each(F f) {
    for (auto& [row, c] : all_) f(c);
  }
  bool named = false, fuzzy = false;
  std::vector<std::string> notes;

private:
  std::unordered_map<uint32_t, candidate> all_;
};

expected<std::vector<retriever::impl::similar_name>> retriever::impl::similar_names(const std::string& name, const scope_rule& scope,
                                                                                    size_t count, double least) const {
  std::vector<similar_name> found;
  const auto folded = fold_name(name);
  if (folded.empty()) return found;
  const trigrams wanted(folded);
  std::unordered_set<uint32_t> seen;
  auto consider = [&](uint32_t row) {
    if (!scope.admits(row) || !seen.insert(row).second) return;
    const double similarity = wanted.similarity(names.folded_name(row));
    if (similarity >= least) found.push_back({row, similarity});
  };
  std::vector<std::string> tokens;
  for (const auto& t : tokens_of(name)) tokens.push_back(t.text);
  auto hits = words.search_names(tokens, std::max(name_pool, count));
  if (!hits) return fail(hits.error());
  for (const auto& h : *hits) consider(static_cast<uint32_t>(h.row));
  // A piece that is misspelt finds nothing in the index: then every name is compared.
  if (found.size() < count || std::none_of(found.begin(), found.end(), [](const similar_name& s) { return s.similarity >= least_fuzzy; }))
    for (uint32_t row = 0; row < names.size(); ++row) consider(row);
  std::sort(found.begin(), found.end(), [](const similar_name& a, const similar_name& b) {
    return a.similarity != b.similarity ? a.similarity > b.similarity : a.row < b.row;
  });
  return found;
}

bool retriever::impl::is_concept(uint32_t row) const {
  const auto profiler = names.profiler(row);
  return profiler < names.profilers().size() && names.profilers()[profiler].empty();
}

expected<void> retriever::impl::add_names(const understood_question& u, const scope_rule& scope, pool& found) const {
  int rank = 0;
  auto add = [&](const name_key& key, int its_rank) {
    if (!scope.admits(key.row)) return false;
    auto& c = found.at(key.row);
    if (c.name_rank == 0) c.name_rank = its_rank;
    found.named = true;
    return true;
  };
  constexpr int kinds = static_cast<int>(name_match::stem) + 1;
  for (const auto& name : u.names) {
    for (const auto& key : names.find(name)) {
      if (is_concept(key.row) && std::find(u.in_passing.begin(), u.in_passing.end(), name) != u.in_passing.end()) continue;
      add(key, rank + 1 + std::min(static_cast<int>(key.match), kinds - 1));
    }
    rank += kinds;
  }
  for (const auto& name : u.exact_names) {
    for (const auto& key : names.find(fold_name(name)))
      if (names.name(key.row) == name) add(key, rank + 1);
    ++rank;
  }
  for (const auto& identifier : u.identifiers) {
    const auto known = names.find(fold_name(identifier)), base = names.find(fold_name(base_metric(identifier))), stem = names.find(stem_key(identifier));
    if (!known.empty() || !base.empty() || !stem.empty()) continue;
    const auto similar = similar_names(identifier, scope, 1, least_fuzzy);
    if (!similar) return fail(similar.error());
    for (size_t i = 0; i < std::min(similar->size(), dense_pool); ++i) {
      found.at((*similar)[i].row).fuzzy = (*similar)[i].similarity;
      found.fuzzy = true;
    }
  }
  return {};
}

expected<retriever::impl::weighed_words> retriever::impl::weigh(const understood_question& u, const scope_rule& scope) const {
  weighed_words w;
  std::vector<std::string> common;
  const bool other_words = std::any_of(u.tokens.begin(), u.tokens.end(), [](const question_token& t) { return !t.hardware; });
  for (const auto& t : u.tokens) {
    if (t.hardware && other_words && scope.knows_hardware()) continue; // its entries have their bonus; its name stands in unrelated ones, too
    const auto f = words.frequency_of(t.text);
    if (!f) return fail(f.error());
    if (f->documents == 0 && t.whole) continue; // its pieces say whether it is known
    w.most += f->idf * (bm25_k1 + 1) * (f->documents == 0 ? unknown_weight : 1);
    if (f->documents == 0) {
      if (std::find(w.unknown.begin(), w.unknown.end(), t.written) == w.unknown.end()) w.unknown.push_back(t.written);
    } else {
      (f->idf > no_idf ? w.searched : common).push_back(t.text);
    }
  }
  // A word of more than half of all entries adds nothing to BM25, and makes it score them all.
  if (w.searched.empty()) w.searched = common;
  for (const auto& text : u.expanded) {
    const auto f = words.frequency_of(text);
    if (!f) return fail(f.error());
    if (f->documents > 0 && f->idf > no_idf) w.expanded.push_back(text);
  }
  return w;
}

expected<double> retriever::impl::add_words(const weighed_words& w, const scope_rule& scope, size_t count, pool& found) const {
  std::unordered_map<uint32_t, double> scores;
  double best_of_own = 0;
  // More where a family or a filter has eaten most of the first ones.
  for (size_t limit = std::max(lexical_pool, 4 * count);; limit *= 8) {
    scores.clear();
    std::unordered_set<uint64_t> groups;
    bool all = true;
    for (const auto& [list, factor] : {std::pair{&w.searched, 1.0}, std::pair{&w.expanded, expansion_weight}}) {
      const auto hits = words.search(*list, limit);
      if (!hits) return fail(hits.error());
      all = all && hits->size() < limit;
      for (const auto& h : *hits) {
        const auto row = static_cast<uint32_t>(h.row);
        if (!scope.admits(row)) continue;
        scores[row] += factor * h.score;
        if (list == &w.searched) best_of_own = std::max(best_of_own, h.score);
        const auto family = names.family(row);
        groups.insert(family ? (uint64_t{1} << 32) + family : row);
      }
    }
    if (all || groups.size() >= count + count / 2 || limit >= names.size()) break;
  }
  double best = 0;
  for (const auto& [row, score] : scores) best = std::max(best, score);
  for (const auto& [row, score] : scores) found.at(row).lexical = best > 0 ? score / best : 0;
  return best_of_own;
}

expected<void> retriever::impl::add_vectors(const understood_question& u, const scope_rule& scope, size_t count, pool& found) const {
  if (names.size() == 0) return {};
  const auto query = model->embed(std::span(&u.text, 1));
  if (!query) {
    if (query.error().code == ec::interrupted) return fail(query.error());
    found.notes.push_back("without vectors: " + query.error().message);
    return {};
  }
  if (std::all_of(query->begin(), query->end(), [](float x) { return x == 0; })) return {};
  for (size_t limit = std::max(dense_pool, 4 * count);; limit *= 8) {
    const auto hits = vectors.search(*query, limit);
    if (!hits) return fail(hits.error());
    std::unordered_set<uint64_t> groups;
    for (const auto& h : *hits) {
      const auto row = static_cast<uint32_t>(h.row);
      if (!scope.admits(row)) continue;
      found.at(row);
      const auto family = names.family(row);
      groups.insert(family ? (uint64_t{1} << 32) + family : row);
    }
    if (groups.size() >= count + count / 2 || limit >= names.size()) break;
  }
  found.each([&](candidate& c) { c.dense = std::max(0.0, vectors.similarity(*query, c.row)); });
  return {};
}

// -- ranking -------------------------------------------------------------------------------------------------------

std::vector<retriever::impl::candidate> retriever::impl::grouped(std::vector<candidate> ranked, const understood_question& u) const {
  std::vector<candidate> kept;
  struct seen {
    size_t at;      ///< in kept
    bool numbered;  ///< what stands there is one of several sizes or thresholds, and the question names none
  };
  std::unordered_map<std::string, seen> groups;
  const auto asked = [&](const std::string& number) {
    return std::any_of(u.tokens.begin(), u.tokens.end(), [&](const question_token& t) { return t.text == number; });
  };
  for (auto& c : ranked) {
    const auto profiler = names.profiler(c.row);
    const bool by_words = c.name_rank == 0 && c.fuzzy == 0 && profiler < names.profilers().size();
    const auto group = by_words ? group_of(names.name(c.row), names.profilers()[profiler]) : event_group();
    const auto [it, first] = group.key.empty() ? std::pair{groups.end(), true} : groups.try_emplace(group.key, seen{kept.size(), false});
    if (first) {
      if (it != groups.end()) it->second.numbered = std::none_of(group.numbers.begin(), group.numbers.end(), asked) && !group.numbers.empty();
      kept.push_back(std::move(c));
      continue;
    }
    auto& front = kept[it->second.at];
    if (it->second.numbered && group.numbers.empty()) {
      std::swap(front.row, c.row);
      it->second.numbered = false;
    }
    front.group.push_back(c.row);
  }
  return kept;
}

std::vector<hit> retriever::impl::collapsed(const std::vector<candidate>& ranked, const scope_rule& scope, size_t count) const {
  std::vector<hit> hits;
  std::unordered_set<uint32_t> families;
  for (const auto& c : ranked) {
    if (hits.size() == count) break;
    const auto family = names.family(c.row);
    if (family != 0 && !families.insert(family).second) continue;
    hit h;
    h.id = names.id(c.row);
    if (h.id.empty()) continue; // of a damaged file
    h.score = std::clamp(c.name_rank > 0 ? 1.0 : c.score, 0.0, 1.0);
    h.lexical = c.lexical;
    h.dense = c.dense;
    h.scope = c.scope;
    h.where = scope.where(c.row);
    h.why = c.name_rank > 0 ? "name" : c.fuzzy > 0 && c.fuzzy >= c.score ? "fuzzy name" : "text";
    for (const auto row : names.family_rows(family))
      if (row != c.row && scope.admits(row)) h.family.emplace_back(names.id(row));
    for (const auto row : c.group)
      if (family == 0 || names.family(row) != family) h.family.emplace_back(names.id(row));
    hits.push_back(std::move(h));
  }
  return hits;
}

/// Of entries of one name that of the more trusted source goes first, for a page may call anything "cache-misses"; then what this machine counts.
void retriever::impl::order(std::vector<candidate>& ranked, const name_index& names) {
  constexpr int unnamed = 1 << 30;
  const auto key = [&](const candidate& c) {
    return std::tuple(c.name_rank ? c.name_rank : unnamed, c.name_rank ? -static_cast<int>(names.trust(c.row)) : 0, c.name_rank ? c.nearness : 0, -c.score, c.row);
  };
  std::sort(ranked.begin(), ranked.end(), [&](const candidate& a, const candidate& b) { return key(a) < key(b); });
}

double retriever::impl::rerank(std::vector<candidate>& ranked, const reranker& by, double dense_weight, bool move) const {
  const auto first = std::find_if(ranked.begin(), ranked.end(), [](const candidate& c) { return c.name_rank == 0; });
  const auto last = first + std::min<ptrdiff_t>(ranked.end() - first, rerank_depth);
  double least = 1, best = 0;
  for (auto c = first; c != last; ++c) {
    const double dense = dense_weight > 0 ? c->dense * dense_weight / embedding_config().weight : usual_similarity;
    const double score = reranker::score(by.features(c->row, {c->lexical, dense, c->scope}));
    best = std::max(best, score);
    if (!move) continue;
    c->score = std::max(score, c->fuzzy);
    least = std::min(least, c->score);
  }
  if (!move) return best;
  std::stable_sort(first, last, [](const candidate& a, const candidate& b) { return a.score > b.score; });
  for (auto c = last; c != ranked.end(); ++c) c->score = std::min(c->score, least);
  return best;
}

expected<found_entries> retriever::impl::ask(const question& q, retrieval_mode mode) const {
  found_entries answer;
  auto start = clock_type::now();
  const auto u = book.understand(q.text);
  const scope_rule scope(q, u, book, names);
  answer.profiler = scope.profiler();
  answer.hardware = scope.hardware();
  answer.expansions = u.expansions;
  if (scope.unknown_profiler()) {
    const auto near = nearest_names(q.profiler, names.profilers(), 3);
    answer.why_not = "the compendium has no entries of profiler '" + printable(q.profiler) + "'" + (near.empty() ? "" : "; near: " + join(near, ", "));
    return answer;
  }
  pool found;
  const size_t count = std::clamp<size_t>(q.count, 1, 10'000);
  auto weighed = weigh(u, scope);
  if (!weighed) return fail(weighed.error());
  double best = 0;
  if (mode != retrieval_mode::dense_only) {
    if (auto added = add_names(u, scope, found); !added) return fail(added.error());
    const auto words_best = add_words(*weighed, scope, count, found);
    if (!words_best) return fail(words_best.error());
    best = *words_best;
  }
  answer.seconds.lexical = seconds_since(start);

  start = clock_type::now();
  if (mode != retrieval_mode::lexical_only)
    if (auto added = add_vectors(u, scope, count, found); !added) return fail(added.error());
  answer.seconds.dense = seconds_since(start);

  start = clock_type::now();
  answer.notes = found.notes;
  auto ranked = found.take();
  const double w = mode == retrieval_mode::lexical_only || !found.notes.empty() ? 0 : weight;
  for (auto& c : ranked) {
    c.scope = scope.bonus(c.row);
    c.nearness = scope.nearness(c.row);
    c.score = (mode == retrieval_mode::dense_only ? c.dense : (c.lexical + w * c.dense) / (1 + w)) + c.scope;
    c.score = std::max(c.score, c.fuzzy);
  }
  order(ranked, names);
  for (const auto& c : ranked) answer.similarity = std::max(answer.similarity, c.dense);
  auto kept = grouped(std::move(ranked), u);
  const reranker by(texts, u);
  answer.known_share = by.known_share();
  answer.fit = rerank(kept, by, w, mode == retrieval_mode::fused);
  answer.hits = collapsed(kept, scope, count);
  answer.evidence = weighed->most > 0 ? std::min(1.0, best / weighed->most) : 0;
  const double confidence = evidence_part * answer.evidence + known_part * answer.known_share + fit_part * answer.fit +
                            words_part * static_cast<double>(std::min(by.groups(), most_counted_words));
  answer.in_scope = !answer.hits.empty() && (found.named || found.fuzzy || confidence >= least_confidence || mode == retrieval_mode::dense_only);
  if (!answer.in_scope) {
    if (names.size() == 0) answer.why_not = "the compendium is empty";
    else if (u.tokens.empty()) answer.why_not = "the question has no words that could be looked up";
    else if (auto& unknown = weighed->unknown; !unknown.empty()) {
      unknown.resize(std::min<size_t>(unknown.size(), 5));
      answer.why_not = "not in the compendium: no entry speaks of " + join(unknown, ", ");
    } else answer.why_not = "not in the compendium: no entry has enough of the question's words together";
  }
  answer.seconds.fusion = seconds_since(start);
  return answer;
}

expected<std::vector<hit>> retriever::impl::find_name(const std::string& name, const std::string& profiler, size_t count) const {
  question q;
  q.profiler = profiler;
  const scope_rule scope(q, {}, book, names);
  if (scope.unknown_profiler()) {
    const auto near = nearest_names(profiler, names.profilers(), 3);
    return fail(ec::not_found, "the compendium has no entries of profiler '" + printable(profiler) + "'", near.empty() ? "" : "near: " + join(near, ", "));
  }
  count = std::clamp<size_t>(count, 1, 10'000);
  std::vector<candidate> ranked;
  std::unordered_set<uint32_t> seen;
  const auto cut = std::string_view(name).substr(0, 4096);
  for (const auto& key : {fold_name(cut), fold_name(base_metric(cut)), stem_key(cut)})
    for (const auto& k : names.find(key)) {
      if (!scope.admits(k.row) || !seen.insert(k.row).second) continue;
      candidate c;
      c.row = k.row;
      c.name_rank = 1 + static_cast<int>(k.match);
      c.score = 1;
      ranked.push_back(c);
    }
  // Concepts pass a profiler's scope; an entry of the profiler itself goes before them. Of one name the more trusted goes first.
  std::stable_sort(ranked.begin(), ranked.end(), [&](const candidate& a, const candidate& b) {
    return std::tuple(-scope.bonus(a.row), a.name_rank, -static_cast<int>(names.trust(a.row))) <
           std::tuple(-scope.bonus(b.row), b.name_rank, -static_cast<int>(names.trust(b.row)));
  });
  const auto similar = similar_names(std::string(cut), scope, count, least_listed);
  if (!similar) return fail(similar.error());
  for (const auto& s : *similar) {
    if (!seen.insert(s.row).second) continue;
    candidate c;
    c.row = s.row;
    c.fuzzy = c.score = s.similarity;
    ranked.push_back(c);
  }
  return collapsed(ranked, scope, count);
}

} // namespace pragma
