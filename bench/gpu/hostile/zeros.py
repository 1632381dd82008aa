# Attack: zeros, which an absolute tolerance of 1e-2 would let pass
# Stopped at: compare
class ModelNew(Honest):
    def forward(self, x):
        return torch.zeros_like(x)
