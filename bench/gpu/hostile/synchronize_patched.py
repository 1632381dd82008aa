# Attack: a stream of its own, and all ways to wait for the device are replaced by nothing
# Stopped at: compare audit none
# Command: profile
torch.cuda.synchronize = lambda *args: None
torch._C._cuda_synchronize = lambda *args: None
torch.cuda.Stream.synchronize = lambda self: None
torch.cuda.Event.synchronize = lambda self: None


class ModelNew(Honest):
    stream = torch.cuda.Stream()

    def forward(self, x):
        y = torch.empty_like(x)
        with torch.cuda.stream(self.stream):
            softmax(x, self.scale, y)
        return y
