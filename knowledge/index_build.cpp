// retriever::build(): two passes over the entries. The first writes names and words and keeps a sample of texts, to which the
// embedder is fitted; the second writes the vectors.
#include "base/text.hpp"
#include "knowledge/index_files.hpp"
#include "knowledge/index_text.hpp"
#include "knowledge/lexical_index.hpp"
#include "knowledge/name_index.hpp"
#include "knowledge/text_index.hpp"
#include "knowledge/vector_index.hpp"

namespace pragma {

namespace fs = std::filesystem;

namespace {

constexpr int64_t progress_step = 256; // entries between two calls of on_progress and two looks at the cancel flag
constexpr size_t embedding_batch = 256;

/// At most `most` texts, evenly spread over a stream whose length is not known: every n-th, n doubling when they are too many.
class spread_sample {
public:
  explicit spread_sample(size_t most) : most_(most) {}
  void add(const std::function<std::string()>& text) {
    if (seen_++ % stride_ != 0) return;
    if (texts_.size() == most_) {
      std::vector<std::string> half;
      for (size_t i = 0; i < texts_.size(); i += 2) half.push_back(std::move(texts_[i]));
      texts_ = std::move(half);
      stride_ *= 2;
      if ((seen_ - 1) % stride_ != 0) return;
    }
    texts_.push_back(text());
  }
  const std::vector<std::string>& texts() const { return texts_; }

private:
  size_t most_, seen_ = 0, stride_ = 1;
  std::vector<std::string> texts_;
};

class index_builder {
public:
  index_builder(const retriever::corpus& entries, const embedding_config& config, fs::path folder,
          const std::function<void(std::string_view, int64_t, int64_t)>& on_progress, const std::atomic<bool>* cancel)
      : entries_(entries), config_(config), folder_(std::move(folder)), on_progress_(on_progress), cancel_(cancel) {}

  expected<index_info> run(int64_t generation) {
    if (auto done = index_words(); !done) return fail(done.error());
    auto e = make_embedder();
    if (!e) return fail(e.error());
    if (auto done = index_vectors(**e); !done) return fail(done.error());
    index_info info;
    info.entries = count_;
    info.generation = generation;
    info.embedder = (*e)->name();
    info.vectors = vectors_;
    return info;
  }

private:
  expected<void> step(std::string_view what, int64_t done) const {
    if (done % progress_step != 0) return {};
    if (cancel_ && cancel_->load()) return fail(ec::interrupted, "building the index in " + folder_.parent_path().string() + " was cancelled");
    if (on_progress_) on_progress_(what, done, count_);
    return {};
  }

  expected<void> index_words() {
    auto words = lexical_writer::create(folder_ / lexical_file);
    if (!words) return fail(words.error());
    name_writer names;
    text_writer texts;
    int64_t row = 0;
    entries_.rewind();
    while (const entry* e = entries_.next()) {
      if (auto going = step("words", row); !going) return going;
      const auto text = columns_of(*e);
      if (auto added = names.add(*e); !added) return added;
      if (auto added = texts.add(*e); !added) return added;
      if (auto added = words->add(row, joined_tokens(text.name), joined_tokens(text.meaning), joined_tokens(text.rest)); !added) return added;
      if (config_.kind == "lsa") sample_.add([&] { return embedding_text(*e); });
      ++row;
    }
    count_ = row;
    if (auto written = names.write(folder_ / name_file); !written) return written;
    if (auto written = texts.write(folder_ / text_file); !written) return written;
    return words->finish();
  }

  expected<std::unique_ptr<embedder>> make_embedder() {
    if (on_progress_) on_progress_("model", 0, 1);
    if (config_.kind == "http") return http_embedder(config_, cancel_);
    auto fitted = fit_lsa(sample_.texts(), {}, cancel_);
    if (!fitted) return fitted;
    if (auto saved = save_lsa(**fitted, folder_ / model_file); !saved) return fail(saved.error());
    sample_ = spread_sample(0);
    return load_lsa(folder_ / model_file, false); // mapped: the fitted one's memory is free again
  }

  expected<void> index_vectors(const embedder& e) {
    auto vectors = vector_writer::create(folder_ / vector_file, e.dimension(), count_);
    if (!vectors) return fail(vectors.error());
    std::vector<std::string> batch;
    int64_t row = 0;
    auto flush = [&]() -> expected<void> {
      const auto rows = e.embed(batch);
      if (!rows) return fail(rows.error());
      batch.clear();
      return vectors->add(*rows);
    };
    entries_.rewind();
    while (const entry* next = entries_.next()) {
      if (row == count_) return fail(ec::internal, "there are more entries than a moment ago: the store changed while it was indexed");
      if (auto going = step("vectors", row); !going) return going;
      batch.push_back(embedding_text(*next));
      ++row;
      if (batch.size() == embedding_batch)
        if (auto done = flush(); !done) return done;
    }
    if (!batch.empty())
      if (auto done = flush(); !done) return done;
    if (auto done = vectors->finish(); !done) return done;
    if (on_progress_) on_progress_("vectors", row, count_);
    const auto opened = vector_index::open(folder_ / vector_file);
    if (!opened) return fail(opened.error());
    vectors_ = opened->kind();
    return {};
  }

  const retriever::corpus& entries_;
  const embedding_config& config_;
  fs::path folder_;
  const std::function<void(std::string_view, int64_t, int64_t)>& on_progress_;
  const std::atomic<bool>* cancel_;
  spread_sample sample_{lsa_options{}.max_texts};
  int64_t count_ = 0;
  std::string vectors_;
};

} // namespace

expected<index_info> retriever::build(const corpus& entries, int64_t generation, const embedding_config& config, const fs::path& folder,
                                      const std::function<void(std::string_view what, int64_t done, int64_t of)>& on_progress,
                                      const std::atomic<bool>* cancel) {
  if (auto good = check_embedding_config(config); !good) return fail(good.error());
  auto lock = build_lock::take(folder);
  if (!lock) return fail(lock.error());
  const auto before = read_stamp(folder);
  const std::string old_folder = before ? before->folder : "";
  remove_other_indexes(folder, old_folder); // of builds that were killed
  const auto made = make_index_folder(folder);
  if (!made) return fail(made.error());
  index_stamp stamp;
  stamp.folder = *made;
  const auto finish = [&]() -> expected<void> {
    auto info = index_builder(entries, config, folder / *made, on_progress, cancel).run(generation);
    if (!info) return fail(info.error());
    stamp.info = *info;
    std::error_code problem;
    for (const char* name : {lexical_file, vector_file, name_file, text_file, model_file}) {
      const auto file = folder / *made / name;
      if (!fs::exists(file, problem)) continue; // an endpoint's model is not here
      auto sum = file_sha256(file);
      if (!sum) return fail(sum.error());
      stamp.files[name] = *sum;
      stamp.info.bytes += fs::file_size(file, problem);
    }
    return write_stamp(folder, stamp);
  };
  if (auto done = finish(); !done) {
    const auto now = read_stamp(folder); // only where the stamp was written and the last sync failed does it name the new one
    remove_other_indexes(folder, now ? now->folder : old_folder);
    return fail(done.error());
  }
  remove_other_indexes(folder, stamp.folder);
  return stamp.info;
}

} // namespace pragma
