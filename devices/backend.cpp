#include "devices/backend.hpp"

#include "base/files.hpp"
#include "base/language.hpp"
#include "base/subprocess.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace pragma {

namespace fs = std::filesystem;

namespace {

constexpr double state_seconds = 5;
constexpr const char* text_keys[] = {"name", "title", "language", "torch_device"};
constexpr const char* list_keys[] = {"present", "device_files", "environment", "readable", "visible", "clocks", "profilers"};

/// '*' matches any run of characters.
bool matches(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern.front() != '*') return !text.empty() && pattern.front() == text.front() && matches(pattern.substr(1), text.substr(1));
  for (size_t i = 0; i <= text.size(); ++i)
    if (matches(pattern.substr(1), text.substr(i))) return true;
  return false;
}

std::vector<backend> read_all() {
  std::vector<backend> all;
  std::error_code ignored;
  for (const auto& file : fs::directory_iterator(share_dir() / "backends", ignored)) {
    if (file.path().extension() != ".json") continue;
    auto text = read_file(file.path());
    if (!text) continue;
    if (auto one = parse_backend(*text, file.path().string())) all.push_back(std::move(*one));
  }
  // A broken installation still has its processor.
  if (std::none_of(all.begin(), all.end(), [](const auto& b) { return b.name == "cpu"; })) all.push_back({});
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::pair(a.name != "cpu", a.name) < std::pair(b.name != "cpu", b.name);
  });
  return all;
}

} // namespace

expected<backend> parse_backend(const std::string& text, const std::string& origin) {
  auto document = parse_json(text, origin);
  if (!document) return fail(document.error());
  if (!document->is_object()) return fail(ec::parse_error, origin + ": an object was expected");
  std::vector<std::string> known(std::begin(text_keys), std::end(text_keys));
  known.insert(known.end(), std::begin(list_keys), std::end(list_keys));
  for (const auto& [key, value] : document->items()) {
    if (key.starts_with('_')) continue;
    if (std::find(known.begin(), known.end(), key) == known.end())
      return fail(ec::parse_error, origin + ": unknown key '" + printable(key) + "'", "known: " + join(known, ", "));
    const bool text_key = std::find(std::begin(text_keys), std::end(text_keys), key) != std::end(text_keys);
    const bool right = text_key ? value.is_string() : value.is_array() && std::all_of(value.begin(), value.end(), [](const json& v) { return v.is_string(); });
    if (!right) return fail(ec::parse_error, origin + ": '" + key + "' must be a " + (text_key ? "text" : "list of texts"));
  }
  backend b;
  const auto list = [&](const char* key) { return document->value(key, std::vector<std::string>{}); };
  b.name = document->value("name", "");
  b.title = document->value("title", b.name);
  b.language = document->value("language", "");
  b.torch_device = document->value("torch_device", "");
  b.present = list("present");
  b.device_files = list("device_files");
  b.environment = list("environment");
  b.readable = list("readable");
  b.visible = list("visible");
  b.clocks = list("clocks");
  b.profilers = list("profilers");
  if (b.name.empty()) return fail(ec::parse_error, origin + ": 'name' is missing");
  if (!find_language(b.language)) return fail(ec::parse_error, origin + ": language '" + printable(b.language) + "' is not known", language_names());
  if (in_python(b.language) && b.torch_device.empty()) return fail(ec::parse_error, origin + ": 'torch_device' is missing", "what Torch calls such a device: cuda, npu");
  return b;
}

const std::vector<backend>& backends() {
  static const std::vector<backend> all = read_all();
  return all;
}

expected<backend> find_backend(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& b : backends()) {
    if (b.name == name) return b;
    names.push_back(b.name);
  }
  return fail(ec::invalid_argument, "there is no backend '" + printable(name) + "'", "known: " + join(names, ", ") + " (configs/backends/)");
}

std::string why_absent(const backend& b) {
  std::error_code ignored;
  for (const auto& file : b.present)
    if (fs::exists(file, ignored)) return "";
  return b.present.empty() ? "" : "no " + join(b.present, ", no ") + ": the driver is not loaded";
}

std::vector<fs::path> matching_files(const std::vector<std::string>& patterns) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const auto& text : patterns) {
    const fs::path pattern = text;
    for (const auto& file : fs::directory_iterator(pattern.parent_path(), ignored))
      if (matches(pattern.filename().string(), file.path().filename().string())) found.push_back(file.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string driver_number(const backend& b, int index) {
  auto number = std::to_string(index);
  for (const auto& name : b.visible) {
    const char* value = std::getenv(name.c_str());
    if (!value || !*value) continue;
    const auto chosen = split(value, ',');
    size_t at = 0;
    const auto [end, failed] = std::from_chars(number.data(), number.data() + number.size(), at);
    if (failed == std::errc() && end == number.data() + number.size() && at < chosen.size()) number = trim(chosen[at]);
  }
  return number;
}

std::string device_state(const backend& b, int index) {
  if (b.clocks.empty() || find_program(b.clocks.front()).empty()) return "";
  process_spec spec;
  for (auto word : b.clocks) {
    if (const auto at = word.find("{index}"); at != std::string::npos) word.replace(at, 7, driver_number(b, index));
    spec.argv.push_back(word);
  }
  spec.limits.wall_seconds = state_seconds;
  const auto ran = run_process(spec);
  if (!ran || !ran->ok()) return "";
  return trim(split(printable(ran->out), '\n').front());
}

} // namespace pragma
