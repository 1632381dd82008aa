# Attack: none, this one must pass
# Command: profile
# Options: none
class ModelNew(Honest):
    pass
