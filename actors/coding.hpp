// What the Coder does, without any actor: the built-in search, or a language model that gets the brief as a prompt and is
// asked once more when its answer is malformed. Used by the Coder agent.
#pragma once

#include "actors/messages.hpp"
#include "synthesis/search/builtin.hpp"
#include "llm/prompts.hpp"

#include <memory>
#include <set>

namespace pragma {

/// What a model is told of the task and the machine, in this language (base/language.hpp); without a seed.
expected<coding_task> prompt_for(const coder_setup& setup, const std::string& language);

class coding_session {
public:
  explicit coding_session(const std::atomic<bool>* cancel = nullptr) : cancel_(cancel) {}

  /// Begins a task; says who will write.
  expected<std::string> setup(const coder_setup& setup);
  /// The next candidate. A malformed answer of a model after the second try is a candidate that does not build: the
  /// Verifier says why, and the loop goes on.
  expected<coded> next(const code_request& request);

private:
  void learn_before(const code_request& request);
  expected<coded> from_given();
  expected<coded> from_builtin(const code_request& request);
  expected<coded> from_model(const code_request& request);

  const std::atomic<bool>* cancel_;
  coder_setup setup_;
  std::optional<builtin_coder> builtin_;
  std::unique_ptr<chat_model> model_;
  coding_task prompt_;
  std::set<std::string> tried_;
};

} // namespace pragma
