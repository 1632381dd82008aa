#include "execution/executable_check.hpp"
#include "tests/fixtures/runner_fixture.hpp"

#include "base/hash.hpp"
#include "base/subprocess.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <sys/stat.h>

using namespace pragma;
using namespace pragma_test;

namespace {

error refused(const candidate& c, const build_options& options = {}) {
  auto output = build_candidate(c, options);
  REQUIRE_FALSE(output);
  return output.error();
}

bool has_clang() {
  const auto found = compilers();
  return std::any_of(found.begin(), found.end(), [](const auto& c) { return c.first == "clang"; });
}

} // namespace

TEST_CASE("Flags that only change the code are allowed", "[build]") {
  CHECK(check_flags({"-O3", "-march=native", "-mtune=znver3", "-mprefer-vector-width=512", "-ffast-math", "-fno-math-errno", "-funroll-loops",
                     "-fopenmp", "-fopenmp-simd", "-mavx2", "-mno-avx512f", "-DTILE=64", "-D NDEBUG"}).error().message ==
        "compiler flag '-D NDEBUG' is not allowed: it is not on the list of flags that only change the code");
  CHECK(check_flags({"-Ofast", "-mavx512vl", "-mfma", "-DTILE=64", "-DX", "-UY", "--param", "max-unroll-times=8", "--param=vect-max-version-for-alias-checks=50",
                     "-std=c++20", "-std=gnu++17", "-Wall", "-Wno-unused-variable", "-g", "-fvect-cost-model=unlimited", "-falign-loops=32",
                     "-fno-tree-vectorize", "-pthread", "-fno-exceptions", "-mrecip=all"}));
  CHECK(check_flags({}));
}

TEST_CASE("Flags that read, write, load or run something are refused by name and reason", "[build]") {
  for (const char* flag :
       {"-fplugin=/tmp/evil.so", "-fplugin-arg-x-y", "-B/tmp", "-B", "@/tmp/flags", "-I/etc", "-I", "-include", "-include/etc/passwd", "-imacros", "-isystem/root",
        "-iquote/etc", "-idirafter/etc", "-isysroot", "--sysroot=/", "-lssl", "-L/tmp", "-Wl,-rpath,/tmp", "-Wl", "-Wa,-I/etc", "-Wp,-MD,/tmp/x", "-Xlinker",
        "-Xassembler", "-Xclang", "-mllvm", "-x", "-xassembler", "-o", "-o/tmp/x", "-specs=/tmp/s", "-specs", "--specs=/tmp/s", "-wrapper", "-wrapper,sh",
        "-fdump-tree-all", "-fdump-rtl-all=/tmp/x", "-save-temps", "-T/tmp/script", "-fuse-ld=gold", "-fprofile-use=/etc/passwd", "-fprofile-generate",
        "-fopt-info-all=/tmp/x", "-MD", "-MF/tmp/x", "-E", "-S", "-c", "-shared", "-pie", "-flto", "-fsanitize=address", "-fstack-usage", "-fcallgraph-info",
        "-fdebug-prefix-map=a=b", "-fauto-profile=/etc/passwd", "-foffload=x", "-fmodules-ts", "-fmodule-mapper=|sh", "-ftrack-macro-expansion=1 -B/tmp",
        "-nostdlib", "-nostartfiles", "-static-pie", "-m32", "-mx32", "-mcmodel=large", "/etc/passwd", "other.cpp", "-DX=a b", "-DX=\"$(id)\"",
        "-DX=../../etc/passwd", "-march=native -B/tmp", "", "-", "--help", "-v", "-###", "-dumpspecs", "-print-prog-name=cc1", "--param=x=/etc", "-O3\n-B/tmp"}) {
    INFO(flag);
    const auto answer = check_flags({"-O2", flag});
    REQUIRE_FALSE(answer);
    CHECK(answer.error().code == ec::invalid_argument);
    CHECK_THAT(answer.error().message, Catch::Contains("is not allowed: "));
  }
  CHECK_THAT(check_flags({"-fplugin=x.so"}).error().message, Catch::Contains("loads code into the compiler"));
  CHECK_FALSE(check_flags({"--param"}));
  CHECK_FALSE(check_flags({"--param", "-B/tmp"}));
  CHECK_FALSE(check_flags(std::vector<std::string>(1000, "-O2")));
  CHECK_FALSE(check_flags({std::string(100000, 'x')}));
}

TEST_CASE("A candidate becomes one static executable with a hash", "[build]") {
  const auto output = built(from_source(doubling, {"-O3", "-march=native", "-ffast-math"}));
  CHECK(output.binary_hash == sha256_hex(*read_file(output.executable)));
  CHECK(output.log.empty());
  CHECK_THAT(output.compiler_version, Catch::StartsWith("gcc "));
  CHECK(output.seconds > 0);
  CHECK(output.assembly.empty());
  struct stat info {};
  REQUIRE(::stat(output.executable.c_str(), &info) == 0);
  CHECK(info.st_uid == ::geteuid()); // not the compiler's any more
}

TEST_CASE("What the kernel would refuse or what could run unseen is refused as the candidate's mistake", "[build]") {
  const auto refusal = [](const std::string& section) {
    auto made = build_candidate(from_source("__asm__(\"" + section + "\\n.text\\n\");\n" + doubling));
    REQUIRE_FALSE(made);
    CHECK(made.error().code == ec::build_failed);
    return made.error().message;
  };
  CHECK_THAT(refusal(".section .interp,\\\"a\\\",@progbits\\n.string \\\"/no/such/file\\\""), Catch::Contains("interpreter"));
  CHECK_THAT(refusal(".section .note.GNU-stack,\\\"x\\\",@progbits"), Catch::Contains("stack"));
  CHECK_THAT(refusal(".section .scratch,\\\"awx\\\",@progbits\\n.fill 8"), Catch::Contains("both written and executed"));
  CHECK_FALSE(check_executable("no ELF at all"));
  std::string cut(70, '\0');
  CHECK_FALSE(check_executable(cut));
}

TEST_CASE("Assembly and vectorisation remarks come along when they are wanted", "[build]") {
  build_options options;
  options.want_assembly = true;
  options.want_remarks = true;
  const auto output = built(from_source(doubling, {"-O3"}), options);
  CHECK_THAT(output.assembly, Catch::Contains("pragma_kernel"));
  CHECK_THAT(output.remarks_text, Catch::Contains("candidate.cpp:") && Catch::Contains("vectorized"));
  if (!has_clang()) return;
  const auto with_clang = built(from_source(doubling, {"-O3"}, "clang"), options);
  CHECK_THAT(with_clang.remarks_text, Catch::Contains("candidate.cpp:") && Catch::Contains("remark: vectorized loop"));
  CHECK_THAT(with_clang.log, !Catch::Contains("remark"));
  tensors t(1000);
  auto runner = runner_process::start(with_clang, t.memory, {});
  REQUIRE(runner);
  REQUIRE(runner->call(0, 1, 1, 5));
  CHECK(t.y(*runner, 0)[3] == 2 * t.x(0)[3]);
}

TEST_CASE("clang has no static OpenMP library: -fopenmp is refused with the way out", "[build]") {
  if (!has_clang()) return;
  const auto e = refused(from_source(doubling, {"-fopenmp"}, "clang"));
  CHECK(e.code == ec::invalid_argument);
  CHECK_THAT(e.hint, Catch::Contains("-fopenmp-simd"));
}

TEST_CASE("A tool chain that finds no process is asked again, and is nobody's fault then", "[build]") {
  // What g++ says where the user has no process left; the driver itself is run_process()'s to start again (subprocess_test.cpp).
  const auto e = refused(from_source("#line 1 \"g++: fatal error: cannot execute 'cc1plus': vfork\"\n#error Resource temporarily unavailable\n"));
  CHECK(e.code == ec::busy);
  CHECK_THAT(e.message, Catch::Contains("no process"));
}

TEST_CASE("Extra flags for a twin win over the candidate's own", "[build]") {
  build_options options;
  options.want_assembly = true;
  options.extra_flags = {"-march=x86-64"};
  const auto output = built(from_source(doubling, {"-O3", "-march=x86-64-v4", "-mprefer-vector-width=512"}), options);
  CHECK_THAT(output.assembly, !Catch::Contains("%zmm") && !Catch::Contains("%ymm"));
}

TEST_CASE("Compile errors are one sentence with the line; the log is cut and names candidate.cpp", "[build]") {
  auto e = refused(from_source("#include \"pragma_kernel.h\"\nvoid pragma_kernel(const pragma_args* a) {\n  int x = ;\n}\n"));
  CHECK(e.code == ec::build_failed);
  CHECK_THAT(e.message, Catch::Contains("compiling failed: ") && Catch::Contains("(line 3)"));
  CHECK_THAT(e.hint, Catch::StartsWith("candidate.cpp: In function"));
  CHECK_THAT(e.hint, !Catch::Contains("/tmp/"));

  e = refused(from_source("int unrelated;\n"));
  CHECK(e.code == ec::build_failed);
  CHECK_THAT(e.message, Catch::Contains("does not define extern \"C\" void pragma_kernel"));

  e = refused(from_source(with_attack("", "extern \"C\" void nowhere(); nowhere();")));
  CHECK(e.code == ec::build_failed);

  e = refused(from_source(std::string(17 << 20, ' ')));
  CHECK(e.code == ec::build_failed);
  CHECK_THAT(e.message, Catch::Contains("limit"));

  candidate c = from_source(doubling);
  c.compiler = "tcc; rm -rf /";
  CHECK(refused(c).code == ec::invalid_argument);
}

TEST_CASE("The compiler reads nothing but the system's headers, whoever runs it", "[build]") {
  // A file that its owner alone may read, and a world-readable one outside the system folders.
  auto folder = temp_dir::create("pragma-secret-", 0755);
  REQUIRE(folder);
  const auto secret = folder->path() / "secret.h";
  REQUIRE(write_file_atomic(secret, "#define SECRET_TOKEN 4711\n"));
  const auto facts = sandbox_facts();
  const bool landlock = std::any_of(facts.begin(), facts.end(), [](const auto& f) { return f.first == "landlock" && f.second.rfind("abi", 0) == 0; });
  std::vector<std::string> forbidden = {"/etc/shadow", "/dev/zero", "/proc/self/environ", "/proc/1/environ"};
  if (landlock) forbidden.insert(forbidden.end(), {"/etc/passwd", secret.string()});
  for (const auto& path : forbidden) {
    INFO(path);
    const auto included = refused(from_source("#include \"" + path + "\"\n" + doubling));
    CHECK(included.code == ec::build_failed);
    CHECK_THAT(included.message + included.hint, Catch::Contains("ermission denied") || Catch::Contains("No such file"));
    CHECK_THAT(included.hint, !Catch::Contains("root:") && !Catch::Contains("4711"));
    const auto embedded = refused(from_source("__asm__(\".section .rodata\\nstolen: .incbin \\\"" + path + "\\\"\\n.text\");\n" + doubling));
    CHECK(embedded.code == ec::build_failed);
  }
}

TEST_CASE("A compilation that would not end is stopped", "[build]") {
  build_options options;
  options.cpu_seconds = 1;
  const auto endless = from_source("template <long N, long M> struct bomb { static const long v = bomb<N - 1, 2 * M>::v + bomb<N - 1, 2 * M + 1>::v; };\n"
                                     "template <long M> struct bomb<0, M> { static const long v = 1; };\n"
                                     "long boom = bomb<40, 1>::v;\n");
  const auto e = refused(endless, options);
  CHECK(e.code == ec::build_failed);
  CHECK_THAT(e.message, Catch::Contains("longer than 1 s of CPU time"));
  // Where the machine gives it too little of its time, it is not to blame.
  options.cpu_seconds = 60;
  options.wall_seconds = 0.5;
  CHECK(refused(endless, options).code == ec::busy);
  // And Ctrl-C is noticed.
  std::atomic<bool> cancel = true;
  options.cancel = &cancel;
  CHECK(refused(from_source(doubling), options).code == ec::interrupted);
}

TEST_CASE("A flood of messages is cut", "[build]") {
  std::string source;
  for (int i = 0; i < 300; ++i) source += "int a" + std::to_string(i) + " = undefined_name_" + std::to_string(i) + ";\n";
  const auto e = refused(from_source(source));
  CHECK(e.hint.size() < 20000);
  CHECK_THAT(e.hint, Catch::Contains("lines left out"));
  CHECK_THAT(e.message, Catch::Contains("undefined_name_0") && Catch::Contains("(line 1)"));
}
