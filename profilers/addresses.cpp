// What a loop's instructions touch, by the registers of the samples that fell into it: the timer's interrupt finds all of them as the next instruction
// will, so that every address of a trip can be computed. Needs no PMU and no change to the candidate. x86-64 (AT&T syntax).
#include "base/text.hpp"
#include "profilers/sources.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <tuple>

namespace pragma {

namespace {

constexpr double line_bytes = 64, page_bytes = 4096;
constexpr int fewest = 40;                    ///< samples inside a loop; below it shares say nothing
constexpr double trips_in_flight = 8;         ///< stores of so many trips wait for their place in the cache while later loads look past them
constexpr double wide = 16;                   ///< bytes: narrower accesses that are aligned to themselves never cross a line

constexpr size_t longest_walk = 400;          ///< instructions: what waits for one load after the other is short, and each load is followed through all of them
constexpr int fewest_meetings = 4;            ///< of two samples in the same bytes
constexpr int nowhere = -2;                   ///< base of an access relative to the instruction

constexpr const char* register_names[] = {"ax", "bx", "cx", "dx", "si", "di", "bp", "sp", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"};

/// Place of "%rax", "%eax" or "%r10" in sampled_registers; -1 for others.
int register_of(std::string_view name) {
  if (name.size() < 3 || name[0] != '%') return -1;
  name.remove_prefix(1);
  for (int k = 0; k < 16; ++k)
    if (name == register_names[k] || (k < 8 && name.size() == 3 && (name[0] == 'r' || name[0] == 'e') && name.substr(1) == register_names[k])) return k;
  return -1;
}

/// One access to memory of a loop: displacement + base + index x scale.
struct access {
  int64_t displacement = 0;
  int base = -1, index = -1; ///< base `nowhere`: the displacement is the address
  int scale = 1;
  double bytes = 0;
  bool store = false;
  size_t at = 0;      ///< place in the body
  bool beside = false; ///< it overlaps another load that can begin on a line only where this one does not
};

int64_t in_its_line(const access& a) { return ((a.displacement % 64) + 64) % 64; }

/// Of loads of one array that overlap (a filter's taps) those at one place of a line can be aligned together: the place that most of them have.
void mark_beside(std::vector<access>& all) {
  std::map<std::tuple<int, int, int>, std::map<int64_t, std::vector<access*>>> arrays; // by registers, then by displacement
  for (auto& a : all)
    if (!a.store) arrays[{a.base, a.index, a.scale}][a.displacement].push_back(&a);
  for (auto& [registers, loads] : arrays) {
    std::map<int64_t, size_t> places;
    for (const auto& [displacement, here] : loads) places[in_its_line(*here.front())] += here.size();
    const auto most = std::max_element(places.begin(), places.end(), [](const auto& x, const auto& y) { return x.second < y.second; })->first;
    for (auto one = loads.begin(), next = std::next(one); one != loads.end() && next != loads.end(); ++one, ++next) {
      const auto overlap = [&](const access* a) { return static_cast<double>(next->first - one->first) < a->bytes; };
      if (std::none_of(one->second.begin(), one->second.end(), overlap)) continue;
      for (const auto& here : {one->second, next->second})
        for (auto* a : here) a->beside = in_its_line(*a) != most;
    }
  }
}

/// `next`: address of the instruction after it.
std::optional<access> parse(const std::string& operand, uint64_t next) {
  const auto open = operand.find('('), close = operand.find(')');
  if (open == std::string::npos || close == std::string::npos || operand.find("mm") != std::string::npos || operand.find(':') != std::string::npos) return std::nullopt;
  access a;
  const auto star = operand.find_first_not_of('*');
  a.displacement = static_cast<int64_t>(std::strtoll(operand.c_str() + star, nullptr, 16));
  if (operand.compare(open, close - open, "(%rip") == 0) {
    a.displacement += static_cast<int64_t>(next);
    a.base = nowhere;
    return a;
  }
  const auto parts = split(operand.substr(open + 1, close - open - 1), ',');
  if (!parts.empty() && !trim(parts[0]).empty() && (a.base = register_of(trim(parts[0]))) < 0) return std::nullopt;
  if (parts.size() > 1 && (a.index = register_of(trim(parts[1]))) < 0) return std::nullopt;
  if (parts.size() > 2) a.scale = std::atoi(parts[2].c_str());
  return a;
}

std::vector<access> accesses_of(const formats::hot_loop& loop) {
  std::vector<access> all;
  for (size_t n = 0; n < loop.body.size(); ++n) {
    const auto& i = loop.body[n];
    const double bytes = formats::memory_bytes(i);
    if (bytes <= 0 || i.mnemonic.starts_with("lea") || i.mnemonic.starts_with("prefetch")) continue;
    const auto operands = formats::operands_of(i.operands);
    for (size_t k = 0; k < operands.size(); ++k)
      if (auto a = parse(operands[k], n + 1 < loop.body.size() ? loop.body[n + 1].address : 0)) {
        a->bytes = bytes;
        a->store = k + 1 == operands.size() && operands.size() > 1;
        a->at = n;
        all.push_back(*a);
      }
  }
  return all;
}

double address_of(const access& a, const std::array<uint64_t, 16>& values) {
  uint64_t at = static_cast<uint64_t>(a.displacement);
  if (a.base >= 0) at += values[static_cast<size_t>(a.base)];
  if (a.index >= 0) at += values[static_cast<size_t>(a.index)] * static_cast<uint64_t>(a.scale);
  return static_cast<double>(at);
}

/// How far a register moves in a trip: constants added to it, and other registers, whose values the sample has.
std::array<int64_t, 16> steps_of(const formats::hot_loop& loop, const std::array<uint64_t, 16>& values) {
  std::array<int64_t, 16> steps{};
  for (const auto& i : loop.body) {
    const bool adds = i.mnemonic.starts_with("add"), subtracts = i.mnemonic.starts_with("sub"), incremented = i.mnemonic.starts_with("inc");
    if (!adds && !subtracts && !incremented) continue;
    const auto operands = formats::operands_of(i.operands);
    const int to = register_of(operands.back());
    if (to < 0) continue;
    int64_t by = 1;
    if (!incremented) {
      const int from = register_of(operands.front());
      if (from >= 0) by = static_cast<int64_t>(values[static_cast<size_t>(from)]);
      else if (operands.front().starts_with("$")) by = static_cast<int64_t>(std::strtoull(operands.front().c_str() + 1, nullptr, 16)); // -128 is written as 0xff...80
      else continue;
    }
    steps[static_cast<size_t>(to)] += subtracts ? -by : by;
  }
  return steps;
}

double step_of(const access& a, const std::array<int64_t, 16>& steps) {
  return static_cast<double>((a.base >= 0 ? steps[static_cast<size_t>(a.base)] : 0) + (a.index >= 0 ? steps[static_cast<size_t>(a.index)] * a.scale : 0));
}

/// Bytes of the loads of a trip that share this one's registers: what a trip takes from the place to which it goes.
double run_of(const access& a, const std::vector<access>& all) {
  double bytes = 0;
  for (const auto& b : all)
    if (!b.store && b.base == a.base && b.index == a.index && b.scale == a.scale) bytes += b.bytes;
  return bytes;
}

/// Loads that a store of a few trips before has the low 12 bits of, in another page: the core takes one for the other until the whole address is known.
bool aliased(const std::vector<access>& all, const std::array<uint64_t, 16>& values, double stored_bytes) {
  for (const auto& load : all)
    for (const auto& store : all) {
      if (load.store || !store.store) continue;
      const double l = address_of(load, values), s = address_of(store, values);
      if (std::abs(s - l) < page_bytes) continue;
      const double ahead = std::fmod(std::fmod(s - l, page_bytes) + page_bytes, page_bytes);
      if (ahead > 0 && ahead <= trips_in_flight * stored_bytes) return true;
    }
  return false;
}

/// Which registers an instruction of the loop changes: an access by others alone is to the same place in each trip.
std::array<bool, 16> changed_by(const formats::hot_loop& loop) {
  std::array<bool, 16> changed{};
  for (const auto& i : loop.body) {
    if (i.mnemonic.starts_with("cmp") || i.mnemonic.starts_with("test")) continue;
    if (const int to = register_of(formats::operands_of(i.operands).back()); to >= 0) changed[static_cast<size_t>(to)] = true;
  }
  return changed;
}

/// "%eax" -> 0, "%xmm3{%k1}" -> 16 + 3; -1 for what is no register with a value of the loop's data.
int value_register(std::string_view operand) {
  if (operand.size() > 4 && operand[0] == '%' && operand.substr(2, 2) == "mm") return 16 + std::atoi(operand.data() + 4);
  if (operand.starts_with("%r") && operand.back() == 'd') operand.remove_suffix(1); // "%r10d"
  return register_of(operand);
}

/// What follows from a loaded value: registers, and what the latest comparison left.
struct followers {
  std::set<int> registers;
  bool flags = false;

  bool address(const std::string& operand) const {
    const auto a = parse(operand, 0);
    return a && ((a->base >= 0 && registers.count(a->base) != 0) || (a->index >= 0 && registers.count(a->index) != 0));
  }
  bool reads(const std::string& operand) const { return operand.find('(') != std::string::npos ? address(operand) : registers.count(value_register(operand)) != 0; }

  /// `loads`: this instruction is the load itself.
  void pass(const formats::instruction& i, bool loads = false) {
    const std::string_view m = i.mnemonic;
    const auto all = formats::operands_of(i.operands);
    if (m.starts_with("j") || m.starts_with("nop") || all.back().empty()) return;
    if (m.starts_with("call")) { // what a function keeps is not known
      registers.clear();
      flags = false;
      return;
    }
    const bool compares = m.starts_with("cmp") || m.starts_with("test") || m.find("comis") != std::string_view::npos;
    const bool by_flags = m.starts_with("cmov") || m.starts_with("set");
    bool follows = loads || (by_flags && flags);
    for (size_t k = 0; k + 1 < all.size() || (compares && k < all.size()); ++k) follows = follows || reads(all[k]);
    if (compares) {
      flags = follows;
      return;
    }
    const int to = value_register(all.back());
    if (to < 0) return; // a store; what is loaded from there is not followed
    const bool zero = (m.starts_with("xor") || m.starts_with("vxor") || m.starts_with("vpxor") || m.starts_with("pxor")) && all.size() > 1 && all[0] == all[1];
    const bool replaces = m.starts_with("mov") || m.starts_with("lea") || m.starts_with("set") || m.starts_with("cvt") || (m.starts_with("v") && !m.starts_with("vfm") && !m.starts_with("vfn"));
    follows = !zero && (follows || (!replaces && registers.count(to) != 0));
    if (follows) registers.insert(to);
    else registers.erase(to);
  }
};

} // namespace

int chained_loads(const formats::hot_loop& loop) {
  const auto n = loop.body.size();
  if (n > longest_walk) return 0;
  const auto leads_to_itself = [&](size_t at) {
    const auto& load = loop.body[at];
    if (load.mnemonic.starts_with("lea") || load.mnemonic.starts_with("prefetch") || load.mnemonic.starts_with("nop")) return false;
    const auto all = formats::operands_of(load.operands);
    const auto place = std::find_if(all.begin(), all.end(), [](const std::string& operand) { return operand.find('(') != std::string::npos; });
    if (place == all.end() || (all.size() > 1 && std::next(place) == all.end() && load.mnemonic.starts_with("mov"))) return false;
    followers found;
    found.pass(load, true);
    for (size_t k = 1; k < n; ++k) found.pass(loop.body[(at + k) % n]);
    return found.address(*place);
  };
  int chained = 0;
  for (size_t at = 0; at < n; ++at) chained += leads_to_itself(at);
  return chained;
}

namespace {

/// The operand in memory that an instruction reads; null where there is none, or where it may be a pointer that waits on the stack.
const std::string* read_from_memory(const formats::instruction& i, const std::vector<std::string>& operands) {
  if (i.mnemonic.starts_with("lea") || i.mnemonic.starts_with("prefetch") || i.mnemonic.starts_with("nop")) return nullptr;
  for (size_t k = 0; k + 1 < operands.size(); ++k) {
    if (operands[k].find('(') == std::string::npos) continue;
    const bool stays = operands[k].find("(%rsp)") != std::string::npos || operands[k].find("(%rbp)") != std::string::npos || operands[k].find("(%rip)") != std::string::npos;
    if (stays && i.mnemonic == "mov" && operands.back().starts_with("%r") && !operands.back().ends_with("d")) return nullptr;
    return &operands[k];
  }
  return nullptr;
}

} // namespace

updates_by_value updates_of(const formats::hot_loop& loop) {
  updates_by_value found;
  std::set<std::tuple<int64_t, int, int>> tables;
  followers of_values;
  std::set<std::string> loaded; // operands
  std::map<int, int64_t> added; // register -> what its address calculation added: which table
  for (int round = 0; round < 2; ++round) // what the first leaves is there at the beginning of the second
    for (const auto& i : loop.body) {
      const auto all = formats::operands_of(i.operands);
      const auto& to = all.back();
      const auto* from = read_from_memory(i, all);
      const bool writes = to.find('(') != std::string::npos && all.size() > 1 && !i.mnemonic.starts_with("cmp") && !i.mnemonic.starts_with("test");
      const bool alone = all.size() == 1 && formats::changed_in_place(i.mnemonic) > 0; // incl (%rax)
      if (round == 1 && (writes || alone) && of_values.address(to) && (loaded.count(to) != 0 || formats::changed_in_place(i.mnemonic) > 0)) {
        ++found.updates;
        const auto a = *parse(to, 0); // address() read it
        const auto fixed = [&](int r) { return of_values.registers.count(r) != 0 ? -1 : r; };
        const auto part = [&](int r) { return added.count(r) != 0 ? added.at(r) : 0; };
        tables.insert({a.displacement + a.scale * part(a.index) + part(a.base), fixed(a.base), fixed(a.index)});
      }
      if (from) loaded.insert(*from);
      of_values.pass(i, from != nullptr);
      if (const auto a = i.mnemonic.starts_with("lea") ? parse(all.front(), 0) : std::nullopt) added[value_register(to)] = a->displacement;
      else if (!writes) added.erase(value_register(to));
    }
  found.tables = static_cast<int>(tables.size());
  return found;
}

int blocked_loads(const formats::hot_loop& loop) {
  int blocked = 0;
  const auto all = accesses_of(loop);
  const auto changed = changed_by(loop);
  const auto moves = [&](int at) { return at >= 0 && changed[static_cast<size_t>(at)]; };
  for (const auto& load : all) {
    if (load.store) continue;
    const bool stays = !moves(load.base) && !moves(load.index);
    double covered = 0, narrow = 0;
    for (const auto& store : all) {
      if (!store.store || (store.at > load.at && !stays) || store.base != load.base || store.index != load.index || store.scale != load.scale) continue;
      const auto from = static_cast<double>(store.displacement - load.displacement);
      if (from < 0 || from >= load.bytes) continue;
      if (store.bytes < load.bytes) narrow = 1;
      else covered = 1;
    }
    if (narrow > 0 && covered == 0) ++blocked;
  }
  return blocked;
}

namespace {

/// Does this load overlap one of another pointer at another place of the line? Then no alignment serves both; of one pointer mark_beside() knows.
bool overlaps_another(const access& a, const std::vector<access>& all, const std::array<uint64_t, 16>& values) {
  const double at = address_of(a, values);
  return std::any_of(all.begin(), all.end(), [&](const access& b) {
    const double apart = std::abs(address_of(b, values) - at);
    const bool of_another = b.base != a.base || b.index != a.index || b.scale != a.scale;
    return of_another && !b.store && b.bytes >= wide && apart > 0 && apart < a.bytes;
  });
}

/// Does one load come back to the same bytes at other places of their lines (a window, a lag)? Rows that begin off the lines are met at one place each.
bool slides(std::vector<double> addresses, double bytes) {
  std::sort(addresses.begin(), addresses.end());
  int elsewhere = 0, there = 0;
  for (size_t k = 1; k < addresses.size(); ++k) {
    const double apart = addresses[k] - addresses[k - 1];
    there += apart == 0;
    elsewhere += apart > 0 && apart < bytes;
  }
  return elsewhere >= fewest_meetings && elsewhere > there;
}

} // namespace

void address_metrics(const time_samples& samples, const formats::hot_loop& loop, source_result& out) {
  auto all = accesses_of(loop);
  std::erase_if(all, [](const access& a) { return a.base == nowhere; }); // constants
  mark_beside(all);
  std::set<uint64_t> inside;
  for (const auto& i : loop.body) inside.insert(i.address);
  std::vector<std::vector<double>> met(all.size()); // addresses of each wide load
  std::vector<double> alone(all.size(), 0);         // its splits beside no other load
  double taken = 0, wide_accesses = 0, splits = 0, sliding = 0, alias = 0, loads = 0, far = 0, one_set = 0, strided = 0;
  for (const auto& r : samples.registers) {
    if (inside.count(r.address) == 0) continue;
    ++taken;
    const auto steps = steps_of(loop, r.values);
    for (size_t k = 0; k < all.size(); ++k) {
      const auto& a = all[k];
      const double at = address_of(a, r.values);
      const bool split = a.bytes >= wide && !a.beside && std::fmod(at, line_bytes) + a.bytes > line_bytes;
      wide_accesses += a.bytes >= wide;
      splits += split;
      if (!a.store && a.bytes >= wide) met[k].push_back(at);
      if (split) (!a.store && overlaps_another(a, all, r.values) ? sliding : alone[k]) += 1;
      if (a.store) continue;
      ++loads;
      const double step = std::abs(step_of(a, steps));
      far += step >= page_bytes;
      one_set += step >= page_bytes && std::fmod(step, page_bytes) == 0;
      strided += step >= line_bytes && run_of(a, all) < line_bytes;
    }
    alias += aliased(all, r.values, loop.stored_bytes);
  }
  if (taken < fewest || all.empty()) return;
  const std::string note = "loop at line " + std::to_string(loop.line) + ", addresses of " + format_number(taken, 0) + " samples";
  const auto add = [&](const char* name, double value) { out.metrics.push_back({std::string("samples.") + name, value, "%", "cpu-clock", provenance::measured, note}); };
  if (wide_accesses > 0) add("split_share", 100 * splits / wide_accesses);
  for (size_t k = 0; k < all.size(); ++k)
    if (alone[k] > 0 && slides(std::move(met[k]), all[k].bytes)) sliding += alone[k];
  if (splits > 0) add("sliding_share", 100 * sliding / splits);
  add("alias_share", 100 * alias / taken);
  if (loads > 0) add("far_share", 100 * far / loads);
  if (loads > 0) add("one_set_share", 100 * one_set / loads);
  if (loads > 0) add("strided_share", 100 * strided / loads);
}

} // namespace pragma
