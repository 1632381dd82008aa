#include "knowledge/lexical_index.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pragma {

namespace fs = std::filesystem;

namespace {

constexpr int application_id = 0x50524147; // "PRAG"
constexpr int lexical_schema = 1;
constexpr size_t max_query_tokens = 64;    // FTS5's expressions have a limit of depth, and a longer question says no more
constexpr int hash_bytes = 32 << 20;       // of new rows that FTS5 gathers before it writes a segment; the default is 1 MiB
constexpr int64_t map_bytes = 1 << 30;     // of the file that SQLite may map into memory

struct statement_deleter {
  void operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
};
using statement = std::unique_ptr<sqlite3_stmt, statement_deleter>;

/// A connection and its file, for messages.
struct database {
  sqlite3* handle = nullptr;
  fs::path file;

  database() = default;
  database(const database&) = delete;
  database& operator=(const database&) = delete;
  ~database() { sqlite3_close_v2(handle); }

  tl::unexpected<error> problem(const char* what) const {
    const int code = handle ? sqlite3_errcode(handle) & 0xff : SQLITE_NOMEM;
    const std::string why = handle ? sqlite3_errmsg(handle) : "out of memory";
    if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB || code == SQLITE_ERROR)
      return fail(ec::parse_error, file.string() + " is damaged (" + what + ": " + why + ")",
                  "it is made of other data and can be built again: `pragma kb build`");
    if (code == SQLITE_CANTOPEN) {
      std::error_code ignored;
      return fail(fs::exists(file, ignored) ? ec::io_error : ec::not_found, "cannot open " + file.string() + ": " + why);
    }
    return fail(code == SQLITE_FULL || code == SQLITE_IOERR || code == SQLITE_READONLY ? ec::io_error : ec::internal,
                std::string("cannot ") + what + " " + file.string() + ": " + why,
                code == SQLITE_FULL ? "the disk is full: free some space and try again" : "");
  }
  expected<void> run(const char* sql, const char* what) {
    if (sqlite3_exec(handle, sql, nullptr, nullptr, nullptr) != SQLITE_OK) return problem(what);
    return {};
  }
  expected<statement> prepare(const char* sql) {
    sqlite3_stmt* raw = nullptr;
    if (sqlite3_prepare_v3(handle, sql, -1, SQLITE_PREPARE_PERSISTENT, &raw, nullptr) != SQLITE_OK) return problem("read");
    return statement(raw);
  }
  expected<int64_t> number(const char* sql) {
    auto s = prepare(sql);
    if (!s) return fail(s.error());
    if (sqlite3_step(s->get()) != SQLITE_ROW) return problem("read");
    return sqlite3_column_int64(s->get(), 0);
  }
};

/// What makes one token in the table and in an expression: nothing but letters, digits and bytes above 127.
std::string only_token_bytes(const std::string& token) {
  std::string out;
  for (const char c : token)
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || static_cast<unsigned char>(c) >= 0x80) out += c;
  return out;
}

/// "a" OR "b": each token a quoted string without a quote in it.
std::string expression_of(const std::vector<std::string>& tokens, std::string_view column) {
  std::vector<std::string> terms;
  for (const auto& token : tokens) {
    auto term = '"' + only_token_bytes(token) + '"';
    if (term.size() == 2 || std::find(terms.begin(), terms.end(), term) != terms.end()) continue;
    terms.push_back(std::move(term));
    if (terms.size() == max_query_tokens) break;
  }
  if (terms.empty()) return {};
  auto all = join(terms, " OR ");
  return column.empty() ? all : std::string(column) + " : (" + all + ")";
}

/// file: address of a path, for the parameter behind it.
std::string uri_of(const fs::path& file) {
  static constexpr char hex[] = "0123456789ABCDEF";
  std::string out = "file:";
  for (const char c : fs::absolute(file).string()) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > ' ' && byte < 0x7f && c != '%' && c != '?' && c != '#') out += c;
    else out += {'%', hex[byte >> 4], hex[byte & 15]};
  }
  return out + "?immutable=1";
}

void bind_text(const statement& s, int place, const std::string& text) {
  sqlite3_bind_text64(s.get(), place, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
}

} // namespace

// -- writing -------------------------------------------------------------------------------------------------------

struct lexical_writer::state {
  database db;
  fs::path target;
  statement insert;
  int64_t rows = 0;
  bool finished = false;

  ~state() {
    if (!finished && !db.file.empty()) ::unlink(db.file.c_str());
  }
};

lexical_writer::lexical_writer(std::unique_ptr<state> s) : state_(std::move(s)) {}
lexical_writer::lexical_writer(lexical_writer&&) noexcept = default;
lexical_writer& lexical_writer::operator=(lexical_writer&&) noexcept = default;
lexical_writer::~lexical_writer() = default;

expected<lexical_writer> lexical_writer::create(const fs::path& file) {
  auto s = std::make_unique<state>();
  s->target = file;
  std::string neighbour = file.string() + ".XXXXXX";
  const int fd = ::mkostemp(neighbour.data(), O_CLOEXEC);
  if (fd < 0) return fail(ec::io_error, "cannot create a file beside " + file.string() + ": " + std::strerror(errno));
  ::close(fd);
  auto& db = s->db;
  db.file = neighbour;
  if (sqlite3_open_v2(neighbour.c_str(), &db.handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr) != SQLITE_OK)
    return db.problem("create");
  const auto set_up = "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE; PRAGMA temp_store=MEMORY;"
                      "PRAGMA application_id=" + std::to_string(application_id) + "; PRAGMA user_version=" + std::to_string(lexical_schema) +
                      "; CREATE TABLE about(rows INTEGER);"
                      "CREATE VIRTUAL TABLE words USING fts5(name, meaning, rest, content='', tokenize='ascii');"
                      "INSERT INTO words(words, rank) VALUES('hashsize', " + std::to_string(hash_bytes) + "); BEGIN;";
  if (auto done = db.run(set_up.c_str(), "create"); !done) return fail(done.error());
  auto insert = db.prepare("INSERT INTO words(rowid, name, meaning, rest) VALUES(?1, ?2, ?3, ?4)");
  if (!insert) return fail(insert.error());
  s->insert = std::move(*insert);
  return lexical_writer(std::move(s));
}

expected<void> lexical_writer::add(int64_t row, const std::string& name, const std::string& meaning, const std::string& rest) {
  auto& s = *state_;
  sqlite3_bind_int64(s.insert.get(), 1, row);
  bind_text(s.insert, 2, name);
  bind_text(s.insert, 3, meaning);
  bind_text(s.insert, 4, rest);
  const bool done = sqlite3_step(s.insert.get()) == SQLITE_DONE;
  auto outcome = done ? expected<void>{} : expected<void>(s.db.problem("write"));
  sqlite3_reset(s.insert.get());
  sqlite3_clear_bindings(s.insert.get());
  ++s.rows;
  return outcome;
}

expected<void> lexical_writer::finish() {
  auto& s = *state_;
  s.insert.reset();
  const auto end = "INSERT INTO words(words) VALUES('optimize'); INSERT INTO about VALUES(" + std::to_string(s.rows) + "); COMMIT;";
  if (auto done = s.db.run(end.c_str(), "write"); !done) return done;
  sqlite3_close_v2(s.db.handle);
  s.db.handle = nullptr;
  const int fd = ::open(s.db.file.c_str(), O_RDONLY | O_CLOEXEC);
  const mode_t mask = ::umask(0);
  ::umask(mask);
  const bool synced = fd >= 0 && ::fchmod(fd, 0666 & ~mask) == 0 && ::fsync(fd) == 0;
  const int why = errno;
  if (fd >= 0) ::close(fd);
  if (!synced) return fail(ec::io_error, "cannot write " + s.db.file.string() + ": " + std::strerror(why));
  if (::rename(s.db.file.c_str(), s.target.c_str()) != 0)
    return fail(ec::io_error, "cannot write " + s.target.string() + ": " + std::strerror(errno));
  s.finished = true;
  return {};
}

// -- reading -------------------------------------------------------------------------------------------------------

struct lexical_index::state {
  std::mutex mutex;
  database db;
  statement by_tokens, by_term;
  int64_t rows = 0;

  expected<std::vector<lexical_hit>> ask(const std::string& expression, size_t limit) {
    std::vector<lexical_hit> hits;
    if (expression.empty() || limit == 0) return hits;
    const std::lock_guard lock(mutex);
    bind_text(by_tokens, 1, expression);
    sqlite3_bind_int64(by_tokens.get(), 2, static_cast<int64_t>(std::min<size_t>(limit, 1u << 30)));
    int code = SQLITE_ROW;
    while ((code = sqlite3_step(by_tokens.get())) == SQLITE_ROW) {
      const auto row = sqlite3_column_int64(by_tokens.get(), 0);
      const double score = -sqlite3_column_double(by_tokens.get(), 1);
      if (row >= 0 && row < rows && std::isfinite(score)) hits.push_back({row, score});
    }
    auto outcome = code == SQLITE_DONE ? expected<void>{} : expected<void>(db.problem("search"));
    sqlite3_reset(by_tokens.get());
    sqlite3_clear_bindings(by_tokens.get());
    if (!outcome) return fail(outcome.error());
    return hits;
  }
};

lexical_index::lexical_index(std::unique_ptr<state> s) : state_(std::move(s)) {}
lexical_index::lexical_index(lexical_index&&) noexcept = default;
lexical_index& lexical_index::operator=(lexical_index&&) noexcept = default;
lexical_index::~lexical_index() = default;

expected<lexical_index> lexical_index::open(const fs::path& file, bool verify) {
  auto s = std::make_unique<state>();
  auto& db = s->db;
  db.file = file;
  if (sqlite3_open_v2(uri_of(file).c_str(), &db.handle, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, nullptr) != SQLITE_OK)
    return db.problem("open");
  // The file is a stranger's until its numbers are checked: no functions of its schema, no page that is not what it says.
  sqlite3_db_config(db.handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(db.handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  const auto set_up = "PRAGMA cell_size_check=ON; PRAGMA temp_store=MEMORY; PRAGMA mmap_size=" + std::to_string(map_bytes) + ";";
  if (auto done = db.run(set_up.c_str(), "open"); !done) return fail(done.error());
  const auto id = db.number("PRAGMA application_id"), version = db.number("PRAGMA user_version");
  if (!id) return fail(id.error());
  if (!version) return fail(version.error());
  if (*id != application_id || *version != lexical_schema)
    return fail(ec::parse_error, file.string() + " is not a lexical index of this version of pragma",
                "it is made of other data and can be built again: `pragma kb build`");
  if (verify) {
    auto check = db.prepare("PRAGMA quick_check(1)");
    if (!check) return fail(check.error());
    const char* answer = sqlite3_step(check->get()) == SQLITE_ROW ? reinterpret_cast<const char*>(sqlite3_column_text(check->get(), 0)) : nullptr;
    if (!answer || std::string_view(answer) != "ok")
      return fail(ec::parse_error, file.string() + " is damaged (" + (answer ? answer : sqlite3_errmsg(db.handle)) + ")",
                  "it is made of other data and can be built again: `pragma kb build`");
  }
  const auto rows = db.number("SELECT rows FROM about");
  if (!rows) return fail(rows.error());
  s->rows = *rows;
  const auto query = "SELECT rowid, bm25(words, " + format_number(name_weight, 3) + ", " + format_number(meaning_weight, 3) + ", " +
                     format_number(rest_weight, 3) + ") AS cost FROM words WHERE words MATCH ?1 ORDER BY cost, rowid LIMIT ?2";
  auto by_tokens = db.prepare(query.c_str());
  if (!by_tokens) return fail(by_tokens.error());
  s->by_tokens = std::move(*by_tokens);
  if (auto made = db.run("CREATE VIRTUAL TABLE temp.terms USING fts5vocab(main, words, row)", "open"); !made) return fail(made.error());
  auto by_term = db.prepare("SELECT doc FROM temp.terms WHERE term = ?1");
  if (!by_term) return fail(by_term.error());
  s->by_term = std::move(*by_term);
  return lexical_index(std::move(s));
}

expected<std::vector<lexical_hit>> lexical_index::search(const std::vector<std::string>& tokens, size_t limit) const {
  return state_->ask(expression_of(tokens, ""), limit);
}

expected<std::vector<lexical_hit>> lexical_index::search_names(const std::vector<std::string>& tokens, size_t limit) const {
  return state_->ask(expression_of(tokens, "name"), limit);
}

expected<lexical_index::frequency> lexical_index::frequency_of(const std::string& token) const {
  auto& s = *state_;
  const std::lock_guard lock(s.mutex);
  const auto plain = only_token_bytes(token);
  bind_text(s.by_term, 1, plain);
  const int code = sqlite3_step(s.by_term.get());
  frequency f;
  if (code == SQLITE_ROW) f.documents = sqlite3_column_int64(s.by_term.get(), 0);
  auto outcome = code == SQLITE_ROW || code == SQLITE_DONE ? expected<void>{} : expected<void>(s.db.problem("search"));
  sqlite3_reset(s.by_term.get());
  sqlite3_clear_bindings(s.by_term.get());
  if (!outcome) return fail(outcome.error());
  const auto n = static_cast<double>(s.rows), d = static_cast<double>(std::clamp<int64_t>(f.documents, 0, s.rows));
  f.idf = std::max(1e-6, std::log((n - d + 0.5) / (d + 0.5)));
  return f;
}

int64_t lexical_index::size() const { return state_->rows; }

} // namespace pragma
