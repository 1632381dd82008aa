#include "crawler/gunzip.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <climits>

#include <zlib.h>

namespace pragma {

namespace {

constexpr size_t chunk_bytes = 64 << 10;
constexpr int gzip_only = 15 + 16; ///< windowBits of zlib: the largest window, with a gzip header

} // namespace

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

expected<std::string> gunzip(std::string_view packed, size_t max_bytes) {
  z_stream stream{};
  if (inflateInit2(&stream, gzip_only) != Z_OK) return fail(ec::internal, "zlib could not be started");
  struct closer {
    z_stream* stream;
    ~closer() { inflateEnd(stream); }
  } close_at_end{&stream};

  std::string out, chunk(chunk_bytes, '\0');
  while (true) {
    if (stream.avail_in == 0) {
      const auto n = std::min(packed.size(), static_cast<size_t>(INT_MAX));
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data())); // zlib's interface has no const; it only reads
      stream.avail_in = static_cast<uInt>(n);
      packed.remove_prefix(n);
    }
    stream.next_out = reinterpret_cast<Bytef*>(chunk.data());
    stream.avail_out = static_cast<uInt>(chunk.size());
    const int code = inflate(&stream, Z_NO_FLUSH);
    const size_t made = chunk.size() - stream.avail_out;
    if (made > max_bytes - out.size())
      return fail(ec::limit_exceeded, "unpacks to more than " + format_bytes(static_cast<double>(max_bytes)));
    out.append(chunk.data(), made);
    if (code == Z_STREAM_END) {
      if (stream.avail_in == 0 && packed.empty()) return out;
      // What follows is another member, or padding, which gzip ignores too.
      if (stream.avail_in > 0 && *stream.next_in != 0x1f) return out;
      if (inflateReset(&stream) != Z_OK) return fail(ec::internal, "zlib could not go on");
      continue;
    }
    if (code == Z_BUF_ERROR || (code == Z_OK && made == 0 && stream.avail_in == 0 && packed.empty()))
      return fail(ec::parse_error, "gzip data that ends too early");
    if (code != Z_OK) return fail(ec::parse_error, std::string("damaged gzip data") + (stream.msg ? std::string(": ") + stream.msg : ""));
  }
}

} // namespace pragma
