#include "knowledge/rerank.hpp"

#include <algorithm>
#include <numeric>

namespace pragma {

namespace {

constexpr double said_share = 0.5;   // of a phrase that the glossary says for a word, beside the word itself
constexpr ptrdiff_t near = 3;        // words between two that belong together
// Fitted by bench/fit_rerank (docs/retrieval.md); in the order of rerank_features::list().
constexpr std::array<double, 10> weights = {4.34, 5.17, 11.30, -3.89, 6.99, -6.05, 6.93, -0.46, 3.48, 2.24};

double whole_score() {
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i) sum += i == 2 ? 0 : weights[i];
  return sum;
}

bool has(const std::vector<uint32_t>& sorted, uint32_t word) { return std::binary_search(sorted.begin(), sorted.end(), word); }

std::vector<uint32_t> sorted_words(std::span<const uint32_t> words) {
  std::vector<uint32_t> sorted(words.begin(), words.end());
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  return sorted;
}

} // namespace

reranker::reranker(const text_index& texts, const understood_question& u) : texts_(texts) {
  const auto numbers = [&](const std::vector<std::string>& tokens) {
    std::vector<uint32_t> out;
    for (const auto& t : tokens) out.push_back(texts.number_of(t));
    return out;
  };
  double known = 0;
  for (const auto& g : u.groups) {
    weighed_group w;
    w.own = numbers(g.own);
    for (const auto n : w.own) w.weight += texts.idf(n);
    const auto some = [](const std::vector<uint32_t>& words) { return std::any_of(words.begin(), words.end(), [](uint32_t n) { return n != text_index::unknown; }); };
    bool is_known = some(w.own);
    own_.insert(own_.end(), w.own.begin(), w.own.end());
    for (const auto& phrase : g.others) {
      w.others.push_back(numbers(phrase));
      said_.insert(said_.end(), w.others.back().begin(), w.others.back().end());
      const auto& words = w.others.back();
      is_known = is_known || std::find(words.begin(), words.end(), text_index::unknown) == words.end();
    }
    total_ += w.weight;
    if (is_known) known += w.weight;
    groups_.push_back(std::move(w));
  }
  own_ = sorted_words(own_);
  said_ = sorted_words(said_);
  known_share_ = total_ > 0 ? known / total_ : 0;
}

double reranker::covered(const weighed_group& g, const std::vector<uint32_t>& sorted, bool said) const {
  double found = 0;
  for (const auto n : g.own)
    if (has(sorted, n)) found += texts_.idf(n);
  double share = g.weight > 0 ? found / g.weight : 0;
  if (said && share < said_share &&
      std::any_of(g.others.begin(), g.others.end(), [&](const auto& phrase) { return std::all_of(phrase.begin(), phrase.end(), [&](uint32_t n) { return has(sorted, n); }); }))
    share = said_share;
  return share;
}

rerank_features reranker::features(uint32_t row, const first_scores& first) const {
  rerank_features f{first.lexical, first.dense, first.scope};
  const auto meaning = texts_.words(row, entry_field::meaning);
  const auto name = sorted_words(texts_.words(row, entry_field::name)), summary = sorted_words(texts_.words(row, entry_field::summary));
  auto all = name;
  for (const auto words : {meaning, texts_.words(row, entry_field::rest)}) all.insert(all.end(), words.begin(), words.end());
  all = sorted_words(all);
  for (const auto& g : groups_) {
    if (total_ <= 0) break;
    const double share = g.weight / total_;
    f.name += share * covered(g, name, false);
    f.name_said += share * covered(g, name, true);
    f.anywhere += share * covered(g, all, false);
    f.anywhere_said += share * covered(g, all, true);
  }
  double whole = 0;
  for (const auto n : summary) {
    const double weight = texts_.idf(n);
    whole += weight;
    if (has(own_, n)) f.summary += weight;
    f.summary_said += has(own_, n) ? weight : has(said_, n) ? said_share * weight : 0;
  }
  if (whole > 0) {
    f.summary /= whole;
    f.summary_said /= whole;
  }
  // Where the words of each group stand in the meaning; neighbours in the question should be neighbours there.
  std::vector<ptrdiff_t> before, here;
  for (size_t i = 0; i < groups_.size(); ++i) {
    here.clear();
    const auto is_of = [&](uint32_t n) {
      const auto& g = groups_[i];
      const auto in = [&](const std::vector<uint32_t>& words) { return std::find(words.begin(), words.end(), n) != words.end(); };
      return in(g.own) || std::any_of(g.others.begin(), g.others.end(), in);
    };
    for (size_t k = 0; k < meaning.size(); ++k)
      if ((has(own_, meaning[k]) || has(said_, meaning[k])) && is_of(meaning[k])) here.push_back(static_cast<ptrdiff_t>(k));
    const bool together = std::any_of(here.begin(), here.end(), [&](ptrdiff_t a) {
      return std::any_of(before.begin(), before.end(), [&](ptrdiff_t b) { return a != b && std::abs(a - b) <= near; });
    });
    if (i > 0 && together) f.pairs += 1 / static_cast<double>(groups_.size() - 1);
    std::swap(before, here);
  }
  return f;
}

double reranker::score(const rerank_features& f) {
  static const double whole = whole_score();
  const auto list = f.list();
  return std::inner_product(weights.begin(), weights.end(), list.begin(), 0.0) / whole;
}

} // namespace pragma
