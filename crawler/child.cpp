#include "crawler/child.hpp"

#include "base/subprocess.hpp"
#include "base/text.hpp"
#include "crawler/parsers.hpp"

namespace pragma::crawler {

expected<std::string> run_reader(const std::vector<std::string>& argv, std::string_view input, const std::filesystem::path& cwd,
                                 std::string_view what, std::string_view package, bool partial) {
  process_spec spec;
  spec.argv = argv;
  spec.argv[0] = find_program(argv[0]);
  const std::string page(what);
  if (spec.argv[0].empty())
    return fail(ec::unsupported, page + ": reading it needs " + argv[0] + ", which is not installed",
                "install the package " + std::string(package) + " (apt install " + std::string(package) + ")");
  spec.clear_env = true;
  spec.env = {{"PATH", "/usr/bin:/bin"}, {"LC_ALL", "C.UTF-8"}, {"HOME", "/nonexistent"}};
  spec.cwd = cwd.string();
  spec.stdin_data = input;
  spec.max_output = limits::child_output_bytes;
  spec.limits.wall_seconds = limits::child_seconds;
  spec.limits.cpu_seconds = static_cast<uint64_t>(limits::child_seconds);
  spec.limits.memory_bytes = limits::child_memory_bytes;
  spec.limits.file_bytes = 1; // it has nothing to write but its output, which is a pipe
  spec.limits.open_files = 64;
  auto run = run_process(spec);
  if (!run) return fail(run.error());
  if (run->timed_out)
    return fail(ec::timeout, page + ": " + argv[0] + " took longer than " + format_seconds(limits::child_seconds),
                "leave the page out with a deny pattern");
  if (run->output_truncated && run->out.size() >= limits::child_output_bytes)
    return fail(ec::limit_exceeded,
                page + ": " + argv[0] + " makes more than " + format_bytes(static_cast<double>(limits::child_output_bytes)) +
                    " of it",
                "leave the page out with a deny pattern");
  if (!run->ok() && !(partial && !trim(run->out).empty())) {
    const auto words = trim(cut_lines(printable(run->err), 3, 0, 400));
    return fail(ec::tool_failed,
                page + ": " + argv[0] + " failed (" + describe_end(*run, limits::child_seconds) + ")" +
                    (words.empty() ? "" : ": " + words),
                "try it by hand on this page");
  }
  return std::move(run->out);
}

} // namespace pragma::crawler
