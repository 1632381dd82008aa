# Attack: a kernel that never ends
# Stopped at: run load
# Disturbs: others
@triton.jit
def endless_kernel(flag):
    while tl.load(flag, volatile=True) == 0:
        pass


class ModelNew(Honest):
    def forward(self, x):
        endless_kernel[(1,)](torch.zeros(1, dtype=torch.int32, device=x.device))
        return softmax(x, self.scale)
