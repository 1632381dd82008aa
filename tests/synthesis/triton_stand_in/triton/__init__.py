"""A stand-in for Triton that runs kernels on NumPy, one program after the other. Test code only: it lets emitted modules be
checked against Torch where there is no GPU. It is stricter than a GPU: every access is checked against the buffer's bounds, an
element is stored at most once a launch, tile sizes are powers of two, 32-bit indices (those of loops, too) must not overflow,
values that a loop carries keep their type and shape, and names that a loop makes are gone after it."""
import ast
import inspect
import textwrap

from . import language
from .language import _indices, _launch, check_carried

chosen_config = 0  # which of an autotuned kernel's configurations runs (modulo their number)


def cdiv(a, b):
    return (a + b - 1) // b


def next_power_of_2(n):
    return 1 << (n - 1).bit_length() if n > 0 else 1


class Config:
    def __init__(self, kwargs, num_warps=4, num_stages=3, **rest):
        self.kwargs, self.num_warps, self.num_stages = kwargs, num_warps, num_stages


def assigned(statements):
    """Names that statements bind, nested blocks included."""
    names = set()
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(node.id)
    return names


def is_static(loop):
    call = loop.iter
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "static_range"


class scope_checker:
    """Finds names that are used after the loop that made them: Triton has no such names."""

    def __init__(self, function, known):
        self.function = function
        self.block(function.body, {a.arg for a in function.args.args} | known)

    def block(self, statements, visible):
        visible = set(visible)
        for statement in statements:
            if isinstance(statement, ast.For):
                self.uses(statement.iter, visible)
                inner = self.block(statement.body, visible | assigned([ast.Expr(statement.target)]))
                if is_static(statement):
                    visible |= inner
            elif isinstance(statement, ast.If):
                self.uses(statement.test, visible)
                self.block(statement.body, visible)
                self.block(statement.orelse, visible)
            else:
                self.uses(statement, visible)
                visible |= assigned([statement])
        return visible

    def uses(self, node, visible):
        for n in ast.walk(node):
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id not in visible:
                raise NameError(f"{self.function.name}: {n.id} is not defined here (line {n.lineno} of the function)")


class carried_checker(ast.NodeTransformer):
    """Makes every loop report what its carried names were before and after an iteration, and count in Triton's integers."""

    def visit_For(self, loop):
        self.generic_visit(loop)
        if is_static(loop):
            return loop
        names = sorted(assigned(loop.body) - assigned([ast.Expr(loop.target)]))
        text = ", ".join(f"'{n}': locals().get('{n}')" for n in names)
        before = ast.parse(f"_before = {{{text}}}").body[0]
        after = ast.parse(f"_check_carried(_before, {{{text}}})").body[0]
        loop.body = [before] + loop.body + [after]
        if isinstance(loop.iter, ast.Call) and isinstance(loop.iter.func, ast.Name) and loop.iter.func.id == "range":
            loop.iter.func.id = "_indices"
        return loop


class JITFunction:
    def __init__(self, fn):
        self.name = fn.__name__
        tree = ast.parse(textwrap.dedent(inspect.getsource(fn)))
        function = tree.body[0]
        function.decorator_list = []
        for argument in function.args.args:
            argument.annotation = None
        known = set(fn.__globals__) | set(dir(__builtins__) if not isinstance(__builtins__, dict) else __builtins__) | {self.name}
        scope_checker(function, known)
        carried_checker().visit(tree)
        ast.fix_missing_locations(tree)
        fn.__globals__["_check_carried"] = check_carried
        fn.__globals__["_indices"] = _indices
        made = {}
        exec(compile(tree, fn.__code__.co_filename, "exec"), fn.__globals__, made)
        self.fn = made[self.name]
        self.arguments = list(inspect.signature(fn).parameters)

    def __call__(self, *args):
        return self.fn(*args)

    def __getitem__(self, grid):
        def launch(*args, num_warps=4, num_stages=3, **meta):
            if num_warps not in (1, 2, 4, 8, 16, 32):
                raise ValueError(f"num_warps={num_warps}")
            if len(args) + len(meta) != len(self.arguments):
                raise TypeError(f"{self.name}: {len(args)} + {len(meta)} arguments for {self.arguments}")
            size = grid(meta) if callable(grid) else grid
            _launch(self.fn, size, args, meta)
        return launch


def jit(fn):
    return JITFunction(fn)


class Autotuner:
    def __init__(self, function, configs):
        self.function, self.configs = function, configs

    def __getitem__(self, grid):
        def launch(*args, **meta):
            config = self.configs[chosen_config % len(self.configs)]
            self.function[grid](*args, num_warps=config.num_warps, num_stages=config.num_stages, **meta, **config.kwargs)
        return launch


def autotune(configs, key):
    return lambda function: Autotuner(function, configs)
