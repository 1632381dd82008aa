"""Functions of Torch that look at values, or whose parts no trace shows, as functions that a trace can follow. Used while a task is traced, never while it runs:
what they compute is what Torch computes, and the results of the traced graph are compared with Torch's own.
"""
import contextlib
import sys

import torch
import torch.nn.functional as F

MOST_STEPS = 64  # of a recurrent layer: each is written out in the graph; a layer of more is one node, which is Torch's


def repeat_interleave(self, repeats, dim=None, *, output_size=None):
    """A number of repeats is an expansion; Torch 1.13 makes a tensor of it first. A tensor of repeats decides the shape by its values."""
    if not isinstance(repeats, int):
        return _repeat_interleave(self, repeats, dim, output_size=output_size)
    x, dim = (self.reshape(-1), 0) if dim is None else (self, dim % self.dim())
    x = x.unsqueeze(dim + 1)
    return x.expand(*x.shape[:dim + 1], repeats, *x.shape[dim + 2:]).flatten(dim, dim + 1)


def one_hot(tensor, num_classes=-1):
    """Without Torch's look at the largest label; the number of classes has to be said."""
    if num_classes < 0:
        return _one_hot(tensor, num_classes)
    return (tensor.unsqueeze(-1) == torch.arange(num_classes, device=tensor.device)).to(torch.int64)


def cross_entropy_loss(input, target, weight=None, reduction=1, ignore_index=-100, label_smoothing=0.0):
    """Smoothed labels without a write through a mask, which Torch 1.13 does to a tensor that no trace follows. Any other call is Torch's own."""
    if label_smoothing == 0.0 or target.shape == input.shape or torch.is_floating_point(target):
        return _cross_entropy_loss(input, target, weight, reduction, ignore_index, label_smoothing)
    dim = 0 if input.dim() == 1 else 1
    log_p = torch.log_softmax(input, dim)
    shape = [-1 if d == dim else 1 for d in range(input.dim())]
    ignored = target == ignore_index
    # As far from the truth: all classes alike, each by its weight.
    loss = -(log_p if weight is None else log_p * weight.view(shape)).sum(dim)
    loss = torch.where(ignored, torch.zeros_like(loss), loss)
    if reduction == 1:
        counted = (~ignored).to(loss.dtype)
        if weight is not None:
            counted = counted * weight[torch.where(ignored, torch.zeros_like(target), target)]
        loss = loss.sum() / counted.sum()
    elif reduction == 2:
        loss = loss.sum()
    truth = F.nll_loss(log_p, target, weight, ignore_index=ignore_index, reduction=("none", "mean", "sum")[reduction])
    return truth * (1 - label_smoothing) + loss * (label_smoothing / input.shape[dim])


def weight_norm(v, g, dim=0):
    """Torch's call of two results, by its parts: v with the lengths g, found over all dimensions but `dim` (-1: over all)."""
    over = [d for d in range(v.dim()) if dim == -1 or d != dim]
    return v * (g / (v * v).sum(over, keepdim=dim != -1).sqrt())


def native_attention(query, key, value, width, heads, weight, bias, out_weight, out_bias, mask=None, need_weights=True, average=True, mask_type=None):
    """Attention of nn.MultiheadAttention in evaluation, which Torch has in one call. With a mask the call stays Torch's."""
    if mask is not None:
        return _native_attention(query, key, value, width, heads, weight, bias, out_weight, out_bias, mask, need_weights, average, mask_type)
    if query is key and key is value:
        projected = F.linear(query, weight, bias).chunk(3, -1)
    else:
        projected = [F.linear(x, w, b) for x, w, b in zip((query, key, value), weight.chunk(3), bias.chunk(3))]
    q, k, v = (x.reshape(x.shape[0], x.shape[1], heads, width // heads).transpose(1, 2) for x in projected)
    chances = torch.softmax((q @ k.transpose(-2, -1)) * (width // heads) ** -0.5, -1)
    result = F.linear((chances @ v).transpose(1, 2).reshape(query.shape), out_weight, out_bias)
    return result, (chances.mean(1) if average else chances) if need_weights else None


def encoder_layer(x, width, heads, weight, bias, out_weight, out_bias, use_gelu, norm_first, eps, weight_1, bias_1, weight_2, bias_2, in_weight, in_bias, back_weight, back_bias,
                  mask=None, mask_type=None):
    """nn.TransformerEncoderLayer in evaluation, which Torch has in one call. With a mask the call stays Torch's."""
    if mask is not None:
        return _encoder_layer(x, width, heads, weight, bias, out_weight, out_bias, use_gelu, norm_first, eps, weight_1, bias_1, weight_2, bias_2, in_weight, in_bias, back_weight, back_bias, mask, mask_type)
    norms = [lambda y, w=w, b=b: F.layer_norm(y, (width,), w, b, eps) for w, b in ((weight_1, bias_1), (weight_2, bias_2))]
    attend = lambda y: native_attention(y, y, y, width, heads, weight, bias, out_weight, out_bias, need_weights=False)[0]
    feed = lambda y: F.linear((F.gelu if use_gelu else F.relu)(F.linear(y, in_weight, in_bias)), back_weight, back_bias)
    for norm, part in zip(norms, (attend, feed)):
        x = x + part(norm(x)) if norm_first else norm(x + part(x))
    return x


# A step of each layer: what the input gives (found for all steps at once), the state, the state's product.
def _gru_step(x, h, product):
    (rx, zx, nx), (rh, zh, nh) = x.chunk(3, -1), product(h).chunk(3, -1)
    r, z = torch.sigmoid(rx + rh), torch.sigmoid(zx + zh)
    n = torch.tanh(nx + r * nh)
    return n + z * (h - n)


def _lstm_step(x, state, product):
    h, c = state
    i, f, g, o = (x + product(h)).chunk(4, -1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def _direction(step, x, state, weights, backwards):
    """All results of one layer in one direction, [step, batch, width], and its last state."""
    biases = weights[2:4] if len(weights) > 2 else (None, None)
    given = F.linear(x, weights[0], biases[0])
    product = lambda h: F.linear(h, weights[1], biases[1])
    results = []
    for i in (range(x.shape[0] - 1, -1, -1) if backwards else range(x.shape[0])):
        state = step(given[i], state, product)
        results.append(state[0] if isinstance(state, tuple) else state)
    return torch.stack(results[::-1] if backwards else results), state


LIBRARY = torch.library.Library("pragma_layers", "DEF")


def _whole(name, states):
    """A recurrent layer that a trace shows as one call of pragma_layers.NAME, with the arguments of aten.NAME.input. It computes nothing: what is traced are shapes."""
    LIBRARY.define("%s(Tensor input, Tensor%s hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (%s)" %
                   (name, "[]" if states > 1 else "", ", ".join(["Tensor"] * (states + 1))))

    def shapes(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first):
        given = hx if states > 1 else [hx]
        width = given[0].shape[-1] * (2 if bidirectional else 1)
        return (input.new_empty(*input.shape[:-1], width), *[input.new_empty(h.shape) for h in given])

    LIBRARY.impl(name, shapes, "CompositeExplicitAutograd")
    return getattr(torch.ops.pragma_layers, name)


def _recurrent(step, name, states):
    """A layer of torch._VF by its steps: input, initial state(s), weights, has_biases, layers, dropout, training, bidirectional, batch_first."""
    original, whole = getattr(torch._VF, name), _whole(name, states)

    def layer(input, hx, weights, *rest):
        if len(rest) != 6:  # a packed sequence
            return original(input, hx, weights, *rest)
        biases, layers, dropout, training, bidirectional, batch_first = rest
        dropout = dropout if training and layers > 1 else 0.0  # it stands between two layers
        each, sides = 4 if biases else 2, 2 if bidirectional else 1
        x = input.transpose(0, 1) if batch_first else input
        if input.dim() != 3 or len(weights) != layers * sides * each:
            return original(input, hx, weights, *rest)
        if x.shape[0] > MOST_STEPS or dropout:
            return whole(input, list(hx) if states > 1 else hx, list(weights), biases, layers, dropout, training, bidirectional, batch_first)
        initial, ends = hx if states > 1 else (hx,), []
        for n in range(layers):
            results = []
            for at in range(n * sides, (n + 1) * sides):
                state = tuple(h[at] for h in initial) if states > 1 else initial[0][at]
                result, end = _direction(step, x, state, weights[at * each:(at + 1) * each], at % sides == 1)
                results.append(result)
                ends.append(end)
            x = torch.cat(results, -1) if bidirectional else results[0]
        last = [torch.stack([e[i] for e in ends]) for i in range(states)] if states > 1 else [torch.stack(ends)]
        return (x.transpose(0, 1) if batch_first else x, *last)
    return layer


_repeat_interleave, _one_hot, _cross_entropy_loss = torch.repeat_interleave, F.one_hot, torch._C._nn.cross_entropy_loss
_native_attention, _encoder_layer = torch._native_multi_head_attention, torch._transformer_encoder_layer_fwd
_LAYERS = {"gru": (_gru_step, 1), "lstm": (_lstm_step, 2), "rnn_tanh": (lambda x, h, product: torch.tanh(x + product(h)), 1), "rnn_relu": (lambda x, h, product: torch.relu(x + product(h)), 1)}


_STEPS = {name: _recurrent(step, name, states) for name, (step, states) in _LAYERS.items()}


@contextlib.contextmanager
def functions():
    """While this holds, Torch's names are these functions."""
    replaced = [(torch, "repeat_interleave", repeat_interleave), (torch.Tensor, "repeat_interleave", repeat_interleave),
                (F, "one_hot", one_hot), (torch._C._nn, "cross_entropy_loss", cross_entropy_loss), (torch, "_weight_norm", weight_norm),
                (sys.modules["torch.nn.utils.weight_norm"], "_weight_norm", weight_norm),
                (torch, "_native_multi_head_attention", native_attention), (torch, "_transformer_encoder_layer_fwd", encoder_layer)]
    replaced += [(torch._VF, name, layer) for name, layer in _STEPS.items()]
    before = [(where, name, getattr(where, name)) for where, name, _ in replaced]
    try:
        for where, name, function in replaced:
            setattr(where, name, function)
        yield
    finally:
        for where, name, function in before:
            setattr(where, name, function)


@contextlib.contextmanager
def parameters():
    """While this holds, isinstance does not take a fake parameter for an uninitialised one, as Torch 1.13's does: weight_norm() asks when a model is made."""
    kind, parameter = type(torch.nn.Parameter), torch.nn.Parameter
    before = kind.__instancecheck__
    kind.__instancecheck__ = lambda cls, instance: before(cls, instance) if cls is parameter else type.__instancecheck__(cls, instance)
    try:
        yield
    finally:
        kind.__instancecheck__ = before
