#!/usr/bin/env python3
"""Every header of the product compiles alone, and a second time changes nothing.

usage: headers.py COMPILER [FLAG]...   exit status 1 when a header does not compile

A header that the source of its name includes before anything else is compiled alone there when sources are compiled one
by one (-Dunity=off), so it is left out. Of the rest, many include one another: where b.h includes a.h and c.h includes
b.h, the one source `a.h b.h c.h` tries all three, for what stands before a header is what it brings anyway.
"""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDERS = ['runtime', 'compress', 'gossip', 'models', 'gpu', 'tools']


def opens_its_source(header):
    """Whether the first line for the preprocessor in NAME.cc, beside NAME.h, includes it."""
    source = (ROOT / header).with_suffix('.cc')
    if not source.exists():
        return False
    first = re.search(r'^\s*#.*$', source.read_text(encoding='utf-8'), re.MULTILINE)
    return first is not None and first.group() == f'#include "{header}"'


def headers():
    """Every header that begins no source, but those for the CUDA compiler, which no other can read."""
    found = [path.relative_to(ROOT).as_posix() for folder in FOLDERS for path in (ROOT / folder).rglob('*.h')]
    return sorted(path for path in found if not path.startswith('gpu/cuda/') and not opens_its_source(path))


def brought(header, known):
    """All headers of the project that `header` includes, directly or not. `known` keeps the answers."""
    if header not in known:
        known[header] = set()
        text = (ROOT / header).read_text(encoding='utf-8')
        for name in re.findall(r'^#include "([^"]+)"', text, re.MULTILINE):
            if (ROOT / name).exists():
                known[header] |= {name} | brought(name, known)
    return known[header]


def chains(wanted):
    """`wanted` in as few rows as possible, each header behind one that it includes (paths that cover, by matching)."""
    known, before = {}, {}

    def place(header, tried):
        for after in wanted:
            if after not in tried and header in brought(after, known):
                tried.add(after)
                if after not in before or place(before[after], tried):
                    before[after] = header
                    return True
        return False

    for header in wanted:
        place(header, set())
    rows = []
    for last in sorted(set(wanted) - set(before.values())):
        row = [last]
        while row[0] in before:
            row.insert(0, before[row[0]])
        rows.append(row)
    return rows


def complaint(compiler, row):
    """What the compiler says of a source that includes the headers of `row`, each twice; empty when all is well."""
    source = ''.join(f'#include "{header}"\n' * 2 for header in row)
    done = subprocess.run([*compiler, '-fsyntax-only', '-x', 'c++', '-'], input=source, capture_output=True, text=True,
                          check=False)
    return '' if done.returncode == 0 else f'{" ".join(row)}:\n{done.stderr}'


def main(compiler):
    rows = chains(headers())
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        complaints = [text for text in pool.map(lambda row: complaint(compiler, row), rows) if text]
    print('\n'.join(complaints))
    print(f'{sum(len(row) for row in rows)} headers that begin no source, {len(rows)} compilations, '
          f'{len(complaints)} failed')
    return 1 if complaints or not rows else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]) if len(sys.argv) > 1 else __doc__)
