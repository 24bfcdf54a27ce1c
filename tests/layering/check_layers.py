"""Checks that src/ keeps to its layers.

  check_layers.py declarations|includes|compiler LAYERS.json SRC COMPILER

declarations  the dependencies in the CMake files point down only, as docs/architecture.md says
includes      every include between folders is of a declared dependency, and none leaves its view by a path
compiler      an include of a layer that is not a dependency does not compile, one that is a dependency does

LAYERS.json is written by CMake: for each layer its declared dependencies and include directories.
"""

import json
import pathlib
import re
import subprocess
import sys

# From the bottom up. A layer may depend on those of lower levels only, but for the exceptions below.
LEVELS = [
    ["base"],
    ["tokenizer", "checkpoint", "kernels"],
    ["cache", "model", "grammar"],
    ["recipe", "engine", "cluster", "images"],
    ["server"],
    ["cli"],
]
# model reads and writes the state that cache owns; cache knows no model.
EXCEPTIONS = {("model", "cache")}
# What the arrows alone would allow but must not be: each part knows only its neighbours' data.
FORBIDDEN = {
    "recipe": {"kernels", "checkpoint", "model", "cache"},
    "cache": {"checkpoint", "kernels", "tokenizer"},
}

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def reachable(layers, name):
    """The layer itself and all that it depends on, directly or not."""
    seen, waiting = set(), [name]
    while waiting:
        layer = waiting.pop()
        if layer not in seen:
            seen.add(layer)
            waiting.extend(layers[layer]["depends"])
    return seen


def check_declarations(layers, src, compiler):
    level_of = {name: level for level, names in enumerate(LEVELS) for name in names}
    for name in layers:
        if name not in level_of:
            yield f"{name}: not in LEVELS of {pathlib.Path(__file__).name}; say which level it is on"
            continue
        for depend in layers[name]["depends"]:
            if level_of.get(depend, 99) >= level_of[name] and (name, depend) not in EXCEPTIONS:
                yield f"{name} depends on {depend}, which is not below it"
        for depend in sorted(reachable(layers, name) & FORBIDDEN.get(name, set())):
            yield f"{name} must know nothing of {depend} but reaches it"


def check_includes(layers, src, compiler):
    num_includes = 0
    for name in layers:
        allowed = reachable(layers, name)
        for path in sorted((src / name).rglob("*")):
            if path.suffix not in (".h", ".cpp", ".inl", ".inc"):
                continue
            for target in INCLUDE.findall(path.read_text(encoding="utf-8")):
                num_includes += 1
                where = f"{path.relative_to(src)} includes \"{target}\""
                if ".." in pathlib.PurePosixPath(target).parts or target.startswith("/"):
                    yield f"{where}: write includes from src/"
                elif not (src / target).is_file():
                    yield f"{where}: no such file in src/; write includes from src/"
                elif target.split("/")[0] not in allowed:
                    yield f"{where}: {name} may use only {', '.join(sorted(allowed))}"
    if num_includes == 0:
        yield "found no includes at all: the check looks in the wrong place"


def check_compiler(layers, src, compiler):
    for name in layers:
        folders = [flag for folder in layers[name]["include_directories"] for flag in ("-I", folder)]
        allowed = reachable(layers, name)
        for other in layers:
            header = next(iter(sorted((src / other).glob("*.h"))), None)
            if header is None:
                continue
            target = f"{other}/{header.name}"
            run = subprocess.run(
                [compiler, "-std=c++20", "-fsyntax-only", "-x", "c++", *folders, "-"],
                # For what is allowed it is enough that the header is found; its contents compile elsewhere.
                input=f'#if !__has_include("{target}")\n#error hidden\n#endif\n'
                if other in allowed
                else f'#include "{target}"\n',
                text=True,
                capture_output=True,
                check=False,
            )
            if other in allowed and run.returncode != 0:
                yield f"{name} cannot include \"{target}\" of its dependency {other}:\n{run.stderr}"
            elif other not in allowed and run.returncode == 0:
                yield f"{name} can include \"{target}\" though it does not depend on {other}"
            elif other not in allowed and "No such file" not in run.stderr and "not found" not in run.stderr:
                yield f"{name} including \"{target}\" failed for another reason than expected:\n{run.stderr}"


def main():
    check, layers_file, src, compiler = sys.argv[1:]
    layers = json.loads(pathlib.Path(layers_file).read_text(encoding="utf-8"))
    checks = {"declarations": check_declarations, "includes": check_includes, "compiler": check_compiler}
    errors = list(checks[check](layers, pathlib.Path(src), compiler))
    for error in errors:
        print(error)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
