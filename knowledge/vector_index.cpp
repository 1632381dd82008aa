#include "knowledge/vector_index.hpp"

#include "base/section_file.hpp"

#include <faiss/IndexFlat.h>
#include <faiss/IndexHNSW.h>
#include <faiss/impl/DistanceComputer.h>
#include <faiss/impl/io.h>
#include <faiss/index_io.h>
#include <faiss/utils/Heap.h>
#include <faiss/utils/distances.h>

#include <Eigen/Core>

#include <algorithm>
#include <cmath>

namespace pragma {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view vectors_kind = "vectors 1";
constexpr uint32_t max_dimension = 65536;
constexpr int search_breadth = 128; // HNSW's efSearch: above every count that retrieval asks for

struct vectors_head {
  uint64_t count = 0;
  uint32_t dimension = 0, graph = 0;
};

// Debian's FAISS is built for plain x86-64, where its own kernel is a scalar loop.
float inner_product(const float* a, const float* b, size_t d) {
  using vector = Eigen::Map<const Eigen::VectorXf>;
  const auto size = static_cast<Eigen::Index>(d);
  return vector(a, size).dot(vector(b, size));
}

/// Vectors that lie in a mapped file, as FAISS wants to see them below a graph.
struct mapped_vectors : faiss::Index {
  const float* data;

  mapped_vectors(int dimension, int64_t count, const float* vectors) : Index(dimension, faiss::METRIC_INNER_PRODUCT), data(vectors) { ntotal = count; }
  void add(int64_t, const float*) override {}
  void reset() override {}
  void search(int64_t, const float*, int64_t, float*, int64_t*, const faiss::SearchParameters*) const override {}

  struct computer : faiss::DistanceComputer {
    const mapped_vectors& vectors;
    const float* query = nullptr;
    explicit computer(const mapped_vectors& v) : vectors(v) {}
    const float* row(int64_t i) const { return vectors.data + static_cast<size_t>(i) * static_cast<size_t>(vectors.d); }
    void set_query(const float* x) override { query = x; }
    float operator()(int64_t i) override { return inner_product(query, row(i), static_cast<size_t>(vectors.d)); }
    float symmetric_dis(int64_t i, int64_t j) override { return inner_product(row(i), row(j), static_cast<size_t>(vectors.d)); }
  };
  faiss::DistanceComputer* get_distance_computer() const override { return new computer(*this); } // FAISS deletes it
};

/// FAISS reads a graph from a section of the mapped file.
struct section_reader : faiss::IOReader {
  std::span<const uint8_t> left;
  explicit section_reader(std::span<const uint8_t> bytes) : left(bytes) {}
  size_t operator()(void* to, size_t size, size_t items) override {
    if (size == 0) return 0;
    const size_t whole = std::min(items, left.size() / size);
    std::copy_n(left.data(), whole * size, static_cast<uint8_t*>(to));
    left = left.subspan(whole * size);
    return whole;
  }
};

} // namespace

// -- writing -------------------------------------------------------------------------------------------------------

struct vector_writer::state {
  section_writer file;
  vectors_head head;
  uint64_t expected_count;
  std::unique_ptr<faiss::IndexHNSWFlat> graph;
  fs::path path;
};

vector_writer::vector_writer(std::unique_ptr<state> s) : state_(std::move(s)) {}
vector_writer::vector_writer(vector_writer&&) noexcept = default;
vector_writer& vector_writer::operator=(vector_writer&&) noexcept = default;
vector_writer::~vector_writer() = default;

expected<vector_writer> vector_writer::create(const fs::path& file, int dimension, int64_t count, const vector_options& options) {
  if (dimension < 1 || static_cast<uint32_t>(dimension) > max_dimension || count < 0)
    return fail(ec::invalid_argument, "vectors of " + std::to_string(dimension) + " dimensions cannot be stored");
  auto writer = section_writer::create(file, vectors_kind);
  if (!writer) return fail(writer.error());
  auto s = std::make_unique<state>(state{std::move(*writer), {}, static_cast<uint64_t>(count), {}, file});
  s->head.dimension = static_cast<uint32_t>(dimension);
  if (count > options.flat_limit) {
    s->head.graph = 1;
    s->graph = std::make_unique<faiss::IndexHNSWFlat>(dimension, options.graph_links, faiss::METRIC_INNER_PRODUCT);
    s->graph->hnsw.efConstruction = options.build_breadth;
  }
  if (auto begun = s->file.begin("vectors"); !begun) return fail(begun.error());
  return vector_writer(std::move(s));
}

expected<void> vector_writer::add(std::span<const float> rows) {
  auto& s = *state_;
  if (rows.size() % s.head.dimension != 0) return fail(ec::internal, "not a whole number of vectors for " + s.path.string());
  const auto count = rows.size() / s.head.dimension;
  try {
    if (s.graph && count > 0) s.graph->add(static_cast<int64_t>(count), rows.data());
  } catch (const std::exception& e) {
    return fail(ec::internal, "FAISS could not add vectors for " + s.path.string() + ": " + e.what());
  }
  s.head.count += count;
  return s.file.write(rows.data(), rows.size_bytes());
}

expected<void> vector_writer::finish() {
  auto& s = *state_;
  if (s.head.count != s.expected_count)
    return fail(ec::internal, std::to_string(s.expected_count) + " vectors were announced for " + s.path.string() + ", " +
                                  std::to_string(s.head.count) + " came");
  faiss::VectorIOWriter graph;
  if (s.graph) {
    // The vectors are in a section of their own: the graph is stored with an empty place for them.
    faiss::IndexFlatIP nothing(static_cast<int64_t>(s.head.dimension));
    faiss::Index* storage = s.graph->storage;
    s.graph->storage = &nothing;
    std::string problem;
    try {
      faiss::write_index(s.graph.get(), &graph);
    } catch (const std::exception& e) {
      problem = e.what();
    }
    s.graph->storage = storage;
    if (!problem.empty()) return fail(ec::internal, "FAISS could not write the graph for " + s.path.string() + ": " + problem);
  }
  if (auto put = s.file.put("graph", std::span<const uint8_t>(graph.data)); !put) return put;
  if (auto put = s.file.put("head", std::span<const vectors_head>(&s.head, 1)); !put) return put;
  return s.file.finish();
}

// -- reading -------------------------------------------------------------------------------------------------------

struct vector_index::state {
  section_file file;
  vectors_head head;
  std::span<const float> vectors;
  std::unique_ptr<faiss::IndexHNSW> graph;

  std::span<const float> row(int64_t i) const {
    return vectors.subspan(static_cast<size_t>(i) * head.dimension, head.dimension);
  }
};

vector_index::vector_index(std::unique_ptr<state> s) : state_(std::move(s)) {}
vector_index::vector_index(vector_index&&) noexcept = default;
vector_index& vector_index::operator=(vector_index&&) noexcept = default;
vector_index::~vector_index() = default;

expected<vector_index> vector_index::open(const fs::path& path, bool verify) {
  auto file = section_file::open(path, vectors_kind);
  if (!file) return fail(file.error());
  if (auto good = verify ? file->verify() : file->verify("graph"); !good) return fail(good.error());
  if (auto good = file->verify("head"); !good) return fail(good.error());
  const auto head = file->section<vectors_head>("head");
  const auto vectors = file->section<float>("vectors");
  const auto graph = file->section<uint8_t>("graph");
  if (!head) return fail(head.error());
  if (!vectors) return fail(vectors.error());
  if (!graph) return fail(graph.error());
  if (head->size() != 1) return file->damaged("size of its section 'head'");
  auto s = std::make_unique<state>(state{*file, (*head)[0], *vectors, nullptr});
  if (s->head.dimension < 1 || s->head.dimension > max_dimension || s->head.count != vectors->size() / s->head.dimension ||
      vectors->size() % s->head.dimension != 0)
    return file->damaged("its sections do not fit together");
  if (s->head.graph == 0) return vector_index(std::move(s));
  try {
    section_reader reader(*graph);
    reader.name = path.string();
    std::unique_ptr<faiss::Index> index(faiss::read_index(&reader));
    auto* hnsw = dynamic_cast<faiss::IndexHNSWFlat*>(index.get());
    if (!hnsw || hnsw->d != static_cast<int>(s->head.dimension) || hnsw->ntotal != static_cast<int64_t>(s->head.count) ||
        hnsw->hnsw.levels.size() != s->head.count || hnsw->hnsw.offsets.size() != s->head.count + 1)
      return file->damaged("the graph does not fit the vectors");
    index.release();
    s->graph.reset(hnsw);
    delete hnsw->storage;
    hnsw->own_fields = true;
    hnsw->storage = new mapped_vectors(static_cast<int>(s->head.dimension), static_cast<int64_t>(s->head.count), vectors->data());
    hnsw->hnsw.efSearch = search_breadth;
  } catch (const std::exception& e) {
    return file->damaged(std::string("FAISS: ") + e.what());
  }
  return vector_index(std::move(s));
}

int64_t vector_index::size() const { return static_cast<int64_t>(state_->head.count); }
int vector_index::dimension() const { return static_cast<int>(state_->head.dimension); }
const char* vector_index::kind() const { return state_->head.graph ? "hnsw" : "flat"; }

expected<std::vector<vector_hit>> vector_index::search(std::span<const float> query, size_t count) const {
  const auto& s = *state_;
  if (query.size() != s.head.dimension)
    return fail(ec::invalid_argument, "a question's vector has " + std::to_string(query.size()) + " dimensions, those of " +
                                          s.file.path().string() + " have " + std::to_string(s.head.dimension));
  count = std::min<size_t>(count, s.head.count);
  std::vector<vector_hit> hits;
  if (count == 0) return hits;
  std::vector<float> scores(count);
  std::vector<int64_t> rows(count, -1);
  try {
    if (s.graph) {
      s.graph->search(1, query.data(), static_cast<int64_t>(count), scores.data(), rows.data());
    } else {
      // Straight from the mapped file. One query is one thread's work in FAISS: no start of threads, no barriers.
      faiss::float_minheap_array_t best = {1, count, rows.data(), scores.data()};
      faiss::knn_inner_product(query.data(), s.vectors.data(), query.size(), 1, static_cast<size_t>(s.head.count), &best);
    }
  } catch (const std::exception& e) {
    return fail(ec::internal, std::string("FAISS failed in a search: ") + e.what());
  }
  for (size_t i = 0; i < count; ++i)
    if (rows[i] >= 0 && static_cast<uint64_t>(rows[i]) < s.head.count && std::isfinite(scores[i])) hits.push_back({rows[i], scores[i]});
  return hits;
}

double vector_index::similarity(std::span<const float> query, int64_t row) const {
  const auto& s = *state_;
  if (row < 0 || row >= size() || query.size() != s.head.dimension) return 0;
  const float product = inner_product(query.data(), s.row(row).data(), query.size());
  return std::isfinite(product) ? product : 0;
}

} // namespace pragma
