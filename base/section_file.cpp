#include "base/section_file.hpp"

#include "base/hash.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace pragma {

namespace fs = std::filesystem;

namespace {

constexpr size_t max_sections = 32;
constexpr uint64_t alignment = 64;      // bytes; a cache line, and enough for every number that we store
constexpr size_t hash_digits = 64;      // of SHA-256 in hex
constexpr char magic[8] = {'P', 'R', 'A', 'G', 'S', 'E', 'C', '1'};

struct section_entry {
  char name[24];
  uint64_t offset, bytes;
  char sha256[hash_digits];
};
struct header {
  char magic[8];
  char kind[32];
  uint64_t file_bytes;
  uint32_t sections, reserved;
  char sha256[hash_digits]; // of this header with zeros here
  section_entry table[max_sections];
};
static_assert(sizeof(header) == 120 + max_sections * 104);
constexpr uint64_t first_offset = (sizeof(header) + alignment - 1) / alignment * alignment;

std::string checksum_of(header h) {
  std::memset(h.sha256, 0, sizeof h.sha256);
  return sha256_hex({reinterpret_cast<const char*>(&h), sizeof h});
}

std::string_view text_of(const char* field, size_t size) { return {field, ::strnlen(field, size)}; }

} // namespace

struct section_writer::state {
  fs::path file;
  std::string neighbour;
  int fd = -1;
  header head{};
  uint64_t at = first_offset;
  bool open_section = false;
  sha256_stream hash;
  std::string buffer;

  ~state() {
    if (fd >= 0) ::close(fd);
    if (!neighbour.empty()) ::unlink(neighbour.c_str());
  }
  tl::unexpected<error> problem(const char* what) const {
    const int why = errno;
    return fail(ec::io_error, std::string("cannot ") + what + " " + file.string() + ": " + std::strerror(why),
                why == ENOSPC ? "the disk is full: free some space and try again" : "");
  }
  expected<void> put(const char* data, size_t bytes, uint64_t offset) {
    while (bytes > 0) {
      const auto n = ::pwrite(fd, data, bytes, static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return problem("write");
      data += n;
      bytes -= static_cast<size_t>(n);
      offset += static_cast<uint64_t>(n);
    }
    return {};
  }
  expected<void> flush() {
    auto done = put(buffer.data(), buffer.size(), at - buffer.size());
    buffer.clear();
    return done;
  }
  expected<void> end_section() {
    if (!open_section) return {};
    if (auto flushed = flush(); !flushed) return flushed;
    auto& entry = head.table[head.sections - 1];
    entry.bytes = at - entry.offset;
    const auto digits = hash.finish_hex();
    std::memcpy(entry.sha256, digits.data(), hash_digits);
    open_section = false;
    return {};
  }
};

section_writer::section_writer(std::unique_ptr<state> s) : state_(std::move(s)) {}
section_writer::section_writer(section_writer&&) noexcept = default;
section_writer& section_writer::operator=(section_writer&&) noexcept = default;
section_writer::~section_writer() = default;

expected<section_writer> section_writer::create(const fs::path& file, std::string_view kind) {
  auto s = std::make_unique<state>();
  s->file = file;
  if (kind.empty() || kind.size() >= sizeof s->head.kind) return fail(ec::internal, "kind of " + file.string() + " is too long");
  std::memcpy(s->head.magic, magic, sizeof magic);
  std::memcpy(s->head.kind, kind.data(), kind.size());
  std::string neighbour = file.string() + ".XXXXXX";
  s->fd = ::mkostemp(neighbour.data(), O_CLOEXEC);
  if (s->fd < 0) return s->problem("create a file beside");
  s->neighbour = std::move(neighbour);
  return section_writer(std::move(s));
}

expected<void> section_writer::begin(std::string_view name) {
  auto& s = *state_;
  if (auto ended = s.end_section(); !ended) return ended;
  if (s.head.sections == max_sections || name.empty() || name.size() >= sizeof(section_entry::name))
    return fail(ec::internal, "section " + std::string(name) + " does not fit into " + s.file.string());
  s.at = (s.at + alignment - 1) / alignment * alignment;
  auto& entry = s.head.table[s.head.sections++];
  std::memcpy(entry.name, name.data(), name.size());
  entry.offset = s.at;
  s.open_section = true;
  return {};
}

expected<void> section_writer::write(const void* data, size_t bytes) {
  auto& s = *state_;
  if (!s.open_section) return fail(ec::internal, "no section of " + s.file.string() + " was begun");
  const std::string_view piece(static_cast<const char*>(data), bytes);
  if (bytes == 0) return {};
  s.hash.update(piece);
  s.buffer.append(piece);
  s.at += bytes;
  return s.buffer.size() < (1u << 20) ? expected<void>{} : s.flush();
}

expected<void> section_writer::finish() {
  auto& s = *state_;
  if (auto ended = s.end_section(); !ended) return ended;
  s.head.file_bytes = s.at;
  const auto digits = checksum_of(s.head);
  std::memcpy(s.head.sha256, digits.data(), hash_digits);
  if (auto put = s.put(reinterpret_cast<const char*>(&s.head), sizeof s.head, 0); !put) return put;
  const mode_t mask = ::umask(0);
  ::umask(mask);
  if (::ftruncate(s.fd, static_cast<off_t>(s.at)) != 0 || ::fchmod(s.fd, 0666 & ~mask) != 0 || ::fsync(s.fd) != 0 ||
      ::rename(s.neighbour.c_str(), s.file.c_str()) != 0)
    return s.problem("write");
  s.neighbour.clear();
  return {};
}

struct section_file::mapping {
  fs::path file;
  void* data = MAP_FAILED;
  size_t size = 0;
  header head{};

  ~mapping() {
    if (data != MAP_FAILED) ::munmap(data, size);
  }
  std::string_view bytes_of(const section_entry& e) const {
    return {static_cast<const char*>(data) + e.offset, static_cast<size_t>(e.bytes)};
  }
  tl::unexpected<error> damaged(std::string_view what) const {
    return fail(ec::parse_error, file.string() + " is damaged (" + std::string(what) + ")",
                "it is made of other data and can be built again: `pragma kb build`");
  }
};

expected<section_file> section_file::open(const fs::path& file, std::string_view kind) {
  auto m = std::make_shared<mapping>();
  m->file = file;
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    const int why = errno;
    return fail(why == ENOENT ? ec::not_found : ec::io_error, "cannot open " + file.string() + ": " + std::strerror(why));
  }
  struct closer {
    int fd;
    ~closer() { ::close(fd); }
  } close_at_end{fd};
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
    return fail(ec::io_error, file.string() + " is not a regular file");
  const auto size = static_cast<uint64_t>(info.st_size);
  if (size < sizeof(header)) return m->damaged("it has only " + std::to_string(size) + " bytes");
  m->size = static_cast<size_t>(size);
  m->data = ::mmap(nullptr, m->size, PROT_READ, MAP_SHARED, fd, 0);
  if (m->data == MAP_FAILED) return fail(ec::io_error, "cannot map " + file.string() + ": " + std::strerror(errno));
  auto& h = m->head; // a copy: whoever else maps the file cannot change what was checked
  std::memcpy(&h, m->data, sizeof h);
  if (std::memcmp(h.magic, magic, sizeof magic) != 0) return m->damaged("it does not begin as our files do");
  if (std::string_view(h.sha256, hash_digits) != checksum_of(h)) return m->damaged("checksum of the header");
  if (text_of(h.kind, sizeof h.kind) != kind)
    return m->damaged("a file of kind '" + std::string(kind) + "' was expected, it is '" +
                      std::string(text_of(h.kind, sizeof h.kind)) + "'");
  if (h.file_bytes != size)
    return m->damaged(std::to_string(h.file_bytes) + " bytes were written, it has " + std::to_string(size));
  if (h.sections > max_sections) return m->damaged("number of sections");
  for (uint32_t i = 0; i < h.sections; ++i) {
    const auto& e = h.table[i];
    if (e.offset % alignment != 0 || e.offset < first_offset || e.offset > size || e.bytes > size - e.offset)
      return m->damaged("a section lies outside");
  }
  section_file opened;
  opened.mapping_ = std::move(m);
  return opened;
}

const fs::path& section_file::path() const { return mapping_->file; }
uint64_t section_file::bytes() const { return mapping_->size; }
tl::unexpected<error> section_file::damaged(std::string_view what) const { return mapping_->damaged(what); }

expected<void> section_file::verify(std::string_view name) const {
  const auto& m = *mapping_;
  for (uint32_t i = 0; i < m.head.sections; ++i) {
    const auto& e = m.head.table[i];
    const auto its_name = text_of(e.name, sizeof e.name);
    if (!name.empty() && name != its_name) continue;
    if (sha256_hex(m.bytes_of(e)) != std::string_view(e.sha256, hash_digits))
      return m.damaged("checksum of its section '" + std::string(its_name) + "'");
  }
  return {};
}

expected<std::span<const std::byte>> section_file::raw_section(std::string_view name, size_t unit) const {
  const auto& m = *mapping_;
  for (uint32_t i = 0; i < m.head.sections; ++i) {
    const auto& e = m.head.table[i];
    if (text_of(e.name, sizeof e.name) != name) continue;
    if (e.bytes % unit != 0) return m.damaged("size of its section '" + std::string(name) + "'");
    const auto bytes = m.bytes_of(e);
    return std::span<const std::byte>(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size());
  }
  return m.damaged("no section '" + std::string(name) + "'");
}

} // namespace pragma
