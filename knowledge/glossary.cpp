// configs/glossary.json -> glossary.
#include "knowledge/retrieval.hpp"

#include "base/text.hpp"

namespace pragma {

namespace {

using word_list = std::vector<std::pair<std::string, std::vector<std::string>>>;

expected<word_list> read_list(const json& object, const std::string& where) {
  word_list list;
  for (const auto& [key, value] : object.items()) {
    if (key.starts_with("_")) continue;
    const auto place = where + "." + printable(key);
    if (trim(key).empty()) return fail(ec::parse_error, where + ": an empty word cannot be explained");
    if (!value.is_array()) return fail(ec::parse_error, place + " must be a list of texts, but is a " + value.type_name());
    std::vector<std::string> texts;
    for (const auto& text : value) {
      if (!text.is_string() || trim(text.get<std::string>()).empty())
        return fail(ec::parse_error, place + " must be a list of texts that are not empty");
      texts.push_back(trim(text.get<std::string>()));
    }
    list.emplace_back(trim(key), std::move(texts));
  }
  return list;
}

} // namespace

expected<glossary> parse_glossary(std::string_view text, std::string_view what) {
  const json known = {{"expansions", json::object()}, {"same", json::object()}, {"profilers", json::object()}, {"hardware", json::object()}, {"makers", json::object()}, {"name_pieces", json::object()}};
  const auto kept = parse_settings(text, what, known);
  if (!kept) return fail(kept.error());
  glossary g;
  for (const auto& [key, place] : {std::pair{"expansions", &g.expansions}, std::pair{"same", &g.same}, std::pair{"profilers", &g.profilers}, std::pair{"hardware", &g.hardware},
                                  std::pair{"makers", &g.makers}, std::pair{"name_pieces", &g.name_pieces}}) {
    if (!kept->contains(key)) continue;
    auto list = read_list((*kept)[key], std::string(what) + ": " + key);
    if (!list) return fail(list.error());
    *place = std::move(*list);
  }
  return g;
}

} // namespace pragma
