// A model at the stub server, a question for it, and what is left behind.
#pragma once

#include "base/files.hpp"
#include "llm/chat.hpp"
#include "stub_server.hpp"

#include <cstdlib>
#include <fstream>

namespace pragma::test {

inline const char* const secret = "sk-test-5f0c1d2e3b4a59687";

inline llm_config openai(const stub_server& server) {
  ::setenv("PRAGMA_TEST_KEY", secret, 1);
  llm_config c;
  c.base_url = server.url();
  c.model = "stub-model";
  c.key_env = "PRAGMA_TEST_KEY";
  c.timeout_seconds = 10;
  c.retry_seconds = 0.01;
  c.max_wait_seconds = 5;
  c.retries = 2;
  return c;
}

inline const std::vector<chat_message> question = {{"system", "be brief"}, {"user", "what is it?"}};

inline expected<chat_answer> ask(const llm_config& c, const std::filesystem::path& transcript = {},
                          const std::atomic<bool>* cancel = nullptr) {
  auto model = make_chat_model(c, transcript, cancel);
  if (!model) return fail(model.error());
  return (*model)->ask(question);
}

inline std::vector<json> lines_of(const std::filesystem::path& file) {
  std::vector<json> all;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (auto entry = json::parse(line); !entry.contains("begin")) all.push_back(entry);
  return all;
}

inline double seconds_between(const stub_request& a, const stub_request& b) {
  return std::chrono::duration<double>(b.at - a.at).count();
}

inline std::string everything_in(const std::filesystem::path& folder) {
  std::string all;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) all += *read_file(entry.path());
  return all;
}

} // namespace pragma::test
