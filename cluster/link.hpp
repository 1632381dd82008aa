// A member's end of a connection to a head: dials with a deadline, greets, asks and is answered, and gets orders. One thread of its own; no CAF.
#pragma once

#include "cluster/frame.hpp"
#include "cluster/greeting.hpp"
#include "cluster/pair.hpp"
#include "cluster/tls.hpp"

#include <functional>
#include <memory>
#include <optional>

namespace pragma {

class link {
public:
  struct options {
    std::vector<address> heads;           ///< tried in this order, from `first` on
    std::optional<std::filesystem::path> tls; ///< read anew at each dial
    std::string want;                     ///< "node", "user"
    double seconds = 5;                   ///< for each head
    std::function<void(frame)> on_frame;  ///< what is no reply; in the link's thread
    size_t first = 0;
    std::string node;                     ///< its name, where it is one
    std::shared_ptr<witness> memory = {}; ///< of the dials before: an older head is refused, a node gives its word to one of two; may be null
  };
  /// Errors: not_found (no such host), remote_failed (refused, no trust), timeout, invalid_argument (own certificates; plaintext off loopback), locked (it stands by), unsupported
  /// (the head does not take this version, certificate or role: its sentence).
  static expected<std::unique_ptr<link>> dial(const options& o);
  ~link();

  const address& head() const;
  size_t number() const;                  ///< of that head in options::heads
  /// Of the own certificate; -1 without TLS.
  int certificate_days() const;
  bool alive() const;
  /// The answer; the head's refusal as the error it is; timeout; remote_failed when the link is gone.
  expected<json> ask(const std::string& kind, json body, double seconds);
  /// The answer as a struct.
  template <class T> expected<T> ask_for(const std::string& kind, json body, double seconds) {
    auto answer = ask(kind, std::move(body), seconds);
    if (!answer) return tl::unexpected<error>(answer.error());
    return from_json_value<T>(*answer, "the head's answer to " + kind);
  }
  /// No answer is wanted.
  void tell(const std::string& kind, json body);

private:
  class impl;
  explicit link(std::unique_ptr<impl> p);
  std::unique_ptr<impl> impl_;
};

} // namespace pragma
