"""What a traced graph costs (floating-point operations, compulsory bytes) and which of the paper's six categories it is.

Conventions, so that numbers can be compared: a multiply-accumulate is 2 operations; an element-wise operator is 1 per
output element, transcendental or not; a reduction is 1 per input element; normalisation operators count their textbook
passes (below); moving data is 0. Bytes are inputs + parameters that are read + outputs, each once: the traffic that no
implementation can avoid.
"""
from functools import reduce

ITEM = {"float64": 8, "int64": 8, "float32": 4, "int32": 4, "float16": 2, "bfloat16": 2, "int16": 2}

RECURRENT = {"lstm", "gru", "rnn_tanh", "rnn_relu"}  # all steps of a layer in one call
MATMUL = {"mm", "bmm", "addmm", "baddbmm", "mv", "dot", "addmv", "addbmm", "matmul", "linear", "addr", "ger", "einsum"}
CONV = {"convolution", "_convolution", "conv1d", "conv2d", "conv3d", "mkldnn_convolution"}
POOL = ("avg_pool", "max_pool", "adaptive_avg_pool", "adaptive_max_pool", "lp_pool", "fractional_max_pool")
NORM = {"native_batch_norm", "native_layer_norm", "native_group_norm", "_native_batch_norm_legit",
        "_native_batch_norm_legit_functional", "_native_batch_norm_legit_no_training", "cudnn_batch_norm", "_fused_rms_norm"}
SOFTMAX = {"_softmax", "_log_softmax", "softmax", "log_softmax"}
REDUCE = {"sum", "mean", "max", "min", "amax", "amin", "prod", "argmax", "argmin", "norm", "var", "std", "var_mean",
          "std_mean", "logsumexp", "all", "any", "linalg_vector_norm", "median", "nansum", "count_nonzero", "aminmax",
          "frobenius_norm"}
SCAN = {"cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"}
SORT = {"sort", "topk", "kthvalue", "msort", "unique"}
LOSS = {"nll_loss_forward", "nll_loss2d_forward", "mse_loss", "smooth_l1_loss", "huber_loss", "l1_loss", "binary_cross_entropy",
        "binary_cross_entropy_with_logits", "soft_margin_loss", "multi_margin_loss", "multilabel_margin_loss_forward", "xlogy"}
MOVE = {"view", "_unsafe_view", "_reshape_alias", "reshape", "t", "transpose", "permute", "expand", "squeeze", "unsqueeze",
        "select", "slice", "cat", "stack", "flip", "clone", "copy", "_to_copy", "empty", "empty_like", "zeros", "zeros_like",
        "ones", "ones_like", "full", "full_like", "diag", "diag_embed", "diagonal", "triu", "tril", "getitem", "as_strided",
        "constant_pad_nd", "index_select", "gather", "arange", "scalar_tensor", "new_zeros", "new_full", "alias", "detach",
        "roll", "split", "split_with_sizes", "unsafe_split", "unsafe_split_with_sizes", "unbind", "masked_fill", "where", "pixel_unshuffle", "repeat", "unfold", "new_empty", "lift_fresh", "pixel_shuffle",
        "narrow", "embedding", "scatter", "slice_scatter", "select_scatter", "reflection_pad2d", "upsample_nearest2d"}
LINEAR = {"mul", "div", "add", "sub", "rsub", "neg"}
# operations per input element
WEIGHTS = {"_softmax": 4, "softmax": 4, "_log_softmax": 4, "log_softmax": 4, "native_layer_norm": 7, "native_group_norm": 7,
           "norm": 2, "linalg_vector_norm": 2, "frobenius_norm": 2, "var": 4, "std": 4, "var_mean": 4, "std_mean": 4,
           "logsumexp": 3, "_fused_rms_norm": 4}


def base_name(op):
    return op.split(".")[1] if op.startswith("aten.") else op


def product(shape):
    return reduce(lambda a, b: a * b, shape, 1)


def _tables(graph):
    shapes, dtypes = {}, {}
    for entry in graph["inputs"] + graph["params"] + graph["foreign"] + graph["constants"] + graph["nodes"]:
        shapes[entry["id"]] = entry["shapes"] if "shapes" in entry else entry["shape"]
        dtypes[entry["id"]] = entry["dtypes"] if "dtypes" in entry else entry["dtype"]
    return shapes, dtypes


def _first_shape(shape):
    return shape[0] if shape and isinstance(shape[0], list) else shape


def flops_of(node, shapes):
    """Floating-point operations of one node."""
    name, args = base_name(node["op"]), node["args"]

    def shape(key):
        value = args.get(key)
        return _first_shape(shapes[value["ref"]]) if isinstance(value, dict) else []

    out = _first_shape(shapes[node["id"]])
    if name in MOVE or out is None:
        return 0
    n_out = product(out)
    if name in CONV:
        weight, source = shape("weight"), shape("input")
        # Every weight is used once per (batch, spatial position) of the side that it is applied on.
        spatial = product(source[2:]) if args.get("transposed") else product(out[2:])
        macs = source[0] * spatial * product(weight)
        return 2 * macs + (n_out if args.get("bias") else 0)
    if name in RECURRENT:
        weights = [shapes[w["ref"]] for w in args["params"]]
        return 2 * product(shape("input")[:-1]) * sum(product(w) for w in weights if len(w) == 2)
    if name in MATMUL:
        if name in ("addmm", "baddbmm", "addbmm"):
            a, b = ("batch1", "batch2") if name != "addmm" else ("mat1", "mat2")
            return 2 * product(shape(a)) * shape(b)[-1] + n_out
        if name == "mv":
            return 2 * product(shape("self"))
        if name == "addmv":
            return 2 * product(shape("mat")) + n_out
        if name == "dot":
            return 2 * product(shape("self"))
        if name in ("mm", "bmm"):
            return 2 * product(shape("self")) * shape("mat2")[-1]
        if name == "linear":
            return 2 * product(shape("input")) * shape("weight")[0]
        return 2 * n_out
    if "pool" in name:
        kernel = args.get("kernel_size")
        if kernel:
            window = product(kernel) if len(kernel) > 1 else kernel[0] ** (len(out) - 2 if len(out) > 2 else 1)
            return n_out * window
        return product(shape("self") or shape("input"))
    source = shape("self") or shape("input")
    n_in = product(source) if source else n_out
    if "batch_norm" in name:
        return n_in * (7 if args.get("training", True) else 2)
    if name in WEIGHTS:
        return n_in * WEIGHTS[name]
    if name in REDUCE or name in SCAN:
        return max(n_in, n_out)
    if name in LOSS:
        return 3 * n_in if name not in ("nll_loss_forward", "xlogy") else n_in
    if name in SORT:
        return n_in
    return n_out


def cost(graph, outputs):
    """(flops, bytes) of one call."""
    shapes, _ = _tables(graph)
    flops = sum(flops_of(node, shapes) for node in graph["nodes"])
    moved = sum(product(e["shape"]) * ITEM.get(e["dtype"], 1) for e in graph["inputs"] + graph["params"] if e["used"])
    moved += sum(product(o["shape"]) * ITEM.get(o["dtype"], 1) for o in outputs)
    return float(flops), float(moved)


def traced_flops(graph_module):
    """Floating-point operations of one call, counted on the trace itself: for tasks whose trace is no graph of ours (an
    operator or a value that the conversion refuses)."""
    shapes, flops = {}, 0
    for node in graph_module.graph.nodes:
        value = node.meta.get("val")
        if isinstance(value, (list, tuple)):
            shapes[node.name] = [list(v.shape) for v in value if hasattr(v, "shape")]
        elif hasattr(value, "shape"):
            shapes[node.name] = list(value.shape)
        schema = getattr(node.target, "_schema", None)
        if schema is None or node.name not in shapes:
            continue
        given = dict(zip([a.name for a in schema.arguments], node.args), **node.kwargs)
        args = {name: {"ref": v.name} if hasattr(v, "meta") else v for name, v in given.items()}
        if any(isinstance(v, dict) and v["ref"] not in shapes for v in args.values()):
            continue
        flops += flops_of({"id": node.name, "op": "aten." + schema.name.split("::")[-1], "args": args}, shapes)
    return float(flops)


def category(graph, inputs, outputs):
    """One of the paper's six, from the operators."""
    names = [base_name(n["op"]) for n in graph["nodes"]]
    have = set(names)
    shapes, _ = _tables(graph)
    if have & CONV:
        return "conv"
    if have & (MATMUL | RECURRENT):
        return "matmul"
    if have & SCAN or have & SORT or have & LOSS:
        return "others"
    scalar_result = all(product(o["shape"]) == 1 for o in outputs)
    reduces = bool(have & (REDUCE | SOFTMAX | NORM))
    if scalar_result and len(inputs) >= 2:
        return "others"  # a loss
    if have & NORM:
        return "normalization"
    if any(name.startswith(POOL) for name in names):
        return "pooling/reduction"
    largest = max((product(i["shape"]) for i in inputs), default=0)
    full_size = any(product(o["shape"]) >= largest for o in outputs)
    if have & SOFTMAX:
        return "activation"
    if reduces:
        if not full_size:
            return "pooling/reduction"
        return "activation" if "exp" in have else "normalization"
    compute = have - MOVE
    if compute and compute <= LINEAR:
        # A product with a scalar or a diagonal matrix (a row or column vector) is linear algebra, not an activation.
        return "matmul" if compute == {"mul"} else "others"
    return "activation" if compute else "others"
