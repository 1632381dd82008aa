#include "synthesis/cpp/emit.hpp"

#include "base/text.hpp"
#include "synthesis/cpp/recurrence.hpp"
#include "synthesis/cpp/types.hpp"
#include "synthesis/loops/alone.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace pragma::synthesis {

namespace {

/// Lines of a comment, broken at 110 columns.
std::string comment(const std::string& label, const std::string& text) {
  std::string out = "// " + label;
  size_t column = out.size();
  for (const auto& word : split(text, ' ')) {
    if (column + word.size() > 110) {
      out += "\n//   ";
      column = 5;
    }
    out += " " + word;
    column += word.size() + 1;
  }
  return out + "\n";
}

std::set<int> buffers_used(const loop_program& p) {
  std::set<int> used;
  for (const auto& r : p.regions) {
    for (const auto& s : r.stores) used.insert(s.buffer);
    if (r.anchor) used.insert({r.anchor->a, r.anchor->b});
    std::vector<bool> live(r.exprs.size(), false);
    for (const auto& s : r.stores) live[static_cast<size_t>(s.value)] = true;
    for (size_t i = r.exprs.size(); i-- > 0;)
      if (live[i]) {
        for (int a : r.exprs[i].args) live[static_cast<size_t>(a)] = true;
        if (r.exprs[i].kind == expr_kind::load) used.insert(r.exprs[i].buffer);
      }
  }
  return used;
}

constexpr uint64_t most_static_bytes = uint64_t{1} << 30; ///< arrays lie within reach of 32-bit addresses, of which the libraries need some
constexpr size_t most_regions_in_place = 24;               ///< above, each is a function: a compiler takes more than in proportion to a function's length
constexpr uint64_t least_heap_bytes = uint64_t{64} << 20;

/// At least: what is narrower than a float is one in the source.
uint64_t bytes_of(const buffer& b) { return static_cast<uint64_t>(b.elements) * std::max<size_t>(sizeof(float), size_of(b.dtype)); }

/// Of everything between regions.
uint64_t scratch_bytes(const loop_program& p, const std::set<int>& used) {
  uint64_t total = 0;
  for (int b : used)
    if (const auto& buf = p.buffers[static_cast<size_t>(b)]; buf.kind == buffer_kind::scratch) total += bytes_of(buf);
  return total;
}

std::string axes_text(const region& r, const region_schedule& s) {
  std::string text;
  if (r.anchor) {
    const auto size = size_of_contraction(r);
    if (r.anchor->recurrent()) {
      const int gates = gates_of(r.anchor->op);
      return fmt::format("{}, steps x rows x units = {} x {} x {}", name_of(r.anchor->op), time_steps(r), size.m, size.n / gates);
    }
    text = r.anchor->op == operation::matmul ? "matrix product" : r.anchor->transposed ? "transposed convolution" : "convolution";
    return text + ", m x n x k = " + std::to_string(size.m) + " x " + std::to_string(size.n) + " x " + std::to_string(size.k);
  }
  for (size_t a = 0; a < r.axes.size(); ++a) {
    if (static_cast<int>(a) == r.item) continue;
    text += (text.empty() ? "" : " x ") + std::to_string(r.axes[a].extent);
    if (r.axes[a].window) text += " (window)";
    else if (r.axes[a].reduced) text += static_cast<int>(a) == r.scan_axis ? " (scanned)" : " (reduced)";
    if (static_cast<int>(a) == s.vector_axis) text += " (vectorised)";
  }
  return text.empty() ? "one element" : text;
}

/// The memory of a kernel: what it is given, and what it keeps between regions.
struct declarations {
  std::string pointers, statics;
  std::set<std::string> helpers;
  bool allocated() const { return helpers.count("scratch_memory") != 0; } ///< some of it on the heap
};

std::string static_scratch(const buffer& b, const schedule& s) {
  return fmt::format("alignas(64) {}{} {}[{}]; // between regions{}\n", b.of_item && s.threads > 1 ? "thread_local " : "", memory_type(b.dtype), b.name,
                     std::max<int64_t>(1, b.elements), b.of_item ? ", one batch element" : "");
}

std::string heap_scratch(const buffer& b) {
  const auto type = memory_type(b.dtype);
  return fmt::format("{0}* const {1} = static_cast<{0}*>(scratch_memory({2})); // between regions: more than arrays may take\n", type, b.name, (bytes_of(b) + 63) / 64 * 64);
}

std::string table_of(const buffer& b) {
  auto text = fmt::format("alignas(64) const {} {}[{}] = {{", memory_type(b.dtype), b.name, std::max<int64_t>(1, b.elements));
  for (size_t i = 0; i < b.values.size(); ++i) text += (i ? ", " : "") + std::string(i % 12 == 11 ? "\n  " : "") + memory_literal(b.values[i], b.dtype);
  return text + "};\n";
}

/// `items`: also scratch of one batch element, which functions of regions declare themselves.
declarations declare(const loop_program& program, const schedule& s, bool items) {
  declarations d;
  const auto used = buffers_used(program);
  const bool heap = scratch_bytes(program, used) > most_static_bytes;
  for (int index : used) {
    const auto& b = program.buffers[static_cast<size_t>(index)];
    const auto type = memory_type(b.dtype);
    if (is_half(b.dtype)) d.helpers.insert(type);
    switch (b.kind) {
      case buffer_kind::input:
      case buffer_kind::param:
        d.pointers += fmt::format("  const {0}* {1} = static_cast<const {0}*>(args->{2}[{3}].data);\n", type, b.name, b.kind == buffer_kind::input ? "inputs" : "params", b.index);
        break;
      case buffer_kind::output: d.pointers += fmt::format("  {0}* {1} = static_cast<{0}*>(args->outputs[{2}].data);\n", type, b.name, b.index); break;
      case buffer_kind::scratch:
        if (b.of_item && !items) break;
        if (heap && !b.of_item && bytes_of(b) >= least_heap_bytes) {
          d.helpers.insert("scratch_memory");
          d.statics += heap_scratch(b);
        } else {
          d.statics += static_scratch(b, s);
        }
        break;
      case buffer_kind::constant: d.statics += table_of(b); break;
    }
  }
  return d;
}

/// What processors can do and the languages' vectors do not say: stores past the caches, conversions of half types.
bool needs_intrinsics(const std::set<std::string>& helpers) {
  return std::any_of(helpers.begin(), helpers.end(), [](const auto& h) { return h == "stream_fence" || h == "multiply_words" || h.find("float16") != std::string::npos; });
}

/// A region in braces of its own, with those that run in its batch loop.
code write_nest(const loop_program& program, const schedule& s, size_t i, const code& followers) {
  const auto& r = program.regions[i];
  code out;
  out.comment("Region {}: {}", i + 1, axes_text(r, s.regions[i]));
  out.block();
  out.append(write_region(program, r, s.regions[i], s, followers));
  out.close();
  return out;
}

/// A region with its followers.
code write_nests(const loop_program& program, const schedule& s, size_t i) {
  code followers;
  for (size_t j = i + 1; j < program.regions.size(); ++j)
    if (program.regions[j].host == static_cast<int>(i)) followers.append(write_nest(program, s, j, {}));
  return write_nest(program, s, i, followers);
}

/// The schedule of the regions of alone(program, at).
schedule schedule_alone(const loop_program& program, const schedule& s, size_t at) {
  auto own = s;
  own.regions = {s.regions[at]};
  for (size_t j = at + 1; j < program.regions.size(); ++j)
    if (program.regions[j].host == static_cast<int>(at)) own.regions.push_back(s.regions[j]);
  return own;
}

/// A region as a function of its tensors: "(PARAMETERS) {" and what follows.
code write_function(const region_alone& own, const schedule& s) {
  std::set<int> written;
  for (const auto& r : own.program.regions)
    for (const auto& st : r.stores) written.insert(st.buffer);
  std::string parameters = s.threads > 1 ? "[[maybe_unused]] int threads" : "";
  code out, items;
  for (size_t i = 0; i < own.buffers.size(); ++i) {
    const auto& b = own.program.buffers[i];
    if (b.of_item) items.line("alignas(64) static {}{} {}[{}];", s.threads > 1 ? "thread_local " : "", memory_type(b.dtype), b.name, std::max<int64_t>(1, b.elements));
    else parameters += fmt::format("{}{}{}* __restrict {}", parameters.empty() ? "" : ", ", written.count(static_cast<int>(i)) ? "" : "const ", memory_type(b.dtype), b.name);
  }
  out.block("({})", parameters);
  out.append(items);
  out.append(write_nests(own.program, s, 0));
  out.close();
  return out;
}

/// What computes the regions, and the functions that it calls.
struct nests {
  code functions, body;
  bool called = false; ///< there are functions
};

/// Each region a function; equal ones are one.
nests write_functions(const loop_program& program, const schedule& s) {
  nests out;
  out.called = true;
  std::map<std::string, std::string> names; // by text
  for (size_t i = 0; i < program.regions.size(); ++i) {
    if (program.regions[i].host >= 0) continue;
    const auto own = alone(program, i);
    const auto function = write_function(own, schedule_alone(program, s, i));
    const auto [known, fresh] = names.try_emplace(function.program(0), fmt::format("region_{}", i + 1));
    if (fresh) {
      out.functions.line("__attribute__((noinline)) void {}", known->second);
      out.functions.append(function);
    }
    std::string given = s.threads > 1 ? "threads" : "";
    for (size_t k = 0; k < own.buffers.size(); ++k)
      if (!own.program.buffers[k].of_item) given += (given.empty() ? "" : ", ") + program.buffers[static_cast<size_t>(own.buffers[k])].name;
    out.body.line("{}({});", known->second, given);
  }
  if (out.functions.uses("stream") || out.functions.uses("stream_rows")) out.body.line("{}();", out.body.use("stream_fence"));
  return out;
}

nests write_body(const loop_program& program, const schedule& s) {
  if (program.regions.size() > most_regions_in_place) return write_functions(program, s);
  nests out;
  auto& body = out.body;
  for (size_t i = 0; i < program.regions.size(); ++i)
    if (program.regions[i].host < 0) body.append(write_nests(program, s, i));
  if (body.uses("stream") || body.uses("stream_rows")) body.line("{}();", body.use("stream_fence"));
  return out;
}

} // namespace

emitted_source emit_source(const loop_program& program, const schedule& s, const std::string& title) {
  const auto [functions, body, called] = write_body(program, s);
  const auto memory = declare(program, s, !called);
  const auto header = comment("Task:", title) + comment("Reference:", join(program.ops, ", ")) + comment("Schedule:", json(s).dump()) +
                      "// Written by PRAGMA's built-in coder (docs/synthesis.md).\n";
  std::string out = "#include \"pragma_kernel.h\"\n\n";
  for (const char* name : {"cstdint", memory.allocated() ? "cstdio" : "", memory.allocated() ? "cstdlib" : "", "cstring", "limits", "type_traits", "utility"})
    if (*name) out += fmt::format("#include <{}>\n", name);
  auto helpers = body.helpers();
  helpers.insert(functions.helpers().begin(), functions.helpers().end());
  helpers.insert(memory.helpers.begin(), memory.helpers.end());
  if (needs_intrinsics(helpers)) out += "#if defined(__SSE2__)\n#include <immintrin.h>\n#endif\n";
  if (helpers.count("tile_registers")) out += "#if defined(__AMX_BF16__) && defined(__linux__)\n#include <sys/syscall.h>\n#include <unistd.h>\n#endif\n";
  out += "\nnamespace {\n\n" + helpers_text(helpers, s.lanes) + "\n" + memory.statics + (memory.statics.empty() ? "" : "\n");
  const auto whole = [&](const std::string& of_functions, const std::string& statements) {
    return out + of_functions + (called ? "\n" : "") + "} // namespace\n\nextern \"C\" void pragma_kernel(const pragma_args* args) {\n" +
           (s.threads > 1 ? fmt::format("  [[maybe_unused]] const int threads = least<int>(args->threads, {});\n", s.threads) : "") + memory.pointers + statements + "}\n";
  };
  return {header + whole(functions.text(0), body.text(1)), whole(functions.program(0), body.program(1))};
}

} // namespace pragma::synthesis
