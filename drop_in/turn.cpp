#include "drop_in/turn.hpp"

#include "base/defaults.hpp"
#include "base/json.hpp"
#include "base/unique_fd.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

namespace pragma {

namespace {

constexpr int turn_fd = 3;
constexpr size_t longest_line = 256; ///< more of a line is no word of ours

} // namespace

void announce_turn(process_spec& spec) { spec.env.push_back({"PRAGMA_TURN", std::to_string(turn_fd)}); }

void use_compiled(const std::filesystem::path& compiled, process_spec& spec, sandbox_options& sandbox) {
  const auto cache = compiled / "triton";
  std::error_code ignored;
  if (compiled.empty() || !std::filesystem::is_directory(std::filesystem::symlink_status(cache, ignored))) return;
  for (auto& [name, value] : spec.env)
    if (name == "TRITON_CACHE_DIR") value = cache.string();
  sandbox.writable.push_back(cache);
}

double module_seconds(const std::filesystem::path& files) {
  double bytes = 0;
  std::error_code failed;
  for (auto at = std::filesystem::recursive_directory_iterator(files, failed); !failed && at != std::filesystem::recursive_directory_iterator(); at.increment(failed))
    if (at->path().filename() == "kernel.py") bytes += static_cast<double>(std::filesystem::file_size(at->path(), failed));
  return defaults::module_seconds_a_mib * bytes / (1 << 20);
}

expected<process_result> run_in_turn(process_spec spec, const std::function<void(double)>& begin) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail(ec::io_error, std::string("cannot make a pipe: ") + std::strerror(errno));
  unique_fd theirs(ends[0]), ours(ends[1]); // a closed end is all that it is told: no other word comes that way
  spec.inherit_fds.push_back({theirs.fd, turn_fd});
  spec.on_stdout = [&, line = std::string()](std::string_view said) mutable {
    for (const char c : said) {
      if (ours.fd < 0) return;
      if (c != '\n') {
        if (line.size() < longest_line) line += c;
        continue;
      }
      const auto told = parse_json(std::exchange(line, {}), "a line of it");
      if (!told || !told->is_object() || !told->contains("begun") || !(*told)["begun"].is_number()) continue; // a module may print what it likes before
      if (begin) begin((*told)["begun"].get<double>());
      ours.reset();
    }
  };
  return run_process(spec);
}

} // namespace pragma
