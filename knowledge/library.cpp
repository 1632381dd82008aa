#include "knowledge/library.hpp"

#include "base/files.hpp"
#include "base/text.hpp"
#include "knowledge/answer.hpp"

#include <algorithm>

namespace pragma {

namespace {

constexpr uint64_t max_glossary_bytes = 4u << 20;
constexpr size_t reordered = 50; // hits that a model is shown

} // namespace

library_paths library_paths::usual() {
  library_paths p;
  p.store = data_home() / "knowledge";
  p.indexes = data_home() / "knowledge-index";
  p.starter = share_dir() / "starter";
  p.glossary = share_dir() / "glossary.json";
  p.manifests = share_dir() / "profilers";
  return p;
}

expected<std::vector<json>> registered_collectors(const library_paths& paths, const std::string& backend) {
  std::vector<json> found;
  std::error_code ignored;
  if (!std::filesystem::exists(paths.store / "CURRENT", ignored)) return found;
  auto store = knowledge_store::open(paths.store, knowledge_store::mode::read_only);
  if (!store) return fail(store.error());
  auto own = store->manifests();
  if (!own) return fail(own.error());
  for (const auto& m : *own)
    if (!m.collect.is_null() && std::find(m.backend.begin(), m.backend.end(), backend) != m.backend.end())
      found.push_back({{"name", m.name}, {"backend", m.backend}, {"catalogue", m.catalogue}, {"collect", m.collect}});
  return found;
}

struct library::impl {
  std::optional<temp_dir> scratch; ///< of a library that stands in while another process builds the first one
  knowledge_store store;
  retriever index;
  compendium_state state;
  machine_view machine;            ///< this one
};

library::library(std::unique_ptr<impl> p) : impl_(std::move(p)) {}
library::library(library&&) noexcept = default;
library& library::operator=(library&&) noexcept = default;
library::~library() = default;

compendium_state library::state() const { return impl_->state; }
const index_info& library::index() const { return impl_->index.info(); }

expected<glossary> read_glossary(const library_paths& paths) {
  auto text = read_file(paths.glossary, max_glossary_bytes);
  if (!text) return fail(text.error());
  return parse_glossary(*text, paths.glossary.string());
}

/// Shipped and registered ones, as far as they can be read: a question is answered without them, too.
static std::vector<profiler_manifest> known_profilers(const library_paths& paths, const knowledge_store& store) {
  auto own = store.manifests().value_or(std::vector<profiler_manifest>());
  for (auto& m : shipped_manifests(paths.manifests).value_or(std::vector<profiler_manifest>()))
    if (std::none_of(own.begin(), own.end(), [&](const auto& o) { return o.name == m.name; })) own.push_back(std::move(m));
  return own;
}

expected<library> library::open(const library_paths& paths, const embedding_config& embedding, bool may_build, std::string* built) {
  auto words = read_glossary(paths);
  if (!words) return fail(words.error());

  auto store = knowledge_store::open(paths.store, knowledge_store::mode::read_only);
  bool empty = !store && store.error().code == ec::not_found;
  if (store) {
    auto state = store->state();
    if (!state) return fail(state.error());
    empty = state->generation == 0;
  }
  if (empty && may_build) {
    store = fail(ec::not_found, "closed"); // a reader must not lie beside the writer in one process
    auto writer = knowledge_store::open(paths.store, knowledge_store::mode::read_write);
    if (!writer && writer.error().code == ec::locked) {
      // The first build is under way, and nothing of it can be read yet: the shipped entries alone answer.
      auto scratch = temp_dir::create("pragma-library");
      if (!scratch) return fail(scratch.error());
      auto own = paths;
      own.store = scratch->path() / "knowledge";
      own.indexes = scratch->path() / "indexes";
      auto stand_in = open(own, embedding, true, nullptr);
      if (!stand_in) return stand_in;
      stand_in->impl_->scratch = std::move(*scratch);
      if (built) *built = "another process builds the compendium for the first time; this answer rests on the shipped entries only";
      return stand_in;
    }
    if (!writer) return fail(writer.error());
    knowledge_build_options options;
    options.starter = paths.starter;
    options.indexes = paths.indexes;
    options.embedding = embedding;
    options.crawl = false;
    options.words = *words;
    if (auto made = build_knowledge(*writer, options); !made) return fail(made.error());
    if (built) *built = "built from the starter compendium; `pragma kb build` adds the profilers' documentation";
  }
  if (empty) store = knowledge_store::open(paths.store, knowledge_store::mode::read_only);
  if (!store) return fail(store.error());
  auto state = store->state();
  if (!state) return fail(state.error());
  std::string rebuilt;
  auto index = open_retriever(*store, paths.indexes, embedding, *words, may_build, &rebuilt);
  if (!index) return fail(index.error());
  if (built && built->empty() && !rebuilt.empty()) *built = "indexes built anew: " + rebuilt;
  auto machine = view_of_this_machine(*words, known_profilers(paths, *store));
  return library(std::make_unique<impl>(impl{std::nullopt, std::move(*store), std::move(*index), std::move(*state), std::move(machine)}));
}

expected<library_answer> library::ask(const question& q, chat_model* model) const {
  library_answer answer;
  auto asked = q;
  if (!asked.machine.known()) asked.machine = impl_->machine;
  if (model) asked.count = std::max(asked.count, reordered);
  auto found = impl_->index.ask(asked);
  if (!found) return fail(found.error());
  answer.found = std::move(*found);
  std::vector<hit> kept;
  for (auto& h : answer.found.hits) {
    auto e = impl_->store.get_entry(h.id);
    if (!e) return fail(e.error());
    if (!*e) continue; // the store moved on since the index was opened
    answer.entries.push_back(std::move(**e));
    kept.push_back(std::move(h));
  }
  answer.found.hits = std::move(kept);
  const bool goes_on = model && answer.found.in_scope && reorder_with(*model, q.text, answer);
  if (answer.entries.size() > q.count) {
    answer.entries.resize(q.count);
    answer.found.hits.resize(q.count);
  }
  if (goes_on) answer_with(*model, q.text, answer);
  return answer;
}

expected<std::vector<entry>> library::show(const std::string& name, const std::string& profiler, size_t count, bool* exact) const {
  auto hits = impl_->index.find_name(name, profiler, count);
  if (!hits) return fail(hits.error());
  std::vector<entry> entries;
  for (const auto& h : *hits) {
    auto e = impl_->store.get_entry(h.id);
    if (!e) return fail(e.error());
    if (*e) entries.push_back(std::move(**e));
  }
  if (exact) *exact = !hits->empty() && hits->front().why == "name";
  return entries;
}

} // namespace pragma
