// Small tasks of every family, with shapes that nobody chose kindly, as task files: for the tests of both kinds of emitter.
#pragma once

#include <string>

struct small_task {
  const char* name;
  const char* forward;     ///< body of forward(self, x)
  const char* inputs;      ///< get_inputs() returns this
  const char* init = "";   ///< body of __init__ after super().__init__()
  const char* arguments = "x";
};

inline const small_task tasks[] = {
    {"chain", "return torch.sigmoid(x) * x + 0.5", "[torch.randn(7, 33)]"},
    {"scalar_shape", "return x * 2 + 1", "[torch.randn(1)]"},
    {"broadcast", "return x * y + y", "[torch.randn(5, 1, 9), torch.randn(4, 1)]", "", "x, y"},
    {"gelu_tanh", "return 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * torch.pow(x, 3.0))))", "[torch.randn(13, 17)]"},
    {"gelu", "return F.gelu(x)", "[torch.randn(3, 65)]"},
    {"softplus", "return F.softplus(x)", "[torch.randn(3, 65)]"},
    {"elu_selu", "return F.selu(F.elu(x, 1.3))", "[torch.randn(31)]"},
    {"hard", "return F.hardsigmoid(x) + F.hardtanh(x, -0.5, 0.5) + F.leaky_relu(x, 0.1)", "[torch.randn(2, 3, 5)]"},
    {"double", "return torch.exp(-x * x)", "[torch.randn(6, 11, dtype=torch.float64)]"},
    {"mask", "return torch.cumsum(x * m, dim=1)", "[torch.randn(3, 37), torch.randint(0, 2, (3, 37)).bool()]", "", "x, m"},
    {"softmax_last", "return torch.softmax(x, dim=-1)", "[torch.randn(5, 77)]"},
    {"softmax_first", "return torch.softmax(x, dim=0)", "[torch.randn(9, 6, 5)]"},
    {"log_softmax", "return F.log_softmax(x, dim=1)", "[torch.randn(4, 130)]"},
    {"sum_middle", "return torch.sum(x, dim=1, keepdim=True)", "[torch.randn(3, 19, 21)]"},
    {"mean_all", "return torch.mean(x)", "[torch.randn(3, 19, 21)]"},
    {"max_middle", "return torch.max(x, dim=1)[0]", "[torch.randn(3, 19, 21)]"},
    {"min_last", "return torch.min(x, dim=2)[0]", "[torch.randn(3, 4, 21)]"},
    {"argmax_middle", "return torch.argmax(x, dim=1)", "[torch.randn(3, 19, 21)]"},
    {"argmin_last", "return torch.argmin(x, dim=-1)", "[torch.randn(3, 19, 67)]"},
    {"prod", "return torch.prod(x, dim=1)", "[torch.rand(4, 12, 9) + 0.5]"},
    {"size_one_dim", "return (torch.softmax(x, dim=2) + 1) * torch.exp(x)", "[torch.randn(3, 5, 1)]"},
    {"rms", "return x / torch.sqrt(torch.mean(x ** 2, dim=1, keepdim=True) + 1e-5)", "[torch.randn(2, 6, 5, 7)]"},
    {"l2_norm", "return x / torch.norm(x, p=2, dim=1, keepdim=True)", "[torch.randn(4, 50)]"},
    {"layer_norm", "return self.n(x)", "[torch.randn(4, 6, 10)]", "self.n = nn.LayerNorm((6, 10))"},
    {"group_norm", "return self.n(x)", "[torch.randn(2, 8, 5, 3)]", "self.n = nn.GroupNorm(4, 8)"},
    {"batch_norm", "return self.n(x)", "[torch.randn(4, 3, 5, 6)]", "self.n = nn.BatchNorm2d(3)"},
    {"instance_norm", "return self.n(x)", "[torch.randn(2, 3, 7, 6)]", "self.n = nn.InstanceNorm2d(3)"},
    {"cumsum_first", "return torch.cumsum(x, dim=0)", "[torch.randn(23, 9)]"},
    {"cumsum_reverse", "return torch.cumsum(x.flip(1), dim=1).flip(1)", "[torch.randn(4, 41)]"},
    {"cumprod", "return torch.cumprod(x, dim=1)", "[torch.rand(4, 20) + 0.5]"},
    {"max_pool_1d", "return F.max_pool1d(x, 4, 2, 2, 3)", "[torch.randn(2, 3, 40)]"},
    {"max_pool_2d", "return F.max_pool2d(x, 3, 2, 1)", "[torch.randn(2, 3, 17, 20)]"},
    {"avg_pool_2d", "return F.avg_pool2d(x, 3, 1, 1)", "[torch.randn(2, 3, 11, 13)]"},
    {"avg_pool_3d", "return F.avg_pool3d(x, 3, 2, 1)", "[torch.randn(1, 2, 9, 8, 10)]"},
    {"double_negation", "return torch.exp(-(-x)) - ~(~y)", "[torch.randn(7, 33), torch.randint(0, 9, (7, 33))]", "", "x, y"},
    {"truth_orders",
     "return torch.maximum(x, y).float() + 2 * torch.minimum(x, y).float() + 4 * (x < y).float() + 8 * (x >= y).float() + 16 * torch.amax(x, dim=1, keepdim=True).float() + 32 * torch.min(y, dim=0)[0].float()",
     "[torch.randint(0, 2, (7, 33)).bool(), torch.randint(0, 2, (7, 33)).bool()]", "", "x, y"},
    {"narrow_wraps", "return (-x).float() + torch.abs(x).float() * 3 + (~y).float() + (-y).float()",
     "[torch.randint(-128, 128, (7, 33), dtype=torch.int8), torch.randint(0, 256, (7, 33), dtype=torch.uint8)]", "", "x, y"},
    {"long_pool", "return F.avg_pool1d(x, 200, 1, 100)", "[torch.randn(3, 5, 301)]"},
    {"pool_of_pool", "return F.max_pool1d(F.avg_pool1d(x, 2), 2)", "[torch.randn(2, 6, 6)]"},
    {"pool_of_weighted_pool", "return F.max_pool2d(self.c(torch.relu(x)), 3)", "[torch.randn(2, 4, 5, 5)]", "self.c = nn.Conv2d(4, 4, 3, groups=4)"},
    {"two_poolings", "return F.max_pool2d(x, 3, 1, 1) + F.avg_pool2d(x, 3, 1, 1)", "[torch.randn(2, 3, 11, 13)]"},
    {"mse", "return torch.mean((x - y) ** 2)", "[torch.randn(9, 50), torch.randn(9, 50)]", "", "x, y"},
    {"cross_entropy", "return F.cross_entropy(x, y)", "[torch.randn(30, 7), torch.randint(0, 7, (30,))]", "", "x, y"},
    {"huber", "return F.smooth_l1_loss(x, y)", "[torch.randn(9, 50), torch.randn(9, 50)]", "", "x, y"},
    {"cosine", "return torch.mean(1 - F.cosine_similarity(x, y, dim=1))", "[torch.randn(9, 50), torch.randn(9, 50)]", "", "x, y"},
    {"hinge", "return torch.mean(torch.clamp(1 - x * y, min=0))", "[torch.randn(40, 1), torch.randint(0, 2, (40, 1)).float() * 2 - 1]", "", "x, y"},
    {"linear", "return F.relu(self.l(x)) * 2", "[torch.randn(7, 33)]", "self.l = nn.Linear(33, 21)"},
    {"linear_tail", "return self.l(x) + torch.sigmoid(self.l(x)) * x.sum()", "[torch.randn(3, 5, 12)]", "self.l = nn.Linear(12, 40)"},
    {"mm_long", "return torch.matmul(x, y)", "[torch.randn(13, 700), torch.randn(700, 19)]", "", "x, y"},
    {"mm_transposed", "return torch.matmul(x.T, y.T)", "[torch.randn(20, 13), torch.randn(50, 20)]", "", "x, y"},
    {"mm_flipped", "return torch.matmul(x, y).t() + 1", "[torch.randn(20, 13), torch.randn(13, 31)]", "", "x, y"},
    {"bmm", "return torch.bmm(x, y)", "[torch.randn(3, 9, 17), torch.randn(3, 17, 10)]", "", "x, y"},
    {"einsum", "return torch.einsum('bijl,lk->bijk', x, y)", "[torch.randn(2, 3, 4, 10), torch.randn(10, 22)]", "", "x, y"},
    {"matvec", "return torch.matmul(x, y)", "[torch.randn(20, 130), torch.randn(130, 1)]", "", "x, y"},
    {"matmul_double", "return torch.matmul(x, y)", "[torch.randn(5, 7, dtype=torch.float64), torch.randn(7, 9, dtype=torch.float64)]", "", "x, y"},
    {"diagonal", "return torch.diag(x) @ y", "[torch.randn(9), torch.randn(9, 14)]", "", "x, y"},
    {"diag_embed", "return torch.diag_embed(x) @ y", "[torch.randn(9), torch.randn(9, 14)]", "", "x, y"},
    {"upper", "return torch.triu(torch.matmul(x, y))", "[torch.randn(40, 40).triu(), torch.randn(40, 40).triu()]", "", "x, y"},
    {"conv_2d", "return F.relu(self.c(x)) + self.b", "[torch.randn(2, 3, 13, 11)]", "self.c = nn.Conv2d(3, 10, (3, 5), stride=(2, 1), padding=(1, 2)); self.b = nn.Parameter(torch.randn(10, 1, 1))"},
    {"conv_dilated", "return self.c(x)", "[torch.randn(2, 4, 21, 23)]", "self.c = nn.Conv2d(4, 8, 3, stride=3, padding=2, dilation=2, groups=2)"},
    {"conv_1d", "return self.c(x)", "[torch.randn(2, 3, 50)]", "self.c = nn.Conv1d(3, 5, 4, stride=3, dilation=2)"},
    {"conv_3d", "return torch.tanh(self.c(x))", "[torch.randn(1, 3, 6, 7, 5)]", "self.c = nn.Conv3d(3, 8, (3, 2, 3), padding=1)"},
    {"conv_many_channels", "return self.c(x)", "[torch.randn(1, 200, 6, 9)]", "self.c = nn.Conv2d(200, 9, 3, padding=1)"},
    {"conv_row_added", "return self.c(x) + self.b", "[torch.randn(1, 3, 6, 9)]", "self.c = nn.Conv2d(3, 9, 3); self.b = nn.Parameter(torch.randn(7))"},
    {"pointwise_conv", "return F.gelu(self.c(x))", "[torch.randn(2, 5, 7, 9)]", "self.c = nn.Conv2d(5, 12, 1)"},
    {"depthwise", "return self.c(x)", "[torch.randn(2, 5, 17, 12)]", "self.c = nn.Conv2d(5, 5, (3, 5), stride=2, padding=(1, 2), groups=5)"},
    {"transposed_1d", "return self.c(x)", "[torch.randn(2, 3, 17)]", "self.c = nn.ConvTranspose1d(3, 5, 5, stride=2, padding=1, output_padding=1, dilation=2)"},
    {"transposed_2d", "return self.c(x) * 2 - 1", "[torch.randn(2, 4, 7, 9)]", "self.c = nn.ConvTranspose2d(4, 6, (3, 4), stride=(2, 3), padding=1, groups=2)"},
    {"transposed_plain", "return self.c(x)", "[torch.randn(2, 4, 7, 9)]", "self.c = nn.ConvTranspose2d(4, 6, 3, padding=1)"},
    {"transposed_3d", "return torch.clamp(self.c(x), min=0)", "[torch.randn(1, 3, 4, 5, 6)]", "self.c = nn.ConvTranspose3d(3, 5, 3, stride=2, padding=1, output_padding=1)"},
    {"transposed_gaps", "return self.c(x)", "[torch.randn(1, 3, 4, 5)]", "self.c = nn.ConvTranspose2d(3, 5, 2, stride=3)"},
    {"conv_pool_norm", "return self.n(F.max_pool2d(self.c(x), 2))", "[torch.randn(2, 3, 12, 14)]", "self.c = nn.Conv2d(3, 8, 3); self.n = nn.GroupNorm(2, 8)"},
    {"two_anchors", "return self.b(F.relu(self.a(x))) + x", "[torch.randn(2, 6, 9, 8)]", "self.a = nn.Conv2d(6, 10, 3, padding=1); self.b = nn.Conv2d(10, 6, 1)"},
    {"max_pool_tall", "return F.max_pool2d(x, 2, 2, 1, 3)", "[torch.randn(1, 2, 70, 9)]"},
    // half types: formats of memory (Torch 1.13 computes little in float16 on a CPU); several results each, since a task costs a second
    {"bf16_elements", "return F.gelu(x) * y + 0.5, torch.flip(x.t(), (1,)) * 2 - z", "[torch.randn(7, 33).bfloat16(), torch.randn(33).bfloat16(), torch.randn(33, 1).bfloat16()]", "", "x, y, z"},
    {"bf16_rows", "return self.n(x), torch.softmax(x, dim=0), torch.max(x, dim=1)[0]", "[torch.randn(6, 70).bfloat16()]", "self.n = nn.LayerNorm(70).bfloat16()"},
    {"bf16_images", "return F.max_pool2d(x, 3, 2, 1), F.relu(self.c(x))", "[torch.randn(2, 16, 9, 11).bfloat16()]", "self.c = nn.Conv2d(16, 10, 3, stride=2, padding=1).bfloat16()"},
    {"bf16_linear", "return self.b(F.silu(self.a(x))) + x", "[torch.randn(17, 51).bfloat16()]", "self.a = nn.Linear(51, 35).bfloat16(); self.b = nn.Linear(35, 51).bfloat16()"},
    {"bf16_products", "return torch.matmul(x, y)", "[torch.randn(2, 20, 34).bfloat16(), torch.randn(2, 34, 50).bfloat16()]", "", "x, y"},
    {"fp16", "return x * y + x, (torch.exp(x.float()).sum(1, keepdim=True) * y).half()", "[torch.randn(5, 70).half(), torch.randn(70).half()]", "", "x, y"},
    {"casts_round", "return x.bfloat16().float() + 100 * x.half().float(), torch.matmul(x, y.float())", "[torch.randn(7, 41), torch.randn(41, 30).bfloat16()]", "", "x, y"},
    // rearranged, resized, recurrent
    {"parts", "q, k, v = x.unbind(1)\n        return q * k + v, y.split(7, 1)[0] + y.split([5, 7, 8], 1)[1], y.repeat_interleave(3, dim=1) * 2", "[torch.randn(4, 3, 19), torch.randn(6, 20)]", "", "x, y"},
    {"recurrent", "return self.g(x)[0], torch.cat(self.c(y, (z, z)), 1)", "[torch.randn(3, 4, 6), torch.randn(7, 9), torch.randn(7, 12)]",
     "self.g = nn.GRU(6, 8, batch_first=True); self.c = nn.LSTMCell(9, 12)", "x, y, z"},
    {"padded", "return F.pad(x, (2, 1, 3, 2), mode='reflect') * 2, F.pad(x[0], (2, 3), mode='replicate'), F.pixel_unshuffle(F.pixel_shuffle(y, 2) * 2, 4)",
     "[torch.randn(2, 3, 7, 6), torch.randn(2, 8, 6, 10)]", "", "x, y"},
    {"resized",
     "return F.interpolate(x, scale_factor=2), F.interpolate(x, size=(7, 4)), F.interpolate(torch.relu(x), size=(9, 13), mode='bilinear'), F.interpolate(x, scale_factor=2, mode='bilinear', align_corners=True)",
     "[torch.randn(2, 3, 5, 6)]"},
    {"pooled_to_nothing", "return torch.cat([x, F.adaptive_avg_pool2d(x, (0, 8))], 2) * 2", "[torch.randn(1, 2, 6, 8)]"},
    {"resized_smoothly", "return F.interpolate(x, scale_factor=1.5, mode='bicubic'), F.adaptive_avg_pool2d(x, (3, 5)) + F.adaptive_max_pool2d(x, (3, 5))", "[torch.randn(1, 2, 6, 8)]"},
    {"looked_up", "return F.one_hot(x, 9) * 3, y[x][:, z]", "[torch.randint(0, 9, (5,)), torch.randn(9, 12), torch.randint(0, 12, (20,))]", "", "x, y, z"},
};

inline std::string text_of(const small_task& t) {
  return std::string("import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\nclass Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n        ") +
         (*t.init ? t.init : "pass") + "\n    def forward(self, " + t.arguments + "):\n        " + t.forward + "\n\ndef get_inputs():\n    return " + t.inputs +
         "\n\ndef get_init_inputs():\n    return []\n";
}
