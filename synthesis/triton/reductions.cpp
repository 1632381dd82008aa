#include "synthesis/triton/reductions.hpp"

#include "synthesis/schedule/passes.hpp"

#include <algorithm>

namespace pragma::synthesis {

namespace {

using component = triton_reduction::component;

std::string lowest(dtype type) {
  switch (type) {
    case dtype::float32: case dtype::float64: return "float(\"-inf\")";
    case dtype::int64: return "-9223372036854775808";
    case dtype::int32: return "-2147483648";
    case dtype::int16: return "-32768";
    case dtype::int8: return "-128";
    default: return "0";
  }
}

std::string highest(dtype type) {
  switch (type) {
    case dtype::float32: case dtype::float64: return "float(\"inf\")";
    case dtype::int64: return "9223372036854775807";
    case dtype::int32: return "2147483647";
    case dtype::int16: return "32767";
    case dtype::int8: return "127";
    case dtype::uint8: return "255";
    default: return "1";
  }
}

/// Places in 32 bits where they fit: half the registers and shuffles.
dtype place_type(const region& r, const index_form& at) {
  int64_t farthest = std::abs(at.offset);
  for (const auto& [a, c] : at.terms) farthest += std::abs(c) * r.axes[static_cast<size_t>(a)].extent;
  return farthest < (int64_t{1} << 31) ? dtype::int32 : dtype::int64;
}

triton_reduction plain(const region& r, int e) {
  const auto& x = r.exprs[static_cast<size_t>(e)];
  triton_reduction t;
  t.e = e;
  t.name = std::string(name_of(x.op)) + std::to_string(e);
  if (finds_place(x.op)) {
    const auto type = r.exprs[static_cast<size_t>(x.args[0])].dtype;
    t.kind = reduction_kind::place;
    t.components = {{"", type, triton_identity(x.op, type)}, {"_place", place_type(r, x.at), "0"}};
  } else {
    t.components = {{"", x.dtype, triton_identity(x.op, x.dtype)}};
  }
  return t;
}

/// sum(exp(x - max(x))): the maximum that the reduction `e` belongs to, or -1.
int maximum_of_exponentials(const region& r, int e) {
  const auto at = [&](int i) -> const expr& { return r.exprs[static_cast<size_t>(i)]; };
  if (at(e).kind != expr_kind::reduce || at(e).op != operation::sum || at(e).dtype != dtype::float32) return -1;
  const auto& power = at(at(e).args[0]);
  if (power.op != operation::exp && power.op != operation::exp_nonpositive) return -1;
  const auto& distance = at(power.args[0]);
  if (distance.op != operation::sub || distance.args.size() != 2) return -1;
  const auto& top = at(distance.args[1]);
  const bool same = top.kind == expr_kind::reduce && (top.op == operation::max || top.op == operation::peak) && top.args[0] == distance.args[0];
  return same ? distance.args[1] : -1;
}

} // namespace

std::string triton_identity(operation op, dtype type) {
  switch (traits(op).start) {
    case identity::one: return is_floating(type) ? "1.0" : "1";
    case identity::lowest: return lowest(type);
    case identity::highest: return highest(type);
    default: return is_floating(type) ? "0.0" : "0";
  }
}

triton_plan plan_triton(const region& r, bool pairs) {
  triton_plan plan;
  plan.ready.assign(r.exprs.size(), 0);
  std::map<int, merged_moments> moments; // by the expression of the squares
  if (pairs)
    for (const auto& [sum, m] : plan_passes(r, r.reduced_mask(), true).moments) moments[m.squares] = m;
  const auto pair_up = [&](int first, int second, reduction_kind kind) {
    for (auto& [pass, list] : plan.reduces)
      for (auto& x : list)
        if (x.e == first && x.kind == reduction_kind::plain) {
          x.kind = kind;
          x.second = second;
          const auto type = x.components[0].dtype;
          if (kind == reduction_kind::moments) x.components = {{"_mean", type, "0.0"}, {"_squares", type, "0.0"}, {"_count", type, "0.0"}};
          else x.components = {{"", type, "float(\"-inf\")"}, {"_exponentials", type, "0.0"}};
          return pass;
        }
    return 0;
  };
  for (size_t i = 0; i < r.exprs.size(); ++i) {
    const int e = static_cast<int>(i);
    int ready = 0;
    for (int a : r.exprs[i].args) ready = std::max(ready, plan.ready[static_cast<size_t>(a)]);
    if (r.exprs[i].kind == expr_kind::reduce) {
      int pass = 0;
      if (const auto m = moments.find(e); m != moments.end()) pass = pair_up(m->second.sum, e, reduction_kind::moments);
      if (const int top = pairs ? maximum_of_exponentials(r, e) : -1; top >= 0) pass = pair_up(top, e, reduction_kind::exponentials);
      if (pass == 0) {
        pass = ready + 1;
        plan.reduces[pass].push_back(plain(r, e));
      }
      ready = pass;
    }
    plan.ready[i] = ready;
    plan.passes = std::max(plan.passes, ready);
  }
  for (size_t s = 0; s < r.stores.size(); ++s) {
    uint32_t axes = r.exprs[static_cast<size_t>(r.stores[s].value)].axes;
    for (const auto& t : r.stores[s].at.terms) axes |= 1u << t.first;
    bool window = false;
    for (size_t a = 0; a < r.axes.size(); ++a) window = window || ((axes & (1u << a)) && r.axes[a].window);
    if ((axes & r.reduced_mask()) && !window) {
      const int pass = plan.ready[static_cast<size_t>(r.stores[s].value)] + 1;
      plan.stores[pass].push_back(static_cast<int>(s));
      plan.passes = std::max(plan.passes, pass);
    } else {
      plan.row_stores.push_back(static_cast<int>(s));
    }
  }
  return plan;
}

std::string reduction_writer::element(const triton_reduction& x, const std::string& valid) {
  const int value = r_.exprs[static_cast<size_t>(x.e)].args[0];
  const auto& source = r_.exprs[static_cast<size_t>(value)];
  const auto& identity = x.kind == reduction_kind::moments ? std::string("0.0") : x.components[0].identity;
  const bool widens = source.dtype != x.components[0].dtype;
  const auto wide = [&](const std::string& text) { return widens ? "tl.cast(" + text + ", " + triton_values::type_name(x.components[0].dtype) + ")" : text; };
  if (valid.empty()) return wide(v_.name_of(value));
  // A load that is masked alike can give the identity itself.
  if (source.kind == expr_kind::load && source.args.empty() && !widens && source.dtype != dtype::boolean && v_.mask(source.axes & r_.reduced_mask()) == valid &&
      v_.outside(value, identity))
    return v_.name_of(value);
  return "tl.where(" + valid + ", " + wide(v_.name_of(value)) + ", " + identity + ")";
}

void reduction_writer::begin(const triton_reduction& x) {
  for (const auto& c : x.components)
    v_.line(x.name + c.suffix + "_lanes = tl.full(" + shape_ + ", " + c.identity + ", " + triton_values::type_name(c.dtype) + ")");
}

void reduction_writer::update(const triton_reduction& x, const std::string& valid) {
  const auto& reduce = r_.exprs[static_cast<size_t>(x.e)];
  const auto lanes = x.name + "_lanes";
  if (x.kind == reduction_kind::plain) {
    const auto v = element(x, valid);
    const auto& joins = traits(reduce.op).triton;
    const std::string text(joins.text);
    if (joins.as == spelling::form::infix) v_.line(lanes + " " + text + "= " + v);
    else v_.line(lanes + " = " + text + "(" + lanes + ", " + v + (is_floating(reduce.dtype) ? ", propagate_nan=tl.PropagateNan.ALL)" : ")"));
    return;
  }
  const auto fresh = x.name + "_new";
  v_.line(fresh + " = " + element(x, valid));
  if (x.kind == reduction_kind::place) {
    const auto position = v_.index(reduce.at);
    const bool floating = is_floating(x.components[0].dtype);
    // Positions only grow here, so the first of equals stays; NaN wins over numbers.
    v_.line(x.name + "_better = " + (floating ? "(" : "") + fresh + (takes_highest(reduce.op) ? " > " : " < ") + lanes +
            (floating ? ") | ((" + fresh + " != " + fresh + ") & (" + lanes + " == " + lanes + "))" : ""));
    v_.line(x.name + "_place_lanes = tl.where(" + x.name + "_better, " + position + ", " + x.name + "_place_lanes)");
    v_.line(lanes + " = tl.where(" + x.name + "_better, " + fresh + ", " + lanes + ")");
  } else if (x.kind == reduction_kind::moments) {
    // Welford's update, lane by lane.
    const auto mean = x.name + "_mean_lanes", squares = x.name + "_squares_lanes", count = x.name + "_count_lanes";
    v_.line(count + (valid.empty() ? " += 1.0" : " += tl.where(" + valid + ", 1.0, 0.0)"));
    v_.line(x.name + "_step = " + fresh + " - " + mean);
    const auto moved = x.name + "_step / " + (valid.empty() ? count : "tl.maximum(" + count + ", 1.0)");
    v_.line(mean + " += " + (valid.empty() ? moved : "tl.where(" + valid + ", " + moved + ", 0.0)"));
    const auto square = x.name + "_step * (" + fresh + " - " + mean + ")";
    v_.line(squares + " += " + (valid.empty() ? square : "tl.where(" + valid + ", " + square + ", 0.0)"));
  } else {
    v_.use_helper("exponential_of_distance");
    v_.line(x.name + "_top = tl.maximum(" + lanes + ", " + fresh + ", propagate_nan=tl.PropagateNan.ALL)");
    v_.line(x.name + "_exponentials_lanes = " + x.name + "_exponentials_lanes * exponential_of_distance(" + lanes + ", " + x.name + "_top) + exponential_of_distance(" + fresh +
            ", " + x.name + "_top)");
    v_.line(lanes + " = " + x.name + "_top");
  }
}

void reduction_writer::join(const triton_reduction& x, const std::string& from) {
  const auto axis = ", axis=" + std::to_string(axis_);
  const bool two = axis_ == 1;
  const auto keep = [&](const std::string& name) {
    if (two) v_.line(name + " = " + name + "[:, None]");
  };
  if (x.kind == reduction_kind::plain) {
    const std::string helper(traits(r_.exprs[static_cast<size_t>(x.e)].op).triton_finish);
    std::string text = helper.empty() ? "tl.sum(" + from + axis + ")" : "";
    if (!helper.empty()) {
      v_.use_helper(helper);
      text = "tl.reduce(" + from + axis + ", combine_fn=" + helper + ")";
    }
    v_.line(x.name + " = " + text + (two ? "[:, None]" : ""));
    return;
  }
  std::string names, lanes;
  const auto suffix = from.substr(x.name.size()); // "_lanes" or what stands for it
  for (const auto& c : x.components) {
    names += (names.empty() ? "" : ", ") + x.name + c.suffix;
    lanes += (lanes.empty() ? "" : ", ") + x.name + c.suffix + suffix;
  }
  const std::string helper = x.kind == reduction_kind::moments        ? "merged_moments"
                             : x.kind == reduction_kind::exponentials ? "merged_exponentials"
                                                                      : std::string(traits(r_.exprs[static_cast<size_t>(x.e)].op).triton_finish);
  v_.use_helper(helper);
  if (helper == "merged_exponentials") v_.use_helper("exponential_of_distance");
  v_.line(names + " = tl.reduce((" + lanes + ")" + axis + ", combine_fn=" + helper + ")");
  for (const auto& c : x.components) keep(x.name + c.suffix);
}

void reduction_writer::bind_results(const triton_reduction& x) {
  if (x.kind == reduction_kind::moments) {
    int64_t n = 1;
    for (const auto& a : r_.axes)
      if (a.reduced) n *= a.extent;
    v_.line(x.name + " = " + x.name + "_mean * " + triton_values::literal(static_cast<double>(n), dtype::float64));
    v_.bind(x.e, x.name);
    v_.bind(x.second, x.name + "_squares");
  } else {
    v_.bind(x.e, x.kind == reduction_kind::place ? "tl.cast(" + x.name + "_place, tl.int64)" : x.name);
    if (x.kind == reduction_kind::exponentials) v_.bind(x.second, x.name + "_exponentials");
  }
}

void reduction_writer::finish(const triton_reduction& x) {
  join(x, x.name + "_lanes");
  bind_results(x);
}

void reduction_writer::whole(const triton_reduction& x, const std::string& valid) {
  const auto& reduce = r_.exprs[static_cast<size_t>(x.e)];
  const auto& source = r_.exprs[static_cast<size_t>(reduce.args[0])];
  auto v = element(x, valid);
  const auto broadcast = [&](const std::string& text) { return "tl.broadcast_to(" + text + ", " + shape_ + ")"; };
  if (source.kind == expr_kind::constant && valid.empty()) v = "tl.full(" + shape_ + ", " + v + ", " + triton_values::type_name(x.components[0].dtype) + ")";
  else if ((source.axes & r_.reduced_mask()) != r_.reduced_mask() || x.kind == reduction_kind::place) v = broadcast(v);
  if (x.kind == reduction_kind::place) {
    v_.line(x.name + "_tile = " + v);
    v_.line(x.name + "_place_tile = " + broadcast("tl.cast(" + v_.index(reduce.at) + ", " + triton_values::type_name(x.components[1].dtype) + ")"));
    join(x, x.name + "_tile");
  } else {
    join(x, v);
  }
  bind_results(x);
}

void reduction_writer::finish_lanes(const triton_reduction& x) {
  v_.bind(x.e, x.kind == reduction_kind::place ? "tl.cast(" + x.name + "_place_lanes, tl.int64)" : x.name + "_lanes");
}

void reduction_writer::store_partials(const triton_reduction& x, const std::string& index, const std::string& mask) {
  for (const auto& c : x.components) v_.line(v_.store_text(x.name + c.suffix + "_partials", index, x.name + c.suffix, mask));
}

void reduction_writer::load_partials(const triton_reduction& x, const std::string& index, const std::string& mask) {
  for (const auto& c : x.components) v_.line(x.name + c.suffix + "_parts = " + v_.load_text(x.name + c.suffix + "_partials", index, mask, c.identity));
  join(x, x.name + "_parts");
  bind_results(x);
}

} // namespace pragma::synthesis
