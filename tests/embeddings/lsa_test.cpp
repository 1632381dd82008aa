// The default embedder: the same every time, near for what is alike, and a damaged file is noticed.
#include "base/files.hpp"
#include "embeddings/embedder.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <fstream>

using namespace pragma;
namespace fs = std::filesystem;

namespace {

const std::vector<std::string> corpus = {
    "branch-misses: branches that the predictor guessed wrong", "branch-loads: branches that were looked up in the predictor",
    "branch misprediction rate: wrong branches over all branches", "cache-misses: accesses that no cache level could serve",
    "LLC-load-misses: loads that missed the last level cache", "L1-dcache-load-misses: loads that missed the first data cache",
    "cache-references: accesses that reached the last level cache", "dram__bytes: bytes that moved to and from device memory",
    "dram__throughput: share of the device memory bandwidth that was used", "memory bandwidth: bytes moved in a second",
    "page-faults: pages that were not mapped when they were touched", "major-faults: page faults that had to read a disk",
    "achieved occupancy: warps that are resident on a multiprocessor", "warps active: resident warps of a multiprocessor in a cycle",
    "theoretical occupancy: warps that registers and shared memory allow"};

double cosine(const std::vector<float>& rows, size_t a, size_t b, size_t d) {
  double sum = 0;
  for (size_t i = 0; i < d; ++i) sum += static_cast<double>(rows[a * d + i]) * static_cast<double>(rows[b * d + i]);
  return sum;
}

std::unique_ptr<embedder> fitted(const lsa_options& options = {}) {
  auto e = fit_lsa(corpus, options);
  if (!e) FAIL(render(e.error()));
  return std::move(*e);
}

std::vector<float> embedded(const embedder& e, const std::vector<std::string>& texts) {
  auto rows = e.embed(texts);
  if (!rows) FAIL(render(rows.error()));
  return *rows;
}

void flip(const fs::path& file, std::streamoff at) {
  std::fstream f(file, std::ios::in | std::ios::out | std::ios::binary);
  f.seekg(at);
  const char c = static_cast<char>(f.get() ^ 0x40);
  f.seekp(at);
  f.put(c);
}

} // namespace

TEST_CASE("texts about the same thing are nearer than others, also in other words and with typing errors") {
  const auto e = fitted();
  const auto d = static_cast<size_t>(e->dimension());
  const auto rows = embedded(*e, {"mispredicted branch", "branch predictor guessed wrong", "resident warps", "bandwidth of the memory", "brnach misprediciton"});
  REQUIRE(rows.size() == 5 * d);
  CHECK(cosine(rows, 0, 1, d) > cosine(rows, 0, 2, d) + 0.2);
  CHECK(cosine(rows, 0, 1, d) > cosine(rows, 0, 3, d) + 0.2);
  CHECK(cosine(rows, 0, 4, d) > cosine(rows, 2, 4, d) + 0.1);
  for (size_t i = 0; i < 5; ++i) CHECK(cosine(rows, i, i, d) == Approx(1).margin(1e-4));
}

TEST_CASE("the same texts give the same model, other texts another name") {
  const auto a = fitted(), b = fitted();
  CHECK(a->name() == b->name());
  CHECK(a->name().starts_with("lsa 1 " + std::to_string(a->dimension()) + " "));
  CHECK(embedded(*a, corpus) == embedded(*b, corpus));
  auto fewer = corpus;
  fewer.pop_back();
  CHECK((*fit_lsa(fewer))->name() != a->name());
  lsa_options other;
  other.seed = 2;
  CHECK(fitted(other)->name() != a->name());
}

TEST_CASE("a small corpus gets few dimensions, and one without anything in common still embeds") {
  CHECK(fitted()->dimension() < static_cast<int>(corpus.size()) + 1);
  lsa_options narrow;
  narrow.dimensions = 4;
  CHECK(fitted(narrow)->dimension() == 4);
  using list = std::vector<std::string>;
  for (const auto& texts : {list{}, list{"alone"}, list{"one", "two"}, list{"", ""}}) {
    auto e = fit_lsa(texts);
    REQUIRE(e);
    CHECK((*e)->dimension() >= 1);
    for (const float x : embedded(**e, list{"alone", ""})) CHECK(std::isfinite(x));
  }
  const auto e = fitted();
  for (const float x : embedded(*e, list{"", "zzzzqqqq"})) CHECK(x == 0);
}

TEST_CASE("the limits on texts and features hold") {
  lsa_options few;
  few.max_features = 20;
  few.max_texts = 8;
  CHECK(embedded(*fitted(few), corpus).size() == corpus.size() * static_cast<size_t>(fitted(few)->dimension()));
  lsa_options wrong;
  wrong.shortest_gram = 6;
  CHECK(fit_lsa(corpus, wrong).error().code == ec::invalid_argument);
  const std::atomic<bool> cancel{true};
  CHECK(fit_lsa(corpus, {}, &cancel).error().code == ec::interrupted);
}

TEST_CASE("a saved model embeds as the fitted one did") {
  auto dir = temp_dir::create("lsa");
  const auto file = dir->path() / "model.lsa";
  const auto e = fitted();
  REQUIRE(save_lsa(*e, file));
  for (const bool verify : {true, false}) {
    auto loaded = load_lsa(file, verify);
    REQUIRE(loaded);
    CHECK((*loaded)->name() == e->name());
    CHECK((*loaded)->dimension() == e->dimension());
    CHECK(embedded(**loaded, corpus) == embedded(*e, corpus));
  }
}

TEST_CASE("a damaged model is refused with the file's name, wherever the damage is") {
  auto dir = temp_dir::create("lsa");
  const auto file = dir->path() / "model.lsa", copy = dir->path() / "copy.lsa";
  REQUIRE(save_lsa(*fitted(), file));
  const auto size = static_cast<std::streamoff>(fs::file_size(file));
  auto refused = [&] {
    const auto loaded = load_lsa(copy);
    REQUIRE_FALSE(loaded);
    CHECK(loaded.error().code == ec::parse_error);
    CHECK(loaded.error().message.find(copy.string()) != std::string::npos);
  };
  for (const std::streamoff at : {std::streamoff{0}, std::streamoff{12}, std::streamoff{60}, std::streamoff{130}, std::streamoff{3450}, size / 2, size - 1}) {
    INFO(at);
    fs::copy_file(file, copy, fs::copy_options::overwrite_existing);
    flip(copy, at);
    if (at == 3450) { // between header and first section nothing is stored
      CHECK(load_lsa(copy));
      continue;
    }
    refused();
  }
  for (const auto kept : {size - 1, size / 2, std::streamoff{100}, std::streamoff{0}}) {
    fs::copy_file(file, copy, fs::copy_options::overwrite_existing);
    fs::resize_file(copy, static_cast<uintmax_t>(kept));
    refused();
  }
  fs::copy_file(file, copy, fs::copy_options::overwrite_existing);
  std::ofstream(copy, std::ios::app) << "more";
  refused();
  std::ofstream(copy, std::ios::trunc) << std::string(10'000, '\xff');
  refused();
  CHECK(load_lsa(dir->path() / "none").error().code == ec::not_found);
  CHECK(load_lsa(dir->path()).error().code == ec::io_error);
}

TEST_CASE("a byte flipped in an unverified model falsifies numbers, never addresses") {
  auto dir = temp_dir::create("lsa");
  const auto file = dir->path() / "model.lsa", copy = dir->path() / "copy.lsa";
  REQUIRE(save_lsa(*fitted(), file));
  const auto size = static_cast<std::streamoff>(fs::file_size(file));
  for (std::streamoff at = 3500; at < size; at += std::max<std::streamoff>(1, size / 300)) {
    fs::copy_file(file, copy, fs::copy_options::overwrite_existing);
    flip(copy, at);
    const auto loaded = load_lsa(copy, false); // the name of a section may be hit as well: then it is refused
    if (!loaded) continue;
    for (const float x : embedded(**loaded, corpus)) CHECK(std::isfinite(x));
  }
}

TEST_CASE("a configuration names the key that is wrong") {
  auto good = parse_embedding_config(R"({"_comment": "x", "kind": "http", "base_url": "http://127.0.0.1:1/v1", "model": "m", "weight": 1})", "embedding.json");
  REQUIRE(good);
  CHECK(good->kind == "http");
  CHECK(good->weight == 1);
  const auto unknown = parse_embedding_config(R"({"modle": "m"})", "embedding.json");
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().code == ec::invalid_argument);
  CHECK(unknown.error().message.find("modle") != std::string::npos);
  CHECK(unknown.error().hint.find("model") != std::string::npos);
  CHECK(parse_embedding_config(R"({"kind": "glove"})", "x").error().code == ec::invalid_argument);
  CHECK(parse_embedding_config(R"({"kind": "http"})", "x").error().message.find("base_url") != std::string::npos);
  CHECK(parse_embedding_config(R"({"kind": "http", "base_url": "http://u:secret@h/", "model": "m"})", "x").error().message.find("secret") == std::string::npos);
  CHECK(parse_embedding_config(R"({"batch": 0})", "x").error().message.find("batch") != std::string::npos);
  CHECK(parse_embedding_config(R"({"batch": "8"})", "x").error().code == ec::parse_error);
  CHECK(parse_embedding_config("[", "x").error().code == ec::parse_error);
}
