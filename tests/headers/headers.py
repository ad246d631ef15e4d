#!/usr/bin/env python3
"""Headers that must compile alone: lists them, and checks that the compiled ones are those of the tree.

usage: headers.py list           those that need a source of their own, one path a line, from the repository root
       headers.py check ARCHIVE  exit status 1 when one of them has no object in ARCHIVE, or the reverse

A header that the source of its name includes before anything else has been compiled alone there. The list is read when
Meson configures, so a header added later is missing from the archive until it configures again.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ['runtime', 'compress', 'gossip', 'models', 'gpu', 'tools', 'tests']


def opens_its_source(header):
    """Whether the first line for the preprocessor in NAME.cc, beside NAME.h, includes it."""
    source = (ROOT / header).with_suffix('.cc')
    if not source.exists():
        return False
    first = re.search(r'^\s*#.*$', source.read_text(encoding='utf-8'), re.MULTILINE)
    return first is not None and first.group() == f'#include "{header}"'


def headers():
    """Every header of the tree that begins no source, but those for the CUDA compiler, which g++ cannot read."""
    found = [path.relative_to(ROOT).as_posix() for folder in FOLDERS for path in (ROOT / folder).rglob('*.h')]
    return sorted(path for path in found if not path.startswith('gpu/cuda/') and not opens_its_source(path))


def object_stem(header):
    """How tests/meson.build names the source that includes `header`."""
    return 'header_' + re.sub(r'[^A-Za-z0-9]', '_', header) + '.cc'


def check(archive):
    listing = subprocess.run(['ar', 't', archive], capture_output=True, text=True, check=True).stdout
    compiled = {match.group() for match in re.finditer(r'header_\w+\.cc', listing)}
    wanted = {object_stem(header): header for header in headers()}
    missing = sorted(wanted[stem] for stem in wanted.keys() - compiled)
    gone = sorted(compiled - wanted.keys())
    for header in missing:
        print(f'{header} was not compiled; configure again: meson setup --reconfigure BUILD')
    for stem in gone:
        print(f'{stem} belongs to no header any more; configure again: meson setup --reconfigure BUILD')
    print(f'{len(wanted) - len(missing)} of {len(wanted)} headers that begin no source compile alone')
    return 1 if missing or gone or not wanted else 0


if __name__ == '__main__':
    if sys.argv[1:] == ['list']:
        print('\n'.join(headers()))
    elif len(sys.argv) == 3 and sys.argv[1] == 'check':
        sys.exit(check(sys.argv[2]))
    else:
        sys.exit(__doc__)
