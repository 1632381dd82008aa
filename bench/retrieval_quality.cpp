// How well questions find their entries: BM25 over our tokens, vectors, both fused, and as baseline SQLite FTS5's own `porter`
// tokenizer over the same texts. Prints R@1, R@5, MRR@10 and paired bootstrap intervals of the differences to the baseline.
//   retrieval_quality STARTER_FOLDER|ENTRIES.jsonl QUESTIONS.json [GLOSSARY.json] [--each] [--part learnt|held] [--embeddings FILE] [--features FILE]
// --each: what each question found, and what stood before an answer that is not first. --part: only questions that are not held back, or only those that are. --embeddings: an embedding model's settings, as for `pragma kb build`.
// --features: writes what bench/fit_rerank fits the weights of knowledge/rerank.cpp to, and asks nothing else.
#include "base/files.hpp"
#include "base/text.hpp"
#include "knowledge/index_files.hpp"
#include "knowledge/index_text.hpp"
#include "knowledge/rerank.hpp"
#include "knowledge/retrieval.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <unordered_map>

using namespace pragma;
namespace fs = std::filesystem;

namespace {

constexpr size_t depth = 10;         // of the ranking that is judged
constexpr size_t deep = 50;          // of the ranking that --each looks through for an answer that was not first
constexpr int resamples = 10'000;    // of the bootstrap

struct labelled {
  std::string text;
  std::vector<std::string> answers;  // empty: out of scope
};
using ranking = std::vector<std::string>;

struct measure {
  std::string name;
  std::vector<double> first, five, reciprocal; // per question in scope
};

void need(expected<void> done) {
  if (done) return;
  std::fprintf(stderr, "%s\n", render(done.error()).c_str());
  std::exit(exit_code(done.error().code));
}

template <class T> T need(expected<T> value) {
  if (!value) {
    std::fprintf(stderr, "%s\n", render(value.error()).c_str());
    std::exit(exit_code(value.error().code));
  }
  return std::move(*value);
}

std::string id_of(const std::string& profiler, std::string name) {
  for (auto& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return profiler + "/" + name;
}

/// What build_corpus and `pragma kb export` write.
std::vector<entry> read_lines(const fs::path& file) {
  std::vector<entry> all;
  for (const auto& line : split(need(read_file(file, 1u << 30)), '\n'))
    if (!line.empty()) all.push_back(need(from_json_value<entry>(need(parse_json(line, file.string())), file.string())));
  return all;
}

std::vector<entry> read_starter(const fs::path& folder) {
  if (folder.extension() == ".jsonl") return read_lines(folder);
  std::vector<fs::path> files;
  for (const auto& item : fs::directory_iterator(folder))
    if (item.path().extension() == ".json") files.push_back(item.path());
  std::sort(files.begin(), files.end());
  std::vector<entry> all;
  for (const auto& file : files) {
    const auto value = need(parse_json(need(read_file(file)), file.string()));
    const auto profiler = value.value("profiler", std::string());
    for (const auto& item : value.at("entries")) {
      auto e = need(from_json_value<entry>(item, file.string()));
      if (!item.contains("profiler")) e.profiler = profiler;
      e.id = id_of(e.profiler, e.name);
      all.push_back(std::move(e));
    }
  }
  return all;
}

std::vector<labelled> read_questions(const fs::path& file, const std::string& part) {
  auto value = need(parse_json(need(read_file(file)), file.string()));
  if (value.is_object()) value = value.at("questions");
  std::vector<labelled> all;
  for (const auto& item : value)
    if (part.empty() || item.value("held_back", false) == (part == "held")) all.push_back({item.at("question"), item.at("answers")});
  return all;
}

/// FTS5 as it comes, with the same columns and weights; each word of the question quoted, joined by OR.
class porter_baseline {
public:
  explicit porter_baseline(const std::vector<entry>& entries) : entries_(entries) {
    sqlite3_open(":memory:", &db_);
    check(sqlite3_exec(db_, "CREATE VIRTUAL TABLE t USING fts5(name, meaning, rest, tokenize='porter')", nullptr, nullptr, nullptr));
    sqlite3_stmt* insert = nullptr;
    check(sqlite3_prepare_v2(db_, "INSERT INTO t(rowid, name, meaning, rest) VALUES(?,?,?,?)", -1, &insert, nullptr));
    for (size_t i = 0; i < entries.size(); ++i) {
      const auto c = columns_of(entries[i]);
      sqlite3_bind_int64(insert, 1, static_cast<int64_t>(i));
      int place = 2;
      for (const auto* text : {&c.name, &c.meaning, &c.rest}) sqlite3_bind_text(insert, place++, text->data(), static_cast<int>(text->size()), SQLITE_TRANSIENT);
      if (sqlite3_step(insert) != SQLITE_DONE) check(SQLITE_ERROR);
      sqlite3_reset(insert);
    }
    sqlite3_finalize(insert);
    check(sqlite3_prepare_v2(db_, "SELECT rowid FROM t WHERE t MATCH ?1 ORDER BY bm25(t, 3.0, 1.5, 1.0), rowid LIMIT 10", -1, &search_, nullptr));
  }
  ~porter_baseline() {
    sqlite3_finalize(search_);
    sqlite3_close(db_);
  }
  porter_baseline(const porter_baseline&) = delete;
  porter_baseline& operator=(const porter_baseline&) = delete;

  ranking ask(const std::string& question) {
    std::string expression;
    std::string word;
    auto end_word = [&] {
      const bool letters = std::any_of(word.begin(), word.end(), [](unsigned char c) { return std::isalnum(c) || c >= 0x80; });
      if (letters) expression += (expression.empty() ? "\"" : " OR \"") + word + '"';
      word.clear();
    };
    for (const char c : question) {
      if (std::isspace(static_cast<unsigned char>(c))) end_word();
      else if (c != '"') word += c;
    }
    end_word();
    ranking ids;
    if (expression.empty()) return ids;
    sqlite3_bind_text(search_, 1, expression.c_str(), -1, SQLITE_TRANSIENT);
    while (sqlite3_step(search_) == SQLITE_ROW) ids.push_back(entries_[static_cast<size_t>(sqlite3_column_int64(search_, 0))].id);
    sqlite3_reset(search_);
    return ids;
  }

private:
  void check(int code) {
    if (code == SQLITE_OK) return;
    std::fprintf(stderr, "SQLite: %s\n", sqlite3_errmsg(db_));
    std::exit(1);
  }
  const std::vector<entry>& entries_;
  sqlite3* db_ = nullptr;
  sqlite3_stmt* search_ = nullptr;
};

bool is_right(const std::string& id, const labelled& q) { return std::find(q.answers.begin(), q.answers.end(), id) != q.answers.end(); }

/// `groups`: what stands behind each of `ids` as the same event; empty: that does not count.
void judge(measure& m, const ranking& ids, const std::vector<ranking>& groups, const labelled& q) {
  const auto right = [&](const std::string& id) { return is_right(id, q); };
  size_t rank = 0;
  for (size_t i = 0; i < std::min(depth, ids.size()) && rank == 0; ++i)
    if (right(ids[i]) || (i < groups.size() && std::any_of(groups[i].begin(), groups[i].end(), right))) rank = i + 1;
  m.first.push_back(rank == 1);
  m.five.push_back(rank >= 1 && rank <= 5);
  m.reciprocal.push_back(rank ? 1.0 / static_cast<double>(rank) : 0);
}

std::vector<hit> hits_of(const retriever& index, const std::string& text, size_t count) {
  question asked;
  asked.text = text;
  asked.count = count;
  return need(index.ask(asked)).hits;
}

/// Of the first hit that is an answer or has one behind it as the same event; `deep` where there is none.
size_t place_of_answer(const std::vector<hit>& hits, const labelled& q) {
  for (size_t i = 0; i < hits.size(); ++i)
    if (is_right(hits[i].id, q) || std::any_of(hits[i].family.begin(), hits[i].family.end(), [&](const std::string& id) { return is_right(id, q); })) return i;
  return deep;
}

/// What stood before the first right answer, and where that stands, with the parts of their scores.
void print_miss(const retriever& index, const labelled& q) {
  const auto hits = hits_of(index, q.text, deep);
  const auto place = place_of_answer(hits, q);
  for (size_t i = 0; i < hits.size(); ++i)
    if (i < 5 || i == place)
      std::printf("        %3zu %c %.3f: words %.3f, vectors %.3f, scope %+.2f  %s\n", i + 1, i == place ? '+' : ' ', hits[i].score, hits[i].lexical, hits[i].dense,
                  hits[i].scope, hits[i].id.c_str());
  if (place == deep) std::printf("        not among the first %zu: %s\n", deep, q.answers[0].c_str());
}

/// One line of JSON for each question, for bench/fit_rerank: what the model of rerank.hpp sees of its first candidates, and which of them are right.
void write_features(const fs::path& file, const std::vector<entry>& entries, const std::vector<labelled>& questions, const glossary& words, const retriever& index,
                    const fs::path& folder) {
  const auto texts = need(text_index::open(folder / need(read_stamp(folder)).folder / text_file));
  std::vector<std::string> profilers;
  std::unordered_map<std::string, uint32_t> rows;
  for (const auto& e : entries) {
    rows[e.id] = static_cast<uint32_t>(rows.size());
    if (std::find(profilers.begin(), profilers.end(), e.profiler) == profilers.end()) profilers.push_back(e.profiler);
  }
  const phrase_book book(words, profilers);
  std::string lines;
  for (const auto& q : questions) {
    question asked;
    asked.text = q.text;
    asked.count = 100;
    const auto found = need(index.ask(asked, retrieval_mode::without_rerank));
    const reranker by(texts, book.understand(q.text));
    json candidates = json::array();
    for (const auto& h : found.hits) {
      const bool behind = std::any_of(h.family.begin(), h.family.end(), [&](const std::string& id) { return is_right(id, q); });
      candidates.push_back({{"right", is_right(h.id, q)}, {"behind", behind}, {"why", h.why}, {"score", h.score},
                            {"features", by.features(rows.at(h.id), {h.lexical, h.dense, h.scope}).list()}});
    }
    const auto source = q.answers.empty() ? std::string() : q.answers[0].substr(0, q.answers[0].find('/'));
    lines += json({{"source", source}, {"answerable", !q.answers.empty()}, {"candidates", candidates}, {"evidence", found.evidence}, {"said", found.known_share}, {"groups", by.groups()}}).dump() + "\n";
  }
  need(write_file_atomic(file, lines));
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

/// "+0.052 [+0.010, +0.095]": mean difference and the middle 95 % of its resamples.
std::string difference(const std::vector<double>& a, const std::vector<double>& base) {
  std::mt19937_64 random(1);
  std::vector<double> means;
  const size_t n = a.size();
  for (int r = 0; r < resamples; ++r) {
    double sum = 0;
    for (size_t i = 0; i < n; ++i) {
      const size_t k = random() % n;
      sum += a[k] - base[k];
    }
    means.push_back(sum / static_cast<double>(n));
  }
  std::sort(means.begin(), means.end());
  char text[64];
  std::snprintf(text, sizeof text, "%+.3f [%+.3f, %+.3f]", mean(a) - mean(base), means[static_cast<size_t>(resamples * 0.025)],
                means[static_cast<size_t>(resamples * 0.975)]);
  return text;
}

void print_table(const std::vector<measure>& measures) {
  std::printf("%-28s %6s %6s %6s   %-26s %-26s %-26s\n", "", "R@1", "R@5", "MRR", "R@1 - porter", "R@5 - porter", "MRR - porter");
  for (const auto& m : measures)
    std::printf("%-28s %6.3f %6.3f %6.3f   %-26s %-26s %-26s\n", m.name.c_str(), mean(m.first), mean(m.five), mean(m.reciprocal),
                difference(m.first, measures[0].first).c_str(), difference(m.five, measures[0].five).c_str(),
                difference(m.reciprocal, measures[0].reciprocal).c_str());
}

size_t labels_without_entry(const labelled& q, const std::vector<entry>& entries, bool print) {
  size_t missing = 0;
  for (const auto& id : q.answers) {
    if (std::any_of(entries.begin(), entries.end(), [&](const entry& e) { return e.id == id; })) continue;
    ++missing;
    if (print) std::printf("no entry %s (%s)\n", id.c_str(), q.text.c_str());
  }
  return missing;
}

/// Chance that a question in scope has more evidence than one out of scope.
double area_under_curve(const std::vector<double>& inside, const std::vector<double>& outside) {
  double wins = 0;
  for (const double a : inside)
    for (const double b : outside) wins += a > b ? 1 : a == b ? 0.5 : 0;
  return wins / (static_cast<double>(inside.size()) * static_cast<double>(outside.size()));
}

/// Takes an option and its value out of the arguments; empty: it is not among them.
std::string taken(std::vector<std::string>& arguments, const char* option) {
  std::string value;
  if (const auto it = std::find(arguments.begin(), arguments.end(), option); it != arguments.end() && it + 1 != arguments.end()) {
    value = it[1];
    arguments.erase(it, it + 2);
  }
  return value;
}

} // namespace

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  const bool each = std::erase(arguments, "--each") > 0;
  const auto part = taken(arguments, "--part"), features = taken(arguments, "--features"), embeddings = taken(arguments, "--embeddings");
  if (arguments.size() < 2 || arguments.size() > 3) {
    std::fprintf(stderr, "usage: retrieval_quality STARTER_FOLDER QUESTIONS.json [GLOSSARY.json] [--each] [--part learnt|held] [--embeddings FILE] [--features FILE]\n");
    return 2;
  }
  const auto entries = read_starter(arguments[0]);
  const auto questions = read_questions(arguments[1], part);
  glossary words;
  if (arguments.size() == 3) words = need(parse_glossary(need(read_file(arguments[2])), arguments[2]));

  const auto dir = need(temp_dir::create("retrieval-quality"));
  size_t at = 0;
  const retriever::corpus corpus{[&] { at = 0; }, [&]() -> const entry* { return at < entries.size() ? &entries[at++] : nullptr; }};
  const auto config = embeddings.empty() ? embedding_config{} : need(parse_embedding_config(need(read_file(embeddings)), embeddings));
  const auto info = need(retriever::build(corpus, 1, config, dir.path()));
  const auto with_words = need(retriever::open(dir.path(), 1, config, words));
  const auto without_words = need(retriever::open(dir.path(), 1, config, {}));
  if (!features.empty()) {
    write_features(features, entries, questions, words, with_words, dir.path());
    return 0;
  }
  porter_baseline baseline(entries);

  struct contender {
    std::string name;
    const retriever* index;
    retrieval_mode mode;
  };
  const contender contenders[] = {{"lexical only, no glossary", &without_words, retrieval_mode::lexical_only},
                                  {"dense only, no glossary", &without_words, retrieval_mode::dense_only},
                                  {"fused, no glossary", &without_words, retrieval_mode::without_rerank},
                                  {"lexical only", &with_words, retrieval_mode::lexical_only},
                                  {"dense only", &with_words, retrieval_mode::dense_only},
                                  {"fused, without rerank", &with_words, retrieval_mode::without_rerank},
                                  {"fused", &with_words, retrieval_mode::fused}};
  std::vector<measure> measures(1);
  measures[0].name = "FTS5 porter";
  for (const auto& c : contenders) measures.push_back({c.name, {}, {}, {}});
  measures.push_back({"fused, the same event counts", {}, {}, {}});
  std::vector<double> evidence_inside, evidence_outside;
  size_t kept = 0, refused = 0, missing = 0, within_deep = 0;
  for (const auto& q : questions) {
    missing += labels_without_entry(q, entries, each);
    if (!q.answers.empty()) judge(measures[0], baseline.ask(q.text), {}, q);
    for (size_t i = 0; i < std::size(contenders); ++i) {
      question asked;
      asked.text = q.text;
      asked.count = depth;
      const auto found = need(contenders[i].index->ask(asked, contenders[i].mode));
      ranking ids;
      std::vector<ranking> groups;
      for (const auto& h : found.hits) {
        ids.push_back(h.id);
        groups.push_back(h.family);
      }
      if (!q.answers.empty()) judge(measures[i + 1], ids, {}, q);
      if (i + 1 < std::size(contenders)) continue;
      if (!q.answers.empty()) {
        judge(measures.back(), ids, groups, q);
        within_deep += place_of_answer(hits_of(*contenders[i].index, q.text, deep), q) < deep;
      }
      (q.answers.empty() ? evidence_outside : evidence_inside).push_back(found.evidence);
      kept += !q.answers.empty() && found.in_scope;
      refused += q.answers.empty() && !found.in_scope;
      if (each)
        std::printf("%s  %.2f %.2f %.2f %s  %-70s -> %s\n", q.answers.empty() ? "out" : measures[i + 1].first.back() > 0 ? " 1 " : measures[i + 1].five.back() > 0 ? " 5 " : " - ",
                    found.evidence, found.known_share, found.similarity, found.in_scope ? "in " : "out", q.text.c_str(), ids.empty() ? "" : ids[0].c_str());
      if (each && !q.answers.empty() && measures[i + 1].first.back() == 0) print_miss(*contenders[i].index, q);
    }
  }
  std::printf("%zu entries, %zu questions (%zu out of scope), %s, %zu labels without an entry\n\n", entries.size(), questions.size(),
              evidence_outside.size(), info.embedder.c_str(), missing);
  print_table(measures);
  std::printf("\nan answer among the first %zu: %zu of %zu\n", deep, within_deep, evidence_inside.size());
  if (!evidence_outside.empty())
    std::printf("in scope: %zu of %zu kept; out of scope: %zu of %zu refused; AUC of the evidence %.3f\n", kept, evidence_inside.size(), refused,
                evidence_outside.size(), area_under_curve(evidence_inside, evidence_outside));
  return 0;
}
