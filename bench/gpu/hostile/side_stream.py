# Attack: computes on a stream of its own and does not wait for it, so that the timed stream is idle
# Stopped at: compare audit none
# Command: profile
class ModelNew(Honest):
    stream = None

    def forward(self, x):
        if ModelNew.stream is None:
            ModelNew.stream = torch.cuda.Stream()
        y = torch.empty_like(x)
        with torch.cuda.stream(ModelNew.stream):
            softmax(x, self.scale, y)
        return y
