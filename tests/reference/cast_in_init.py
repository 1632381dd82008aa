"""cast_in_init.py FOLDER OF reference/python: a model that casts itself when it is made is traced without being run. Its forward() ends on real tensors."""
import sys
import tempfile

sys.path.insert(0, sys.argv[1])

import torch

import describe
from taskfile import TaskFile

TASK = '''
import torch, torch.nn as nn
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.out = nn.Embedding(50, 16), nn.Linear(16, 50, bias=False)
        self.out.weight = self.words.weight
        self.between = nn.Sequential(nn.Linear(16, 16), nn.LSTM(16, 16), nn.BatchNorm1d(16))
        self.half().to(torch.bfloat16)
    def forward(self, x):
        assert type(x).__name__ != "Tensor", "run for real"
        y, _ = self.between[1](self.between[0](self.words(x)))
        return self.out(self.between[2](y))
get_init_inputs = lambda: []
get_inputs = lambda: [torch.randint(0, 50, (7, 5))[:, 0]]
'''

with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
    file.write(TASK)
    file.flush()
    told = describe.describe(TaskFile(file.name))[0]
types = {p["dtype"] for p in told["params"] if p["name"] != "between.2.num_batches_tracked"}
assert told["graph"] is not None and types == {"bfloat16"}, (told["graph_error"], types)
assert sum(p["shape"] == [50, 16] for p in told["params"]) == 1, "the shared parameter is one"
print("traced with Torch", torch.__version__)
