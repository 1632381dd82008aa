"""A processor that runs at its full speed, for what a device's host is timed at (decisions/0074). What a virtual machine calls a processor is often a thread of a core that
another machine uses, too: for some seconds it then runs at little more than half its speed, and the system of the machine cannot see that. Used by called_times.py."""
import os
import random
import time

CLOCK, PLACES, PLACE = time.perf_counter, os.sched_getaffinity, os.sched_setaffinity  # before a module's code could change them
AS_QUICK = 1.15  # times the shortest spin: the same speed; a shared core takes 1.5 times and more
MOST_TRIED = 64  # processors that are tried for a quick one, some 1 ms each


def spin():
    """Seconds of a little work that is always the same; the shorter of two, for one may have been interrupted."""
    found = []
    for _ in range(2):
        start, x = CLOCK(), 0
        for i in range(4000):
            x += i
        found.append(CLOCK() - start)
    return min(found)


class QuickProcessor:
    """The calling thread runs on one processor inside of a `with`, afterwards on those that it had. Threads that it starts meanwhile stay where it is."""

    def __init__(self, wanted=True):
        self.wanted, self.shortest = wanted, float("inf")

    def __enter__(self):
        if self.wanted:
            self.allowed = PLACES(0)
            self.wanted = len(self.allowed) > 1 and self.move({min(self.allowed)})
        if self.wanted:
            self.move(self.allowed)
            self.find()
        return self

    def __exit__(self, *_):
        if self.wanted:
            self.move(self.allowed)

    @staticmethod
    def move(places):
        try:
            PLACE(0, places)
        except OSError:
            return False  # a sandbox forbids it, or the processor is gone
        return True

    def find(self):
        """Move to the quickest one. The first spin on a processor wakes it."""
        tried = []
        for processor in random.Random().sample(sorted(self.allowed), min(MOST_TRIED, len(self.allowed))):
            if self.move({processor}):
                spin()
                tried.append((spin(), processor))
        if tried:
            took, self.processor = min(tried)
            self.shortest = min(self.shortest, took)
            self.move({self.processor})

    def is_quick(self):
        took = spin()
        self.shortest = min(self.shortest, took)
        return took <= AS_QUICK * self.shortest

    def settle(self):
        """Before something is timed: on the same processor, whatever was called meanwhile did, unless that has become slow."""
        if not self.wanted:
            return
        self.move({self.processor})
        if not self.is_quick():
            self.find()

    def was_quick(self):
        """After it; true where there is no choice."""
        return not self.wanted or self.is_quick()
