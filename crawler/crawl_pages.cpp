// What an answer does to its page: its state and reason, its segments, the links that it gives.
#include "crawler/crawl_run.hpp"

#include "base/hash.hpp"
#include "base/text.hpp"
#include "base/utc.hpp"
#include "crawler/local.hpp"

#include <algorithm>
#include <unordered_set>

namespace pragma {

namespace {

constexpr size_t max_links = 5'000;         ///< looked at in one page; those in scope are remembered with it, 16 bytes each
constexpr size_t max_notes = 20;            ///< of pages with more
constexpr size_t max_header_bytes = 300;     ///< of a header or title that is stored
constexpr size_t max_reason_bytes = 1000;

std::string cut(std::string_view text) { return printable(text.substr(0, max_header_bytes)); }

std::string header_or(const http_response& response, std::string_view name) {
  const auto* value = response.header(name);
  return value ? *value : "";
}

/// A validator is sent back byte for byte; one that a record cannot hold is not kept.
std::string validator(const http_response& response, std::string_view name) {
  const auto value = header_or(response, name);
  const bool plain = std::all_of(value.begin(), value.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
  return plain && value.size() <= 1024 ? value : "";
}

std::string declared_charset(const std::string& type) {
  const auto at = ascii_lower(type).find("charset=");
  if (at == std::string::npos) return {};
  std::string out;
  for (const char c : type.substr(at + 8)) {
    if (c == ';' || c == ' ') break;
    if (c != '"' && c != '\'') out += c;
  }
  return cut(out);
}

/// True when an X-Robots-Tag (all of them, one a line) says `word` to everybody or to us.
bool robots_tag(const std::string& tags, std::string_view word) {
  for (const auto& line : split(ascii_lower(tags), '\n')) {
    const auto colon = line.find(':');
    const auto agent = colon == std::string::npos ? "" : trim(std::string_view(line).substr(0, colon));
    if (!agent.empty() && agent != robots_token && agent != "unavailable_after") continue;
    for (const auto& part : split(colon == std::string::npos ? line : line.substr(colon + 1), ','))
      if (trim(part) == word || trim(part) == "none") return true;
  }
  return false;
}

/// Shorter first, then by letters: which of two equal pages is the one that is cited does not depend on who answered first.
bool better_name(const std::string& a, const std::string& b) { return a.size() != b.size() ? a.size() < b.size() : a < b; }

/// A sitemap's date lies on a day before the page was read.
bool modified_before(const std::string& modified, const std::string& fetched) {
  const auto is_date = [](const std::string& text) {
    if (text.size() < 10 || text[4] != '-' || text[7] != '-') return false;
    for (const size_t i : {0, 1, 2, 3, 5, 6, 8, 9})
      if (text[i] < '0' || text[i] > '9') return false;
    return true;
  };
  return is_date(modified) && is_date(fetched) && modified.compare(0, 10, fetched, 0, 10) < 0;
}

} // namespace

bool crawl_run::settle_without_asking(page_node& node, origin& host) {
  auto url = parse_url(node.record.url);
  if (url && source_.robots) {
    const auto why = host.rules.refused(url->target());
    if (!why.empty()) {
      finish(node, host.rules.unavailable().empty() ? page_state::excluded : page_state::failed, why);
      return true;
    }
  }
  // Without validators the sitemap's word is what there is.
  const auto& r = node.record;
  if (!reread_ && !r.content_hash.empty() && r.etag.empty() && r.last_modified.empty() && modified_before(node.modified, r.fetched) &&
      !better_twin(node, r.content_hash)) {
    claim_content(node);
    finish(node, page_state::unchanged, "");
    return true;
  }
  return false;
}

void crawl_run::page_answered(job& j, const transfer_result& result) {
  using kind = page_outcome::kind;
  auto& node = *j.node;
  auto& r = node.record;
  const auto outcome = judge(result, j.conditional);
  const auto& response = result.response;
  if (outcome.what == kind::retry) {
    std::string reason;
    if (retry_later(j, outcome, &reason)) return;
    r.status = response.status;
    finish(node, page_state::failed, reason);
    return;
  }
  r.status = response.status;
  switch (outcome.what) {
  case kind::page: {
    content c;
    c.bytes = response.body;
    c.name = r.url;
    c.type = header_or(response, "content-type");
    for (const auto& [key, value] : response.headers)
      if (key == "x-robots-tag" && source_.robots) c.robots += value + "\n";
    r.etag = validator(response, "etag");
    r.last_modified = validator(response, "last-modified");
    content_arrived(node, c);
    return;
  }
  case kind::unchanged:
    if (auto* twin = better_twin(node, r.content_hash)) {
      r.final_url = twin->record.url;
      r.links.clear();
      finish(node, page_state::excluded, "same content as " + twin->record.url);
      return;
    }
    claim_content(node);
    finish(node, page_state::unchanged, "");
    return;
  case kind::redirect: redirected(node, j.url, outcome.target, response.status); return;
  case kind::gone: finish(node, page_state::gone, outcome.reason); return;
  case kind::excluded: finish(node, page_state::excluded, outcome.reason); return;
  case kind::failed:
  case kind::retry: finish(node, page_state::failed, outcome.reason); return;
  }
}

/// The target becomes a page of its own, asked under its own name with all checks; this one is read as that.
void crawl_run::redirected(page_node& node, const page_url& url, const std::string& target, int status) {
  const auto what = "HTTP " + std::to_string(status) + " to ";
  auto to = resolve_url(url, target);
  if (!to) return finish(node, page_state::failed, what + "an address that is not followed: " + to.error().message);
  const auto name = to->text();
  if (!to->web()) return finish(node, page_state::failed, what + cut(name) + ": a server may not lead to local files");
  if (name == node.record.url) return finish(node, page_state::failed, what + "itself");
  // How many redirects led here, and whether this one closes a circle.
  int hops = 1;
  for (auto* at = &node; hops <= max_redirects; ++hops) {
    auto* before = frontier_->find(at->record.from);
    if (!before || before->record.final_url != at->record.url) break;
    at = before;
  }
  if (hops > max_redirects)
    return finish(node, page_state::failed, "more than " + std::to_string(max_redirects) + " redirects after each other, the last to " + cut(name));
  auto* at = frontier_->find(name);
  for (int i = 0; at && i <= max_redirects; ++i) {
    if (at == &node) return finish(node, page_state::failed, what + cut(name) + ", which leads back here");
    at = at->done && !at->record.final_url.empty() ? frontier_->find(at->record.final_url) : nullptr;
  }
  const auto refused = scope_->refused(*to);
  auto* child = frontier_->reach(*to, node.record.depth, node.record.url);
  node.record.final_url = name;
  if (!refused.empty()) {
    finish(node, page_state::excluded, what + cut(name) + ": " + refused + (node.record.from.empty() ? "; make that a root to read it" : ""));
    return;
  }
  node.record.links = child ? link_text(name) : "";
  finish(node, page_state::excluded, what + cut(name) + ", which is read instead");
}

void crawl_run::local_answered(page_node& node) {
  auto url = parse_url(node.record.url);
  if (!url) return finish(node, page_state::failed, url.error().message);
  const bool man = url->scheme == "man";
  auto page = man ? read_man_page(*url, parts_.man_path, source_.max_page_bytes)
                  : read_local_file(*url, scope_->roots(), source_.max_page_bytes);
  using kind = local_page::kind;
  if (page.what == kind::content) {
    content c;
    c.bytes = page.bytes;
    c.name = page.name;
    c.man = man;
    bytes_ += page.bytes.size();
    content_arrived(node, c);
    return;
  }
  const bool root = node.record.from.empty();
  if (page.what == kind::refused) return finish(node, page_state::excluded, page.reason);
  // What the user named and is not there may be on a disk that is not mounted: what is known of it stays.
  if (root && !man && page.what == kind::missing) page.reason += "; if it is an address on the web, write https:// before it";
  finish(node, page.what == kind::missing && !root ? page_state::gone : page_state::failed, page.reason);
}

void crawl_run::content_arrived(page_node& node, const content& c) {
  auto& r = node.record;
  const auto hash = sha256_hex(c.bytes);
  const bool same = hash == r.content_hash;
  if (auto* twin = better_twin(node, hash)) {
    r.final_url = twin->record.url;
    r.links.clear();
    return finish(node, page_state::excluded, "same content as " + twin->record.url);
  }
  if (same && !reread_) {
    claim_content(node);
    return finish(node, page_state::unchanged, "");
  }
  const auto format = c.man ? page_format::man : parts_.format(c.name, c.type, c.bytes);
  if (format == page_format::unknown)
    return finish(node, page_state::excluded, "no parser for it" + (c.type.empty() ? "" : " (type " + cut(c.type) + ")"));
  auto parsed = parts_.parse(format, c.bytes, r.url, declared_charset(c.type));
  if (!parsed) { // what was read earlier stays, and so do its validators' absence: the page is asked for again as a whole
    r.etag.clear();
    r.last_modified.clear();
    return finish(node, page_state::failed, parsed.error().message);
  }
  if (source_.robots && robots_tag(c.robots, "noindex")) parsed->index = false;
  if (source_.robots && robots_tag(c.robots, "nofollow")) parsed->follow = false;
  r.bytes = c.bytes.size();
  r.content_type = cut(c.type);
  r.charset = cut(parsed->charset);
  r.title = cut(parsed->title);
  r.fetched = utc_now();
  r.links.clear();
  r.final_url.clear();
  if (parsed->follow || !source_.robots) follow_links(node, *parsed);
  if (!parsed->index && source_.robots) return finish(node, page_state::excluded, "the page asks robots not to index it");
  r.content_hash = hash;
  claim_content(node);
  finish(node, page_state::fetched, "", parts_.cut(*parsed, source_.profiler, r.url, r.fetched));
}

void crawl_run::follow_links(page_node& node, const document& d) {
  auto base = parse_url(node.record.url);
  if (!base) return;
  std::unordered_set<std::string_view> written;
  std::unordered_set<std::string> named;
  size_t seen = 0;
  for (const auto& l : d.links) {
    if (!l.follow && source_.robots) continue;
    if (!written.insert(std::string_view(l.target).substr(0, l.target.find('#'))).second) continue;
    if (++seen > max_links) {
      if (notes_.size() < max_notes) notes_.push_back("only the first " + std::to_string(max_links) + " links of " + node.record.url + " were followed");
      break;
    }
    auto url = resolve_url(*base, l.target);
    if (!url) continue; // mailto:, javascript:, nonsense
    if (base->web() && !url->web()) {
      frontier_->exclude(*url, node.record.depth + 1, node.record.url, "a web page may not name local files");
      continue;
    }
    const auto name = url->text();
    if (name == node.record.url || !named.insert(name).second) continue;
    const auto* child = frontier_->reach(*url, node.record.depth + 1, node.record.url);
    if (child && child->in_scope) node.record.links += link_text(name);
  }
}

/// The page of this generation that has the same content and the better address, if any.
page_node* crawl_run::better_twin(page_node& node, const std::string& hash) {
  const auto found = by_hash_.find(hash);
  if (found == by_hash_.end() || found->second == &node) return nullptr;
  return better_name(found->second->record.url, node.record.url) ? found->second : nullptr;
}

/// From now on this page stands for its content; a page with a worse address that did so until now is left out.
void crawl_run::claim_content(page_node& node) {
  auto& holder = by_hash_[node.record.content_hash];
  if (holder && holder != &node) lose_content(*holder, node);
  holder = &node;
}

void crawl_run::lose_content(page_node& node, const page_node& to) {
  auto& r = node.record;
  r.state = page_state::excluded;
  r.reason = "same content as " + to.record.url;
  r.final_url = to.record.url;
  r.etag.clear();
  r.last_modified.clear();
  r.content_hash.clear();
  r.links.clear();
  r.segments = 0;
  twins_.push_back(&node);
}

void crawl_run::finish(page_node& node, page_state state, std::string reason, const std::optional<std::vector<segment>>& segments) {
  auto& r = node.record;
  r.state = state;
  r.reason = printable(std::string_view(reason).substr(0, max_reason_bytes)); // parts of it are a server's words
  r.generation = generation_;
  frontier_->finished(node);
  static const std::optional<std::vector<segment>> nothing{std::vector<segment>()};
  const auto* stored = &segments;
  if (segments) r.segments = static_cast<int64_t>(segments->size());
  if (state == page_state::excluded || state == page_state::gone) {
    if (r.segments > 0 || !r.content_hash.empty()) stored = &nothing;
    r.segments = 0;
    r.etag.clear();
    r.last_modified.clear();
    r.content_hash.clear();
    if (state == page_state::gone) r.links.clear();
  } else {
    r.final_url.clear();
  }
  // A page that failed, or did not change, still names what it named.
  const bool keeps_links = state == page_state::unchanged || (state == page_state::failed && !options_.offline);
  if (keeps_links) frontier_->follow_stored_links(node);
  commit(node, *stored);
  commit_changed();
  if (plan_only_ || store_problem_ || !options_.on_progress) return;
  crawl_progress progress;
  progress.done = ++finished_;
  progress.queued = frontier_->open();
  if (state == page_state::failed) ++failed_;
  progress.failed = failed_;
  progress.bytes = bytes_;
  progress.seconds = elapsed();
  progress.url = r.url;
  options_.on_progress(progress);
}

} // namespace pragma
