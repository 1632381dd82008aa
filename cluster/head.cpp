#include "cluster/head.hpp"

#include "base/text.hpp"
#include "cluster/desk.hpp"
#include "cluster/network.hpp"
#include "cluster/placement.hpp"

#include <algorithm>
#include <thread>

namespace pragma {

expected<void> serve_head(const head_options& options, const std::atomic<bool>& stop, const std::function<void(const std::string&)>& say,
                          double grace_seconds) {
  using clock = std::chrono::steady_clock;
  std::error_code problem;
  const auto transcripts = options.tasks.parent_path() / "transcripts";
  for (const auto& folder : {options.runs, options.tasks, transcripts}) {
    std::filesystem::create_directories(folder, problem);
    if (problem) return fail(ec::io_error, "cannot make " + folder.string() + ": " + problem.message(), "set PRAGMA_HOME to a folder that can be written");
  }
  auto store = run_store::open(options.runs, run_store::mode::read_write);
  if (!store) return fail(store.error());
  auto net = network::start({options.tls, 4});
  if (!net) return fail(net.error());
  auto& system = (*net)->system();
  std::atomic<bool> cancel = false;
  const auto cluster = std::make_shared<cluster_actor>();
  desk_options desk;
  desk.store = std::make_shared<run_store>(std::move(*store));
  desk.tasks = std::filesystem::absolute(options.tasks);
  desk.transcripts = std::filesystem::absolute(transcripts);
  desk.cancel = &cancel;
  const auto users = spawn_desk(system, std::move(desk), cluster);
  placement_options placing;
  placing.listen = options.listen.text();
  placing.certificate_days = (*net)->certificate_days();
  *cluster = spawn_placement(system, placing, users);
  auto port = (*net)->publish(*cluster, options.listen);
  if (!port) {
    caf::anon_send_exit(*cluster, caf::exit_reason::user_shutdown);
    caf::anon_send_exit(users, caf::exit_reason::user_shutdown);
    *cluster = nullptr;
    return fail(port.error());
  }
  caf::anon_send(users, recover_atom::value);
  const auto where = address{options.listen.host, *port}.text();
  say("listening on " + where + (options.tls ? " (mutual TLS, certificate valid for " + std::to_string((*net)->certificate_days()) + " days)" : " (no TLS: this machine only)"));
  if (!options.ready_file.empty())
    if (auto told = write_file_atomic(options.ready_file, std::to_string(*port) + "\n"); !told) say(told.error().message);
  while (!stop) std::this_thread::sleep_for(std::chrono::milliseconds(50));

  // Runs end after what is in flight, as interrupted; those that take longer stay "running" in the store and go on at the next start.
  caf::scoped_actor self{system};
  self->send(users, halt_atom::value);
  const auto end = clock::now() + std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(grace_seconds));
  for (bool told = false;;) {
    size_t open = 0;
    self->request(users, std::chrono::seconds(5), list_atom::value)
        .receive([&](const std::vector<cluster_run>& runs) { open = static_cast<size_t>(std::count_if(runs.begin(), runs.end(), [](const auto& r) { return r.state == "running"; })); },
                 [&](const caf::error&) {});
    if (open == 0 || clock::now() > end) break;
    if (!told) say("waiting for what " + std::to_string(open) + " runs have in flight, " + format_number(grace_seconds, 3) + " s at most");
    told = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  cancel = true;
  caf::anon_send_exit(*cluster, caf::exit_reason::user_shutdown);
  caf::anon_send_exit(users, caf::exit_reason::user_shutdown);
  *cluster = nullptr;
  std::this_thread::sleep_for(std::chrono::milliseconds(200)); // the store's agent closes it
  return {};
}

} // namespace pragma
