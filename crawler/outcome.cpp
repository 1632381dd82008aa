#include "crawler/outcome.hpp"

#include "base/text.hpp"

namespace pragma {

std::string status_text(int status) {
  struct known {
    int status;
    const char* text;
  };
  static constexpr known list[] = {{204, "no content"},       {206, "part of the page"},   {300, "multiple choices"},
                                   {304, "not modified"},     {400, "bad request"},        {401, "login needed"},
                                   {403, "forbidden"},        {404, "not found"},          {406, "not acceptable"},
                                   {407, "proxy login needed"}, {408, "request timeout"},  {410, "gone"},
                                   {418, "refused"},          {425, "too early"},          {429, "too many requests"},
                                   {451, "unavailable for legal reasons"}, {500, "server error"}, {501, "not implemented"},
                                   {502, "bad gateway"},      {503, "service unavailable"}, {504, "gateway timeout"}};
  for (const auto& k : list)
    if (k.status == status) return std::to_string(status) + " (" + k.text + ")";
  return std::to_string(status);
}

page_outcome judge(const transfer_result& result, bool conditional) {
  using kind = page_outcome::kind;
  page_outcome out;
  const auto is = [&](kind what, std::string reason) {
    out.what = what;
    out.reason = std::move(reason);
    return out;
  };
  switch (result.end) {
  case transfer_end::answered: break;
  case transfer_end::not_a_document: return is(kind::excluded, result.problem);
  case transfer_end::refused_address:
    return is(kind::failed, result.problem + "; a source with allow_private may read it");
  case transfer_end::too_long: return is(kind::failed, result.problem);
  case transfer_end::unreachable:
    out.host_at_fault = true;
    return is(kind::retry, "host not reachable: " + result.problem);
  case transfer_end::broken: return is(kind::retry, "broken answer: " + result.problem);
  case transfer_end::timed_out: return is(kind::retry, result.problem);
  }
  const int status = result.response.status;
  const auto text = "HTTP " + status_text(status);
  switch (status) {
  case 200: return is(kind::page, "");
  case 304: return conditional ? is(kind::unchanged, "") : is(kind::failed, text + " although it was not asked whether it changed");
  case 301:
  case 302:
  case 303:
  case 307:
  case 308: {
    const auto* location = result.response.header("location");
    if (!location || location->empty()) return is(kind::failed, "HTTP " + std::to_string(status) + " without an address to go to");
    out.target = *location;
    return is(kind::redirect, "");
  }
  case 404:
  case 410: return is(kind::gone, text);
  case 408:
  case 425:
  case 429:
  case 500:
  case 502:
  case 503:
  case 504:
    out.wait_seconds = retry_after_seconds(result.response).value_or(0);
    return is(kind::retry, text);
  default: return is(kind::failed, text);
  }
}

} // namespace pragma
