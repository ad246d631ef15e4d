#!/usr/bin/env python3
"""The sources that hold deliberate bugs (runtime/base/mutant.h), one path from the repository root a line.

Meson asks when it configures; tests/storm/meson.build compiles them once more, with the bugs.
"""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
for folder in ('gossip', 'runtime'):
    for path in sorted((ROOT / folder).rglob('*.cc')):
        if re.search(r'\bmutant\(\d', path.read_text(encoding='utf-8')):
            print(path.relative_to(ROOT).as_posix())
