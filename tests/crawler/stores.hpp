// A crawl_store in memory, which may keep a log in a file (so that it survives a kill) and may run out of space.
#pragma once

#include "base/files.hpp"
#include "crawler/crawl.hpp"

#include <map>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace pragma::test {

class test_store : public crawl_store {
public:
  test_store() = default;
  /// Reads what is there (a last line that is cut short is left out) and appends to it.
  explicit test_store(const std::string& log) {
    auto text = read_file(log, 1u << 30);
    size_t whole = 0;
    if (text)
      for (size_t at = 0, end; (end = text->find('\n', at)) != std::string::npos; at = whole = end + 1) {
        auto line = parse_json(std::string_view(*text).substr(at, end - at), "log");
        if (!line) break;
        apply(*line);
      }
    file_ = ::open(log.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (file_ >= 0 && (::ftruncate(file_, static_cast<off_t>(whole)) != 0 || ::lseek(file_, 0, SEEK_END) < 0)) file_ = -1;
  }
  ~test_store() override {
    if (file_ >= 0) ::close(file_);
  }
  test_store(const test_store&) = delete;
  test_store& operator=(const test_store&) = delete;

  expected<std::vector<page_record>> pages(const std::string&) override {
    std::vector<page_record> out;
    for (const auto& [url, record] : records) out.push_back(record);
    return out;
  }
  expected<void> commit(const std::string&, const page_record& page, const std::optional<std::vector<segment>>& new_segments,
                        const std::vector<page_record>& found) override {
    if (commits_left == 0) return fail(ec::io_error, "cannot write /store/000012.log: No space left on device");
    if (commits_left > 0) --commits_left;
    ++commits;
    if (new_segments) rewritten += new_segments->size();
    for (const auto& record : found) records[record.url] = record;
    records[page.url] = page;
    if (new_segments) segments[page.url] = *new_segments;
    if (file_ < 0) return {};
    json line = {{"page", page}, {"found", found}};
    if (new_segments) line["segments"] = *new_segments;
    return append(line);
  }
  expected<json> crawl_state(const std::string&) override { return state; }
  expected<void> put_crawl_state(const std::string&, const json& value) override {
    state = value;
    if (file_ < 0) return {};
    return append({{"state", value}});
  }

  std::map<std::string, page_record> records;
  std::map<std::string, std::vector<segment>> segments;
  json state;
  int commits_left = -1;    ///< -1: without end
  int64_t commits = 0;
  size_t rewritten = 0;     ///< segments that were stored, also again

private:
  expected<void> append(const json& line) {
    const auto text = line.dump() + "\n";
    if (::write(file_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) return fail(ec::io_error, "cannot write the log");
    return {};
  }
  void apply(const json& line) {
    if (line.contains("state")) {
      state = line["state"];
      return;
    }
    for (const auto& record : line["found"]) {
      auto r = record.get<page_record>();
      records[r.url] = r;
    }
    auto page = line["page"].get<page_record>();
    records[page.url] = page;
    if (line.contains("segments")) segments[page.url] = line["segments"].get<std::vector<segment>>();
  }
  int file_ = -1;
};

} // namespace pragma::test
