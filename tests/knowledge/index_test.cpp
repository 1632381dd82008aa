// The two indexes below retrieval: what they find, and what happens to hostile questions and damaged files.
#include "base/files.hpp"
#include "knowledge/lexical_index.hpp"
#include "knowledge/rerank.hpp"
#include "knowledge/vector_index.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <random>
#include <sys/resource.h>

using namespace pragma;
namespace fs = std::filesystem;

namespace {

void flip(const fs::path& file, std::streamoff at) {
  std::fstream f(file, std::ios::in | std::ios::out | std::ios::binary);
  f.seekg(at);
  const char c = static_cast<char>(f.get() ^ 0x40);
  f.seekp(at);
  f.put(c);
}

long peak_kilobytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

fs::path written_words(const fs::path& folder) {
  auto writer = lexical_writer::create(folder / "words");
  REQUIRE(writer);
  REQUIRE(writer->add(0, "branch miss", "branch predictor wrong", "count"));
  REQUIRE(writer->add(1, "cache miss", "access no cache level serv", "branch"));
  REQUIRE(writer->add(2, "cycl", "clock cycl of core", "cach miss"));
  REQUIRE(writer->finish());
  return folder / "words";
}

std::vector<int64_t> rows_of(const expected<std::vector<lexical_hit>>& hits) {
  if (!hits) FAIL(render(hits.error()));
  std::vector<int64_t> rows;
  for (const auto& h : *hits) rows.push_back(h.row);
  return rows;
}

/// Vectors of length 1, the same every time.
std::vector<float> random_rows(size_t count, size_t dimension) {
  std::mt19937 random(7);
  std::vector<float> rows(count * dimension);
  for (size_t i = 0; i < count; ++i) {
    float squares = 0;
    for (size_t d = 0; d < dimension; ++d) {
      rows[i * dimension + d] = static_cast<float>(random() % 2001) / 1000.f - 1;
      squares += rows[i * dimension + d] * rows[i * dimension + d];
    }
    for (size_t d = 0; d < dimension; ++d) rows[i * dimension + d] /= std::sqrt(squares);
  }
  return rows;
}

fs::path written_vectors(const fs::path& folder, const std::vector<float>& rows, int dimension, const vector_options& options = {}) {
  const auto count = static_cast<int64_t>(rows.size()) / dimension;
  auto writer = vector_writer::create(folder / "vectors", dimension, count, options);
  REQUIRE(writer);
  const auto half = static_cast<size_t>(count / 2 * dimension);
  REQUIRE(writer->add(std::span(rows).first(half)));
  REQUIRE(writer->add(std::span(rows).subspan(half)));
  REQUIRE(writer->finish());
  return folder / "vectors";
}

} // namespace

TEST_CASE("a word in the name counts for more than one in the text") {
  auto dir = temp_dir::create("index");
  const auto index = lexical_index::open(written_words(dir->path()), true);
  REQUIRE(index);
  CHECK(index->size() == 3);
  CHECK(rows_of(index->search({"branch"}, 10)) == std::vector<int64_t>{0, 1});
  CHECK(rows_of(index->search_names({"branch"}, 10)) == std::vector<int64_t>{0});
  CHECK(rows_of(index->search({"miss", "cach", "cache"}, 10)).front() == 1);
  CHECK(rows_of(index->search({"miss"}, 2)).size() == 2);
  CHECK(index->frequency_of("miss")->documents == 3);
  CHECK(index->frequency_of("nowhere")->documents == 0);
  CHECK(index->frequency_of("nowhere")->idf > index->frequency_of("branch")->idf);
}

TEST_CASE("no question can break or steer a search") {
  auto dir = temp_dir::create("index");
  const auto index = lexical_index::open(written_words(dir->path()));
  REQUIRE(index);
  for (const char* hostile : {"\"", "\"\"", "a\"b", "'", "*", "branch*", "NEAR", "NEAR(branch miss)", "(", ")", "((((", "AND", "OR", "NOT", "name:", "name : x",
                              "{name meaning}: x", "-", "^branch", "+", "\\", ";", "--", "%", "?1", ":x", "words", "\x01", "\xff\xfe", "x' OR '1'='1", "bm25(words)", ""}) {
    INFO(hostile);
    const auto alone = index->search({hostile}, 10);
    REQUIRE(alone);
    const auto beside = rows_of(index->search({hostile, "predictor"}, 10));
    CHECK(std::find(beside.begin(), beside.end(), 0) != beside.end());
    CHECK(index->frequency_of(hostile));
    CHECK(index->search_names({hostile}, 10));
  }
  CHECK(index->search({std::string("bran\0ch", 7)}, 10));
  CHECK(index->search({std::string(1 << 20, 'a')}, 10));
  CHECK(index->search({std::string(1 << 20, '"')}, 10)->empty());
  CHECK(rows_of(index->search(std::vector<std::string>(100'000, "branch"), 10)).size() == 2);
  std::vector<std::string> many;
  for (int i = 0; i < 100'000; ++i) many.push_back("t" + std::to_string(i));
  CHECK(index->search(many, 10)->empty());
  CHECK(index->search({}, 10)->empty());
  CHECK(index->search({"branch"}, 0)->empty());
}

TEST_CASE("a damaged lexical index is refused with its name") {
  auto dir = temp_dir::create("index");
  const auto file = written_words(dir->path());
  const auto copy = dir->path() / "copy?x#y%z"; // also an odd path
  const auto size = static_cast<std::streamoff>(fs::file_size(file));
  fs::copy_file(file, copy);
  REQUIRE(lexical_index::open(copy, true));
  auto refused = [&](bool verify) {
    const auto opened = lexical_index::open(copy, verify);
    REQUIRE_FALSE(opened);
    CHECK(opened.error().code == ec::parse_error);
    CHECK(opened.error().message.find(copy.string()) != std::string::npos);
  };
  flip(copy, 3);
  refused(false);
  std::ofstream(copy, std::ios::trunc) << "";
  refused(false);
  std::ofstream(copy, std::ios::trunc) << std::string(100'000, 'x');
  refused(false);
  for (std::streamoff at = 100; at < size; at += 97) { // wherever it is hit: an error or an answer, never a crash
    fs::copy_file(file, copy, fs::copy_options::overwrite_existing);
    flip(copy, at);
    const auto opened = lexical_index::open(copy, true);
    if (!opened) continue;
    if (const auto hits = opened->search({"branch", "cycl"}, 10); hits)
      for (const auto& h : *hits) CHECK((h.row >= 0 && h.row < opened->size()));
  }
  fs::copy_file(file, copy, fs::copy_options::overwrite_existing);
  fs::resize_file(copy, static_cast<uintmax_t>(size / 2));
  refused(true);
  CHECK(lexical_index::open(dir->path() / "none").error().code == ec::not_found);
}

TEST_CASE("a writer that is given up leaves nothing behind") {
  auto dir = temp_dir::create("index");
  {
    auto words = lexical_writer::create(dir->path() / "words");
    REQUIRE(words);
    REQUIRE(words->add(0, "a", "b", "c"));
    auto vectors = vector_writer::create(dir->path() / "vectors", 4, 2);
    REQUIRE(vectors);
    CHECK(vectors->finish().error().code == ec::internal); // two were announced, none came
  }
  CHECK(fs::is_empty(dir->path()));
  CHECK(lexical_writer::create(dir->path() / "none" / "words").error().code == ec::io_error);
}

TEST_CASE("the nearest vectors are found, by exhaustive search and by graph") {
  auto dir = temp_dir::create("index");
  constexpr size_t count = 2000, dimension = 24;
  const auto rows = random_rows(count, dimension);
  vector_options options;
  const bool graph = GENERATE(false, true);
  if (graph) options.flat_limit = 100;
  const auto index = vector_index::open(written_vectors(dir->path(), rows, dimension, options), true);
  REQUIRE(index);
  CHECK(index->kind() == std::string(graph ? "hnsw" : "flat"));
  CHECK(index->size() == count);
  CHECK(index->dimension() == dimension);
  size_t right = 0;
  for (size_t i = 0; i < count; i += 40) {
    const auto query = std::span(rows).subspan(i * dimension, dimension);
    const auto hits = index->search(query, 5);
    REQUIRE(hits);
    REQUIRE(hits->size() == 5);
    right += (*hits)[0].row == static_cast<int64_t>(i);
    CHECK((*hits)[0].score >= (*hits)[4].score);
    CHECK(index->similarity(query, (*hits)[1].row) == Approx((*hits)[1].score).margin(1e-4));
  }
  CHECK(right >= (graph ? 48 : 50));
  const auto query = std::span(rows).first(dimension);
  CHECK(index->search(query, 1'000'000)->size() <= count);
  CHECK(index->search(query, 0)->empty());
  CHECK(index->search(std::span(rows).first(3), 5).error().code == ec::invalid_argument);
  CHECK(index->similarity(query, -1) == 0);
  CHECK(index->similarity(query, count) == 0);
}

TEST_CASE("no vectors at all are an index too") {
  auto dir = temp_dir::create("index");
  const auto index = vector_index::open(written_vectors(dir->path(), {}, 8), true);
  REQUIRE(index);
  CHECK(index->size() == 0);
  CHECK(index->search(std::vector<float>(8, 1.f), 5)->empty());
}

TEST_CASE("a damaged vector index is refused with its name, and allocates nothing") {
  auto dir = temp_dir::create("index");
  vector_options options;
  options.flat_limit = GENERATE(100'000, 10);
  const auto file = written_vectors(dir->path(), random_rows(300, 16), 16, options);
  const auto copy = dir->path() / "copy";
  const auto size = static_cast<std::streamoff>(fs::file_size(file));
  const auto before = peak_kilobytes();
  auto refused = [&](bool verify) {
    const auto opened = vector_index::open(copy, verify);
    REQUIRE_FALSE(opened);
    CHECK(opened.error().code == ec::parse_error);
    CHECK(opened.error().message.find(copy.string()) != std::string::npos);
  };
  constexpr std::streamoff first_section = 3456;
  for (std::streamoff at = 0; at < size; at = at < first_section ? at + 61 : at + 1 + size / 200) {
    INFO(at);
    fs::copy_file(file, copy, fs::copy_options::overwrite_existing);
    flip(copy, at);
    // Bytes that only fill up to the next section are nobody's.
    if (const auto opened = vector_index::open(copy, true); opened) CHECK(opened->search(std::vector<float>(16, 0.25f), 3)->size() == 3);
    else refused(true);
    // Without full verification everything that decides about memory is checked all the same.
    if (const auto opened = vector_index::open(copy); opened) CHECK(opened->search(std::vector<float>(16, 0.25f), 3));
  }
  fs::copy_file(file, copy, fs::copy_options::overwrite_existing);
  flip(copy, first_section + 400); // of a vector
  refused(true);
  for (const auto kept : {size - 1, size / 2, std::streamoff{4000}, std::streamoff{0}}) {
    fs::copy_file(file, copy, fs::copy_options::overwrite_existing);
    fs::resize_file(copy, static_cast<uintmax_t>(kept));
    refused(false);
  }
  CHECK(peak_kilobytes() - before < 100 * 1024);
}

namespace {

fs::path written_texts(const fs::path& folder) {
  text_writer writer;
  for (int i = 0; i < 20; ++i) {
    entry e;
    e.name = "LOADS.KIND_" + std::to_string(i);
    e.meaning = "Loads of kind " + std::to_string(i) + ". The words behind the first sentence.";
    e.summary = "Loads of kind " + std::to_string(i) + ".";
    REQUIRE(writer.add(e));
  }
  const auto file = folder / "texts";
  REQUIRE(writer.write(file));
  return file;
}

/// Every row is read, and one that is none; with what a damaged file holds a score may be wrong, never an address.
void read_all(const text_index& texts) {
  understood_question u;
  u.groups = {{{"load"}, {{"kind", "sentenc"}}}, {{"nowhere"}, {}}};
  const reranker by(texts, u);
  for (uint32_t row = 0; row <= std::min(texts.size(), 1000u); ++row) CHECK(std::isfinite(reranker::score(by.features(row, {1, 0.5, 0}))));
}

} // namespace

TEST_CASE("an entry's words: by field and in order, with how rare they are") {
  auto dir = temp_dir::create("index");
  const auto opened = text_index::open(written_texts(dir->path()), true);
  REQUIRE(opened);
  CHECK(opened->size() == 20);
  const auto load = opened->number_of("load"), behind = opened->number_of("sentenc");
  REQUIRE(load != text_index::unknown);
  REQUIRE(behind != text_index::unknown);
  const auto has = [](std::span<const uint32_t> words, uint32_t n) { return std::find(words.begin(), words.end(), n) != words.end(); };
  CHECK(has(opened->words(3, entry_field::name), load));
  CHECK(has(opened->words(3, entry_field::meaning), behind));
  CHECK_FALSE(has(opened->words(3, entry_field::summary), behind));
  CHECK(opened->words(20, entry_field::name).empty());
  CHECK(opened->number_of("nowhere") == text_index::unknown);
  CHECK(opened->idf(load) < opened->idf(opened->number_of("13")));
  CHECK(opened->idf(opened->number_of("13")) < opened->idf(text_index::unknown));
  read_all(*opened);
}

TEST_CASE("a damaged file of words is refused with its name, or read without harm") {
  auto dir = temp_dir::create("index");
  const auto file = written_texts(dir->path()), copy = dir->path() / "copy";
  const auto size = static_cast<std::streamoff>(fs::file_size(file));
  for (std::streamoff at = 0; at < size; at += 7) {
    INFO(at);
    fs::copy_file(file, copy, fs::copy_options::overwrite_existing);
    flip(copy, at);
    if (const auto opened = text_index::open(copy)) read_all(*opened);
    else CHECK(opened.error().message.find(copy.string()) != std::string::npos);
  }
  for (const auto kept : {size - 1, size / 2, std::streamoff{0}}) {
    fs::copy_file(file, copy, fs::copy_options::overwrite_existing);
    fs::resize_file(copy, static_cast<uintmax_t>(kept));
    CHECK_FALSE(text_index::open(copy));
  }
}
