// The "embedding" part of a configuration: what it may hold, with the key that is wrong named.
#include "embeddings/embedder.hpp"

#include "base/text.hpp"

#include <algorithm>

namespace pragma {

expected<void> check_embedding_config(const embedding_config& c) {
  const std::vector<std::string> kinds = {"lsa", "http"};
  if (std::find(kinds.begin(), kinds.end(), c.kind) == kinds.end()) {
    const auto near = nearest_names(c.kind, kinds, 1);
    return fail(ec::invalid_argument, "embedding kind '" + printable(c.kind) + "' is not one of " + join(kinds, ", "),
                near.empty() ? "" : "did you mean '" + near[0] + "'?");
  }
  if (c.kind == "http") {
    if (c.base_url.empty())
      return fail(ec::invalid_argument, "embeddings of kind http need base_url",
                  "for example https://api.openai.com/v1, http://127.0.0.1:11434/v1 (Ollama)");
    if (!c.base_url.starts_with("http://") && !c.base_url.starts_with("https://"))
      return fail(ec::invalid_argument, "base_url must start with http:// or https://");
    if (c.base_url.find_first_of("@?#") != std::string::npos)
      return fail(ec::invalid_argument, "base_url must not hold a user, password, query or fragment",
                  "put the key into an environment variable and its name into key_env");
    if (c.model.empty()) return fail(ec::invalid_argument, "embeddings of kind http need model", "the name that the endpoint knows");
  }
  struct range {
    const char* key;
    double value, least, most;
  };
  const range ranges[] = {{"dimension", static_cast<double>(c.dimension), 0, 65536}, {"batch", static_cast<double>(c.batch), 1, 2048},
                          {"retries", static_cast<double>(c.retries), 0, 20},        {"retry_seconds", c.retry_seconds, 0, 3600},
                          {"timeout_seconds", c.timeout_seconds, 1e-3, 86400},       {"weight", c.weight, 0, 100}};
  for (const auto& r : ranges)
    if (!(r.value >= r.least && r.value <= r.most))
      return fail(ec::invalid_argument, std::string(r.key) + " is " + json(r.value).dump() + "; it must lie between " +
                                            json(r.least).dump() + " and " + json(r.most).dump());
  return {};
}

expected<embedding_config> parse_embedding_config(std::string_view text, std::string_view what) {
  const auto kept = parse_settings(text, what, embedding_config{});
  if (!kept) return fail(kept.error());
  auto config = from_json_value<embedding_config>(*kept, what);
  if (!config) return config;
  if (auto good = check_embedding_config(*config); !good)
    return fail(good.error().code, std::string(what) + ": " + good.error().message, good.error().hint);
  return config;
}

} // namespace pragma
