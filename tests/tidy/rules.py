"""The rules of the house, as data and small functions. tests/tidy.py walks the tree and calls them.

Every complaint is (path, line, rule, text). `path` is relative to the repository root, with forward slashes.
"""

import re
from typing import NamedTuple

import cpp_scan
import house
import prose
from complaint import Complaint
from house import inside, room_of, rooms_below

LINES_MAX = 500
COLUMNS_MAX = 120
FUNCTION_LINES_MAX = 70
CUDA_FUNCTION_LINES_MAX = 100

# Made of toml++, for .cc files only.
SLOW_HEADER = 'runtime/run/toml_table.h'
WIRE = ('gossip/wire/wire.cc', 'gossip/wire/wire_encode.cc')

TOP_FOLDERS = {name.split('/')[0] for name in house.HOUSE} | {'tests'}

# Folders that may read a real clock.
REAL_TIME = ['runtime/daemon', 'runtime/threads', 'gossip/asio', 'runtime/bridge', 'tools', 'tests']
# Folders whose results must not depend on the order of a hash table.
ORDERED = ['gossip', 'runtime', 'compress']
# But for those, which nobody repeats.
UNORDERED = ['gossip/asio', 'runtime/daemon', 'runtime/bridge', 'runtime/threads']

CODE = ('.cc', '.h', '.cu', '.cuh')
HEADERS = ('.h', '.cuh')
SCRIPTS = ('.py', '.sh', '.build', '.proto', '.txt', '.css', '.js')


class Ban(NamedTuple):
    rule: str
    pattern: re.Pattern
    text: str
    allowed: list  # folders where the word may stand, with all rooms in them
    only: list  # folders where it may not; empty: everywhere


BANS = [
    Ban('entropy', re.compile(r'std::random_device\b'), 'chance comes from a seeded Prng', [], []),
    Ban('entropy', re.compile(r'(?<![\w.>])(?:std::)?s?rand\s*\('), 'chance comes from a seeded Prng', [], []),
    Ban('clock', re.compile(r'(?<![\w.>:])(?:std::|::)?time\s*\(\s*(?:nullptr|NULL|0|&)'),
        'the core is told the time, it cannot ask', [], []),
    Ban('clock', re.compile(r'\b(?:system|steady|high_resolution)_clock\b|\b(?:clock_gettime|gettimeofday)\s*\('),
        'only the real driver, tools and tests read a clock', REAL_TIME, []),
    Ban('namespace', re.compile(r'\busing\s+namespace\s+std\s*;'), 'name what you use', [], []),
    Ban('unordered', re.compile(r'\bstd::unordered_'),
        'iteration order must be the same everywhere: std::map, or a sorted vector', UNORDERED, ORDERED),
]

# One call of each kind that the core may not make, for the test of tests/purity.sh.
IMPURE_ON_PURPOSE = 'tests/purity/impure.cc'

# Joined from halves, so that this file may stand in the tree it checks.
LEFT_OPEN_WORDS = ['TO' 'DO', 'FIX' 'ME', 'XX' 'X', 'HA' 'CK']
LEFT_OPEN = re.compile(r'\b(?:' + '|'.join(LEFT_OPEN_WORDS) + r')\b')


def check_text(path, text):
    """Lengths, white space and words left open: for every text file."""
    lines = text.split('\n')
    is_code = path.endswith(CODE + SCRIPTS) or '.' not in path.rsplit('/', 1)[-1]
    if is_code and path != 'LICENSE' and len(lines) - 1 > LINES_MAX:
        yield Complaint(path, LINES_MAX, 'file-length', f'{len(lines) - 1} lines; {LINES_MAX} are the limit')
    for number, line in enumerate(lines, 1):
        if is_code and len(line) > COLUMNS_MAX:
            yield Complaint(path, number, 'columns', f'{len(line)} columns; {COLUMNS_MAX} are the limit')
        if '\t' in line:
            yield Complaint(path, number, 'tab', 'a tab; indent with two spaces')
        if line.endswith((' ', '\r')):
            yield Complaint(path, number, 'trailing', 'white space at the end of the line')
        if LEFT_OPEN.search(line):
            yield Complaint(path, number, 'left-open', 'finish it, or open an issue: no reminders in the code')
    if text and not text.endswith('\n'):
        yield Complaint(path, len(lines), 'last-newline', 'the file must end with a newline')
    elif text.endswith('\n\n'):
        yield Complaint(path, len(lines) - 1, 'last-newline', 'empty lines at the end of the file')


def check_bans(path, text):
    folder = path.rsplit('/', 1)[0] if '/' in path else ''
    for number, line in enumerate(cpp_scan.strip(text).split('\n'), 1):
        for ban in BANS:
            if inside(folder, ban.allowed) or (ban.only and not inside(folder, ban.only)):
                continue
            match = ban.pattern.search(line)
            if match:
                yield Complaint(path, number, ban.rule, f'{match.group().strip()}: {ban.text}')


def check_functions(path, text):
    limit = CUDA_FUNCTION_LINES_MAX if path.endswith(('.cu', '.cuh')) else FUNCTION_LINES_MAX
    for function in cpp_scan.functions(text):
        if function.lines > limit:
            yield Complaint(path, function.first_line, 'function-length',
                            f'{function.name} has {function.lines} lines; {limit} are the limit')


def check_header(path, text):
    if not re.search(r'^#pragma once$', text, re.MULTILINE):
        yield Complaint(path, 1, 'pragma-once', 'a header needs #pragma once')
    if not re.match(r'//\s*\S|/\*', text):
        yield Complaint(path, 1, 'header-comment', 'a header starts with a comment that says what it is for')


def _include_direction(path, folder, name):
    """Why `path` may not include the project file `name`, or None."""
    if name == SLOW_HEADER and path.endswith(HEADERS):
        return 'it is slow to compile: include it in a .cc file'
    target = room_of(name)
    if name.endswith('.pb.h'):
        return None if path in WIRE else 'only wire.cc and wire_encode.cc may include generated protobuf headers'
    if folder == 'tests' or target == folder:
        return None
    if target == 'tests':
        return 'nothing but tests may include tests'
    if target not in rooms_below(folder):
        return f'{folder or "this folder"} may not use {target or name}; see tests/tidy/house.py'
    return None


def _include_outside(path, folder, name):
    """Why `path` may not include the outside header `name`, or None."""
    top = name.split('/')[0]
    if top in ('asio', 'asio.hpp') and not inside(folder, ['gossip/asio', 'runtime/daemon', 'tests']):
        return 'only gossip/asio and runtime/daemon may include Asio'
    if top in ('nlohmann', 'toml++') and path.endswith(HEADERS) and path != SLOW_HEADER:
        return f'{top} is slow to compile: include it in a .cc file'
    if top == 'boost' and folder != 'tests':
        return 'Boost is for tests only'
    if re.match(r'(?:cuda|cublas|cub/|nvrtc)', name) and not path.startswith('gpu/cuda/'):
        return 'only gpu/cuda may include CUDA headers'
    if name.startswith('google/protobuf') and path not in WIRE:
        return 'only gossip/wire/wire.cc and wire_encode.cc may use protobuf'
    return None


def check_includes(path, text, exists):
    """`exists(path)` tells whether a project file is there."""
    folder = room_of(path)
    for number, name, quoted in cpp_scan.includes(text):
        ours = quoted and name.split('/')[0] in TOP_FOLDERS
        if quoted and not name.endswith('.pb.h') and not exists(name):
            yield Complaint(path, number, 'include-path', f'"{name}": write the path from the repository root')
            continue
        why = _include_direction(path, folder, name) if ours else _include_outside(path, folder, name)
        if why:
            yield Complaint(path, number, 'include', f'{name}: {why}')


def check_file(path, text, exists):
    """All complaints about one file."""
    yield from check_text(path, text)
    if path.endswith(CODE):
        if path != IMPURE_ON_PURPOSE:
            yield from check_bans(path, text)
        yield from check_functions(path, text)
        yield from check_includes(path, text, exists)
    if path.endswith(HEADERS):
        yield from check_header(path, text)


def check_tree(texts, exists):
    """Rules about the tree as a whole. `texts`: path -> text of every file; `exists(path)`: whether it is there."""
    yield from house.check_table()
    yield from house.check_rooms(texts, CODE)
    yield from prose.check(texts, CODE, exists)
    for slow, allowed in (('CLI/CLI.hpp', 1), ('httplib.h', 2)):  # httplib: servers and a client
        users = []
        for path in sorted(texts):
            if path.endswith(CODE) and not path.startswith('tests/'):
                users += [(path, line) for line, name, _ in cpp_scan.includes(texts[path]) if name == slow]
        for path, line in users[allowed:]:
            yield Complaint(path, line, 'one-user', f'{slow} is slow to compile; {users[0][0]} includes it already')
