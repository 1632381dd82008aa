#include "cli/knowledge.hpp"

#include "base/files.hpp"
#include "base/text.hpp"

namespace pragma::cli {

void model_options::add_to(CLI::App& app) {
  app.add_option("--llm", llm_file, "file with the model's settings (configs/llm.json.example)");
  app.add_option("--model", model, "model name for an OpenAI-compatible endpoint");
  app.add_option("--base-url", base_url, "its URL, e.g. http://127.0.0.1:11434/v1 (key: environment, OPENAI_API_KEY by default)");
  app.add_option("--command", command, "a command as model: prompt on stdin, answer on stdout");
  app.add_option("--embeddings", embeddings, "file with the embedding model's settings (configs/embeddings.json.example); default: lsa, in this process");
}

expected<std::optional<llm_config>> model_options::chat() const {
  if (llm_file.empty() && model.empty() && base_url.empty() && command.empty()) return std::optional<llm_config>{};
  llm_config config;
  if (!llm_file.empty()) {
    auto text = read_file(llm_file);
    if (!text) return fail(text.error());
    auto parsed = parse_llm_config(*text, llm_file);
    if (!parsed) return fail(parsed.error());
    config = std::move(*parsed);
  }
  if (!model.empty()) config.model = model;
  if (!base_url.empty()) config.base_url = base_url;
  if (!command.empty()) {
    config.kind = "command";
    config.command = {"/bin/sh", "-c", command};
  }
  if (auto good = check_llm_config(config); !good) return fail(good.error());
  return std::optional<llm_config>(std::move(config));
}

expected<embedding_config> model_options::embedding() const {
  auto file = std::filesystem::path(embeddings);
  if (file.empty()) {
    file = data_home() / "embeddings.json";
    std::error_code ignored;
    if (!std::filesystem::exists(file, ignored)) return embedding_config{};
  }
  auto text = read_file(file);
  if (!text) return fail(text.error());
  return parse_embedding_config(*text, file.string());
}

expected<std::vector<profiler_manifest>> all_manifests(const library_paths& paths) {
  auto all = shipped_manifests(paths.manifests);
  if (!all) return all;
  std::error_code ignored;
  if (!std::filesystem::exists(paths.store / "CURRENT", ignored)) return all;
  auto store = knowledge_store::open(paths.store, knowledge_store::mode::read_only);
  if (!store) return fail(store.error());
  auto own = store->manifests();
  if (!own) return fail(own.error());
  for (auto& m : *own) {
    std::erase_if(*all, [&](const auto& shipped) { return shipped.name == m.name; });
    all->push_back(std::move(m));
  }
  return all;
}

std::string first_source(const entry& e) { return e.sources.empty() ? std::string() : e.sources.front().url; }

void print_entry(terminal& out, const entry& e) {
  out.line(out.bold(e.name) + (e.profiler.empty() ? "  (concept)" : "  " + e.profiler) + (e.unit.empty() ? "" : "  [" + e.unit + "]"));
  const auto part = [&](const char* what, const std::string& text) {
    if (!text.empty()) out.line("  " + std::string(what) + std::string(13 - std::string(what).size(), ' ') + printable(text));
  };
  part("aliases", join(e.aliases, ", "));
  part("hardware", join(e.hardware, ", "));
  part("meaning", e.meaning);
  part("measured", e.measurement);
  part("reading", e.reading);
  part("diagnoses", join(e.diagnoses, ", "));
  part("related", join(e.related, ", "));
  for (const auto& c : e.conflicts) part("but", c.field + " is \"" + c.value + "\" in " + c.url);
  for (const auto& s : e.sources) {
    part("source", s.url + (s.fetched.empty() ? "" : "  (read " + s.fetched.substr(0, 10) + "; " + s.by + ")"));
    if (!s.quote.empty()) part("", "\"" + s.quote + "\"");
  }
}

} // namespace pragma::cli
