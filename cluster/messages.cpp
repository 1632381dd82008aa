#include "cluster/messages.hpp"

#include "base/files.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"

namespace pragma {

namespace fs = std::filesystem;

namespace {

constexpr size_t max_task_bytes = max_message_bytes / 2; ///< source and sidecar; the rest of an order needs room, too

/// A file name and nothing more: it comes from another machine.
bool plain_name(const std::string& name) {
  return !name.empty() && name.size() <= 200 && name[0] != '.' && name.ends_with(".py") && name.find('/') == std::string::npos && name.find('\0') == std::string::npos;
}

} // namespace

expected<task_text> read_task_text(const fs::path& file) {
  auto source = read_file(file, max_task_bytes);
  if (!source) return fail(source.error());
  task_text task;
  task.name = file.filename().string();
  task.source = std::move(*source);
  if (!plain_name(task.name)) return fail(ec::invalid_argument, printable(task.name) + " is no name of a task file", "a task is a Python file, as in softmax.py");
  auto sidecar = file;
  sidecar.replace_extension(".json");
  std::error_code ignored;
  if (fs::exists(sidecar, ignored)) {
    auto text = read_file(sidecar, max_task_bytes - std::min(max_task_bytes, task.source.size()));
    if (!text) return fail(text.error());
    task.sidecar = std::move(*text);
  }
  return task;
}

expected<fs::path> keep_task_text(const task_text& task, const fs::path& folder) {
  if (!plain_name(task.name)) return fail(ec::invalid_argument, "a task came with the file name " + printable(task.name));
  const auto home = folder / short_hash(task.name + '\0' + task.source + '\0' + task.sidecar);
  const auto file = home / task.name;
  std::error_code problem;
  fs::create_directories(home, problem);
  if (problem) return fail(ec::io_error, "cannot make " + home.string() + ": " + problem.message());
  if (!task.sidecar.empty()) {
    auto sidecar = file;
    sidecar.replace_extension(".json");
    if (auto kept = write_file_atomic(sidecar, task.sidecar); !kept) return fail(kept.error());
  }
  if (auto kept = write_file_atomic(file, task.source); !kept) return fail(kept.error());
  return file;
}

} // namespace pragma
