#include "crawler/crawl_run.hpp"

namespace pragma {

namespace {

const crawl_parts& usual_parts() {
  static const crawl_parts parts = [] {
    crawl_parts p;
    p.format = format_of;
    p.parse = parse_page;
    p.cut = segments_of;
    return p;
  }();
  return parts;
}

} // namespace

expected<crawl_result> crawl(const doc_source& source, crawl_store& store, const crawl_options& options) {
  return crawl_with(source, store, options, usual_parts());
}

expected<crawl_plan> plan_crawl(const doc_source& source, crawl_store& store, const crawl_options& options) {
  return plan_with(source, store, options, usual_parts());
}

} // namespace pragma
