#include "embeddings/lsa_model.hpp"

#include "base/section_file.hpp"

#include <algorithm>
#include <cmath>

namespace pragma::lsa {

namespace {

constexpr std::string_view file_kind = "lsa 1";
constexpr uint32_t max_dimensions = 4096;
constexpr uint32_t max_bucket_bits = 24;

} // namespace

std::vector<uint32_t> buckets_of(std::span<const uint64_t> keys, uint32_t& bits) {
  bits = 1;
  while (bits < max_bucket_bits && (size_t{2} << bits) < keys.size()) ++bits;
  std::vector<uint32_t> starts((size_t{1} << bits) + 1, 0);
  for (const auto key : keys) ++starts[static_cast<size_t>(key >> (64 - bits)) + 1];
  for (size_t i = 1; i < starts.size(); ++i) starts[i] += starts[i - 1];
  return starts;
}

model::model(model_data data) : head_(data.head), name_(data.name), owned_(std::move(data)) {
  keys_ = owned_->keys;
  buckets_ = owned_->buckets;
  idf_ = owned_->idf;
  scale_ = owned_->scale;
  rows_ = owned_->rows;
}

expected<void> model::save(const std::filesystem::path& file) const {
  auto writer = section_writer::create(file, file_kind);
  if (!writer) return fail(writer.error());
  for (auto&& put : {writer->put("head", std::span<const model_head>(&head_, 1)), writer->put("name", std::span<const char>(name_)),
                     writer->put("keys", keys_), writer->put("buckets", buckets_), writer->put("idf", idf_),
                     writer->put("scale", scale_), writer->put("rows", rows_)})
    if (!put) return put;
  return writer->finish();
}

expected<std::unique_ptr<model>> model::load(const std::filesystem::path& path, bool verify) {
  auto file = section_file::open(path, file_kind);
  if (!file) return fail(file.error());
  if (verify)
    if (auto good = file->verify(); !good) return fail(good.error());
  const auto head = file->section<model_head>("head");
  const auto name = file->section<char>("name");
  const auto keys = file->section<uint64_t>("keys");
  const auto buckets = file->section<uint32_t>("buckets");
  const auto idf = file->section<float>("idf");
  const auto scale = file->section<float>("scale");
  const auto rows = file->section<int8_t>("rows");
  if (!head) return fail(head.error());
  if (!name) return fail(name.error());
  if (!keys) return fail(keys.error());
  if (!buckets) return fail(buckets.error());
  if (!idf) return fail(idf.error());
  if (!scale) return fail(scale.error());
  if (!rows) return fail(rows.error());
  if (head->size() != 1) return file->damaged("size of its section 'head'");
  std::unique_ptr<model> m(new model());
  m->head_ = (*head)[0];
  m->name_.assign(name->data(), name->size());
  m->keys_ = *keys;
  m->buckets_ = *buckets;
  m->idf_ = *idf;
  m->scale_ = *scale;
  m->rows_ = *rows;
  if (auto good = m->check(*file); !good) return fail(good.error());
  m->file_ = std::move(*file);
  return m;
}

expected<void> model::check(const section_file& file) const {
  const auto& h = head_;
  if (h.version != 1 || h.dimensions < 1 || h.dimensions > max_dimensions || h.shortest_gram < 1 ||
      h.longest_gram > 64 || h.bucket_bits < 1 || h.bucket_bits > max_bucket_bits)
    return file.damaged("numbers of its section 'head'");
  if (buckets_.size() != (size_t{1} << h.bucket_bits) + 1 || idf_.size() != keys_.size() || scale_.size() != keys_.size() ||
      rows_.size() != keys_.size() * h.dimensions)
    return file.damaged("its sections do not fit together");
  return {};
}

size_t model::find(uint64_t key) const {
  const auto bucket = static_cast<size_t>(key >> (64 - head_.bucket_bits));
  const size_t end = std::min<size_t>(buckets_[bucket + 1], keys_.size()); // an unverified file may hold any number here
  for (size_t i = buckets_[bucket]; i < end; ++i)
    if (keys_[i] == key) return i;
  return keys_.size();
}

void model::add(const counts& block, std::span<float> sum) const {
  std::vector<std::pair<size_t, float>> known;
  float squares = 0;
  for (const auto& [key, count] : block) {
    const auto i = find(key);
    if (i == keys_.size()) continue;
    const float weight = term_weight(count, idf_[i]);
    squares += weight * weight;
    known.emplace_back(i, weight);
  }
  if (!(squares > 0)) return;
  const float norm = 1 / std::sqrt(squares);
  for (const auto& [i, weight] : known) {
    const float factor = weight * norm * scale_[i];
    const int8_t* row = rows_.data() + i * sum.size();
    for (size_t d = 0; d < sum.size(); ++d) sum[d] += factor * static_cast<float>(row[d]);
  }
}

expected<std::vector<float>> model::embed(std::span<const std::string> texts) const {
  const size_t d = head_.dimensions;
  std::vector<float> all(texts.size() * d, 0.f);
  for (size_t t = 0; t < texts.size(); ++t) {
    const std::span<float> row(all.data() + t * d, d);
    const auto f = features_of(texts[t], static_cast<int>(head_.shortest_gram), static_cast<int>(head_.longest_gram));
    add(f.words, row);
    add(f.grams, row);
    float squares = 0;
    for (const float x : row) squares += x * x;
    const float norm = squares > 0 && std::isfinite(squares) ? 1 / std::sqrt(squares) : 0;
    for (float& x : row) x = norm > 0 ? x * norm : 0;
  }
  return all;
}

} // namespace pragma::lsa

namespace pragma {

expected<void> save_lsa(const embedder& e, const std::filesystem::path& file) {
  const auto* model = dynamic_cast<const lsa::model*>(&e);
  if (!model) return fail(ec::invalid_argument, "only an LSA model can be saved, not '" + e.name() + "'");
  return model->save(file);
}

expected<std::unique_ptr<embedder>> load_lsa(const std::filesystem::path& file, bool verify) {
  auto model = lsa::model::load(file, verify);
  if (!model) return fail(model.error());
  return std::unique_ptr<embedder>(std::move(*model));
}

} // namespace pragma
