// What PRAGMA ships as knowledge: the starter compendium, the glossary, the registry of profilers, and the questions by
// which retrieval is judged. A user meets a mistake in them as a wrong or missing answer, so each is checked as a whole.
#include "diagnosis/finding.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

const fs::path root = fs::path(TESTS_DIR).parent_path();

std::string text_of(const fs::path& file) {
  INFO(file.string());
  std::ifstream in(file, std::ios::binary);
  REQUIRE(in.good());
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

/// Parses; a key that stands twice in one object is an error, as JSON readers would silently take the last.
json parsed(const fs::path& file) {
  INFO(file.string());
  std::vector<std::set<std::string>> keys;
  const auto on_event = [&](int, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second) FAIL_CHECK("twice: " << value);
    return true;
  };
  try {
    return json::parse(text_of(file), on_event);
  } catch (const json::exception& e) {
    FAIL(file.string() << ": " << e.what());
  }
  return {};
}

std::vector<fs::path> json_files(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& item : fs::directory_iterator(folder))
    if (item.path().extension() == ".json") files.push_back(item.path());
  std::sort(files.begin(), files.end());
  return files;
}

std::string lower(std::string text) {
  for (auto& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

bool is_texts(const json& value) {
  const auto is_text = [](const json& v) { return v.is_string() && !v.get_ref<const std::string&>().empty(); };
  return value.is_array() && std::all_of(value.begin(), value.end(), is_text);
}

struct starter_entry {
  std::string id, profiler, file;
  json value;
};

const std::vector<starter_entry>& starter() {
  static const auto all = [] {
    std::vector<starter_entry> list;
    for (const auto& file : json_files(root / "knowledge" / "starter")) {
      const auto content = parsed(file);
      INFO(file.string());
      REQUIRE(content.at("profiler").is_string());
      REQUIRE(content.at("entries").is_array());
      const auto profiler = content["profiler"].get<std::string>();
      for (const auto& e : content["entries"])
        list.push_back({profiler + "/" + lower(e.at("name").get<std::string>()), profiler, file.filename().string(), e});
    }
    return list;
  }();
  return all;
}

std::vector<std::string> names_of(const starter_entry& e) {
  std::vector<std::string> names = {e.value["name"].get<std::string>()};
  for (const auto& alias : e.value["aliases"]) names.push_back(alias.get<std::string>());
  return names;
}

/// Every name and alias, in lower case.
const std::set<std::string>& known_names() {
  static const auto all = [] {
    std::set<std::string> names;
    for (const auto& e : starter())
      for (const auto& name : names_of(e)) names.insert(lower(name));
    return names;
  }();
  return all;
}

bool known_class(const std::string& name) {
  return json(json(name).get<pragma::bottleneck>()).get<std::string>() == name;
}

} // namespace

TEST_CASE("each starter entry is complete and of the common schema") {
  const std::set<std::string> fields = {"name",        "aliases",   "unit",    "kind",    "hardware", "meaning",
                                        "measurement", "diagnoses", "reading", "related", "sources"};
  std::map<std::string, int> per_profiler;
  for (const auto& e : starter()) {
    INFO(e.file << ": " << e.id);
    ++per_profiler[e.profiler];
    for (const auto& [key, value] : e.value.items()) {
      INFO(key);
      CHECK(fields.contains(key));
      if (key == "aliases" || key == "hardware" || key == "diagnoses" || key == "related") CHECK(is_texts(value));
      else if (key != "sources") CHECK(value.is_string());
    }
    CHECK(e.value["kind"].get<std::string>() == (e.profiler.empty() ? "concept" : "metric"));
    CHECK(e.value["meaning"].get<std::string>().size() >= 40);
    CHECK(e.value["reading"].get<std::string>().size() >= 40);
    REQUIRE(e.value["sources"].is_array());
    CHECK_FALSE(e.value["sources"].empty());
    for (const auto& source : e.value["sources"]) {
      CHECK(source.size() == 1);
      CHECK(std::regex_match(source.at("url").get<std::string>(), std::regex("https://[a-z0-9.-]+/[^ \"<>]*")));
    }
  }
  const std::map<std::string, int> at_least = {{"", 45},    {"perf", 70},      {"valgrind", 25}, {"llvm-mca", 20},
                                               {"ncu", 80}, {"rocprofv3", 40}, {"msprof", 25},   {"pragma", 30}};
  for (const auto& [profiler, least] : at_least) {
    INFO("profiler '" << profiler << "'");
    CHECK(per_profiler[profiler] >= least);
  }
}

TEST_CASE("a name or alias leads to one entry of its profiler") {
  std::map<std::string, std::string> meanings, owner;
  std::set<std::string> ids;
  for (const auto& e : starter()) {
    INFO(e.file << ": " << e.id);
    CHECK(ids.insert(e.id).second);
    for (const auto& name : names_of(e)) {
      INFO(name);
      CHECK(name.find_first_not_of(" \t\n") == 0);
      const auto [at, fresh] = owner.emplace(e.profiler + "/" + lower(name), e.id);
      CHECK((fresh || at->second == e.id));
    }
    const auto [at, fresh] = meanings.emplace(e.value["meaning"].get<std::string>(), e.id);
    INFO("same meaning as " << at->second);
    CHECK(fresh);
  }
}

TEST_CASE("what starter entries refer to exists") {
  for (const auto& e : starter()) {
    INFO(e.file << ": " << e.id);
    for (const auto& name : e.value["related"]) {
      INFO(name);
      CHECK(known_names().contains(lower(name.get<std::string>())));
      CHECK(lower(name.get<std::string>()) != lower(e.value["name"].get<std::string>()));
    }
    std::set<std::string> classes;
    for (const auto& name : e.value["diagnoses"]) {
      INFO(name);
      CHECK(known_class(name.get<std::string>()));
      CHECK(classes.insert(name.get<std::string>()).second);
    }
  }
  CHECK_FALSE(known_class("gpu_dram_bond"));
}

TEST_CASE("every metric of a profile is explained") {
  // The tables of docs/metrics.md; tests/profilers checks that they are what a profile can hold.
  std::istringstream page(text_of(root / "docs" / "metrics.md"));
  const std::regex quoted("`([^`]+)`");
  int seen = 0;
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("| `")) continue;
    const auto cell = line.substr(2, line.find(" |", 2) - 2);
    for (auto it = std::sregex_iterator(cell.begin(), cell.end(), quoted); it != std::sregex_iterator(); ++it, ++seen) {
      INFO((*it)[1].str());
      CHECK(known_names().contains(lower((*it)[1].str())));
    }
  }
  CHECK(seen > 70);
}

TEST_CASE("every class of bottleneck is diagnosed by some entry") {
  std::set<std::string> diagnosed;
  for (const auto& e : starter())
    for (const auto& name : e.value["diagnoses"]) diagnosed.insert(name.get<std::string>());
  for (int i = 0; i <= static_cast<int>(pragma::bottleneck::register_spills); ++i) {
    const auto name = json(static_cast<pragma::bottleneck>(i)).get<std::string>();
    INFO(name);
    CHECK(diagnosed.contains(name));
  }
}

TEST_CASE("labelled questions have answers that exist") {
  std::set<std::string> ids, texts;
  for (const auto& e : starter()) ids.insert(e.id);
  const auto content = parsed(root / "tests" / "knowledge" / "questions.json");
  int inside = 0, outside = 0;
  for (const auto& q : content.at("questions")) {
    INFO(q);
    CHECK(q.size() == 2);
    CHECK(texts.insert(lower(q.at("question").get<std::string>())).second);
    REQUIRE(is_texts(q.at("answers")));
    ++(q["answers"].empty() ? outside : inside);
    std::set<std::string> answers;
    for (const auto& answer : q["answers"]) {
      INFO(answer);
      CHECK(ids.contains(answer.get<std::string>()));
      CHECK(answers.insert(answer.get<std::string>()).second);
    }
  }
  CHECK(inside >= 90);
  CHECK(outside >= 20);
}

TEST_CASE("a word of the glossary names one profiler or one kind of hardware") {
  const auto content = parsed(root / "configs" / "glossary.json");
  std::map<std::string, std::string> owner;
  for (const auto& [key, value] : content.items()) {
    INFO(key);
    if (key.starts_with("_")) continue;
    REQUIRE(value.is_object());
    if (key == "makers" || key == "name_pieces" || key == "same") { // made of hardware's names; pieces of names and everyday words, which have several senses
      for (const auto& [word, list] : value.items()) {
        INFO(word);
        CHECK(is_texts(list));
        CHECK_FALSE(list.empty());
        for (const auto& name : list) CHECK((key != "makers" || content["hardware"].contains(name.get<std::string>())));
      }
      continue;
    }
    CHECK((key == "expansions" || key == "profilers" || key == "hardware"));
    for (const auto& [word, phrases] : value.items()) {
      INFO(word);
      CHECK(is_texts(phrases));
      CHECK_FALSE(phrases.empty());
      std::vector<std::string> words = {word};
      if (key != "expansions")
        for (const auto& phrase : phrases) words.push_back(phrase.get<std::string>());
      for (const auto& w : words) {
        const auto [at, fresh] = owner.emplace((key == "expansions" ? "expansions " : "") + lower(w), key + " " + word);
        INFO(w << " stands for " << at->second);
        CHECK((fresh || at->second == key + " " + word));
      }
    }
  }
  // A question's profiler and hardware are compared with those of entries.
  std::set<std::string> hardware;
  for (const auto& [word, phrases] : content["hardware"].items()) hardware.insert(word);
  for (const auto& e : starter()) {
    INFO(e.id);
    if (!e.profiler.empty()) CHECK(content["profilers"].contains(e.profiler));
    for (const auto& name : e.value["hardware"]) {
      INFO(name);
      CHECK(hardware.contains(name.get<std::string>()));
    }
  }
}

TEST_CASE("the registry's manifests are complete") {
  const std::set<std::string> keys = {"name", "title", "backend", "aliases", "hardware", "simulates", "prefer", "docs", "catalogue", "collect"};
  const std::set<std::string> backends = {"cpu", "cuda", "rocm", "ascend"};
  const std::regex web_page("https://[a-z0-9.-]+/[^ \"<>#*]*"), local_page("(man:[a-z0-9_.-]+\\.[1-9]|/[^ \"<>]+)");
  std::set<std::string> names, every_name;
  for (const auto& file : json_files(root / "configs" / "profilers")) {
    INFO(file.filename().string());
    const auto m = parsed(file);
    for (const auto& [key, value] : m.items()) {
      INFO(key);
      if (!key.starts_with("_")) CHECK(keys.contains(key));
    }
    CHECK(m.at("name").get<std::string>() == file.stem().string());
    CHECK_FALSE(m.at("title").get<std::string>().empty());
    names.insert(m["name"].get<std::string>());
    CHECK(every_name.insert(m["name"].get<std::string>()).second);
    REQUIRE(is_texts(m.at("aliases")));
    for (const auto& alias : m["aliases"]) {
      INFO(alias);
      CHECK(every_name.insert(alias.get<std::string>()).second);
    }
    REQUIRE(is_texts(m.at("backend")));
    CHECK_FALSE(m["backend"].empty());
    for (const auto& backend : m["backend"]) CHECK(backends.contains(backend.get<std::string>()));
    const auto& docs = m.at("docs");
    for (const auto& [key, value] : docs.items()) {
      INFO(key);
      if (key.starts_with("_")) continue;
      CHECK(std::set<std::string>{"roots", "local", "allow", "deny"}.contains(key));
      CHECK(is_texts(value));
    }
    CHECK_FALSE(docs.at("roots").empty());
    for (const auto& address : docs["roots"]) CHECK(std::regex_match(address.get<std::string>(), web_page));
    for (const auto& place : docs.at("local")) CHECK(std::regex_match(place.get<std::string>(), local_page));
    CHECK_FALSE(docs.at("allow").empty()); // without it, a page in a large folder opens all of it
    CHECK_FALSE(docs.at("deny").empty());
    for (const auto& command : m.at("catalogue")) {
      CHECK(command.size() == 2 + command.count("plain"));
      CHECK(is_texts(command.at("argv")));
      CHECK_FALSE(command["argv"].empty());
      CHECK(std::set<std::string>{"json", "csv", "text"}.contains(command.at("format").get<std::string>()));
    }
  }
  CHECK(names == std::set<std::string>{"perf", "ncu", "rocprofv3", "rocprof-compute", "msprof", "valgrind", "llvm-mca", "likwid"});
  for (const auto& e : starter()) {
    INFO(e.id);
    if (!e.profiler.empty() && e.profiler != "pragma") CHECK(names.contains(e.profiler));
  }
}
