#include "drop_in/drop_in.hpp"

#include "base/files.hpp"
#include "base/subprocess.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cctype>

namespace pragma {

namespace fs = std::filesystem;

expected<std::vector<std::string>> export_drop_in(const std::string& kind, const fs::path& folder, const fs::path& out, const std::string& name,
                                                  const std::string& python) {
  const bool plain = !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) &&
                     std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
  if (!plain) return fail(ec::invalid_argument, "'" + printable(name) + "' is no name of a package", "letters, digits and underscores");
  auto files = drop_in_files(folder);
  if (files.empty() || files.front() != "model_new.py")
    return fail(ec::not_found, "there is no model_new.py in " + folder.string(), "name the folder that `pragma optimize` wrote (pragma-out/TASK)");
  process_spec spec;
  spec.argv = {python, "-B", (share_dir() / "python" / "export_drop_in.py").string(), kind, folder.string(), out.string(), name};
  spec.argv.insert(spec.argv.end(), files.begin(), files.end());
  spec.limits.wall_seconds = 60;
  auto ran = run_process(spec);
  if (!ran) return fail(ran.error());
  const auto reply = parse_json(ran->out, "the export");
  if (!ran->ok() || !reply) return fail(ec::tool_failed, "the export ended without a result (" + describe_end(*ran, 60) + "): " + cut_lines(printable(ran->err), 2, 6, 1000));
  if (reply->contains("error")) return fail(ec::unsupported, (*reply)["error"].get<std::string>());
  return (*reply)["files"].get<std::vector<std::string>>();
}

} // namespace pragma
