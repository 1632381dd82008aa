#include "synthesis/loops/region.hpp"

#include "synthesis/loops/anchors.hpp"
#include "synthesis/loops/batches.hpp"
#include "synthesis/loops/copies.hpp"
#include "synthesis/loops/pull.hpp"
#include "synthesis/loops/row_blocks.hpp"
#include "synthesis/loops/siblings.hpp"

#include <functional>
#include <map>

namespace pragma::synthesis {

namespace {

/// Regions of which each waits for the next one's buffer: one to three for each layer of a network (ResNet-101 in training mode: more than 200). Each takes some of the stack, which has 8 MiB.
constexpr int deepest = 3000;

class program_builder {
public:
  explicit program_builder(const tensor_program& p) : p_(p), tails_(anchor_tails(p)) { out.buffers = p.buffers; }

  loop_program out;

  void build() {
    std::vector<int> outputs;
    for (size_t i = 0; i < out.buffers.size(); ++i)
      if (out.buffers[i].kind == buffer_kind::output) outputs.push_back(static_cast<int>(i));
    std::vector<bool> done(outputs.size(), false);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (done[i]) continue;
      // Outputs of one shape are computed in one region where that works ("values, indices").
      std::vector<std::pair<int, int>> group{{p_.outputs[i], outputs[i]}};
      for (size_t j = i + 1; j < outputs.size(); ++j)
        if (!done[j] && node(p_.outputs[j]).shape == node(p_.outputs[i]).shape) group.push_back({p_.outputs[j], outputs[j]});
      if (group.size() > 1 && together(group)) {
        for (size_t j = i; j < outputs.size(); ++j)
          for (const auto& [n, b] : group)
            if (b == outputs[j]) done[j] = true;
        continue;
      }
      region_for(p_.outputs[i], outputs[i]);
    }
  }

private:
  const tensor_node& node(int n) const { return p_.nodes[static_cast<size_t>(n)]; }

  bool together(const std::vector<std::pair<int, int>>& group) {
    auto space = domain::of(node(group[0].first).shape);
    for (const auto& [n, b] : group)
      if (node(n).kind == node_kind::concat || node(n).kind == node_kind::scatter || node(n).kind == node_kind::reshape || stored_.count(n)) return false;
    try {
      puller pull(p_, stored_, tails_, space);
      for (const auto& [n, b] : group) pull.pull(n, b, space);
      if (pull.r.anchor) return false;
      order_axes(pull.r);
      out.regions.push_back(std::move(pull.r));
      return true;
    } catch (const needs_buffer&) {
    } catch (const needs_split&) {
    } catch (const needs_flip&) {
    } catch (const impossible&) {
    }
    return false;
  }

  void region_for(int n, int buffer_index) {
    while (node(n).kind == node_kind::reshape && !stored_.count(n)) n = node(n).args[0];
    if (stored_.count(n)) return part(n, buffer_index, node(n).shape, 0, 0); // an output that an earlier one needed
    if (node(n).kind == node_kind::concat) return concat(n, buffer_index);
    if (node(n).kind == node_kind::scatter && !is_half(out.buffers[static_cast<size_t>(buffer_index)].dtype)) return scatter(n, buffer_index);
    build_region(n, domain::of(node(n).shape), [&](puller& pull, const domain& space) { pull.pull(n, buffer_index, space); });
  }

  /// A region over `space`, begun anew until `pulled` finds all it needs.
  void build_region(int n, domain space, const std::function<void(puller&, const domain&)>& pulled) {
    if (++depth_ > deepest) throw impossible{"results of more than " + std::to_string(deepest) + " regions that wait for one another"};
    for (int attempt = 0; attempt < 100;) { // a buffer more is a step towards the end, however many it takes
      try {
        puller pull(p_, stored_, tails_, space);
        pulled(pull, space);
        if (!pull.r.anchor) {
          order_axes(pull.r);
        } else if (!arrange_contraction(pull.r)) {
          // What follows does not walk memory as the tiles do: the anchor alone.
          for (auto& [anchor, tail] : tails_)
            if (tail == n && anchor != n) {
              tail = anchor;
              throw needs_buffer{anchor};
            }
          throw impossible{std::string(name_of(node(n).op)) + " with this layout"};
        }
        out.regions.push_back(std::move(pull.r));
        --depth_;
        return;
      } catch (const needs_buffer& need) {
        buffer b;
        const bool in_half = is_half(node(need.node).held_as) && node(need.node).kind != node_kind::scatter; // what is joined in memory is joined in float32
        b.dtype = in_half ? node(need.node).held_as : node(need.node).dtype;
        b.elements = node(need.node).elements();
        b.index = scratch_;
        b.name = "scratch" + std::to_string(scratch_++);
        out.buffers.push_back(b);
        const int made = static_cast<int>(out.buffers.size()) - 1;
        region_for(need.node, made);
        if (!stored_.insert_or_assign(need.node, made).second) ++attempt;
      } catch (const needs_split& need) {
        ++attempt;
        space.split(need.axis, need.inner);
      } catch (const needs_flip& need) {
        ++attempt;
        space.flip(need.axis);
      }
    }
    throw impossible{"an index space that does not settle"};
  }

  /// `n` into a buffer of shape `whole`, where it begins at `first` along `dim`.
  void part(int n, int buffer_index, const std::vector<int64_t>& whole, int64_t first, size_t dim) {
    build_region(n, domain::of(node(n).shape), [&](puller& pull, const domain& space) {
      index_form where;
      int64_t stride = 1;
      for (size_t i = whole.size(); i-- > 0;) {
        auto f = space.dims[i];
        if (i == dim) f.offset += first;
        where = sum(where, scaled(f, stride));
        stride *= whole[i];
      }
      pull.pull_into(n, buffer_index, space, where);
    });
  }

  void concat(int n, int buffer_index) {
    const auto c = node(n);
    const auto dim = static_cast<size_t>(c.dims[0]);
    int64_t first = 0;
    for (int each : c.args) {
      part(each, buffer_index, c.shape, first, dim);
      first += node(each).shape[dim];
    }
  }

  /// What is there before, and then what is joined with it.
  void scatter(int n, int buffer_index) {
    const auto c = node(n);
    part(c.args[0], buffer_index, c.shape, 0, 0);
    build_region(n, domain::of(node(c.args[2]).shape), [&](puller& pull, const domain& space) { pull.pull_scattered(n, buffer_index, space); });
  }

  const tensor_program& p_;
  std::map<int, int> stored_, tails_;
  int scratch_ = 0, depth_ = 0;
};

/// Windows are walked beside an axis of results. Where there is none (one result, or one for each element of a batch loop) their taps are ordinary reduced axes.
void reduce_lone_windows(region& r) {
  for (size_t a = 0; a < r.axes.size(); ++a)
    if (!r.axes[a].window && static_cast<int>(a) != r.item) return;
  for (auto& a : r.axes) a.window = false; // no guards: they follow an axis of results
}

} // namespace

expected<loop_program> build_program(const tensor_program& program, bool batches) {
  program_builder builder(program);
  try {
    builder.build();
  } catch (const impossible& e) {
    return fail(ec::unsupported, "the built-in coder cannot arrange loops for: " + e.what, "use --coder llm or --coder command");
  }
  join_siblings(builder.out);
  if (batches) {
    widen_while_packing(builder.out);
    join_row_blocks(builder.out);
    join_batches(builder.out);
  }
  if (!batches) drop_copies(builder.out);
  for (auto& r : builder.out.regions) reduce_lone_windows(r);
  for (int n : program.outputs) builder.out.output_shapes.push_back(program.nodes[static_cast<size_t>(n)].shape);
  builder.out.ops = program.ops;
  builder.out.redundant = program.redundant;
  return std::move(builder.out);
}

} // namespace pragma::synthesis
