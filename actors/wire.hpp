// Makes the payloads of actors/messages.hpp CAF messages: one inspect() for all of them that goes through CBOR, so that a
// struct has one field list only. Also carries pragma::error inside caf::error.
#pragma once

#include "actors/messages.hpp"

#include <caf/all.hpp>

namespace pragma {

template <class T> inline constexpr bool is_wire_type = false;
template <> inline constexpr bool is_wire_type<load_request> = true;
template <> inline constexpr bool is_wire_type<loaded_task> = true;
template <> inline constexpr bool is_wire_type<candidate> = true;
template <> inline constexpr bool is_wire_type<verdict> = true;
template <> inline constexpr bool is_wire_type<measure_request> = true;
template <> inline constexpr bool is_wire_type<measurement> = true;
template <> inline constexpr bool is_wire_type<confirmation> = true;
template <> inline constexpr bool is_wire_type<look_up> = true;
template <> inline constexpr bool is_wire_type<looked_up> = true;
template <> inline constexpr bool is_wire_type<coder_setup> = true;
template <> inline constexpr bool is_wire_type<code_request> = true;
template <> inline constexpr bool is_wire_type<coded> = true;
template <> inline constexpr bool is_wire_type<run_request> = true;
template <> inline constexpr bool is_wire_type<run_header> = true;
template <> inline constexpr bool is_wire_type<run_event> = true;
template <> inline constexpr bool is_wire_type<run_result> = true;
template <> inline constexpr bool is_wire_type<iteration_record> = true;
template <> inline constexpr bool is_wire_type<won_schedule> = true;
template <> inline constexpr bool is_wire_type<won_schedules> = true;
template <> inline constexpr bool is_wire_type<std::vector<iteration_record>> = true;
template <> inline constexpr bool is_wire_type<machine_scores> = true;
template <> inline constexpr bool is_wire_type<scored_run> = true;

/// Bytes of a payload, and back; the error says which type could not be read.
template <class T> std::string to_wire(const T& value) {
  const auto bytes = json::to_cbor(json(value));
  return {bytes.begin(), bytes.end()};
}
template <class T> bool from_wire(const std::string& bytes, T& value) {
  const auto parsed = json::from_cbor(bytes, true, false);
  if (parsed.is_discarded()) return false;
  try {
    value = parsed.get<T>();
    return true;
  } catch (const json::exception&) {
    return false;
  }
}

template <class Inspector, class T>
  requires is_wire_type<T>
typename Inspector::result_type inspect(Inspector& f, T& value) {
  std::string bytes;
  if constexpr (Inspector::reads_state) bytes = to_wire(value);
  auto load = [&]() -> caf::error {
    return from_wire(bytes, value) ? caf::error{caf::none} : caf::make_error(caf::sec::invalid_argument, "malformed payload");
  };
  return f(caf::meta::type_name("payload"), bytes, caf::meta::load_callback(load));
}

/// pragma::error <-> caf::error (category "pragma").
inline caf::error to_caf(const error& e) {
  return caf::error(static_cast<uint8_t>(static_cast<int>(e.code) + 1), caf::atom("pragma"), caf::make_message(e.message, e.hint));
}
inline error from_caf(const caf::actor_system& system, const caf::error& e) {
  if (e.category() == caf::atom("pragma") && e.context().match_elements<std::string, std::string>())
    return {static_cast<ec>(e.code() - 1), e.context().get_as<std::string>(0), e.context().get_as<std::string>(1)};
  return {ec::internal, "an agent failed: " + const_cast<caf::actor_system&>(system).render(e), ""};
}
template <class T> caf::result<T> to_result(expected<T> value) {
  if (!value) return to_caf(value.error());
  return std::move(*value);
}

} // namespace pragma
