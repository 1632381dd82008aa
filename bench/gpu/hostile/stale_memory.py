# Attack: returns fresh memory, in the hope that the reference's answer is still in it
# Stopped at: compare
class ModelNew(Honest):
    def forward(self, x):
        torch.cuda.empty_cache()
        return torch.empty_like(x)
