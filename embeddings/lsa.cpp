// Latent semantic analysis (Deerwester et al. 1990): tf-idf, then a truncated SVD by randomised range finding with power
// iterations (Halko, Martinsson, Tropp 2011, algorithms 4.4 and 5.1). A text's vector is the sum of its features' rows.
#include "base/hash.hpp"
#include "embeddings/lsa_model.hpp"

#include <Eigen/Dense>
#include <Eigen/SparseCore>

#include <algorithm>
#include <cmath>
#include <random>
#include <unordered_map>

namespace pragma::lsa {

namespace {

using matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using sparse = Eigen::SparseMatrix<float, Eigen::RowMajor, int>;

constexpr int oversampling = 10;     // columns beyond those wanted, as Halko et al. advise
constexpr int power_iterations = 2;  // the spectrum of texts falls slowly; a third changes the vectors by less than rounding
constexpr float least_singular_share = 1e-3f; // of the largest one; smaller ones are noise in float
constexpr int block_rows = 1024;     // rows of a tall matrix handled at once

bool cancelled(const std::atomic<bool>* flag) { return flag && flag->load(); }
tl::unexpected<error> interrupted() { return fail(ec::interrupted, "fitting the LSA model was cancelled"); }

struct vocabulary {
  std::vector<uint64_t> keys; // sorted
  std::vector<float> idf;
};

/// The features that stand in at least min_documents texts; where there are too many, words before n-grams and frequent before rare.
vocabulary choose_features(const std::vector<const std::string*>& texts, const lsa_options& options) {
  std::unordered_map<uint64_t, uint32_t> words, grams;
  for (const auto* text : texts) {
    const auto f = features_of(*text, options.shortest_gram, options.longest_gram);
    for (const auto& [key, count] : f.words) ++words[key];
    for (const auto& [key, count] : f.grams) ++grams[key];
  }
  struct candidate {
    uint64_t key;
    uint32_t documents;
    bool word;
  };
  std::vector<candidate> all;
  const auto least = static_cast<uint32_t>(std::max(1, options.min_documents));
  for (const auto& [key, documents] : words)
    if (documents >= least) all.push_back({key, documents, true});
  for (const auto& [key, documents] : grams)
    if (documents >= least) all.push_back({key, documents, false});
  std::sort(all.begin(), all.end(), [](const candidate& a, const candidate& b) {
    if (a.word != b.word) return a.word;
    if (a.documents != b.documents) return a.documents > b.documents;
    return a.key < b.key; // not the order of a hash table: the result is the same every time
  });
  if (all.size() > options.max_features) all.resize(options.max_features);
  std::sort(all.begin(), all.end(), [](const candidate& a, const candidate& b) { return a.key < b.key; });
  vocabulary v;
  for (const auto& c : all) {
    if (!v.keys.empty() && v.keys.back() == c.key) continue; // a word and an n-gram of one hash
    v.keys.push_back(c.key);
    v.idf.push_back(static_cast<float>(1 + std::log((1.0 + static_cast<double>(texts.size())) / (1.0 + c.documents))));
  }
  return v;
}

/// Texts x features, each row's two blocks of length 1.
sparse term_matrix(const std::vector<const std::string*>& texts, const vocabulary& v, const lsa_options& options) {
  uint32_t bits = 0;
  const auto buckets = buckets_of(v.keys, bits);
  auto find = [&](uint64_t key) -> int {
    const auto bucket = static_cast<size_t>(key >> (64 - bits));
    for (uint32_t i = buckets[bucket]; i < buckets[bucket + 1]; ++i)
      if (v.keys[i] == key) return static_cast<int>(i);
    return -1;
  };
  std::vector<int> starts = {0}, columns;
  std::vector<float> values;
  std::vector<std::pair<int, float>> row;
  for (const auto* text : texts) {
    const auto f = features_of(*text, options.shortest_gram, options.longest_gram);
    row.clear();
    for (const auto* block : {&f.words, &f.grams}) {
      const size_t first = row.size();
      float squares = 0;
      for (const auto& [key, count] : *block) {
        const int column = find(key);
        if (column < 0) continue;
        const float weight = term_weight(count, v.idf[static_cast<size_t>(column)]);
        squares += weight * weight;
        row.emplace_back(column, weight);
      }
      for (size_t i = first; i < row.size(); ++i) row[i].second /= std::sqrt(squares);
    }
    std::sort(row.begin(), row.end());
    for (const auto& [column, weight] : row) {
      columns.push_back(column);
      values.push_back(weight);
    }
    starts.push_back(static_cast<int>(columns.size()));
  }
  return Eigen::Map<const sparse>(static_cast<int>(texts.size()), static_cast<int>(v.keys.size()), static_cast<int>(columns.size()),
                                  starts.data(), columns.data(), values.data());
}

matrix random_matrix(Eigen::Index rows, Eigen::Index columns, uint64_t seed) {
  std::mt19937_64 random(seed);
  matrix m(rows, columns);
  // Uniform in [-1, 1) by hand: the standard's distributions differ between libraries.
  for (Eigen::Index i = 0; i < m.size(); ++i) m.data()[i] = static_cast<float>(static_cast<double>(random() >> 11) * 0x1p-52 - 1);
  return m;
}

matrix orthonormal_columns(const matrix& m) {
  Eigen::HouseholderQR<Eigen::MatrixXf> qr(m);
  return qr.householderQ() * Eigen::MatrixXf::Identity(m.rows(), m.cols());
}

/// Rows of the right singular vectors (features x dimensions), as bytes with a scale each, handed to `rows` and `scale`.
expected<uint32_t> project(const sparse& a, const lsa_options& options, const std::atomic<bool>* cancel, model_data& out) {
  const auto smaller = static_cast<int>(std::min(a.rows(), a.cols()));
  const int wide = std::min(options.dimensions + oversampling, smaller);
  matrix q = random_matrix(a.rows(), wide, options.seed);
  matrix b;
  for (int i = 0; i < power_iterations; ++i) {
    if (cancelled(cancel)) return interrupted();
    b = a.transpose() * q;
    if (cancelled(cancel)) return interrupted();
    q = a * b;
    q = orthonormal_columns(q);
  }
  if (cancelled(cancel)) return interrupted();
  b = a.transpose() * q; // features x wide; its right singular vectors come from the small Gram matrix
  Eigen::MatrixXd gram = Eigen::MatrixXd::Zero(wide, wide);
  for (Eigen::Index r = 0; r < b.rows(); r += block_rows) {
    const auto block = b.middleRows(r, std::min<Eigen::Index>(block_rows, b.rows() - r));
    const Eigen::MatrixXf product = block.transpose() * block;
    gram += product.cast<double>();
  }
  if (cancelled(cancel)) return interrupted();
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> eigen(gram); // ascending
  const auto& squares = eigen.eigenvalues();
  const double largest = squares.size() > 0 ? std::max(0.0, squares(squares.size() - 1)) : 0;
  const double least = largest * least_singular_share * least_singular_share;
  int k = 0;
  while (k < std::min(options.dimensions, wide) && squares(wide - 1 - k) > least) ++k;
  if (k == 0) return 0u;
  Eigen::MatrixXf turn(wide, k);
  for (int j = 0; j < k; ++j)
    turn.col(j) = (eigen.eigenvectors().col(wide - 1 - j) / std::sqrt(squares(wide - 1 - j))).cast<float>();
  out.rows.resize(static_cast<size_t>(b.rows()) * static_cast<size_t>(k));
  out.scale.resize(static_cast<size_t>(b.rows()));
  for (Eigen::Index r = 0; r < b.rows(); r += block_rows) {
    const matrix rows = b.middleRows(r, std::min<Eigen::Index>(block_rows, b.rows() - r)) * turn;
    for (Eigen::Index i = 0; i < rows.rows(); ++i) {
      const float most = rows.row(i).cwiseAbs().maxCoeff();
      const float scale = most > 0 ? most / 127 : 0;
      auto* bytes = out.rows.data() + static_cast<size_t>((r + i) * k);
      for (int j = 0; j < k; ++j) bytes[j] = scale > 0 ? static_cast<int8_t>(std::lround(rows(i, j) / scale)) : int8_t{0};
      out.scale[static_cast<size_t>(r + i)] = scale;
    }
  }
  return static_cast<uint32_t>(k);
}

expected<void> check_options(const lsa_options& o) {
  if (o.dimensions < 1 || o.dimensions > 2048 || o.shortest_gram < 1 || o.longest_gram < o.shortest_gram || o.longest_gram > 32 ||
      o.max_features < 1 || o.max_features > 20'000'000 || o.max_texts < 1)
    return fail(ec::invalid_argument, "LSA options: dimensions must lie between 1 and 2048, 1 <= shortest_gram <= longest_gram <= 32, "
                                      "max_features between 1 and 20 million, max_texts above 0");
  return {};
}

std::string fingerprint(const std::vector<const std::string*>& texts, const lsa_options& o) {
  sha256_stream hash;
  for (const auto number : {static_cast<uint64_t>(o.dimensions), static_cast<uint64_t>(o.min_documents), static_cast<uint64_t>(o.max_features),
                            static_cast<uint64_t>(o.shortest_gram), static_cast<uint64_t>(o.longest_gram), o.seed})
    hash.update(std::to_string(number) + " ");
  for (const auto* text : texts) {
    hash.update(std::to_string(text->size()) + ":");
    hash.update(*text);
  }
  return hash.finish_hex().substr(0, 12);
}

} // namespace

} // namespace pragma::lsa

namespace pragma {

expected<std::unique_ptr<embedder>> fit_lsa(std::span<const std::string> all, const lsa_options& options, const std::atomic<bool>* cancel) {
  using namespace lsa;
  if (auto good = check_options(options); !good) return fail(good.error());
  std::vector<const std::string*> texts;
  const size_t count = std::min(all.size(), options.max_texts);
  for (size_t i = 0; i < count; ++i) texts.push_back(&all[i * all.size() / count]);
  const auto v = choose_features(texts, options);
  if (cancelled(cancel)) return interrupted();
  model_data data;
  data.head.shortest_gram = static_cast<uint32_t>(options.shortest_gram);
  data.head.longest_gram = static_cast<uint32_t>(options.longest_gram);
  data.head.texts = texts.size();
  uint32_t k = 0;
  if (!v.keys.empty()) {
    const auto a = term_matrix(texts, v, options);
    const auto projected = project(a, options, cancel, data);
    if (!projected) return fail(projected.error());
    k = *projected;
  }
  if (k > 0) { // otherwise no two texts share anything: every vector is 0
    data.keys = v.keys;
    data.idf = v.idf;
  } else {
    data.rows.clear();
    data.scale.clear();
  }
  data.head.dimensions = std::max(1u, k);
  data.buckets = buckets_of(data.keys, data.head.bucket_bits);
  data.name = "lsa 1 " + std::to_string(data.head.dimensions) + " " + fingerprint(texts, options);
  return std::make_unique<model>(std::move(data));
}

} // namespace pragma
