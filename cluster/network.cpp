#include "cluster/network.hpp"

#include <caf/io/all.hpp>
#include <caf/openssl/all.hpp>

#include <atomic>
#include <cstdio>
#include <cstring>

#include <sys/resource.h>
#include <unistd.h>

namespace pragma {

namespace {

std::atomic<bool> used = false;
constexpr rlim_t wanted_files = 65536; ///< a connection is a file
constexpr auto heartbeat_interval = std::chrono::seconds(1);
constexpr auto connection_timeout = std::chrono::seconds(4);

void raise_file_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const auto want = limit.rlim_max == RLIM_INFINITY ? wanted_files : std::min(wanted_files, limit.rlim_max);
  if (limit.rlim_cur >= want) return;
  limit.rlim_cur = want;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

struct configuration : caf::actor_system_config {
  configuration() {
    add_message_type<work_order>("pragma::work_order");
    add_message_type<work_answer>("pragma::work_answer");
    add_message_type<job_needs>("pragma::job_needs");
    add_message_type<node_hello>("pragma::node_hello");
    add_message_type<node_welcome>("pragma::node_welcome");
    add_message_type<heartbeat>("pragma::heartbeat");
    add_message_type<cluster_status>("pragma::cluster_status");
    add_message_type<run_order>("pragma::run_order");
    add_message_type<run_news>("pragma::run_news");
    add_message_type<text_slice>("pragma::text_slice");
    add_message_type<cluster_run>("pragma::cluster_run");
    add_message_type<std::vector<cluster_run>>("pragma::cluster_runs");
    add_message_type<node_actor>("pragma::node_actor");
    add_message_type<desk_actor>("pragma::desk_actor");
    add_message_type<cluster_actor>("pragma::cluster_actor");
  }
};

} // namespace

network::network(const network_options&) : config_(std::make_unique<configuration>()) {}

network::~network() {
  (void)system_.release();
  (void)config_.release();
}

expected<std::unique_ptr<network>> network::start(const network_options& options) {
  raise_file_limit();
  used = true;
  std::unique_ptr<network> net(new network(options));
  auto& config = *net->config_;
  if (options.tls) {
    const auto theirs = tls_files::in(*options.tls);
    auto facts = check_tls_files(theirs);
    if (!facts) return fail(facts.error());
    net->certificate_days_ = facts->days_left;
    net->tls_.emplace();
    for (const auto file : {&tls_files::ca, &tls_files::certificate, &tls_files::key}) {
      const auto text = read_file(theirs.*file);
      if (!text) return fail(text.error());
      auto copy = memory_file::create("pragma-tls", text->size());
      if (!copy) return fail(copy.error());
      std::memcpy(copy->data(), text->data(), text->size());
      (*net->tls_).*file = "/proc/self/fd/" + std::to_string(copy->fd());
      net->copies_.push_back(std::move(*copy));
    }
    config.openssl_cafile = net->tls_->ca.string();
    config.openssl_certificate = net->tls_->certificate.string();
    config.openssl_key = net->tls_->key.string();
    config.load<caf::io::middleman>();
    config.load<caf::openssl::manager>();
  } else {
    config.load<caf::io::middleman>();
  }
  config.set("scheduler.max-threads", options.threads);
  config.set("scheduler.policy", caf::atom("sharing"));
  config.set("middleman.app-identifiers", std::vector<std::string>{cluster_protocol});
  config.set("middleman.heartbeat-interval", caf::timespan(heartbeat_interval));
  config.set("middleman.connection-timeout", caf::timespan(connection_timeout));
  net->system_ = std::make_unique<caf::actor_system>(config);
  return net;
}

expected<void> network::may_use(const address& a, const char* doing) const {
  if (tls_ || a.loopback()) return {};
  return fail(ec::invalid_argument, std::string(doing) + " " + a.text() + " without TLS is refused: whoever reaches the port could run programs here",
              "`pragma cluster ca init DIR` and `pragma cluster ca issue NAME` make what --tls needs");
}

expected<uint16_t> network::publish(const cluster_actor& whom, const address& listen) {
  if (auto good = may_use(listen, "listening on"); !good) return fail(good.error());
  const auto host = listen.host == "localhost" ? std::string("127.0.0.1") : listen.host;
  auto port = tls_ ? caf::openssl::publish(whom, listen.port, host.c_str(), true) : system_->middleman().publish(whom, listen.port, host.c_str(), true);
  if (!port) return fail(ec::io_error, "cannot listen on " + listen.text() + ": " + system_->render(port.error()), "is another head running there? choose another with --listen ADDR:PORT");
  return *port;
}

expected<cluster_actor> network::dial(const address& head, double seconds) {
  if (auto good = may_use(head, "dialling"); !good) return fail(good.error());
  const auto there = probe(head, tls_, seconds); // open until the end of this function
  if (!there) return fail(there.error());
  const auto host = head.host == "localhost" ? std::string("127.0.0.1") : head.host;
  caf::scoped_actor self{*system_};
  auto dialler = tls_ ? system_->openssl_manager().actor_handle() : system_->middleman().actor_handle();
  expected<cluster_actor> result = fail(ec::timeout, head.text() + " did not finish its greeting");
  self->request(dialler, std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000)), caf::connect_atom::value, host, head.port)
      .receive(
          [&](const caf::node_id&, caf::strong_actor_ptr& whom, const std::set<std::string>& interface) {
            if (!whom) result = fail(ec::remote_failed, "nobody is published at " + head.text());
            else if (!system_->assignable(interface, system_->message_types(caf::detail::type_list<cluster_actor>{})))
              result = fail(ec::remote_failed, "what listens on " + head.text() + " is no head of this version", "install the same version on all members");
            else result = caf::actor_cast<cluster_actor>(std::move(whom));
          },
          [&](const caf::error& e) { result = fail(ec::remote_failed, "cannot dial " + head.text() + ": " + system_->render(e)); });
  return result;
}

bool network_was_used() { return used; }

void leave_process(int code) {
  std::fflush(nullptr);
  ::_exit(code);
}

} // namespace pragma
