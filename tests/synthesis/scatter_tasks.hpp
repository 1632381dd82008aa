// Small tasks that write where a tensor of places says, or that carry something along a dimension.
#pragma once

#include "small_tasks.hpp"

/// In both languages.
inline const small_task scatter_tasks[] = {
    {"scatter_sums",
     "return torch.zeros(5, 9).scatter_add(1, y, torch.tanh(x)), x.scatter_add(0, z, x * 2), x.scatter_reduce(1, y, x, 'sum', include_self=False), x.scatter_reduce(1, y, x, 'mean'), "
     "x[:, :9].scatter_reduce(1, y, x, 'mean', include_self=False)",
     "[torch.randn(5, 33), torch.randint(0, 9, (5, 33)), torch.randint(0, 5, (3, 20))]", "", "x, y, z"},
    {"scatter_places",
     "return torch.zeros_like(x).scatter(1, y, torch.relu(x)), x.scatter(1, y[:, :7], 2.5), x.scatter(0, z, x[:, :4] * 3), (x > 0).scatter(1, y[:2, :5], True)",
     "[torch.randn(5, 33), torch.stack([torch.randperm(33) for _ in range(5)]), torch.stack([torch.randperm(5) for _ in range(4)], 1)[:3]]", "", "x, y, z"},
    {"index_sums", "return torch.zeros(7, 40).index_add(0, y, torch.tanh(x)), x.index_add(1, z, x[:, :9], alpha=0.5), torch.relu(x).index_add(0, y[:6], x[:6] * 2).sum(1), w.index_add(2, z[:3], w[:, :, :3])",
     "[torch.randn(26, 40), torch.randint(0, 7, (26,)), torch.randint(0, 40, (9,)), torch.randn(2, 3, 41)]", "", "x, y, z, w"},
    {"index_sums_whole", "return x.index_add(0, y, x * 2), x.scatter_add(0, y, x), x.scatter_reduce(0, y, x, 'amax'), x.scatter_reduce(0, y, x, 'amin')",
     "[torch.randint(-50, 50, (61,)), torch.randint(0, 61, (61,))]", "", "x, y"},
    {"index_places", "return x.index_copy(0, y, torch.tanh(v)), x.index_fill(1, z, 0.5), x.t().index_copy(1, y, v.t() * 2), x.index_fill(1, z - 40, -1) + 1",
     "[torch.randn(26, 40), torch.randperm(26)[:7], torch.randint(0, 40, (9,)), torch.randn(7, 40)]", "", "x, y, z, v"},
    {"index_put_places",
     "a = x.clone(); a[y] = torch.tanh(v); b = x.clone(); b[:, z] = 3.0; c = x.clone(); c[y - 26, z[:7]] = v[:, 0]; d = w.clone(); d[y[:2], :, z[:2]] = v[:2, :3]; e = x.clone(); e[x > 0] = 0.25; "
     "f = w.clone(); f[z[:3, None], y[:2] % 3] = 1.5\n        return a, b, c, d, e, f",
     "[torch.randn(26, 40), torch.randperm(26)[:7], torch.randperm(26)[:9], torch.randn(7, 40), torch.randn(26, 3, 40)]", "", "x, y, z, v, w"},
    {"index_put_sums", "return x.index_put((y,), x[:9], accumulate=True), x.index_put((y, z), x[0, :9], accumulate=True), w.index_put((y % 2, z[:, None] % 3), w[0, 0], accumulate=True) * 2",
     "[torch.randn(26, 40), torch.randint(0, 26, (9,)), torch.randint(-40, 40, (9,)), torch.randn(2, 3, 11)]", "", "x, y, z, w"},
    {"index_of_two", "return x[y, z] * 2, w[:, y % 3, z % 11] + 1, w[y % 2, :, z % 11], x[y[:, None], z]", "[torch.randn(26, 40), torch.randint(0, 26, (9,)), torch.randint(-40, 40, (9,)), torch.randn(2, 3, 11)]", "", "x, y, z, w"},
    {"masked_scatter", "return x.masked_scatter(m, torch.relu(v)), x.masked_scatter(m[0], v.flip(0)) * 2", "[torch.randn(7, 33), torch.rand(7, 33) < 0.4, torch.randn(11, 33)]", "", "x, m, v"},
    {"scatter_bf16", "return x.index_add(0, y, x * 2), x.scatter(1, z, x[:, :8] * 3), torch.zeros_like(x).scatter_add(1, z, x[:, :8])",
     "[torch.randn(26, 40).bfloat16(), torch.randint(0, 26, (26,)), torch.stack([torch.randperm(40)[:8] for _ in range(26)])]", "", "x, y, z"},
    {"scatter_of_rows", "s = torch.softmax(x, 1); return torch.zeros(5, 9).scatter_add(1, y, s), torch.zeros(6, 33).index_add(0, z, torch.cumsum(s, 1)), (s @ s.t()).index_add(0, z, s @ s.t())",
     "[torch.randn(5, 33), torch.randint(0, 9, (5, 33)), torch.randint(0, 5, (5,))]", "", "x, y, z"},
    {"bags", "return self.s(x), self.m(x), self.s(y, o), self.m(y, o), F.embedding_bag(y, self.s.weight, o, mode='sum', per_sample_weights=w), F.embedding_bag(y, self.s.weight, o, mode='mean', padding_idx=3)",
     "[torch.randint(0, 50, (6, 8)), torch.randint(0, 50, (23,)), torch.tensor([0, 4, 4, 17]), torch.randn(23)]",
     "self.s = nn.EmbeddingBag(50, 20, mode='sum'); self.m = nn.EmbeddingBag(50, 20, mode='mean')", "x, y, o, w"},
    {"extremes_so_far", "return *torch.cummax(torch.round(x * 3), 1), *torch.cummin(x, 0), torch.cummax(y, 0)[1], torch.cummin(y, 0)[0]", "[torch.randn(7, 133), torch.randint(-9, 9, (70,))]", "", "x, y"},
    {"placed_after_carrying", "c = torch.cumsum(x, 0); return torch.zeros_like(x).scatter(1, y, c * 2), torch.gather(torch.cummax(x, 0)[0], 1, y) + 1",
     "[torch.randn(20, 33), torch.stack([torch.randperm(33) for _ in range(20)])]", "", "x, y"},
    {"log_sums_so_far", "return torch.logcumsumexp(x * 40, 1), torch.logcumsumexp(x, 0), torch.logcumsumexp(x.double(), 1), torch.logcumsumexp(torch.where(x > 0, x, float('-inf')), 1).clamp(min=-9)", "[torch.randn(7, 133)]"},
    {"patches", "return F.unfold(torch.relu(x), 3, padding=1), F.unfold(x, (2, 3), dilation=(2, 1), padding=(1, 0), stride=(1, 2)), F.unfold(x, (4, 6), stride=(4, 6)), F.unfold(x, (9, 8), padding=1)",
     "[torch.randn(2, 3, 12, 12)]"},
    {"folded", "return F.fold(x, (8, 9), 3, padding=1), F.fold(x[..., :16] * 2, (9, 9), 3, stride=2), F.fold(x[..., :36].tanh(), (18, 18), 3, stride=3), F.fold(x[..., :25], (9, 9), (3, 3), dilation=2)",
     "[torch.randn(2, 27, 72)]"},
    {"selective_scan",
     "h, y = torch.zeros(2, 12, 5), []\n        for t in range(20):\n            h = torch.exp(dt[:, t, :, None] * self.a) * h + (dt[:, t] * x[:, t])[:, :, None] * b[:, t, None]\n"
     "            y.append((h * c[:, t, None]).sum(-1))\n        return torch.stack(y, 1), h",
     "[torch.randn(2, 20, 12), torch.rand(2, 20, 12), torch.randn(2, 20, 5), torch.randn(2, 20, 5)]", "self.a = nn.Parameter(-torch.rand(12, 5))", "x, dt, b, c"},
    {"scan_from_a_state",
     "y = torch.zeros_like(x)\n        for t in range(16):\n            h = h * a[:, t] + x[:, t]\n            y[:, t] = h * 2\n        z, w = h, []\n        for t in reversed(range(16)):\n"
     "            z = 0.9 * z + 0.1 * torch.tanh(y[:, t]) * (t + 2)\n            w.append(z[:, None] + x[:, t:t + 1])\n        return y, torch.cat(w, 1)",
     "[torch.randn(3, 16, 9), torch.rand(3, 16, 9), torch.randn(3, 9)]", "", "x, a, h"},
    {"scan_of_rows", "h, y = 0, []\n        for t in range(33):\n            h = h * a[:, t] + x[:, t]\n            y.append(h)\n        return torch.stack(y, 1)", "[torch.randn(7, 33), torch.rand(7, 33)]", "", "x, a"},
    {"loop_that_is_not_linear", "h, y = 0, []\n        for t in range(12):\n            h = torch.sigmoid(x[:, t] * 3 + h) * h + x[:, t]\n            y.append(h)\n        return torch.stack(y, 1)", "[torch.randn(7, 12, 5)]"},
};

/// In C++ only: a device has no atomic operation for them.
inline const small_task scatter_tasks_of_processors[] = {
    {"scatter_extremes", "return x.scatter_reduce(1, y, torch.tanh(x), 'amax'), x.scatter_reduce(1, y, x, 'amin', include_self=False), x.scatter_reduce(1, y, x * 0.2 + 1, 'prod'), x.scatter(1, y, x, reduce='multiply')",
     "[torch.randn(5, 33), torch.randint(0, 9, (5, 33))]", "", "x, y"},
    {"scatter_narrow", "return x.index_add(0, y, x), x.short().scatter_add(0, y, x.short())", "[torch.randint(-50, 50, (61,)).to(torch.int8), torch.randint(0, 61, (61,))]", "", "x, y"},
    {"bags_of_highest", "return self.s(x), self.s(y, o)", "[torch.randint(0, 50, (6, 8)), torch.randint(0, 50, (23,)), torch.tensor([0, 4, 4, 17])]", "self.s = nn.EmbeddingBag(50, 20, mode='max')", "x, y, o"},
    {"scatter_several", "return x.scatter(1, y, x * 2), x.index_copy(0, z, x * 3)", "[torch.randn(26, 40), torch.randint(0, 40, (26, 40)), torch.randint(0, 26, (26,))]", "", "x, y, z"}, // the last one stays, as in Torch on a processor
};
