"""run_programs.py FOLDER CASE...: the cases of programs.py on the drop-in in FOLDER. Each is a process of its own, forked from this one, which has
imported Torch and nothing else: that takes longer than most cases do. The drop-in is imported by each. Prints one line for each case that
holds; exits with the code of the first that does not."""
import os
import sys
import warnings

import torch

import programs


def main(folder, cases):
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    wrong = 0
    for case in cases:
        child = os.fork()
        if child == 0:
            programs.run(folder, case)
            return  # and the interpreter ends as any program's does
        status = os.waitpid(child, 0)[1]
        if status == 0:
            print(case, flush=True)
            continue
        wrong = wrong or (os.WEXITSTATUS(status) if os.WIFEXITED(status) else 1)
        how = "exit code %d" % os.WEXITSTATUS(status) if os.WIFEXITED(status) else "signal %d" % os.WTERMSIG(status)
        print("%s: %s" % (case, how), file=sys.stderr, flush=True)
    sys.exit(wrong)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
