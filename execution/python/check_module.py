"""Is this file a Python module with a class ModelNew? `check_module.py FILE`: reads it as text and runs nothing of it.

Ends with 0, or with 1 and one line on stderr that names the line. Started by execution/build_python.cpp in the compiler's sandbox."""
import ast
import sys


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        text = f.read()
    try:
        tree = ast.parse(text)
    except SyntaxError as e:
        sys.exit("line %s: error: %s%s" % (e.lineno, e.msg, " in `%s`" % e.text.strip() if e.text else ""))
    except (ValueError, RecursionError, MemoryError) as e:
        sys.exit("error: cannot be parsed: %s" % e)
    if not any(isinstance(node, ast.ClassDef) and node.name == "ModelNew" for node in ast.walk(tree)):
        sys.exit("error: no class ModelNew is defined")


if __name__ == "__main__":
    main()
