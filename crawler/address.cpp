#include "crawler/address.hpp"

#include <array>
#include <cstdint>
#include <cstring>

#include <arpa/inet.h>
#include <netinet/in.h>

namespace pragma {

namespace {

struct range4 {
  uint32_t first;
  int bits;
  const char* what;
};

constexpr uint32_t v4(uint32_t a, uint32_t b, uint32_t c, uint32_t d) { return a << 24 | b << 16 | c << 8 | d; }

// RFC 6890 and its updates.
constexpr range4 ranges4[] = {
    {v4(0, 0, 0, 0), 8, "unspecified"},
    {v4(10, 0, 0, 0), 8, "private"},
    {v4(100, 64, 0, 0), 10, "carrier-grade NAT"},
    {v4(127, 0, 0, 0), 8, "loopback"},
    {v4(169, 254, 0, 0), 16, "link-local"},
    {v4(172, 16, 0, 0), 12, "private"},
    {v4(192, 0, 0, 0), 24, "reserved"},
    {v4(192, 0, 2, 0), 24, "documentation"},
    {v4(192, 88, 99, 0), 24, "6to4 relay"},
    {v4(192, 168, 0, 0), 16, "private"},
    {v4(198, 18, 0, 0), 15, "benchmarking"},
    {v4(198, 51, 100, 0), 24, "documentation"},
    {v4(203, 0, 113, 0), 24, "documentation"},
    {v4(224, 0, 0, 0), 4, "multicast"},
    {v4(240, 0, 0, 0), 4, "reserved"},
};

struct range6 {
  std::array<uint8_t, 16> first;
  int bits;
  const char* what;
};

// The first that fits counts. What remains outside 2000::/3 is not assigned.
constexpr range6 ranges6[] = {
    {{0}, 128, "unspecified"},
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 128, "loopback"},
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 96, "IPv4-mapped"},
    {{0}, 96, "IPv4-compatible"},
    {{0x00, 0x64, 0xff, 0x9b}, 96, "NAT64"},
    {{0x00, 0x64, 0xff, 0x9b, 0x00, 0x01}, 48, "NAT64"},
    {{0x01}, 64, "discard-only"},
    {{0x20, 0x01, 0x00, 0x00}, 32, "Teredo"},
    {{0x20, 0x01, 0x0d, 0xb8}, 32, "documentation"},
    {{0x20, 0x01}, 23, "reserved"},
    {{0x20, 0x02}, 16, "6to4"},
    {{0x3f, 0xff}, 20, "documentation"},
    {{0xfc}, 7, "unique local"},
    {{0xfe, 0x80}, 10, "link-local"},
    {{0xfe, 0xc0}, 10, "site-local"},
    {{0xff}, 8, "multicast"},
};

bool within(const uint8_t* address, const range6& range) {
  for (int bit = 0; bit < range.bits; bit += 8) {
    const int left = range.bits - bit;
    const auto mask = static_cast<uint8_t>(left >= 8 ? 0xff : 0xff << (8 - left));
    const auto i = static_cast<size_t>(bit / 8);
    if ((address[i] & mask) != (range.first[i] & mask)) return false;
  }
  return true;
}

} // namespace

std::string special_address(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, address, sizeof in);
    const uint32_t value = ntohl(in.sin_addr.s_addr);
    for (const auto& range : ranges4)
      if ((value ^ range.first) >> (32 - range.bits) == 0) return range.what;
    return {};
  }
  if (address->sa_family != AF_INET6) return "not an Internet address";
  sockaddr_in6 in{};
  std::memcpy(&in, address, sizeof in);
  const auto* bytes = in.sin6_addr.s6_addr;
  for (const auto& range : ranges6)
    if (within(bytes, range)) return range.what;
  return (bytes[0] & 0xe0) == 0x20 ? "" : "reserved";
}

std::string address_text(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address->sa_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, address, sizeof in);
    ::inet_ntop(AF_INET, &in.sin_addr, text, sizeof text);
  } else if (address->sa_family == AF_INET6) {
    sockaddr_in6 in{};
    std::memcpy(&in, address, sizeof in);
    ::inet_ntop(AF_INET6, &in.sin6_addr, text, sizeof text);
  }
  return text;
}

} // namespace pragma
