#include "crawler/crawl_run.hpp"

#include "base/hash.hpp"
#include "base/text.hpp"
#include "base/utc.hpp"
#include "crawler/local.hpp"

#include <algorithm>
#include <filesystem>

namespace pragma {

namespace {

constexpr int parser_version = 1;          ///< raise it when the same bytes give other segments or links: pages are then read again
constexpr size_t max_folder_files = 100'000;
constexpr double cancel_seconds = 0.05;    ///< how soon options.cancel is noticed
constexpr double longest_wait_seconds = 1;

std::string name_without_gz(const page_url& url) {
  return url.path.ends_with(".gz") ? "file://" + url.path.substr(0, url.path.size() - 3) : url.text();
}

} // namespace

crawl_run::crawl_run(const doc_source& source, crawl_store& store, const crawl_options& options, const crawl_parts& parts)
    : source_(source), store_(store), options_(options), parts_(parts) {}

double crawl_run::elapsed() const { return std::chrono::duration<double>(clock::now() - start_).count(); }

// -- the beginning -------------------------------------------------------------------------------------------------

expected<void> crawl_run::read_state(bool plan_only) {
  // Roots that are folders now and were files before, or the other way round, change the scope too: rules() has that.
  std::string settings = "parser " + std::to_string(parser_version);
  for (const auto& rule : scope_->rules()) settings += "\n" + rule;
  for (const auto& root : scope_->roots()) settings += "\nroot " + root.text();
  fingerprint_ = short_hash(settings);

  auto state = store_.crawl_state(source_.profiler);
  if (!state) return fail(state.error());
  int64_t last = 0;
  bool complete = true, same = true;
  std::string ended;
  if (state->is_object()) {
    try {
      last = state->value("generation", int64_t{0});
      complete = state->value("complete", true);
      same = state->value("scope", fingerprint_) == fingerprint_;
      ended = state->value("ended", std::string());
      if (ended == "pages" && source_.max_pages > state->value("max_pages", int64_t{0})) ended.clear();
      if (ended == "bytes" && source_.max_bytes > state->value("max_bytes", uint64_t{0})) ended.clear();
      reread_ = !complete && state->value("reread", false);
    } catch (const json::exception& e) {
      return fail(ec::parse_error, "the crawl state of '" + printable(source_.profiler) + "' is damaged: " + e.what(),
                  "remove the profiler and add it again");
    }
  }
  resumed_ = !complete && same && ended != "pages" && ended != "bytes";
  generation_ = resumed_ ? last : last + 1;
  reread_ = !same || (resumed_ && reread_);
  if (plan_only) return {};
  return save_state(false);
}

expected<void> crawl_run::save_state(bool complete) {
  const json state = {{"generation", generation_},   {"complete", complete},           {"scope", fingerprint_},
                      {"ended", ended_by_},          {"max_pages", source_.max_pages}, {"max_bytes", source_.max_bytes},
                      {"reread", reread_},           {"time", utc_now()}};
  return store_.put_crawl_state(source_.profiler, state);
}

expected<void> crawl_run::begin(bool plan_only) {
  plan_only_ = plan_only;
  auto scope = crawl_scope::from(source_);
  if (!scope) return fail(scope.error());
  scope_ = std::move(*scope);
  if (source_.max_pages < 1 || source_.max_depth < 0 || source_.max_page_bytes < 1 || !(source_.max_seconds > 0) || !(source_.delay_seconds >= 0) ||
      options_.connections < 1 || options_.per_host < 1)
    return fail(ec::invalid_argument, "a limit of source '" + printable(source_.profiler) + "' is zero, negative or not a number",
                "max_pages, max_page_bytes, max_seconds, connections and per_host begin at 1, max_depth and delay_seconds at 0");

  auto pages = store_.pages(source_.profiler);
  if (!pages) return fail(pages.error());
  if (auto read = read_state(plan_only); !read) return fail(read.error());
  frontier_.emplace(*scope_, source_, generation_);
  frontier_->load(std::move(*pages));
  for (auto* node : frontier_->all()) {
    if (!node->reached || !node->done) continue;
    if (node->record.state != page_state::excluded) ++asked_;
    if (node->record.state == page_state::fetched) bytes_ += node->record.bytes;
    if (node->record.content_hash.empty() || node->record.state == page_state::failed) continue;
    if (auto* twin = better_twin(*node, node->record.content_hash))
      lose_content(*node, *twin);
    else
      claim_content(*node);
  }

  fetch_options fetching;
  fetching.user_agent = options_.user_agent.empty() ? "pragma/0.1 (+documentation indexer)" : options_.user_agent;
  fetching.connect_seconds = parts_.connect_seconds;
  fetching.transfer_seconds = std::min(parts_.transfer_seconds, source_.max_seconds);
  fetching.connections = static_cast<size_t>(options_.connections);
  fetching.special = parts_.special;
  fetching.resolve = parts_.resolve;
  auto made = fetcher::create(std::move(fetching));
  if (!made) return fail(made.error());
  fetcher_.emplace(std::move(*made));
  seed();
  commit_changed();
  if (store_problem_) return fail(*store_problem_);
  return {};
}

void crawl_run::seed() {
  for (const auto& root : scope_->roots()) {
    if (root.scheme == "file") {
      auto path = file_path(root);
      std::error_code ignored;
      if (path && std::filesystem::is_directory(*path, ignored)) {
        seed_folder(root, *path);
        continue;
      }
    }
    frontier_->reach(root, 0, "");
    if (root.web() && !options_.offline) origin_of(root).sitemaps_wanted = true;
  }
}

void crawl_run::seed_folder(const page_url& root, const std::string& path) {
  const auto listing = list_folder(path, max_folder_files);
  if (!listing.problem.empty()) seed_trouble_ = root.text() + " " + printable(listing.problem);
  if (listing.truncated) seed_trouble_ = root.text() + " has more than " + std::to_string(max_folder_files) + " files";
  for (const auto& file : listing.files) {
    if (parts_.format(name_without_gz(file), "", "") == page_format::unknown) {
      const auto dot = file.path.rfind('.');
      const auto slash = file.path.rfind('/');
      frontier_->exclude(file, 0, root.text(),
                         "no parser for this kind of file" + (dot > slash && dot != std::string::npos ? " (" + file.path.substr(dot) + ")" : ""));
    } else {
      frontier_->reach(file, 0, root.text());
    }
  }
}

// -- the loop ------------------------------------------------------------------------------------------------------

void crawl_run::place_queued() {
  for (auto* node : frontier_->take_queued()) {
    if (node->done || node->started) continue;
    auto url = parse_url(node->record.url);
    if (!url) { // a record that another version wrote
      finish(*node, page_state::failed, url.error().message);
      continue;
    }
    if (url->web() && options_.offline) {
      finish(*node, page_state::failed, "not asked: offline");
      continue;
    }
    (url->web() ? origin_of(*url).queue : local_).insert({node->record.depth, node->order, node});
  }
}

bool crawl_run::page_budget_left() const { return asked_ < source_.max_pages && bytes_ < source_.max_bytes; }

/// One local page, so that transfers are looked after in between.
bool crawl_run::work_local() {
  while (!local_.empty() && page_budget_left() && !plan_only_) {
    const auto entry = *local_.begin();
    local_.erase(local_.begin());
    auto& node = *entry.node;
    if (node.done || node.started || entry.depth != node.record.depth) continue; // asked meanwhile, or waits in another place
    node.started = true;
    ++asked_;
    local_answered(node);
    return true;
  }
  return false;
}

bool crawl_run::idle() const { return jobs_.empty() && waiting_.empty(); }

/// Empty while there is something to do; sets ended_by_ and limit_reason_ when it is not the end of the pages that ends it.
std::string crawl_run::what_ends_it() {
  const auto left = [&] { return std::to_string(frontier_->open()) + (frontier_->open() == 1 ? " page is" : " pages are") + " left"; };
  if (options_.cancel && options_.cancel->load()) {
    ended_by_ = "cancelled";
    return "interrupted; " + left();
  }
  if (elapsed() >= source_.max_seconds) {
    ended_by_ = "seconds";
    return "the limit of " + format_seconds(source_.max_seconds) + " (max_seconds) was reached; " + left();
  }
  if (!plan_only_ && idle() && !page_budget_left() && frontier_->open() > 0) {
    const bool pages = asked_ >= source_.max_pages;
    ended_by_ = pages ? "pages" : "bytes";
    limit_reason_ = pages ? "the limit of " + std::to_string(source_.max_pages) + " pages (max_pages) was reached"
                          : "the limit of " + format_bytes(static_cast<double>(source_.max_bytes)) + " in all (max_bytes) was reached";
    return limit_reason_ + "; " + left();
  }
  return {};
}

double crawl_run::seconds_to_next() const {
  const auto now = clock::now();
  double wait = options_.cancel ? cancel_seconds : longest_wait_seconds;
  const auto until = [&](clock::time_point when) { wait = std::min(wait, std::max(0.0, std::chrono::duration<double>(when - now).count())); };
  if (static_cast<int>(jobs_.size()) < options_.connections) { // else an answer must come first
    for (const auto& [when, j] : waiting_)
      if (j.host->active < options_.per_host) {
        until(when);
        break;
      }
    for (const auto& [name, host] : origins_) {
      const bool pages = !plan_only_ && !host.queue.empty() && page_budget_left();
      if (host.active < options_.per_host && host.robots != origin::robots_state::asked && (pages || !host.sitemaps.empty())) until(host.next);
    }
  }
  return std::min(wait, std::max(0.0, source_.max_seconds - elapsed()));
}

expected<crawl_result> crawl_run::run() {
  std::string reason;
  while (true) {
    place_queued();
    if (store_problem_) return fail(*store_problem_);
    reason = what_ends_it();
    if (!reason.empty()) break;
    release_waiting();
    while (start_next()) {
    }
    const bool worked = work_local();
    if (store_problem_) return fail(*store_problem_);
    place_queued();
    if (idle() && frontier_->open() == 0 &&
        std::none_of(origins_.begin(), origins_.end(), [](const auto& o) { return !o.second.sitemaps.empty() || o.second.robots == origin::robots_state::asked; }))
      break;
    for (const auto& result : fetcher_->wait(worked ? 0 : seconds_to_next())) answered(result);
    if (store_problem_) return fail(*store_problem_);
  }
  const bool complete = reason.empty();
  if (complete) {
    remove_unlinked();
  } else if (!limit_reason_.empty()) { // the pages that were left say so themselves
    for (auto* node : frontier_->all())
      if (node->reached && !node->done) {
        node->record.reason = "not asked: " + limit_reason_;
        frontier_->touch(*node);
      }
  }
  commit_changed();
  if (store_problem_) return fail(*store_problem_);
  if (auto saved = save_state(complete); !saved) return fail(saved.error());
  if (complete && frontier_->unrecorded() > 0)
    notes_.push_back(std::to_string(frontier_->unrecorded()) + " further addresses were left out without a record");
  return summary(complete, complete ? join(notes_, "; ") : reason);
}

// -- the end -------------------------------------------------------------------------------------------------------

/// What a page has in common with the root that leads to it: the host, or being local.
std::string crawl_run::site_of(const std::string& address) const {
  auto url = parse_url(address);
  return !url ? "" : url->web() ? url->host : url->scheme;
}

/// Sites with a root that led to no page, and which root that was and why.
std::multimap<std::string, std::string> crawl_run::unanswered_sites() {
  std::multimap<std::string, std::string> out = uncertain_sites_;
  if (!seed_trouble_.empty()) out.emplace("file", seed_trouble_);
  for (const auto& root : scope_->roots()) {
    auto* first = frontier_->find(root.text());
    if (!first) continue; // a folder
    auto* node = first;
    for (int i = 0; i < max_redirects && node->record.state == page_state::excluded && !node->record.final_url.empty(); ++i) {
      auto* next = frontier_->find(node->record.final_url);
      if (!next) break;
      node = next;
    }
    const auto& r = node->record;
    if (r.state == page_state::fetched || r.state == page_state::unchanged) continue;
    if (r.state == page_state::excluded && !r.links.empty()) continue; // "noindex": read for its links only
    std::string why = first->record.reason.empty() ? "no answer" : first->record.reason;
    if (node != first && !r.reason.empty()) why += "; " + r.reason;
    const auto text = "root " + root.text() + ": " + why;
    for (const auto& site : {site_of(root.text()), site_of(r.url)}) out.emplace(site, text);
  }
  return out;
}

/// After a complete crawl, what no page names any more is gone; but not where a root failed, for then nobody can know.
void crawl_run::remove_unlinked() {
  const auto unanswered = unanswered_sites();
  int64_t kept = 0;
  for (auto* node : frontier_->all()) {
    auto& r = node->record;
    if (node->reached || r.state == page_state::excluded || r.state == page_state::gone) continue;
    if (unanswered.contains(site_of(r.url))) {
      ++kept;
      continue;
    }
    node->reached = node->done = true;
    finish(*node, page_state::gone, "no longer linked from the source's pages");
    if (store_problem_) return;
  }
  for (const auto& [site, text] : unanswered)
    if (std::find(notes_.begin(), notes_.end(), text) == notes_.end()) notes_.push_back(text);
  if (kept > 0) notes_.push_back(std::to_string(kept) + (kept == 1 ? " page" : " pages") + " known from earlier kept");
}

crawl_result crawl_run::summary(bool complete, std::string reason) {
  crawl_result out;
  out.generation = generation_;
  out.complete = complete;
  out.resumed = resumed_;
  out.reason = std::move(reason);
  out.bytes = bytes_;
  out.seconds = elapsed();
  for (const auto* node : frontier_->all()) {
    out.segments += node->record.segments;
    if (node->record.state == page_state::excluded) ++out.excluded; // an unchanged page does not repeat its links to them
    if (!node->reached) continue;
    switch (node->record.state) {
    case page_state::queued: break;
    case page_state::fetched: ++out.fetched; break;
    case page_state::unchanged: ++out.unchanged; break;
    case page_state::excluded: break;
    case page_state::failed: ++out.failed; break;
    case page_state::gone: ++out.gone; break;
    }
  }
  return out;
}

void crawl_run::commit(page_node& node, const std::optional<std::vector<segment>>& segments) {
  if (plan_only_ || store_problem_) return;
  if (auto done = store_.commit(source_.profiler, node.record, segments, frontier_->take_changed(&node)); !done) {
    store_problem_ = done.error();
    store_problem_->message = "the crawl of '" + printable(source_.profiler) + "' ended at " + printable(node.record.url) + ": " + store_problem_->message;
    if (store_problem_->hint.empty()) store_problem_->hint = "what was stored before is intact; run it again and it goes on from there";
  }
}

/// Records that changed without a page's own answer: seeds, sitemaps, excluded ones.
void crawl_run::commit_changed() {
  const std::vector<segment> none;
  for (auto* node : frontier_->take_dropped()) commit(*node, none);
  for (auto* node : twins_) commit(*node, none);
  twins_.clear();
  auto changed = frontier_->take_changed();
  if (changed.empty() || plan_only_ || store_problem_) return;
  const auto first = std::move(changed.back());
  changed.pop_back();
  if (auto done = store_.commit(source_.profiler, first, std::nullopt, changed); !done) store_problem_ = done.error();
}

// -- what it would do ----------------------------------------------------------------------------------------------

expected<crawl_plan> crawl_run::plan() {
  while (what_ends_it().empty()) {
    // Pages known from earlier are asked again as long as some page is thought to name them.
    for (bool more = true; more;) {
      more = false;
      for (auto* node : frontier_->take_queued()) {
        more = true;
        frontier_->follow_stored_links(*node);
        auto url = parse_url(node->record.url);
        if (!url || !url->web()) continue;
        if (options_.offline) {
          node->record.state = page_state::failed;
          node->record.reason = "not asked: offline";
        } else {
          origin_of(*url).queue.insert({node->record.depth, node->order, node});
        }
      }
    }
    release_waiting();
    while (start_next()) {
    }
    if (idle() && std::all_of(origins_.begin(), origins_.end(), [](const auto& o) { return o.second.sitemaps.empty(); })) break;
    for (const auto& result : fetcher_->wait(seconds_to_next())) answered(result);
  }
  crawl_plan out;
  out.rules = scope_->rules();
  out.rules.push_back("at most " + std::to_string(source_.max_pages) + " pages, " + std::to_string(source_.max_depth) + " links from a root, " +
                      format_bytes(static_cast<double>(source_.max_page_bytes)) + " a page, " + format_bytes(static_cast<double>(source_.max_bytes)) +
                      " and " + format_seconds(source_.max_seconds) + " in all");
  if (!source_.robots) out.rules.push_back("robots.txt is not honoured");
  if (source_.allow_private) out.rules.push_back("private addresses of the hosts named here are allowed");
  for (auto* node : frontier_->all()) {
    if (!node->reached) continue;
    auto record = node->record;
    if (!node->done && record.state == page_state::queued && source_.robots) {
      auto url = parse_url(record.url);
      const auto why = url && url->web() ? origin_of(*url).rules.refused(url->target()) : "";
      const auto& dead = url && url->web() ? origin_of(*url).dead : std::string();
      if (!dead.empty() || !why.empty()) {
        record.state = dead.empty() && origin_of(*url).rules.unavailable().empty() ? page_state::excluded : page_state::failed;
        record.reason = dead.empty() ? why : dead;
      }
    }
    out.pages.push_back(std::move(record));
  }
  return out;
}

expected<crawl_result> crawl_with(const doc_source& source, crawl_store& store, const crawl_options& options, const crawl_parts& parts) {
  crawl_run run(source, store, options, parts);
  if (auto begun = run.begin(false); !begun) return fail(begun.error());
  return run.run();
}

expected<crawl_plan> plan_with(const doc_source& source, crawl_store& store, const crawl_options& options, const crawl_parts& parts) {
  crawl_run run(source, store, options, parts);
  if (auto begun = run.begin(true); !begun) return fail(begun.error());
  return run.plan();
}

} // namespace pragma
