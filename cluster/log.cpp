#include "cluster/log.hpp"

#include "base/text.hpp"

#include <map>
#include <memory>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace pragma {

namespace {

const std::map<std::string, spdlog::level::level_enum> levels{{"debug", spdlog::level::debug}, {"info", spdlog::level::info}, {"warn", spdlog::level::warn}, {"error", spdlog::level::err}};

struct log_state {
  bool as_json = false;
  std::string who = "pragma";
  std::shared_ptr<spdlog::logger> to = make("text");
  static std::shared_ptr<spdlog::logger> make(const std::string& format) {
    auto made = std::make_shared<spdlog::logger>("pragma", std::make_shared<spdlog::sinks::stdout_sink_mt>());
    made->set_pattern(format == "json" ? "%v" : "%Y-%m-%dT%H:%M:%S.%eZ %-7l %v", spdlog::pattern_time_type::utc);
    made->flush_on(spdlog::level::debug);
    return made;
  }
};
log_state& state() {
  static log_state one;
  return one;
}

std::string time_now() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  char text[40];
  const auto length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
  std::snprintf(text + length, sizeof text - length, ".%03dZ", static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000));
  return text;
}

std::string one_line(const std::string& text) {
  std::string out = printable(text);
  for (auto& c : out)
    if (c == '\n' || c == '\t') c = ' ';
  return out;
}

} // namespace

expected<void> begin_log(const log_options& options) {
  const auto level = levels.find(options.level);
  if (level == levels.end()) return fail(ec::invalid_argument, "there is no log level '" + printable(options.level) + "'", "debug, info, warn or error");
  if (options.format != "text" && options.format != "json") return fail(ec::invalid_argument, "there is no log format '" + printable(options.format) + "'", "text or json");
  auto& s = state();
  s.as_json = options.format == "json";
  s.who = options.who;
  s.to = log_state::make(options.format);
  s.to->set_level(level->second);
  return {};
}

void log_event(log_level level, const std::string& what, const json& fields) {
  static constexpr spdlog::level::level_enum theirs[] = {spdlog::level::debug, spdlog::level::info, spdlog::level::warn, spdlog::level::err};
  static constexpr const char* names[] = {"debug", "info", "warn", "error"};
  auto& s = state();
  const auto at = theirs[static_cast<size_t>(level)];
  if (!s.to->should_log(at)) return;
  if (s.as_json) {
    json line = {{"time", time_now()}, {"level", names[static_cast<size_t>(level)]}, {"from", s.who}, {"event", one_line(what)}};
    line.update(fields);
    s.to->log(at, "{}", line.dump(-1, ' ', true, json::error_handler_t::replace));
    return;
  }
  std::string text = s.who + ": " + one_line(what);
  for (const auto& [key, value] : fields.items()) text += "  " + key + "=" + one_line(value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', false, json::error_handler_t::replace));
  s.to->log(at, "{}", text);
}

void flush_log() { state().to->flush(); }

} // namespace pragma
