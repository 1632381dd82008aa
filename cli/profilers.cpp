// pragma profiler add|list|show|remove: whose documentation the compendium is made from.
#include "cli/commands.hpp"
#include "cli/knowledge.hpp"

#include "base/files.hpp"
#include "base/text.hpp"
#include "profilers/by_manifest.hpp"

#include <algorithm>

namespace pragma::cli {

namespace {

struct add_settings {
  std::string name, manifest;
  std::vector<std::string> docs, allow, deny, hardware, backend;
  bool allow_private = false, prefer = false, json = false;
  double delay = -1;
};

int add_profiler(const add_settings& s) {
  terminal out(s.json);
  profiler_manifest m;
  if (!s.manifest.empty()) {
    auto text = read_file(s.manifest, 1u << 20);
    if (!text) return report(out, text.error());
    auto parsed = parse_manifest(*text, s.manifest, !s.docs.empty());
    if (!parsed) return report(out, parsed.error());
    m = std::move(*parsed);
  }
  m.name = s.name;
  if (m.title.empty()) m.title = s.name;
  m.origin = "user";
  for (const auto& address : s.docs) {
    const bool elsewhere = address.find("://") != std::string::npos || address.starts_with("man:");
    if (!elsewhere) {
      std::error_code problem;
      const auto path = std::filesystem::absolute(address, problem);
      if (!std::filesystem::exists(path, problem))
        return report(out, {ec::not_found, "no such file or folder: " + address, "give an http(s) address, a file or folder that exists, or man:NAME.SECTION"});
      m.docs.local.push_back(path.string());
    } else if (address.starts_with("man:")) {
      m.docs.local.push_back(address);
    } else {
      m.docs.roots.push_back(address);
    }
  }
  m.hardware.insert(m.hardware.end(), s.hardware.begin(), s.hardware.end());
  m.backend.insert(m.backend.end(), s.backend.begin(), s.backend.end());
  m.prefer = m.prefer || s.prefer;
  m.docs.allow.insert(m.docs.allow.end(), s.allow.begin(), s.allow.end());
  m.docs.deny.insert(m.docs.deny.end(), s.deny.begin(), s.deny.end());
  if (s.allow_private) m.docs.allow_private = true;
  if (s.delay >= 0) m.docs.delay_seconds = s.delay;
  if (auto good = check_manifest(m); !good) return report(out, good.error());
  if (!m.collect.is_null())
    if (auto good = parse_collect_manifest(m, s.manifest); !good) return report(out, good.error());
  auto store = knowledge_store::open(library_paths::usual().store, knowledge_store::mode::read_write);
  if (!store) return report(out, store.error());
  if (auto kept = store->put_manifest(m); !kept) return report(out, kept.error());
  out.result(m);
  out.line("registered " + m.name + "; sources of its documentation: " + std::to_string(m.docs.roots.size() + m.docs.local.size()));
  out.line("next: pragma kb build --profiler " + m.name + " --dry-run   (what would be read), then without --dry-run");
  return 0;
}

int list_profilers(bool json_output) {
  terminal out(json_output);
  auto all = all_manifests(library_paths::usual());
  if (!all) return report(out, all.error());
  out.result(*all);
  for (const auto& m : *all)
    out.line(m.name + std::string(m.name.size() < 18 ? 18 - m.name.size() : 1, ' ') + m.origin + std::string(m.origin.size() < 8 ? 8 - m.origin.size() : 1, ' ') + " " +
             join(m.backend, ",") + "  " + m.title + out.dim("  " + std::to_string(m.docs.roots.size()) + " address(es), " + std::to_string(m.docs.local.size()) + " local"));
  return 0;
}

expected<profiler_manifest> named(const std::string& name) {
  auto all = all_manifests(library_paths::usual());
  if (!all) return fail(all.error());
  std::vector<std::string> names;
  for (auto& m : *all) {
    if (m.name == name || std::find(m.aliases.begin(), m.aliases.end(), name) != m.aliases.end()) return std::move(m);
    names.push_back(m.name);
  }
  const auto near = nearest_names(name, names, 1);
  return fail(ec::not_found, "no profiler '" + printable(name) + "' is registered", near.empty() ? "known: " + join(names, ", ") : "did you mean " + near.front() + "?");
}

int show_profiler(const std::string& name, bool json_output) {
  terminal out(json_output);
  auto m = named(name);
  if (!m) return report(out, m.error());
  out.result(*m);
  out.line(out.bold(m->name) + "  " + m->title + "  (" + m->origin + ")");
  for (const auto& r : m->docs.roots) out.line("  docs       " + r);
  for (const auto& l : m->docs.local) out.line("  local      " + l);
  if (!m->hardware.empty()) out.line("  hardware   " + join(m->hardware, ", "));
  for (const auto& c : m->catalogue) out.line("  catalogue  " + join(c.argv, " ") + "  (" + c.format + ")");
  for (const auto& a : m->docs.allow) out.line("  allow      " + a);
  for (const auto& d : m->docs.deny) out.line("  deny       " + d);
  if (const auto collect = parse_collect_manifest(*m, m->name); collect) {
    const auto tool = manifest_status(*collect);
    out.line("  collect    " + tool.enables + "; here: " + (tool.found ? tool.version.empty() ? "installed" : "version " + tool.version : tool.problem));
    if (tool.found && !tool.problem.empty()) out.line("             but " + tool.problem);
  }
  return 0;
}

int remove_profiler(const std::string& name, bool json_output) {
  terminal out(json_output);
  auto m = named(name);
  if (!m) return report(out, m.error());
  auto store = knowledge_store::open(library_paths::usual().store, knowledge_store::mode::read_write);
  if (!store) return report(out, store.error());
  if (auto gone = store->remove_profiler(name); !gone) return report(out, gone.error());
  out.result({{"removed", name}, {"still_shipped", m->origin == "shipped"}});
  out.line("removed what was read of " + name + (m->origin == "shipped" ? " (it is shipped with pragma and stays listed)" : "") + "; `pragma kb build` takes it out of the compendium");
  return 0;
}

} // namespace

void add_profilers(CLI::App& app, action& chosen) {
  auto* group = app.add_subcommand("profiler", "profilers whose documentation the compendium is made from");
  group->require_subcommand(1);
  group->footer("Example:\n  pragma profiler add vtune --docs https://docs.example.com/vtune/");
  {
    auto s = std::make_shared<add_settings>();
    auto* command = group->add_subcommand("add", "register a profiler by the address of its documentation");
    command->add_option("name", s->name, "lower-case letters, digits, '-' and '_'")->required();
    command->add_option("--docs", s->docs, "address, file, folder or man:NAME.SECTION; may be repeated");
    command->add_option("--manifest", s->manifest, "file as in configs/profilers/, for what --docs does not say");
    command->add_option("--allow", s->allow, "only addresses like this (* matches anything); default: below each --docs");
    command->add_option("--deny", s->deny, "no address like this");
    command->add_flag("--allow-private", s->allow_private, "the addresses may be loopback or private ones");
    command->add_option("--hardware", s->hardware, "what all of it is about, e.g. \"Zen 3\"; default: what addresses and titles say");
    command->add_option("--backend", s->backend, "cpu, cuda, rocm, ascend: where its metrics are counted");
    command->add_flag("--prefer", s->prefer, "its entries go before those of the same name that are shipped");
    command->add_option("--delay", s->delay, "seconds between two requests to one host (default 0.5)")->check(CLI::Range(0.0, 3600.0));
    command->add_flag("--json", s->json, "print JSON");
    command->footer("Example:\n  pragma profiler add vg --docs http://127.0.0.1:8000/ --allow-private");
    command->callback([s, &chosen] { chosen = [s] { return add_profiler(*s); }; });
  }
  {
    auto s = std::make_shared<bool>(false);
    auto* command = group->add_subcommand("list", "all that are known");
    command->add_flag("--json", *s, "print JSON");
    command->footer("Example:\n  pragma profiler list");
    command->callback([s, &chosen] { chosen = [s] { return list_profilers(*s); }; });
  }
  for (const bool remove : {false, true}) {
    struct settings {
      std::string name;
      bool json = false;
    };
    auto s = std::make_shared<settings>();
    auto* command = remove ? group->add_subcommand("remove", "forget it and all that was read of it") : group->add_subcommand("show", "its documentation and rules");
    command->add_option("name", s->name, "the profiler")->required();
    command->add_flag("--json", s->json, "print JSON");
    command->footer(remove ? "Example:\n  pragma profiler remove vg" : "Example:\n  pragma profiler show perf");
    command->callback([s, remove, &chosen] { chosen = [s, remove] { return remove ? remove_profiler(s->name, s->json) : show_profiler(s->name, s->json); }; });
  }
}

} // namespace pragma::cli
