#include "knowledge/retrieval.hpp"

#include "base/text.hpp"
#include "knowledge/retrieval_state.hpp"

namespace pragma {

namespace fs = std::filesystem;

namespace {

constexpr int open_tries = 3; // a build may replace the folder between reading the stamp and opening the files

/// The stamp's embedder is the one that the configuration asks for.
bool is_embedder_of(const embedding_config& config, const std::string& name) {
  if (config.kind == "lsa") return name.starts_with("lsa 1 ");
  const auto prefix = "http " + config.model + " ";
  if (!name.starts_with(prefix)) return false;
  return config.dimension == 0 || name.substr(prefix.size()) == std::to_string(config.dimension);
}

std::string wanted_embedder(const embedding_config& config) {
  if (config.kind == "lsa") return "lsa";
  return "http " + config.model + (config.dimension > 0 ? " " + std::to_string(config.dimension) : "");
}

expected<std::unique_ptr<embedder>> open_embedder(embedding_config config, const index_stamp& stamp, const fs::path& folder, int dimension, bool verify) {
  if (config.kind == "lsa") {
    auto model = load_lsa(folder / model_file, verify);
    if (!model) return model;
    if ((*model)->dimension() != dimension || (*model)->name() != stamp.info.embedder)
      return fail(ec::parse_error, (folder / model_file).string() + " does not belong to the vectors beside it", "build the index again: `pragma kb build`");
    return model;
  }
  config.dimension = dimension; // known: nothing needs to be asked now
  return http_embedder(config);
}

} // namespace

expected<retriever> retriever::open(const fs::path& folder, int64_t generation, const embedding_config& config, glossary words, bool verify) {
  if (auto good = check_embedding_config(config); !good) return fail(good.error());
  for (int tries = 1;; ++tries) {
    auto stamp = read_stamp(folder);
    if (!stamp) return fail(stamp.error());
    const auto& info = stamp->info;
    if (info.generation != generation)
      return fail(ec::invalid_argument, "the index in " + folder.string() + " is of generation " + std::to_string(info.generation) +
                                            ", the compendium of " + std::to_string(generation), "build the index again: `pragma kb build`");
    if (!is_embedder_of(config, info.embedder))
      return fail(ec::invalid_argument, "the vectors in " + folder.string() + " are of the embedder '" + printable(info.embedder) +
                                            "', configured is '" + printable(wanted_embedder(config)) + "'", "build the index again: `pragma kb build`");
    const auto files = folder / stamp->folder;
    auto open_all = [&]() -> expected<retriever> {
      if (verify)
        if (auto good = verify_files(folder, *stamp); !good) return fail(good.error());
      auto lexical = lexical_index::open(files / lexical_file, verify);
      if (!lexical) return fail(lexical.error());
      auto vectors = vector_index::open(files / vector_file, verify);
      if (!vectors) return fail(vectors.error());
      auto names = name_index::open(files / name_file, verify);
      if (!names) return fail(names.error());
      auto texts = text_index::open(files / text_file, verify);
      if (!texts) return fail(texts.error());
      if (lexical->size() != info.entries || vectors->size() != info.entries || names->size() != info.entries || texts->size() != info.entries)
        return fail(ec::parse_error, "the indexes in " + files.string() + " do not have the " + std::to_string(info.entries) + " entries of their stamp",
                    "build the index again: `pragma kb build`");
      auto model = open_embedder(config, *stamp, files, vectors->dimension(), verify);
      if (!model) return fail(model.error());
      phrase_book book(words, names->profilers());
      return retriever(std::unique_ptr<impl>(new impl{*stamp, std::move(*lexical), std::move(*vectors), std::move(*names), std::move(*texts), std::move(*model),
                                                      std::move(book), config.weight}));
    };
    auto opened = open_all();
    if (opened || (opened.error().code != ec::not_found && opened.error().code != ec::io_error)) return opened;
    const auto now = read_stamp(folder);
    if (tries == open_tries || !now || now->folder == stamp->folder) {
      if (opened.error().code != ec::not_found) return opened;
      // There is a stamp: a file that it names is not "no index" but a damaged one.
      return fail(ec::parse_error, "the index in " + folder.string() + " is damaged (" + opened.error().message + ")", "build it again: `pragma kb build`");
    }
  }
}

retriever::retriever(std::unique_ptr<impl> p) : impl_(std::move(p)) {}
retriever::retriever(retriever&&) noexcept = default;
retriever& retriever::operator=(retriever&&) noexcept = default;
retriever::~retriever() = default;

expected<found_entries> retriever::ask(const question& q, retrieval_mode mode) const { return impl_->ask(q, mode); }

expected<std::vector<hit>> retriever::find_name(const std::string& name, const std::string& profiler, size_t count) const {
  return impl_->find_name(name, profiler, count);
}

const index_info& retriever::info() const { return impl_->stamp.info; }

} // namespace pragma
