// Which request comes next: robots.txt before a host's pages, sitemaps of the roots' hosts, the pace of each host, retries.
#include "crawler/crawl_run.hpp"

#include "base/text.hpp"
#include "crawler/sitemap.hpp"

#include <algorithm>
#include <cmath>

namespace pragma {

namespace {

constexpr int max_tries = 3;                    ///< of one page, robots.txt or sitemap
constexpr double max_wait_seconds = 120;        ///< a server that asks for more (Retry-After) is not waited for
constexpr int max_lost = 5;                     ///< requests without a connection, one after the other, before a host is given up
constexpr int max_sitemaps = 50;                ///< of one host
constexpr int max_sitemap_level = 2;            ///< index files above each other
constexpr int max_excluded_per_sitemap = 200;   ///< records of pages out of scope; the others are only counted
constexpr size_t max_robots_bytes = 512 << 10;

} // namespace

crawl_run::origin& crawl_run::origin_of(const page_url& url) {
  const auto name = url.origin();
  auto& host = origins_[name];
  host.name = name;
  return host;
}

/// Starts one request, or settles a page that needs none; false: nothing may be started now.
bool crawl_run::start_next() {
  if (store_problem_ || static_cast<int>(jobs_.size()) >= options_.connections) return false;
  const auto now = clock::now();
  origin* best = nullptr;
  for (auto& [name, host] : origins_) {
    if (!host.dead.empty()) {
      fail_all(host);
      continue;
    }
    while (!host.queue.empty()) { // asked meanwhile, or waits in another place
      const auto& first = *host.queue.begin();
      if (!first.node->done && !first.node->started && first.depth == first.node->record.depth) break;
      host.queue.erase(host.queue.begin());
    }
    if (host.active >= options_.per_host || now < host.next || host.robots == origin::robots_state::asked) continue;
    if (host.robots == origin::robots_state::unknown) {
      if (!host.sitemaps_wanted && (host.queue.empty() || !page_budget_left())) continue;
      if (source_.robots) {
        job j;
        j.kind = job_kind::robots;
        j.host = &host;
        auto url = parse_url(name + "/robots.txt");
        if (!url) {
          host.dead = url.error().message;
          continue;
        }
        j.url = *url;
        host.robots = origin::robots_state::asked;
        return start_job(std::move(j));
      }
      rules_known(host);
    }
    if (!host.sitemaps.empty()) {
      job j;
      j.kind = job_kind::sitemap;
      j.host = &host;
      j.task = host.sitemaps.front();
      j.url = j.task.url;
      host.sitemaps.pop_front();
      return start_job(std::move(j));
    }
    if (plan_only_ || host.queue.empty() || !page_budget_left()) continue;
    if (!best || *host.queue.begin() < *best->queue.begin()) best = &host;
  }
  if (!best) return false;
  auto& node = *best->queue.begin()->node;
  best->queue.erase(best->queue.begin());
  if (settle_without_asking(node, *best)) return true;
  job j;
  j.host = best;
  j.node = &node;
  auto url = parse_url(node.record.url);
  if (!url) {
    finish(node, page_state::failed, url.error().message);
    return true;
  }
  j.url = *url;
  node.started = true;
  ++asked_;
  return start_job(std::move(j));
}

bool crawl_run::start_job(job j) {
  auto& host = *j.host;
  transfer t;
  t.id = ++next_job_;
  t.url = j.url.text();
  t.allow_private = source_.allow_private && scope_->names_host(j.url);
  if (j.kind == job_kind::robots) {
    t.max_bytes = max_robots_bytes;
    t.first_part = true;
  } else if (j.kind == job_kind::sitemap) {
    t.max_bytes = max_sitemap_bytes;
  } else {
    t.max_bytes = source_.max_page_bytes;
    t.documents_only = true;
    const auto& r = j.node->record;
    j.conditional = !reread_ && !r.content_hash.empty() && (!r.etag.empty() || !r.last_modified.empty());
    if (j.conditional) {
      t.etag = r.etag;
      t.last_modified = r.last_modified;
    }
  }
  const double delay = std::max(source_.delay_seconds, host.rules.crawl_delay());
  host.next = std::max(host.next, clock::now() + std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(delay)));
  const auto id = t.id;
  if (auto started = fetcher_->start(std::move(t)); !started) {
    if (j.kind == job_kind::page)
      finish(*j.node, page_state::failed, started.error().message);
    else if (j.kind == job_kind::robots)
      host.dead = started.error().message;
    return true;
  }
  ++host.active;
  jobs_.emplace(id, std::move(j));
  return true;
}

void crawl_run::release_waiting() {
  const auto now = clock::now();
  std::vector<std::pair<clock::time_point, job>> later;
  while (!waiting_.empty() && waiting_.begin()->first <= now) {
    auto when = waiting_.begin()->first;
    job j = std::move(waiting_.begin()->second);
    waiting_.erase(waiting_.begin());
    auto& host = *j.host;
    if (!host.dead.empty()) {
      if (j.kind == job_kind::page) finish(*j.node, page_state::failed, host.dead);
    } else if (static_cast<int>(jobs_.size()) >= options_.connections || host.active >= options_.per_host || now < host.next) {
      later.emplace_back(std::max(when, host.next), std::move(j));
    } else {
      start_job(std::move(j));
    }
  }
  for (auto& [when, j] : later) waiting_.emplace(when, std::move(j));
}

void crawl_run::answered(const transfer_result& result) {
  const auto found = jobs_.find(result.id);
  if (found == jobs_.end() || store_problem_) return;
  job j = std::move(found->second);
  jobs_.erase(found);
  --j.host->active;
  bytes_ += result.response.body.size();
  if (result.end == transfer_end::unreachable)
    ++j.host->lost;
  else
    j.host->lost = 0;
  switch (j.kind) {
  case job_kind::robots: return robots_answered(j, result);
  case job_kind::sitemap: return sitemap_answered(j, result);
  case job_kind::page: return page_answered(j, result);
  }
}

/// True when it will be asked again. Else `reason` says why not.
bool crawl_run::retry_later(job& j, const page_outcome& outcome, std::string* reason) {
  *reason = outcome.reason;
  if (j.host->lost >= max_lost && j.host->dead.empty()) j.host->dead = outcome.reason + "; given up after " + std::to_string(max_lost) + " requests";
  if (!j.host->dead.empty()) return false;
  if (j.tries + 1 >= max_tries) {
    *reason += "; asked " + std::to_string(max_tries) + " times";
    return false;
  }
  if (outcome.wait_seconds > max_wait_seconds) {
    *reason += "; the server asks to wait " + format_seconds(outcome.wait_seconds);
    return false;
  }
  const double jitter = std::uniform_real_distribution<double>(0.5, 1.5)(random_);
  const double wait = outcome.wait_seconds > 0 ? outcome.wait_seconds : parts_.retry_seconds * std::exp2(j.tries) * jitter;
  const auto when = clock::now() + std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(wait));
  if (outcome.wait_seconds > 0) j.host->next = std::max(j.host->next, when); // it is the host that is busy
  ++j.tries;
  waiting_.emplace(when, std::move(j));
  return true;
}

void crawl_run::robots_answered(job& j, const transfer_result& result) {
  using kind = page_outcome::kind;
  auto& host = *j.host;
  const auto outcome = judge(result, false);
  if (outcome.what == kind::redirect && j.hops < max_redirects) {
    auto target = resolve_url(j.url, outcome.target);
    if (target && target->web()) {
      j.url = *target;
      ++j.hops;
      start_job(std::move(j));
      return;
    }
  }
  if (outcome.what == kind::retry) {
    std::string reason;
    if (retry_later(j, outcome, &reason)) return;
    if (result.end != transfer_end::answered && host.dead.empty()) host.dead = "robots.txt could not be read: " + reason;
  } else if (result.end != transfer_end::answered && j.hops == 0) {
    // Refused address: the pages' own. After a redirect there is simply no robots.txt here.
    host.dead = result.end == transfer_end::refused_address ? outcome.reason : "robots.txt could not be read: " + outcome.reason;
  }
  if (result.end == transfer_end::answered) host.rules = robots_rules::of_status(result.response.status, result.response.body);
  rules_known(host);
}

void crawl_run::rules_known(origin& host) {
  host.robots = origin::robots_state::known;
  if (!host.sitemaps_wanted) return;
  host.sitemaps_wanted = false;
  if (!host.dead.empty() || !host.rules.unavailable().empty()) return;
  for (const auto& text : host.rules.sitemaps()) sitemap_named(host, text, host.name + "/robots.txt", true, 0);
  if (host.rules.sitemaps().empty()) sitemap_named(host, host.name + "/sitemap.xml", "", false, 0);
}

void crawl_run::sitemap_named(origin& host, const std::string& text, const std::string& from, bool declared, int level) {
  auto url = parse_url(text);
  if (!url) return;
  auto home = parse_url(host.name);
  if (!url->web()) {
    frontier_->exclude(*url, 1, from, "a server may not name a local file as its sitemap");
  } else if (!home || url->host != home->host) {
    frontier_->exclude(*url, 1, from, "a sitemap of another host");
  } else if (host.sitemaps_seen >= max_sitemaps || level > max_sitemap_level) {
    frontier_->exclude(*url, 1, from, "more than " + std::to_string(max_sitemaps) + " sitemaps, or indexes " + std::to_string(max_sitemap_level) + " deep");
  } else {
    ++host.sitemaps_seen;
    sitemap_task task;
    task.url = *url;
    task.declared = declared;
    task.level = level;
    host.sitemaps.push_back(std::move(task));
  }
}

void crawl_run::sitemap_answered(job& j, const transfer_result& result) {
  using kind = page_outcome::kind;
  auto& host = *j.host;
  const auto outcome = judge(result, false);
  const auto name = j.url.text();
  std::string trouble = outcome.reason;
  if (outcome.what == kind::redirect) {
    auto target = resolve_url(j.url, outcome.target);
    if (target && target->web() && target->host == j.url.host && j.task.hops < max_redirects) {
      auto task = j.task;
      task.url = *target;
      ++task.hops;
      host.sitemaps.push_front(std::move(task));
      return;
    }
    trouble = "redirects to another host, or too often";
  } else if (outcome.what == kind::retry) {
    if (retry_later(j, outcome, &trouble)) return;
    uncertain_sites_.emplace(j.url.host, "sitemap " + name + ": " + trouble); // what it named last time may still be there
  } else if (outcome.what == kind::page) {
    auto map = parse_sitemap(result.response.body);
    if (map) {
      int left_out = 0;
      for (const auto& entry : map->entries) {
        if (map->index) {
          sitemap_named(host, entry.url, name, true, j.task.level + 1);
          continue;
        }
        auto url = parse_url(entry.url);
        if (!url) continue;
        if (!url->web()) {
          frontier_->exclude(*url, 1, name, "a sitemap may not name local files");
          continue;
        }
        auto* node = frontier_->reach(*url, 1, name, left_out < max_excluded_per_sitemap);
        if (!node) continue;
        if (!node->in_scope) ++left_out;
        node->modified = entry.modified;
      }
      if (map->truncated) notes_.push_back("sitemap " + name + " was read only in part");
      commit_changed();
      return;
    }
    trouble = map.error().message;
  }
  if (j.task.declared) { // a guessed sitemap.xml that is not there is no news
    auto* node = frontier_->exclude(j.url, 1, host.name + "/robots.txt", "sitemap: " + trouble);
    if (node && !node->in_scope) node->record.state = page_state::failed;
  }
  commit_changed();
}

void crawl_run::fail_all(origin& host) {
  auto queue = std::move(host.queue);
  host.queue.clear();
  host.sitemaps.clear();
  for (const auto& entry : queue)
    if (!entry.node->done && !entry.node->started) finish(*entry.node, page_state::failed, host.dead);
}

} // namespace pragma
