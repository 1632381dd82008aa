// Files of sections: read back as written, and nothing of a damaged one is believed.
#include "base/files.hpp"
#include "base/hash.hpp"
#include "base/section_file.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

using namespace pragma;
namespace fs = std::filesystem;

TEST_CASE("sections are read back as they were written") {
  auto dir = temp_dir::create("sections");
  const auto file = dir->path() / "file";
  const std::vector<double> numbers(300'000, 1.5); // more than one write buffer
  const std::string text = "some text";
  {
    auto writer = section_writer::create(file, "test 1");
    REQUIRE(writer);
    REQUIRE(writer->begin("numbers"));
    for (size_t i = 0; i < numbers.size(); i += 1000) REQUIRE(writer->write(&numbers[i], 1000 * sizeof(double)));
    REQUIRE(writer->put("text", std::span<const char>(text)));
    REQUIRE(writer->put("empty", std::span<const int>()));
    CHECK_FALSE(fs::exists(file)); // not before it is whole
    REQUIRE(writer->finish());
  }
  const auto opened = section_file::open(file, "test 1");
  REQUIRE(opened);
  CHECK(opened->verify());
  const auto read = opened->section<double>("numbers");
  REQUIRE(read);
  CHECK(std::vector<double>(read->begin(), read->end()) == numbers);
  const auto read_text = opened->section<char>("text");
  REQUIRE(read_text);
  CHECK(std::string(read_text->begin(), read_text->end()) == text);
  CHECK(opened->section<int>("empty")->empty());
  CHECK(opened->section<char>("none").error().code == ec::parse_error);
  CHECK(opened->section<double>("text").error().code == ec::parse_error); // 9 bytes are no doubles
  CHECK(section_file::open(file, "test 2").error().code == ec::parse_error);
  CHECK(section_file::open(dir->path() / "none", "test 1").error().code == ec::not_found);
  CHECK(section_file::open("/dev/zero", "test 1").error().code == ec::io_error);
}

TEST_CASE("an unfinished file leaves nothing, and does not touch the old one") {
  auto dir = temp_dir::create("sections");
  const auto file = dir->path() / "file";
  REQUIRE(write_file_atomic(file, "old"));
  {
    auto writer = section_writer::create(file, "test 1");
    REQUIRE(writer);
    REQUIRE(writer->put("text", std::span<const char>("abc", 3)));
  }
  CHECK(*read_file(file) == "old");
  CHECK(std::distance(fs::directory_iterator(dir->path()), fs::directory_iterator()) == 1);
  CHECK(section_writer::create(dir->path() / "none" / "file", "test 1").error().code == ec::io_error);
}

TEST_CASE("a hash in pieces is the hash of the whole") {
  sha256_stream stream;
  for (int round = 0; round < 2; ++round) { // usable again after finish_hex()
    stream.update("ab");
    stream.update("");
    stream.update("c");
    CHECK(stream.finish_hex() == sha256_hex("abc"));
  }
  CHECK(hash64("abc") == hash64("abc"));
  CHECK(hash64("abc") != hash64("abd"));
  CHECK(hash64("abc", 1) != hash64("abc", 2));
}
