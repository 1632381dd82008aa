# Attack: returns a tensor that computes when somebody looks at it
# Stopped at: compare run load
class Lazy(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        def compute(value):
            return softmax(value.source, value.scale) if isinstance(value, Lazy) else value
        with torch._C.DisableTorchFunctionSubclass():
            return function(*map(compute, args), **(kwargs or {}))


class ModelNew(Honest):
    def forward(self, x):
        y = torch.empty_like(x).as_subclass(Lazy)
        y.source, y.scale = x, self.scale
        return y
