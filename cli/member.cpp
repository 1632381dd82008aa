#include "cli/member.hpp"

#include "base/files.hpp"

#include <cstdlib>

namespace pragma::cli {

namespace {

constexpr uint16_t usual_port = 7447;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

struct cluster_settings {
  std::string head, tls;
};

expected<cluster_settings> read_cluster_settings() {
  cluster_settings settings;
  const auto file = data_home() / "cluster.json";
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return settings;
  auto text = read_file(file);
  if (!text) return fail(text.error());
  auto kept = parse_settings(*text, file.string(), json{{"head", ""}, {"tls", ""}});
  if (!kept) return fail(kept.error());
  settings.head = kept->value("head", "");
  settings.tls = kept->value("tls", "");
  if (!settings.tls.empty()) settings.tls = (file.parent_path() / settings.tls).string(); // an absolute path stays as it is
  return settings;
}

} // namespace

void head_choice::add_to(CLI::App& command) {
  command.add_option("--head", head, "HOST:PORT of a head (several with commas: whichever serves): work through its cluster (default: PRAGMA_HEAD, or configs/cluster.json.example)");
  command.add_option("--tls", tls, "folder with this member's ca.pem, cert.pem, key.pem (`pragma cluster ca issue`)");
  command.add_flag("--local", local, "work in this process even where a head is configured");
}

expected<std::vector<address>> head_choice::chosen() const {
  if (local) return std::vector<address>{};
  auto text = !head.empty() ? head : environment("PRAGMA_HEAD");
  if (text.empty()) {
    auto settings = read_cluster_settings();
    if (!settings) return fail(settings.error());
    text = settings->head;
  }
  if (text.empty()) return std::vector<address>{};
  return parse_addresses(text, usual_port);
}

expected<std::optional<std::filesystem::path>> head_choice::certificates() const {
  auto folder = !tls.empty() ? tls : environment("PRAGMA_TLS");
  if (folder.empty()) {
    auto settings = read_cluster_settings();
    if (!settings) return fail(settings.error());
    folder = settings->tls;
  }
  if (folder.empty()) return std::optional<std::filesystem::path>{};
  return std::optional<std::filesystem::path>(folder);
}

expected<std::unique_ptr<head_client>> head_choice::connect() const {
  auto where = chosen();
  if (!where) return fail(where.error());
  if (where->empty()) return std::unique_ptr<head_client>{};
  auto files = certificates();
  if (!files) return fail(files.error());
  return head_client::connect(*where, *files);
}

} // namespace pragma::cli
