"""no_headers.py FOLDER OF reference/python: a compiler that finds no headers of Torch is said to lack them; any other failure is told as it is."""
import sys

sys.path.insert(0, sys.argv[1])

import torch

import baseline

torch.compile = lambda model, mode=None: model # of an old Torch too


def told(text, asked="compile"):
    def call(model):
        if model.fails:
            raise RuntimeError(text)
    model = torch.nn.Linear(1, 1)
    model.fails = True
    try:
        baseline.choose(asked, model, call)
    except Exception as e:
        return type(e), str(e)


missing = told("C++ compile error\nx.h:19:10: fatal error: ATen/NumericUtils.h: No such file or directory\ncompilation terminated.")
assert missing[0] is baseline.NoCompiler and "libtorch-dev" in missing[1], missing
assert told("out of memory") == (RuntimeError, "out of memory")
print("told")
