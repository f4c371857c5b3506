#!/usr/bin/python3
"""Questions about Python packages with the answers of the packaging library, one a line, tabs between.

    oracle.py versions | specifiers | markers | tags
"""
import itertools
import random
import sys

from packaging.markers import Marker
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.tags import compatible_tags, cpython_tags
from packaging.version import InvalidVersion, Version

rng = random.Random(440)


def release():
    return ".".join(rng.choice(["0", "1", "2", "10", "00", "01", "2023"]) for _ in range(rng.randint(1, 4)))


def version(local=True, spelled=True):
    """A version, most of them valid, in many spellings."""
    sep = lambda: rng.choice(["", ".", "-", "_"]) if spelled else rng.choice(["."])
    v = rng.choice(["", "", "", "v", " "]) if spelled else ""
    v += rng.choice(["", "", "", "", "1!", "0!"]) + release()
    if rng.random() < 0.3:
        words = ["a", "b", "rc", "c", "alpha", "Beta", "RC", "pre", "preview"] if spelled else ["a", "b", "rc"]
        v += (sep() if spelled else "") + rng.choice(words) + (sep() if spelled else "")
        v += rng.choice(["", "0", "1", "02", "10"]) if spelled else rng.choice(["0", "1", "10"])
    if rng.random() < 0.3:
        words = [".post", "-r", "_rev", "post", "-"] if spelled else [".post"]
        v += rng.choice(words) + rng.choice(["0", "1", "3"])
    if rng.random() < 0.3:
        v += sep() + "dev" + (rng.choice(["", "0", "7"]) if spelled else rng.choice(["0", "7"]))
    if local and rng.random() < 0.25:
        v += "+" + rng.choice(["abc", "1", "cu118", "ubuntu-1", "1.a.2", "01.x", "A_b"])
    if spelled and rng.random() < 0.05:
        v += rng.choice([".", "-", "x", "+", "!", "..1", "+a..b", "a1b2"])
    return v


def parsed(v):
    try:
        return Version(v)
    except InvalidVersion:
        return None


def versions():
    made = [version() for _ in range(700)]
    for v in made:
        print("norm", v, parsed(v) or "-", sep="\t")
    good = [v for v in made if parsed(v)]
    for _ in range(2000):
        a, b = rng.choice(good), rng.choice(good)
        x, y = parsed(a), parsed(b)
        print("cmp", a, b, (x > y) - (x < y), sep="\t")


def specifier():
    op = rng.choice(["==", "!=", "<=", ">=", "<", ">", "~=", "==="])
    if op in ("==", "!=") and rng.random() < 0.4:
        return op + release() + ".*"
    v = version(local=op in ("==", "!=", "==="), spelled=op not in ("~=", "===")).strip()
    return op + rng.choice(["", " "]) + v


def specifiers():
    for _ in range(3000):
        v = version(spelled=False)
        text = ",".join(specifier() for _ in range(rng.randint(1, 3)))
        if rng.random() < 0.03:
            text += rng.choice([",", "!", "=1", ",>", "==", ",==1.0.*.*", ",<1.*"])
        try:
            answer = int(SpecifierSet(text).contains(v, prereleases=True))
        except (InvalidSpecifier, InvalidVersion):
            answer = -1
        if "!" in v + text and (".*" in text or "~=" in text):
            continue  # this version of the library gets prefixes and epochs wrong
        print("fits", v, text, answer, sep="\t")


ENV = {
    "implementation_name": "cpython", "implementation_version": "3.11.2", "os_name": "posix",
    "platform_machine": "x86_64", "platform_system": "Linux", "python_full_version": "3.11.2",
    "platform_python_implementation": "CPython", "python_version": "3.11", "sys_platform": "linux", "extra": "",
}


def atom():
    kind = rng.random()
    if kind < 0.4:
        name = rng.choice(["python_version", "python_full_version", "implementation_version"])
        value = rng.choice(["3.11", "3.8", "3.12", "3", "2.7", "3.11.2", "3.11.*", "3.11rc1"])
        op = rng.choice(["<", "<=", ">", ">=", "==", "!=", "~=", "===", "in", "not in"])
        if op == "~=" and "." not in value.replace(".*", "") or value.endswith(".*") and op not in ("==", "!="):
            op = "=="
    elif kind < 0.9:
        name, value = rng.choice([
            ("os_name", "nt"), ("os_name", "posix"), ("sys_platform", "linux"), ("sys_platform", "win32"),
            ("platform_system", "Linux"), ("platform_machine", "x86_64"), ("platform_machine", "aarch64 x86_64"),
            ("platform_python_implementation", "PyPy"), ("implementation_name", "cpython")])
        op = rng.choice(["==", "!=", "in", "not in", "<", ">="])
    else:
        name, value, op = "extra", rng.choice(["test", "Foo.Bar", ""]), rng.choice(["==", "!="])
        if value == "":
            value = "x"
    quote = rng.choice("\"'")
    sides = [name, f"{quote}{value}{quote}"]
    if rng.random() < 0.15 and op not in ("in", "not in", "===", "~=") and ".*" not in value:
        sides.reverse()
    blank = rng.choice([" ", "  "]) if op in ("in", "not in") else rng.choice(["", " "])
    return f"{sides[0]}{blank}{op}{blank}{sides[1]}"


def expression(depth):
    if depth == 0 or rng.random() < 0.4:
        return atom()
    a, b = expression(depth - 1), expression(depth - 1)
    text = f"{a} {rng.choice(['and', 'or'])} {b}"
    return f"({text})" if rng.random() < 0.5 else text


def markers():
    for _ in range(2000):
        text = expression(3)
        try:
            answer = int(Marker(text).evaluate(ENV))
        except Exception:  # what the library cannot compare, it says in many ways
            continue
        print("marker", text, answer, sep="\t")


def tags():
    for minor, libc in itertools.product([8, 11, 13], [(2, 17), (2, 31), (2, 36)]):
        platforms = []
        for m in range(libc[1], 4, -1):
            platforms.append(f"manylinux_2_{m}_x86_64")
            legacy = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}.get(m)
            if legacy:
                platforms.append(f"{legacy}_x86_64")
        platforms.append("linux_x86_64")
        version = (3, minor)
        both = itertools.chain(
            cpython_tags(version, abis=[f"cp3{minor}"], platforms=platforms),
            compatible_tags(version, interpreter=f"cp3{minor}", platforms=platforms))
        print("tags", f"3.{minor}", f"{libc[0]}.{libc[1]}", " ".join(map(str, both)), sep="\t")


if __name__ == "__main__":
    {"versions": versions, "specifiers": specifiers, "markers": markers, "tags": tags}[sys.argv[1]]()
