// objdump's text -> functions, innermost loops, and what a loop consists of. x86-64 (AT&T syntax).
#include "base/text.hpp"
#include "profilers/control_flow.hpp"
#include "profilers/formats.hpp"

#include <algorithm>
#include <cstdlib>
#include <set>

namespace pragma::formats {

namespace {

bool starts_with(std::string_view text, std::string_view start) { return text.substr(0, start.size()) == start; }
bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

bool is_prefix(std::string_view word) {
  static const std::set<std::string_view> prefixes{"lock", "rep", "repz", "repnz", "repe", "repne", "bnd", "notrack", "data16",
                                                   "cs", "ds", "es", "ss", "fs", "gs", "addr32", "xacquire", "xrelease"};
  return prefixes.count(word) != 0 || starts_with(word, "rex");
}

bool is_jump(std::string_view m) { return !m.empty() && m[0] == 'j'; }
bool is_call(std::string_view m) { return starts_with(m, "call"); }
bool is_nop(std::string_view m) { return starts_with(m, "nop") || m == "xchg%ax" || m == "data16"; }

/// "0x401ad0 <f+0x2b2>" or "401d82 <f>": the number and the symbol without its offset.
void read_target(instruction& i) {
  const auto open = i.operands.find('<');
  if (open == std::string::npos || i.operands[0] == '*') return;
  i.target = std::strtoull(i.operands.c_str(), nullptr, 16);
  auto symbol = i.operands.substr(open + 1);
  i.target_symbol = symbol.substr(0, symbol.find_first_of("+>"));
  // Calls through a static executable's dispatch table look like offsets into whatever symbol comes before it.
  if (i.target_symbol == "_init" || starts_with(i.target_symbol, "*ABS*")) i.target_symbol.clear();
  if (i.target_symbol.size() > 4 && ends_with(i.target_symbol, "@plt")) i.target_symbol.resize(i.target_symbol.size() - 4);
}

/// "FOLDER/candidate.cpp:12 (discriminator 3)": true and the parts when the line is a place in a source file.
bool read_place(const std::string& line, std::string& file, int& number) {
  const auto colon = line.rfind(':');
  if (colon == std::string::npos || colon + 1 >= line.size() || line.find(":\t") != std::string::npos) return false;
  const int value = std::atoi(line.c_str() + colon + 1);
  if (line[colon + 1] < '0' || line[colon + 1] > '9') return false;
  const auto slash = line.rfind('/', colon);
  const auto begin = slash == std::string::npos ? 0 : slash + 1;
  file = line.substr(begin, colon - begin);
  number = value;
  return true;
}

std::string last_operand(const std::string& operands) {
  int depth = 0;
  for (size_t i = operands.size(); i-- > 0;) {
    if (operands[i] == ')') ++depth;
    if (operands[i] == '(') --depth;
    if (operands[i] == ',' && depth == 0) return operands.substr(i + 1);
  }
  return operands;
}

enum class arithmetic { none, scalar, packed };

/// Floating-point work; moves, shuffles, conversions and bit logic are not.
arithmetic kind_of(std::string_view m) {
  if (!m.empty() && m[0] == 'v') m.remove_prefix(1);
  if (m == "comiss" || m == "ucomiss" || m == "comisd" || m == "ucomisd") return arithmetic::scalar;
  if (m.size() < 5) return arithmetic::none;
  const auto suffix = m.substr(m.size() - 2);
  const bool packed = suffix == "ps" || suffix == "pd", scalar = suffix == "ss" || suffix == "sd";
  if (!packed && !scalar) return arithmetic::none;
  const auto root = m.substr(0, m.size() - 2);
  static const std::set<std::string_view> roots{"add", "sub", "mul", "div", "sqrt", "min", "max", "rcp", "rsqrt", "rcp14",
                                                "rsqrt14", "round", "rndscale", "scalef", "getexp", "hadd", "addsub", "dp"};
  if (roots.count(root) == 0 && !starts_with(root, "fmadd") && !starts_with(root, "fmsub") && !starts_with(root, "fnmadd") &&
      !starts_with(root, "fnmsub") && !starts_with(root, "cmp"))
    return arithmetic::none;
  return packed ? arithmetic::packed : arithmetic::scalar;
}

bool is_divide(std::string_view m) {
  if (!m.empty() && m[0] == 'v') m.remove_prefix(1);
  return starts_with(m, "div") || starts_with(m, "idiv") || starts_with(m, "sqrt");
}

/// Widest vector that an instruction works on; a scalar in the low part of a register is not a vector.
int vector_width(const instruction& i) {
  if (i.operands.find("%zmm") != std::string::npos) return 512;
  if (i.operands.find("%ymm") != std::string::npos) return 256;
  if (i.operands.find("%xmm") == std::string::npos) return 0;
  std::string_view m = i.mnemonic;
  if (!m.empty() && m[0] == 'v') m.remove_prefix(1);
  if (ends_with(m, "ss") || ends_with(m, "sd") || m == "movd" || m == "movq" || starts_with(m, "cvtsi2") || starts_with(m, "pinsr") ||
      starts_with(m, "pextr") || starts_with(m, "xor") || starts_with(m, "pxor") || starts_with(m, "insertps") || starts_with(m, "movap"))
    return 0;
  return 128;
}

} // namespace

double memory_bytes(const instruction& i) {
  std::string_view m = i.mnemonic;
  if (m.find("broadcast") != std::string_view::npos || i.operands.find("{1to") != std::string::npos) return m.find("sd") != std::string_view::npos || ends_with(m, "pd") ? 8 : 4;
  if (!m.empty() && m[0] == 'v') m.remove_prefix(1);
  if (starts_with(m, "extract")) { // a part of a vector; "extractps" one element
    const auto has = [&](std::string_view part) { return m.find(part) != std::string_view::npos; };
    return has("64x4") || has("32x8") ? 32 : has("128") || has("32x4") || has("64x2") ? 16 : 4;
  }
  if (ends_with(m, "ss") || m == "movd") return 4;
  if (ends_with(m, "sd") || m == "movq" || m == "movlps" || m == "movhps") return 8;
  return vector_width(i) / 8.0;
}

bool on_vectors(const instruction& i) { return kind_of(i.mnemonic) == arithmetic::packed || vector_width(i) >= 128; }

double changed_in_place(std::string_view m) {
  constexpr std::string_view operations[] = {"add", "sub", "inc", "dec", "and", "or", "xor", "neg", "not", "shl", "shr", "sar"};
  constexpr std::pair<char, double> sizes[] = {{'b', 1}, {'w', 2}, {'l', 4}, {'q', 8}};
  for (const auto& operation : operations) {
    if (m == operation) return 4; // a register says how wide: mostly a counter
    for (const auto& [suffix, bytes] : sizes)
      if (m.size() == operation.size() + 1 && starts_with(m, operation) && m.back() == suffix) return bytes;
  }
  return 0;
}

std::vector<std::string> operands_of(const std::string& text) {
  std::vector<std::string> all(1);
  int depth = 0;
  for (char c : text) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c == ',' && depth == 0) all.emplace_back();
    else all.back() += c;
  }
  for (auto& one : all) one = trim(one);
  return all;
}

namespace {

bool on_the_stack_or_constant(const std::string& operand) {
  return operand.find("%rsp") != std::string::npos || operand.find("(%rbp") != std::string::npos || operand.find("(%rip") != std::string::npos;
}

bool is_shuffle(std::string_view m) {
  if (!m.empty() && m[0] == 'v') m.remove_prefix(1);
  return starts_with(m, "perm") || starts_with(m, "shuf") || starts_with(m, "unpck") || starts_with(m, "punpck") || starts_with(m, "pshuf") || starts_with(m, "insert") ||
         starts_with(m, "extract") || starts_with(m, "movshdup") || starts_with(m, "movsldup") || starts_with(m, "movhlps") || starts_with(m, "movlhps") || starts_with(m, "hadd");
}

bool is_fused(std::string_view m) { return starts_with(m, "vfm") || starts_with(m, "vfnm"); }

/// "%zmm17{%k1}{z}" -> 17; -1 for what is no vector register.
int vector_register(const std::string& operand) {
  if (operand.size() < 5 || operand[0] != '%' || operand.compare(2, 2, "mm") != 0) return -1;
  return std::atoi(operand.c_str() + 4);
}

void count_memory(hot_loop& loop, const instruction& i) {
  const auto all = operands_of(i.operands);
  const double bytes = memory_bytes(i);
  if (const double changed = changed_in_place(i.mnemonic); changed > 0 && all.back().find('(') != std::string::npos && !on_the_stack_or_constant(all.back())) {
    loop.loaded_bytes += changed;
    loop.stored_bytes += changed;
    return;
  }
  for (size_t k = 0; k < all.size(); ++k) {
    if (all[k].find('(') == std::string::npos || on_the_stack_or_constant(all[k]) || starts_with(i.mnemonic, "lea") || starts_with(i.mnemonic, "prefetch")) continue;
    if (k + 1 < all.size() || all.size() == 1) loop.loaded_bytes += bytes;
    else loop.stored_bytes += bytes;
    if (k + 1 == all.size() && i.mnemonic.find("movnt") != std::string::npos) loop.streamed_bytes += bytes;
  }
}

void count(hot_loop& loop, const instruction& i) {
  const auto& m = i.mnemonic;
  if (is_nop(m)) return;
  ++loop.instructions;
  loop.vector_bits = std::max(loop.vector_bits, vector_width(i));
  const auto kind = kind_of(m);
  if (kind == arithmetic::packed) ++loop.packed_arithmetic;
  if (kind == arithmetic::scalar) ++loop.scalar_arithmetic;
  const double lanes = kind == arithmetic::packed ? vector_width(i) / (ends_with(m, "pd") ? 64.0 : 32.0) : kind == arithmetic::scalar ? 1 : 0;
  loop.flops += lanes * (is_fused(m) ? 2 : 1);
  if (is_fused(m)) ++loop.fused;
  if (on_vectors(i)) ++loop.vector_instructions;
  if (kind != arithmetic::none && (m.find("pd") != std::string::npos || m.find("sd") != std::string::npos)) ++loop.of_doubles;
  if (m.find("cvtps2pd") != std::string::npos || m.find("cvtss2sd") != std::string::npos) ++loop.widening;
  if (m.starts_with("vmulp") || m.starts_with("vmuls") || m.starts_with("mulp") || m.starts_with("muls")) ++loop.multiplies;
  if (is_shuffle(m)) ++loop.shuffles;
  count_memory(loop, i);
  if (is_divide(m)) ++loop.divides;
  if (m.find("gather") != std::string::npos) ++loop.gathers;
  if (is_call(m)) {
    ++loop.calls;
    if (!i.target_symbol.empty() && std::find(loop.called.begin(), loop.called.end(), i.target_symbol) == loop.called.end())
      loop.called.push_back(i.target_symbol);
  }
  const bool moves = starts_with(m, "mov") || starts_with(m, "vmov") || starts_with(m, "vextract") || starts_with(m, "vcvtps2ph");
  const auto destination = last_operand(i.operands);
  if (m.find("movnt") != std::string::npos && m.find("movntdqa") == std::string::npos) ++loop.streaming_stores;
  if (moves && destination.find('(') != std::string::npos && destination.find("%rsp") == std::string::npos &&
      destination.find("(%rbp") == std::string::npos && destination.find("(%rip") == std::string::npos)
    ++loop.stores;
  if (m.find("scatter") != std::string::npos) ++loop.stores;
}

} // namespace

std::vector<code_function> parse_objdump(std::string_view text) {
  std::vector<code_function> functions;
  std::string file, own_file;
  int line_number = 0, own_line = 0;
  for (size_t begin = 0; begin < text.size();) {
    auto end = text.find('\n', begin);
    if (end == std::string_view::npos) end = text.size();
    const std::string line(text.substr(begin, end - begin));
    begin = end + 1;
    if (line.empty()) continue;
    if (ends_with(line, ">:") && line[0] != ' ') { // "0000000000401ad0 <pragma_kernel>:"
      const auto open = line.find('<');
      if (open == std::string::npos) continue;
      functions.push_back({line.substr(open + 1, line.size() - open - 3), {}});
      file.clear();
      own_file.clear();
      line_number = own_line = 0;
      continue;
    }
    const auto tab = line.find(":\t");
    if (line[0] == ' ' && tab != std::string::npos) {
      if (functions.empty()) continue;
      instruction i;
      i.address = std::strtoull(line.c_str(), nullptr, 16);
      std::string rest = line.substr(tab + 2);
      if (const auto comment = rest.find(" #"); comment != std::string::npos) rest.resize(comment);
      rest = trim(rest);
      while (true) {
        const auto space = rest.find_first_of(" \t");
        i.mnemonic = rest.substr(0, space);
        rest = space == std::string::npos ? "" : trim(rest.substr(space));
        if (!is_prefix(i.mnemonic) || rest.empty()) break;
      }
      i.operands = rest;
      i.file = file;
      i.line = line_number;
      i.own_line = own_line;
      if (is_jump(i.mnemonic) || is_call(i.mnemonic)) read_target(i);
      functions.back().body.push_back(std::move(i));
      continue;
    }
    if (!read_place(line, file, line_number)) continue;
    if (own_file.empty()) own_file = file; // a function begins with the line of its definition
    if (file == own_file) own_line = line_number;
  }
  return functions;
}

std::vector<code_function> functions_of(std::vector<code_function> functions, std::string_view source_name) {
  functions.erase(std::remove_if(functions.begin(), functions.end(),
                                 [&](const code_function& f) {
                                   return std::none_of(f.body.begin(), f.body.end(),
                                                       [&](const instruction& i) { return i.file == source_name; });
                                 }),
                  functions.end());
  return functions;
}

namespace {

/// An operation that reads the register that it writes.
bool reads_its_target(const instruction& i, arithmetic kind, const std::string& target) {
  return kind != arithmetic::none && (is_fused(i.mnemonic) || i.mnemonic[0] != 'v' || target.find("{%k") != std::string::npos);
}

bool copies_register(const instruction& i, const std::vector<std::string>& operands) {
  return starts_with(i.mnemonic, "vmov") && operands.size() == 2 && vector_register(operands[0]) >= 0 && vector_register(operands[1]) >= 0;
}

/// For what was carried into a trip, registers or places in memory: operations one after the other on the longest way from any of that to its value at the end. What no way leads
/// to is missing.
std::map<std::string, int> chains_to(const std::vector<instruction>& body, const std::set<int>& registers, const std::set<std::string>& places) {
  std::map<std::string, int> depth; // of what depends on what was carried
  const auto name = [&](const std::string& operand) {
    const int r = vector_register(operand);
    return r >= 0 ? "register " + std::to_string(r) : operand;
  };
  std::set<std::string> carried = places;
  for (int r : registers) carried.insert("register " + std::to_string(r));
  for (const auto& one : carried) depth[one] = 0;
  for (const auto& i : body) {
    const auto all = operands_of(i.operands);
    const auto to = name(all.back());
    if (vector_register(all.back()) < 0 && places.count(to) == 0) continue;
    const auto kind = kind_of(i.mnemonic);
    int most = -1;
    for (size_t k = 0; k < all.size(); ++k) {
      const auto from = depth.find(name(all[k]));
      if (from != depth.end() && (k + 1 < all.size() || reads_its_target(i, kind, all[k]))) most = std::max(most, from->second);
    }
    if (most >= 0) depth[to] = most + (kind != arithmetic::none);
    else depth.erase(to);
  }
  std::erase_if(depth, [&](const auto& end) { return carried.count(end.first) == 0; });
  return depth;
}

} // namespace

carried_results carried_by(const std::vector<instruction>& body) {
  std::set<int> written, read_first, copied_first, from_arithmetic;
  std::map<std::string, bool> places; // operand in memory -> written back from arithmetic
  std::set<std::string> changed;      // registers of the scalar unit
  for (const auto& i : body) {
    const auto all = operands_of(i.operands);
    const auto kind = kind_of(i.mnemonic);
    const int to = vector_register(all.back());
    const bool reads_target = reads_its_target(i, kind, all.back());
    bool moves_result = false;
    for (size_t k = 0; k < all.size(); ++k) {
      const int from = vector_register(all[k]);
      if (from < 0 || (k + 1 == all.size() && !reads_target)) continue;
      if (kind != arithmetic::none && written.count(from) == 0) read_first.insert(from);
      if (copies_register(i, all) && written.count(from) == 0) copied_first.insert(from);
      moves_result = moves_result || (kind == arithmetic::none && from_arithmetic.count(from) != 0);
    }
    if (to >= 0) {
      written.insert(to);
      if (kind != arithmetic::none || (moves_result && i.mnemonic.find("mov") != std::string::npos)) from_arithmetic.insert(to);
      else from_arithmetic.erase(to);
    } else if (all.back().size() > 1 && all.back()[0] == '%' && !starts_with(i.mnemonic, "cmp") && !starts_with(i.mnemonic, "test") && !is_jump(i.mnemonic)) {
      changed.insert(all.back());
    }
    for (size_t k = 0; k < all.size(); ++k) {
      if (all[k].find('(') == std::string::npos || starts_with(i.mnemonic, "lea")) continue;
      if (k + 1 < all.size()) places.try_emplace(all[k], false);
      else if (const auto place = places.find(all[k]); place != places.end() && vector_register(all.front()) >= 0 && from_arithmetic.count(vector_register(all.front())) != 0) place->second = true;
    }
  }
  carried_results found;
  read_first.insert(copied_first.begin(), copied_first.end());
  std::erase_if(read_first, [&](int r) { return from_arithmetic.count(r) == 0; });
  std::set<std::string> kept_places;
  for (const auto& [operand, kept] : places)
    if (kept && std::none_of(changed.begin(), changed.end(), [&, &o = operand](const std::string& r) { return o.find(r) != std::string::npos; })) kept_places.insert(operand);
  found.in_memory = static_cast<int>(kept_places.size());
  const auto chains = chains_to(body, read_first, kept_places);
  // A copy of the last trip's value that nothing is added to carries nothing.
  std::erase_if(read_first, [&](int r) {
    const auto end = chains.find("register " + std::to_string(r));
    return copied_first.count(r) != 0 && (end == chains.end() || end->second == 0);
  });
  found.registers = static_cast<int>(read_first.size());
  for (const auto& [_, operations] : chains) found.operations = std::max(found.operations, operations);
  return found;
}

namespace {

void set_chains(hot_loop& loop) {
  const auto carried = carried_by(loop.body);
  loop.chains = carried.registers + carried.in_memory;
  loop.memory_chain = carried.in_memory > 0;
  loop.chain_operations = carried.operations;
}

} // namespace

hot_loop without_unseen(const hot_loop& loop, const std::function<double(const instruction&)>& seen) {
  std::set<uint64_t> targets;
  for (const auto& i : loop.body)
    if (is_jump(i.mnemonic)) targets.insert(i.target);
  hot_loop kept;
  kept.function = loop.function;
  kept.line = loop.line;
  kept.weight = loop.weight;
  kept.share = loop.share;
  for (auto begin = loop.body.begin(); begin != loop.body.end();) {
    auto end = begin;
    do ++end;
    while (end != loop.body.end() && !is_jump(std::prev(end)->mnemonic) && targets.count(end->address) == 0);
    const bool divides = std::any_of(begin, end, [](const instruction& i) { return is_divide(i.mnemonic); });
    if (!divides || std::any_of(begin, end, [&](const instruction& i) { return seen(i) > 0; }))
      for (auto i = begin; i != end; ++i) {
        count(kept, *i);
        kept.body.push_back(*i);
      }
    begin = end;
  }
  if (kept.body.empty() || kept.body.size() == loop.body.size()) return loop;
  set_chains(kept);
  return kept;
}

std::vector<hot_loop> innermost_loops(const std::vector<code_function>& functions,
                                      const std::function<double(const instruction&)>& executed) {
  std::vector<hot_loop> loops;
  for (const auto& f : functions) {
    for (const auto& members : innermost_natural_loops(f.body)) {
      hot_loop loop;
      loop.function = f.name;
      std::map<int, double> lines;
      for (const auto index : members) {
        const auto& one = f.body[index];
        count(loop, one);
        const double weight = executed ? executed(one) : 0;
        loop.weight += weight;
        if (one.own_line > 0) lines[one.own_line] += weight + 1e-6;
        loop.body.push_back(one);
      }
      set_chains(loop);
      for (const auto& i : loop.body) loop.branches += is_jump(i.mnemonic) && i.mnemonic != "jmp" && i.target != loop.body.front().address;
      for (const auto& [line, weight] : lines)
        if (loop.line == 0 || weight > lines[loop.line]) loop.line = line;
      loops.push_back(std::move(loop));
    }
  }
  std::stable_sort(loops.begin(), loops.end(), [](const hot_loop& a, const hot_loop& b) {
    const auto rank = [](const hot_loop& l) {
      return std::make_tuple(l.weight, l.packed_arithmetic + l.scalar_arithmetic, l.vector_bits, l.instructions);
    };
    return rank(a) > rank(b);
  });
  return loops;
}

std::string mca_input(const hot_loop& loop) {
  std::string text = ".Lloop:\n";
  for (const auto& i : loop.body) {
    const auto& m = i.mnemonic;
    if (is_nop(m) || is_call(m) || starts_with(m, "ret") || m == "(bad)" || starts_with(m, "endbr") || m == "leave") continue;
    if (is_jump(m)) {
      if (i.target != 0) text += "  " + m + " .Lloop\n";
      continue;
    }
    text += "  " + m + " " + i.operands.substr(0, i.operands.find('<')) + "\n";
  }
  return text;
}

} // namespace pragma::formats
