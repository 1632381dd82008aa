// What an answer means for the page that it is about: HTTP statuses and transfer errors to page states with their reason. Pure, so
// that each status can be tested. Used by crawl_run.
#pragma once

#include "crawler/fetch.hpp"

#include <string>

namespace pragma {

struct page_outcome {
  enum class kind {
    page,      ///< the body is the page
    unchanged, ///< 304
    redirect,  ///< target: the Location header as it was sent
    gone,
    excluded,  ///< not a document
    failed,
    retry      ///< failed for now
  };
  kind what = kind::failed;
  std::string reason;             ///< of gone, excluded, failed, retry
  std::string target;
  double wait_seconds = 0;        ///< of retry: what the server asked for; 0: nothing
  bool host_at_fault = false;     ///< no connection: the host's other pages won't do better
};

/// `conditional`: the request had validators, so that a 304 is an answer.
page_outcome judge(const transfer_result& result, bool conditional);

/// "404 (not found)".
std::string status_text(int status);

} // namespace pragma
