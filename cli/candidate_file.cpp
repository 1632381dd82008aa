#include "cli/candidate_file.hpp"

#include "base/files.hpp"
#include "base/language.hpp"
#include "kernels/parts.hpp"

namespace pragma::cli {

namespace {

/// The accepted version of a run.json.
expected<candidate> best_of(const json& document, const std::string& file) {
  if (!document.is_object()) return fail(ec::parse_error, file + " is no run.json: not an object", "it should be the run.json of a result folder");
  const auto number_of = [](const json& value) { return value.is_number_integer() ? value.get<int64_t>() : 0; };
  const auto run = document.value("run", json());
  const auto best = run.is_object() ? number_of(run.value("best", json())) : 0;
  const auto attempts = document.value("iterations", json());
  for (const auto& it : attempts.is_array() && best > 0 ? attempts : json::array()) {
    if (!it.is_object() || number_of(it.value("number", json())) != best) continue;
    auto record = from_json_value<iteration_record>(it, file);
    if (!record) return fail(record.error());
    candidate c = record->code;
    c.origin = "user";
    return c;
  }
  return fail(ec::not_found, file + " has no accepted version", "it should be the run.json of a result folder");
}

} // namespace

expected<candidate> read_candidate(const std::string& file, const std::string& compiler, const std::vector<std::string>& flags) {
  if (file.ends_with(".json")) {
    auto text = read_file(file);
    if (!text) return fail(text.error());
    auto document = parse_json(*text, file);
    if (!document) return fail(document.error());
    return best_of(*document, file);
  }
  auto source = read_file(file, defaults::max_candidate_source);
  if (!source) return fail(source.error());
  candidate c;
  c.origin = "user";
  c.source = std::move(*source);
  const auto all = languages();
  if (const auto l = std::find_if(all.begin(), all.end(), [&](const auto& known) { return known.in_python && file.ends_with(known.ending); }); l != all.end()) {
    c.language = l->name;
    c.compiler.clear();
  } else {
    c.compiler = compiler;
    c.flags = flags;
  }
  return c;
}

expected<void> check_language(const candidate& c, const std::string& backend) {
  const auto chosen = find_backend(backend);
  if (!chosen) return fail(chosen.error());
  auto language = c.language;
  if (language == parts_language) { // of kernels in one
    const auto p = parts_of(c);
    if (!p) return fail(p.error());
    language = language_of(*p);
  }
  if (language == chosen->language) return {};
  return fail(ec::invalid_argument, "backend " + chosen->name + " runs " + chosen->language + ", and this candidate is " + language,
              chosen->on_device() ? "give a Triton module (.py)" : "add --backend cuda");
}

} // namespace pragma::cli
