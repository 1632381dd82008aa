#include "profilers/control_flow.hpp"

#include <algorithm>
#include <set>

namespace pragma::formats {

namespace {

struct block {
  size_t first = 0, last = 0; // instruction indices, inclusive
  std::vector<size_t> next, previous;
};

bool is_jump(const instruction& i) { return !i.mnemonic.empty() && i.mnemonic[0] == 'j'; }
bool falls_through(const instruction& i) { return i.mnemonic.rfind("jmp", 0) != 0 && i.mnemonic.rfind("ret", 0) != 0 && i.mnemonic != "ud2" && i.mnemonic != "hlt"; }

size_t find_index(const std::vector<instruction>& body, uint64_t address) {
  const auto at = std::lower_bound(body.begin(), body.end(), address, [](const instruction& i, uint64_t a) { return i.address < a; });
  return at != body.end() && at->address == address ? static_cast<size_t>(at - body.begin()) : body.size();
}

std::vector<block> make_blocks(const std::vector<instruction>& body) {
  std::set<size_t> starts{0};
  for (size_t i = 0; i < body.size(); ++i) {
    if (is_jump(body[i]) && body[i].target != 0)
      if (const auto to = find_index(body, body[i].target); to < body.size()) starts.insert(to);
    if ((is_jump(body[i]) || !falls_through(body[i])) && i + 1 < body.size()) starts.insert(i + 1);
  }
  std::vector<block> blocks;
  for (auto it = starts.begin(); it != starts.end(); ++it) {
    block b;
    b.first = *it;
    b.last = (std::next(it) == starts.end() ? body.size() : *std::next(it)) - 1;
    blocks.push_back(b);
  }
  const auto block_of = [&](size_t instruction_index) {
    const auto at = std::upper_bound(blocks.begin(), blocks.end(), instruction_index, [](size_t i, const block& b) { return i < b.first; });
    return static_cast<size_t>(at - blocks.begin()) - 1;
  };
  for (size_t b = 0; b < blocks.size(); ++b) {
    const auto& end = body[blocks[b].last];
    const auto connect = [&](size_t to) {
      blocks[b].next.push_back(to);
      blocks[to].previous.push_back(b);
    };
    if (is_jump(end) && end.target != 0)
      if (const auto to = find_index(body, end.target); to < body.size()) connect(block_of(to));
    if (falls_through(end) && b + 1 < blocks.size()) connect(b + 1);
  }
  return blocks;
}

/// Immediate dominators by the iterative algorithm of Cooper, Harvey and Kennedy ("A Simple, Fast Dominance Algorithm", 2001).
struct dominators {
  static constexpr size_t none = static_cast<size_t>(-1);
  std::vector<size_t> parent, number; // number: position in reverse post-order

  explicit dominators(const std::vector<block>& blocks) : parent(blocks.size(), none), number(blocks.size(), none) {
    std::vector<size_t> order;
    std::vector<char> seen(blocks.size(), 0);
    std::vector<std::pair<size_t, size_t>> stack{{0, 0}};
    seen[0] = 1;
    while (!stack.empty()) {
      auto& [b, child] = stack.back();
      if (child < blocks[b].next.size()) {
        const auto to = blocks[b].next[child++];
        if (!seen[to]) {
          seen[to] = 1;
          stack.emplace_back(to, 0);
        }
      } else {
        order.push_back(b);
        stack.pop_back();
      }
    }
    std::reverse(order.begin(), order.end());
    for (size_t i = 0; i < order.size(); ++i) number[order[i]] = i;
    parent[0] = 0;
    for (bool changed = true; changed;) {
      changed = false;
      for (auto b : order) {
        if (b == 0) continue;
        size_t best = none;
        for (auto p : blocks[b].previous) {
          if (parent[p] == none) continue;
          best = best == none ? p : meet(p, best);
        }
        if (best != none && parent[b] != best) {
          parent[b] = best;
          changed = true;
        }
      }
    }
  }
  bool dominates(size_t above, size_t below) const {
    if (number[below] == none || number[above] == none) return false; // unreachable
    while (number[below] > number[above]) below = parent[below];
    return above == below;
  }

private:
  size_t meet(size_t a, size_t b) const {
    while (a != b) {
      while (number[a] > number[b]) a = parent[a];
      while (number[b] > number[a]) b = parent[b];
    }
    return a;
  }
};

} // namespace

std::vector<std::vector<size_t>> innermost_natural_loops(const std::vector<instruction>& body) {
  if (body.empty()) return {};
  const auto blocks = make_blocks(body);
  const dominators tree(blocks);
  std::map<size_t, std::set<size_t>> loops; // header -> blocks; loops with one header are one loop
  for (size_t tail = 0; tail < blocks.size(); ++tail)
    for (auto header : blocks[tail].next) {
      if (!tree.dominates(header, tail)) continue;
      auto& members = loops[header];
      members.insert(header);
      std::vector<size_t> open{tail};
      while (!open.empty()) {
        const auto b = open.back();
        open.pop_back();
        if (!members.insert(b).second) continue;
        for (auto p : blocks[b].previous) open.push_back(p);
      }
    }
  std::vector<std::vector<size_t>> innermost;
  for (const auto& [header, members] : loops) {
    const bool has_inner = std::any_of(loops.begin(), loops.end(), [&, h = header, &m = members](const auto& other) {
      return other.first != h && m.count(other.first) != 0;
    });
    if (has_inner) continue;
    std::vector<size_t> instructions;
    for (auto b : members)
      for (size_t i = blocks[b].first; i <= blocks[b].last; ++i) instructions.push_back(i);
    innermost.push_back(std::move(instructions)); // blocks are in address order, and so is the set
  }
  return innermost;
}

} // namespace pragma::formats
