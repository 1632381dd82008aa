#include "cluster/frame.hpp"

#include <vector>

namespace pragma {

namespace {

constexpr size_t longest_kind = 16;

} // namespace

bool well_formed_cbor(std::string_view bytes, int max_depth) {
  std::vector<uint64_t> open{1};          ///< items that are still to come, per level
  size_t at = 0;
  while (!open.empty()) {
    if (open.back() == 0) {
      open.pop_back();
      continue;
    }
    --open.back();
    if (at >= bytes.size()) return false;
    const auto first = static_cast<unsigned char>(bytes[at++]);
    const int major = first >> 5, small = first & 31;
    uint64_t value = static_cast<uint64_t>(small);
    if (small >= 24) {
      if (small > 27) return false;       // indefinite lengths and what is reserved
      const size_t wide = size_t{1} << (small - 24);
      if (bytes.size() - at < wide) return false;
      value = 0;
      for (size_t i = 0; i < wide; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at++]);
    }
    if (major == 2 || major == 3) {
      if (value > bytes.size() - at) return false;
      at += value;
    } else if (major == 4 || major == 5) {
      if (value > (bytes.size() - at) / (major == 5 ? 2 : 1) || static_cast<int>(open.size()) > max_depth) return false; // each item has a byte at least
      open.push_back(major == 5 ? 2 * value : value);
    } else if (major == 6 || (major == 7 && small < 20)) {
      return false;
    }
  }
  return at == bytes.size();
}

std::string encode(const frame& f) {
  json whole = {{"k", f.kind}};
  if (f.id != 0) whole["i"] = f.id;
  if (!f.body.is_null()) whole["b"] = f.body;
  if (!f.failure.is_null()) whole["e"] = f.failure;
  std::string out(frame_head_bytes, '\0');
  json::to_cbor(whole, nlohmann::detail::output_adapter<char>(out));
  const auto size = static_cast<uint32_t>(out.size() - frame_head_bytes);
  for (size_t i = 0; i < frame_head_bytes; ++i) out[i] = static_cast<char>(size >> (8 * (frame_head_bytes - 1 - i)));
  return out;
}

expected<size_t> claimed_length(std::string_view head, size_t limit) {
  size_t size = 0;
  for (size_t i = 0; i < frame_head_bytes; ++i) size = size << 8 | static_cast<unsigned char>(head[i]);
  if (size == 0 || size > limit) return fail(ec::limit_exceeded, "a frame of " + std::to_string(size) + " bytes, of at most " + std::to_string(limit));
  return size;
}

expected<frame> decode(std::string_view text) {
  if (!well_formed_cbor(text)) return fail(ec::parse_error, "a frame is no well-formed document");
  auto whole = json::from_cbor(text.begin(), text.end(), true, false);
  if (!whole.is_object()) return fail(ec::parse_error, "a frame is no document of ours");
  frame f;
  for (auto& [key, value] : whole.items()) {
    if (key == "k" && value.is_string() && value.get_ref<const std::string&>().size() <= longest_kind) f.kind = value.get<std::string>();
    else if (key == "i" && value.is_number_unsigned()) f.id = value.get<uint64_t>();
    else if (key == "b") f.body = std::move(value);
    else if (key == "e" && value.is_object()) f.failure = std::move(value);
    else return fail(ec::parse_error, "a frame with a field that is not ours");
  }
  if (f.kind.empty()) return fail(ec::parse_error, "a frame without a kind");
  return f;
}

} // namespace pragma
