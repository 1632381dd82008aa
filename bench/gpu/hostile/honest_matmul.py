# Attack: none, this one must pass
# Task: matmul
# Options: none
class ModelNew(nn.Module):
    def forward(self, a, b):
        return matmul(a, b, "ieee")
