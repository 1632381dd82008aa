// pragma cluster ca: the cluster's own certificates.
#include "cli/commands.hpp"
#include "cli/member.hpp"
#include "cli/terminal.hpp"

#include "cluster/certificates.hpp"
#include "web/listener.hpp"

#include <memory>

namespace pragma::cli {

namespace {

int certificate(bool json_output, const expected<certificate_facts>& made, const std::string& what) {
  terminal out(json_output);
  if (!made) return report(out, made.error());
  out.result(*made);
  out.line(what + "  (valid until " + made->not_after + ")");
  return 0;
}

void add_init(CLI::App& ca, action& chosen) {
  struct settings {
    std::string folder, name = "pragma";
    bool json = false;
  };
  auto s = std::make_shared<settings>();
  auto* command = ca.add_subcommand("init", "make a certificate authority in a folder");
  command->add_option("dir", s->folder, "folder; its ca-key.pem must stay secret")->required();
  command->add_option("--name", s->name, "the cluster's name")->capture_default_str();
  command->add_flag("--json", s->json, "print JSON");
  command->footer("Example:\n  pragma cluster ca init ~/ca\n  pragma cluster ca issue head --role head --dir ~/ca");
  command->callback([s, &chosen] {
    chosen = [s] { return certificate(s->json, create_ca(s->folder, s->name), "made " + s->folder + "/ca.pem and, for you alone, ca-key.pem"); };
  });
}

void add_issue(CLI::App& ca, action& chosen) {
  struct settings {
    std::string name, what, folder = ".";
    std::vector<std::string> hosts;
    int days = 825;
    bool json = false;
  };
  auto s = std::make_shared<settings>();
  auto* command = ca.add_subcommand("issue", "make a member's key and certificate: a folder for its --tls");
  command->add_option("name", s->name, "the member's name")->required();
  command->add_option("--role", s->what, "what it may do: head, node, user (sees and ends runs of its own) or admin (all runs)")->required()->check(CLI::IsMember({"head", "node", "user", "admin"}));
  command->add_option("--dir", s->folder, "the authority's folder")->capture_default_str();
  command->add_option("--host", s->hosts, "name or IP address that a browser will call it by, for a certificate that serves `pragma dashboard`; may be given several times");
  command->add_option("--days", s->days, "validity")->capture_default_str()->check(CLI::Range(1, 3650));
  command->add_flag("--json", s->json, "print JSON");
  command->footer("Example:\n  pragma cluster ca issue gpu1 --role node --dir ~/ca && scp -r ~/ca/gpu1 gpu1:pragma-tls");
  command->callback([s, &chosen] {
    chosen = [s] { return certificate(s->json, issue_certificate(s->folder, s->name, role_named(s->what), s->days, 0, s->hosts), "made " + s->folder + "/" + s->name + " (" + s->what + "): copy it to that machine, over a safe way"); };
  });
}

void add_browser(CLI::App& ca, action& chosen) {
  struct settings {
    std::string name, folder = ".";
    bool json = false;
  };
  auto s = std::make_shared<settings>();
  auto* command = ca.add_subcommand("browser", "put a member's key and certificate into a file that browsers import (PKCS#12)");
  command->add_option("name", s->name, "the member's name: a user's or an admin's")->required();
  command->add_option("--dir", s->folder, "the authority's folder")->capture_default_str();
  command->add_flag("--json", s->json, "print JSON");
  command->footer("Example:\n  pragma cluster ca browser me --dir ~/ca\nImport the file where the browser keeps \"your certificates\", and ca.pem under \"authorities\", to be trusted for web sites.");
  command->callback([s, &chosen] {
    chosen = [s] {
      terminal out(s->json);
      const auto password = web::new_secret();
      auto file = write_for_browser(s->folder, s->name, password);
      if (!file) return report(out, file.error());
      out.result(json{{"file", file->string()}, {"password", password}, {"authority", (std::filesystem::path(s->folder) / "ca.pem").string()}});
      out.line("made " + file->string() + ", for " + s->name + " alone: import it in the browser as a certificate of your own");
      out.line("password " + password + "  (shown once; the file is of no use without it)");
      out.line("import " + s->folder + "/ca.pem as an authority that is trusted for web sites, so that the browser knows the page");
      return 0;
    };
  });
}

void add_revoke(CLI::App& ca, action& chosen) {
  struct settings {
    std::string name, folder = ".";
    bool json = false;
  };
  auto s = std::make_shared<settings>();
  auto* command = ca.add_subcommand("revoke", "put a member's certificate on the list of those that count no more");
  command->add_option("name", s->name, "the member's name")->required();
  command->add_option("--dir", s->folder, "the authority's folder")->capture_default_str();
  command->add_flag("--json", s->json, "print JSON");
  command->footer("Example:\n  pragma cluster ca revoke gpu1 --dir ~/ca && scp ~/ca/crl.pem head:pragma-tls/\nThe head reads its folder anew within seconds, and ends the member's connections.");
  command->callback([s, &chosen] {
    chosen = [s] {
      terminal out(s->json);
      auto revoked = revoke_certificate(s->folder, s->name);
      if (!revoked) return report(out, revoked.error());
      out.result(*revoked);
      out.line("the certificate of " + s->name + " counts no more, once you have copied " + s->folder + "/crl.pem into the --tls folder of the head");
      return 0;
    };
  });
}

} // namespace

void add_ca(CLI::App& cluster, action& chosen) {
  auto* ca = cluster.add_subcommand("ca", "the cluster's own certificates, for mutual TLS");
  ca->require_subcommand(1);
  ca->footer("Example:\n  pragma cluster ca init ~/ca\n  pragma cluster ca issue gpu1 --role node --dir ~/ca");
  add_init(*ca, chosen);
  add_issue(*ca, chosen);
  add_browser(*ca, chosen);
  add_revoke(*ca, chosen);
}

} // namespace pragma::cli
