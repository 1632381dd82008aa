// What each tool prints, parsed into plain data. Nothing here starts a program: the parsers are tested on recorded
// output (tests/profilers/data). One .cpp per tool; collect.cpp puts the results together.
#pragma once

#include "base/error.hpp"
#include "diagnosis/profile.hpp"
#include "profilers/hardware.hpp"

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace pragma::formats {

/// `lscpu -J` (flat, or the nested form of newer util-linux). Facts that it does not print stay empty or zero.
expected<cpu_facts> parse_lscpu(std::string_view json_text);
/// "32K", "512 KiB", "65536", "1.5 MiB", "64 KiB (2 instances)": bytes; per instance where instances are given.
int64_t parse_size(std::string_view text);

// -- perf stat -j --------------------------------------------------------------------------------------------------

/// One event or metric of `perf stat -j`, JSON lines on stderr, as 6.1 and 6.12 write them.
struct perf_value {
  std::string event;              ///< as asked for, without ":u" and the "cpu_core/.../" wrapping
  bool counted = false;           ///< false: "<not supported>" or "<not counted>"
  double value = 0;               ///< already scaled by perf for multiplexing
  std::string unit;               ///< "msec" for clocks
  double percent_running = 100;   ///< share of the time that the event was on the PMU
};
struct perf_output {
  std::vector<perf_value> events;
  std::map<std::string, double> topdown; ///< our names without "topdown.": "retiring" -> 38.5 (%)
  std::vector<std::string> messages;     ///< lines that are not JSON: perf's own complaints
};
/// Never fails: a line that cannot be read is a message. Whether a metric is there is the caller's test, not perf's rc.
perf_output parse_perf_json(std::string_view text);
/// Event names of `perf list --no-desc`, with their aliases, without tracepoints, breakpoints and raw descriptors.
std::vector<std::string> parse_perf_list(std::string_view text);

// -- callgrind -----------------------------------------------------------------------------------------------------

struct callgrind_output {
  std::vector<std::string> events;                     ///< "Ir", "Dr", ...
  std::map<std::string, double> totals;                ///< by event
  std::map<std::pair<std::string, int>, double> lines; ///< {file, line} -> Ir of that line itself, without callees
  /// The same with inlined code of other files (intrinsics, <cmath>) counted at the line before it in the function's own file.
  std::map<std::pair<std::string, int>, double> own_lines;
  std::map<uint64_t, double> addresses;                ///< instruction address -> Ir, with --dump-instr=yes
  struct call {
    std::string file, callee; ///< where it stands (the function's own file, as in own_lines), what it calls
    int line = 0;
    uint64_t address = 0;
    double ir = 0;            ///< of the callee with all that it called
  };
  std::vector<call> calls;                             ///< of functions in other files: the C library, libgomp
  std::vector<std::string> caches;                     ///< "desc:" lines: the simulated caches
};
/// A callgrind.out file (format 1, with or without compressed names and positions). parse_error names the line.
expected<callgrind_output> parse_callgrind(std::string_view text);

// -- llvm-mca ------------------------------------------------------------------------------------------------------

struct mca_output {
  int iterations = 0;
  double instructions = 0, cycles = 0, uops = 0; ///< over all iterations
  double ipc = 0, uops_per_cycle = 0, block_rthroughput = 0;
  bool has_bottleneck = false;                   ///< the analysis found something that holds the loop back
  double backend_pressure = 0, resource_pressure = 0, data_dependencies = 0; ///< % of cycles
  double register_dependencies = 0, memory_dependencies = 0;
  std::string top_port;                          ///< name of the busiest resource
  double top_port_cycles = 0;                    ///< per iteration
};
/// The text report with --bottleneck-analysis (LLVM 14 prints no bottleneck analysis in JSON).
expected<mca_output> parse_mca_text(std::string_view text);

// -- objdump -------------------------------------------------------------------------------------------------------

struct instruction {
  uint64_t address = 0;
  std::string mnemonic, operands;  ///< AT&T syntax
  int line = 0;                    ///< source line, 0 = unknown
  std::string file;                ///< base name of the source file
  int own_line = 0;                ///< line in the function's own file: of inlined code, the line before it there
  uint64_t target = 0;             ///< of a direct jump or call, else 0
  std::string target_symbol;       ///< "expf" in "call 401040 <expf>"
};
/// Bytes that an operand in memory of this instruction has; 0 for integers of the scalar unit.
double memory_bytes(const instruction& i);
/// Bytes of a number in memory that an integer instruction changes where it lies ("addl $0x1,(%rax)", "incq 8(%rax)"); 0 of all others.
double changed_in_place(std::string_view mnemonic);
/// Does it work on several values at once: packed arithmetic, or a move of a vector of 128 bits and more?
bool on_vectors(const instruction& i);
/// AT&T operands, split at the commas outside of parentheses.
std::vector<std::string> operands_of(const std::string& text);
struct code_function {
  std::string name;
  std::vector<instruction> body;
};
/// `objdump -d -l --no-show-raw-insn`.
std::vector<code_function> parse_objdump(std::string_view text);

struct hot_loop {
  std::string function;
  std::vector<instruction> body;   ///< the instructions of the natural loop, in address order
  int line = 0;
  int instructions = 0, vector_bits = 0, divides = 0, gathers = 0, calls = 0, streaming_stores = 0, stores = 0;
  int packed_arithmetic = 0, scalar_arithmetic = 0; ///< floating point
  int fused = 0, shuffles = 0;     ///< multiply-adds; permutes, unpacks, inserts, extracts
  int vector_instructions = 0;     ///< that work on vectors, loads and stores among them
  int widening = 0, of_doubles = 0; ///< conversions of float32 to float64; arithmetic of float64
  int multiplies = 0;              ///< of floating-point numbers, that no addition is fused with
  int branches = 0;                ///< conditional jumps that do not go back to its beginning
  double flops = 0, loaded_bytes = 0, stored_bytes = 0, streamed_bytes = 0; ///< of one trip; vectors and floats, the stack and constants left out
  int chains = 0;                  ///< registers (or places in memory) that carry a floating-point result from one trip to the next
  bool memory_chain = false;       ///< one of them is a place in memory
  int chain_operations = 0;        ///< on the longest way of such a result from the beginning of a trip to its end; 0 = none is carried
  double weight = 0;               ///< instructions executed there (callgrind), 0 = not known
  double share = 0;                ///< of the samples of the candidate's time, 0..1; 0 = not known
  double twin_trips = 0;           ///< in a call, by a twin with other instructions (trips_by_twin()); 0 = not known
  std::vector<std::string> called; ///< symbols called inside
  bool has_vector_share() const { return packed_arithmetic + scalar_arithmetic > 0; }
  double vector_share() const { return 100.0 * packed_arithmetic / (packed_arithmetic + scalar_arithmetic); }
};
/// All innermost natural loops of these functions, hottest first: by `executed` (how
/// often an instruction ran, or a share of that; may be empty), then by floating-point arithmetic, vectors, size.
std::vector<hot_loop> innermost_loops(const std::vector<code_function>& functions,
                                      const std::function<double(const instruction&)>& executed = {});
/// The same loop without the parts of it that divide and in which nothing was seen: a division takes long enough to be, so they are for rare values and not run. `seen`: how often an
/// instruction was. Parts end at jumps and where jumps lead.
hot_loop without_unseen(const hot_loop& loop, const std::function<double(const instruction&)>& seen);
/// Which registers carry results of floating-point arithmetic from one trip through this body to the next: read before they are written, and written
/// from arithmetic. `in_memory`: places of memory with an address that does not change, which are read and written back.
struct carried_results {
  int registers = 0, in_memory = 0;
  int operations = 0;              ///< floating-point operations one after the other, from such a register or place to one of them: what a trip must wait for
};
carried_results carried_by(const std::vector<instruction>& body);
/// Only the functions with code of this source file (the candidate's, not the C library that is linked in).
std::vector<code_function> functions_of(std::vector<code_function> functions, std::string_view source_name);
/// The loop as assembler text that llvm-mca reads: jumps to labels, no addresses.
std::string mca_input(const hot_loop& loop);

// -- compiler remarks ----------------------------------------------------------------------------------------------

/// gcc's -fopt-info-vec-all text or clang's -Rpass text: remarks on `source_name` only, each once, `vectorized` before
/// `missed`, at most `limit`. A missed line that was vectorised in another version of the loop is left out.
std::vector<remark> parse_remarks(std::string_view text, std::string_view source_name, const std::string& compiler,
                                  size_t limit = 60);
/// Counts over remarks: vectorised lines, missed lines, widest vector in bytes (0 = not said).
struct remark_counts {
  int vectorized = 0, missed = 0, vector_bytes = 0;
};
remark_counts count_remarks(const std::vector<remark>& remarks);

} // namespace pragma::formats
