"""Functions of Torch that look at values, or whose parts no trace shows, as functions that a trace can follow. Used while a task is traced, never while it runs:
what they compute is what Torch computes, and the results of the traced graph are compared with Torch's own.
"""
import contextlib
import sys

import torch
import torch.nn.functional as F

MOST_STEPS = 64  # of a recurrent layer with a projection: Torch takes it apart, step by step; of more it would take minutes


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


def _recurrent(name, states):
    """A layer of torch._VF as one node: input, initial state(s), weights, has_biases, layers, dropout, training, bidirectional, batch_first."""
    original, whole = getattr(torch._VF, name), _whole(name, states)

    def layer(input, hx, weights, *rest):
        if len(rest) != 6:  # a packed sequence
            return original(input, hx, weights, *rest)
        biases, layers, dropout, training, bidirectional, batch_first = rest
        projected = len(weights) != layers * (2 if bidirectional else 1) * (4 if biases else 2)
        if projected and input.shape[1 if batch_first else 0] <= MOST_STEPS:
            return original(input, hx, weights, *rest)
        dropout = dropout if training and layers > 1 else 0.0  # it stands between two layers
        return whole(input, list(hx) if states > 1 else hx, list(weights), biases, layers, dropout, training, bidirectional, batch_first)
    return layer


_repeat_interleave, _one_hot, _cross_entropy_loss = torch.repeat_interleave, F.one_hot, torch._C._nn.cross_entropy_loss
_native_attention, _encoder_layer = torch._native_multi_head_attention, torch._transformer_encoder_layer_fwd
_LAYERS = {name: _recurrent(name, states) for name, states in (("gru", 1), ("lstm", 2), ("rnn_tanh", 1), ("rnn_relu", 1))}


@contextlib.contextmanager
def functions():
    """While this holds, Torch's names are these functions."""
    replaced = [(torch, "repeat_interleave", repeat_interleave), (torch.Tensor, "repeat_interleave", repeat_interleave),
                (F, "one_hot", one_hot), (torch._C._nn, "cross_entropy_loss", cross_entropy_loss), (torch, "_weight_norm", weight_norm),
                (sys.modules["torch.nn.utils.weight_norm"], "_weight_norm", weight_norm),
                (torch, "_native_multi_head_attention", native_attention), (torch, "_transformer_encoder_layer_fwd", encoder_layer)]
    replaced += [(torch._VF, name, layer) for name, layer in _LAYERS.items()]
    before = [(where, name, getattr(where, name)) for where, name, _ in replaced]
    try:
        for where, name, function in replaced:
            setattr(where, name, function)
        yield
    finally:
        for where, name, function in before:
            setattr(where, name, function)


def _renewing():
    """nn.Module._apply (of .to(), .half() and the like) that puts new parameters in the place of the old ones: Torch 2 swaps those that are fake, and cannot
    once they were used (torch.utils.swap_tensors). Modules that share a parameter go on sharing it."""
    renewed, depth = {}, 0  # by identity: the old one, which so stays alive, and the new one

    def apply(self, fn, recurse=True):
        nonlocal depth
        depth += 1
        try:
            if recurse:
                for module in self.children():
                    module._apply(fn)
            for name, old in self._parameters.items():
                if old is None:
                    continue
                if id(old) not in renewed:
                    with torch.no_grad():
                        renewed[id(old)] = old, torch.nn.Parameter(fn(old), old.requires_grad)
                self._parameters[name] = renewed[id(old)][1]
            for name, buffer in self._buffers.items():
                if buffer is not None:
                    self._buffers[name] = fn(buffer)
            return self
        finally:
            depth -= 1
            if depth == 0:
                renewed.clear()
    return apply


@contextlib.contextmanager
def parameters():
    """While this holds, isinstance does not take a fake parameter for an uninitialised one, as Torch 1.13's does (weight_norm() asks when a model is made), and
    modules can be cast, which Torch 2's cannot."""
    kind, parameter, module = type(torch.nn.Parameter), torch.nn.Parameter, torch.nn.Module
    before, apply = kind.__instancecheck__, module._apply
    kind.__instancecheck__ = lambda cls, instance: before(cls, instance) if cls is parameter else type.__instancecheck__(cls, instance)
    if hasattr(torch.utils, "swap_tensors"):
        module._apply = _renewing()
    try:
        yield
    finally:
        kind.__instancecheck__, module._apply = before, apply
