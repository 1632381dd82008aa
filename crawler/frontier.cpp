#include "crawler/frontier.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>

namespace pragma {

namespace {

constexpr int64_t max_excluded = 10'000;  ///< records of pages left out; a site's outward links are without end
constexpr size_t known_per_page = 4;      ///< pages remembered for each one that may be asked,
constexpr size_t known_at_least = 20'000; ///< and never fewer than this: bounds the memory that a hostile site can take
constexpr size_t link_digits = 16;

} // namespace

std::string link_text(std::string_view url) {
  char text[link_digits + 1];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(link_id(url)));
  return text;
}

frontier::frontier(const crawl_scope& scope, const doc_source& source, int64_t generation)
    : scope_(scope), max_depth_(source.max_depth),
      max_nodes_(known_at_least + known_per_page * static_cast<size_t>(std::max<int64_t>(0, source.max_pages))), generation_(generation) {}

void frontier::load(std::vector<page_record> records) {
  // Earlier found first: the order that a crawl without interruption would have.
  std::stable_sort(records.begin(), records.end(), [](const page_record& a, const page_record& b) { return a.depth < b.depth; });
  for (auto& record : records) {
    auto* node = add(record.url);
    node->record = std::move(record);
    node->reached = node->record.generation == generation_;
    if (!node->reached) continue;
    auto url = parse_url(node->record.url);
    node->in_scope = url && scope_.refused(*url).empty();
    node->too_deep = node->in_scope && node->record.depth > max_depth_;
    if (node->record.state == page_state::queued) {
      queue(*node);
    } else {
      node->done = true;
      if (node->record.state == page_state::excluded) ++excluded_;
    }
  }
}

page_node* frontier::add(const std::string& url) {
  auto& slot = nodes_[url];
  if (!slot) {
    slot = std::make_unique<page_node>();
    slot->record.url = url;
    by_id_.emplace(link_id(url), slot.get());
  }
  return slot.get();
}

page_node* frontier::find(const std::string& url) {
  const auto found = nodes_.find(url);
  return found == nodes_.end() ? nullptr : found->second.get();
}

std::vector<page_node*> frontier::all() {
  std::vector<page_node*> out;
  out.reserve(nodes_.size());
  for (auto& [url, node] : nodes_) out.push_back(node.get());
  std::sort(out.begin(), out.end(), [](const page_node* a, const page_node* b) { return a->record.url < b->record.url; });
  return out;
}

void frontier::touch(page_node& node) {
  if (node.changed) return;
  node.changed = true;
  changed_.push_back(&node);
}

void frontier::queue(page_node& node) {
  auto& r = node.record;
  if (r.state == page_state::excluded || r.state == page_state::gone) { // nothing of it is stored: ask without conditions
    r.etag.clear();
    r.last_modified.clear();
    r.content_hash.clear();
    r.final_url.clear();
  }
  r.state = page_state::queued;
  r.reason.clear();
  node.done = false;
  node.started = false;
  node.order = ++next_order_;
  ++open_;
  queued_.push_back(&node);
  touch(node);
}

void frontier::finished(page_node& node) {
  if (node.done) return;
  node.done = true;
  node.started = false;
  --open_;
}

void frontier::leave_out(page_node& node, std::string reason) {
  auto& r = node.record;
  const bool stored = r.segments > 0 || !r.content_hash.empty();
  r.state = page_state::excluded;
  r.reason = std::move(reason);
  r.etag.clear();
  r.last_modified.clear();
  r.content_hash.clear();
  r.links.clear();
  r.segments = 0;
  node.done = true;
  ++excluded_;
  if (stored)
    dropped_.push_back(&node);
  else
    touch(node);
}

page_node* frontier::reach(const page_url& url, int depth, const std::string& from, bool record_excluded) {
  auto* node = reach_one(url, depth, from, record_excluded);
  follow_waiting();
  return node;
}

void frontier::follow_stored_links(page_node& node) {
  to_follow_.push_back(&node);
  follow_waiting();
}

void frontier::follow_waiting() {
  if (following_) return;
  following_ = true;
  while (!to_follow_.empty()) {
    const auto* node = to_follow_.back();
    to_follow_.pop_back();
    follow_one(*node);
  }
  following_ = false;
}

void frontier::begin(page_node& node, int depth, const std::string& from) {
  node.reached = true;
  node.record.generation = generation_;
  node.record.depth = depth;
  node.record.from = from;
}

page_node* frontier::reach_one(const page_url& url, int depth, const std::string& from, bool record_excluded) {
  const auto text = url.text();
  auto* node = find(text);
  if (node && node->reached) {
    if (depth < node->record.depth) lower(*node, depth, from);
    return node;
  }
  auto reason = scope_.refused(url);
  if (!node && (nodes_.size() >= max_nodes_ || (!reason.empty() && (excluded_ >= max_excluded || !record_excluded)))) {
    ++unrecorded_;
    return nullptr;
  }
  if (!node) node = add(text);
  begin(*node, depth, from);
  node->in_scope = reason.empty();
  node->too_deep = reason.empty() && depth > max_depth_;
  if (!reason.empty())
    leave_out(*node, std::move(reason));
  else if (node->too_deep)
    leave_out(*node, "more than " + std::to_string(max_depth_) + " links away from a root");
  else
    queue(*node);
  return node;
}

page_node* frontier::exclude(const page_url& url, int depth, const std::string& from, std::string reason) {
  const auto text = url.text();
  auto* node = find(text);
  if (node && node->reached) return node;
  if (!node && (nodes_.size() >= max_nodes_ || excluded_ >= max_excluded)) {
    ++unrecorded_;
    return nullptr;
  }
  if (!node) node = add(text);
  begin(*node, depth, from);
  leave_out(*node, std::move(reason));
  return node;
}

void frontier::lower(page_node& node, int depth, const std::string& from) {
  node.record.depth = depth;
  node.record.from = from;
  touch(node);
  if (node.too_deep && depth <= max_depth_) {
    node.too_deep = false;
    --excluded_;
    queue(node);
  } else if (!node.done && !node.started) {
    queued_.push_back(&node); // the place in the queue has changed
  } else if (node.done) {
    to_follow_.push_back(&node);
  }
}

void frontier::follow_one(const page_node& node) {
  const auto links = node.record.links; // a copy: reaching may lower this node itself
  const int depth = node.record.depth + 1;
  for (size_t at = 0; at + link_digits <= links.size(); at += link_digits) {
    uint64_t id = 0;
    const auto [end, problem] = std::from_chars(links.data() + at, links.data() + at + link_digits, id, 16);
    const auto found = problem == std::errc{} ? by_id_.find(id) : by_id_.end();
    if (found == by_id_.end() || found->second == &node) continue;
    auto& child = *found->second;
    if (child.reached && child.record.depth <= depth) continue;
    if (auto url = parse_url(child.record.url)) reach_one(*url, depth, node.record.url, true);
  }
}

std::vector<page_record> frontier::take_changed(const page_node* but_not) {
  std::vector<page_record> out;
  out.reserve(changed_.size());
  for (auto* node : changed_) {
    node->changed = false;
    if (node != but_not) out.push_back(node->record);
  }
  changed_.clear();
  return out;
}

std::vector<page_node*> frontier::take_queued() {
  std::vector<page_node*> out;
  out.swap(queued_);
  return out;
}

std::vector<page_node*> frontier::take_dropped() {
  std::vector<page_node*> out;
  out.swap(dropped_);
  return out;
}

} // namespace pragma
