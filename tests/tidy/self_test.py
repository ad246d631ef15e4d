"""Samples for tests/tidy.py: what must be caught, and what must not.

A bad sample is one file in an otherwise clean tree, with the rule that must complain about it, and no other rule.
"""

import pathlib
import tempfile

import cpp_scan
import house
import prose
import rules

HEADER = '// A sample header.\n#pragma once\n'
BASE = 'runtime/base/a.h'

# A small clean tree, which every bad sample is added to.
GOOD = {
    BASE: HEADER + '#include <string>\nstd::string name();\n',
    'compress/payload/b.h': HEADER + '#include "runtime/base/a.h"\n',
    'gossip/contract/c.h': HEADER + '#include "runtime/base/a.h"\n',
    'gossip/asio/net.cc': '#include <asio.hpp>\n#include "gossip/contract/c.h"\n',
    'gossip/wire/wire.cc': '#include "gossip/rumor.pb.h"\n',
    'models/kernels/m.h': HEADER,
    'runtime/node/r.cc': '#include "compress/payload/b.h"\n#include "gossip/contract/c.h"\n'
                    '#include <nlohmann/json.hpp>\n#include <toml++/toml.h>\n',
    'runtime/node/r.h': HEADER,
    'runtime/sim/world/s.h': HEADER + '#include "runtime/node/r.h"\n',
    'runtime/daemon/loop/d.h': HEADER + '#include "gossip/contract/c.h"\n#include "runtime/node/r.h"\n'
                               '#include <chrono>\n'
                          'inline auto start() { return std::chrono::steady_clock::now(); }\n',
    'tools/commands/main.cc': '#include <CLI/CLI.hpp>\n#include <httplib.h>\n'
                     '#include "runtime/daemon/loop/d.h"\n#include "runtime/sim/world/s.h"\n',
    'tools/words/client.cc': '#include <httplib.h>\n',
    'tools/run': '#!/bin/sh\necho hello\n',
    'tests/t.cc': '#include <boost/test/unit_test.hpp>\n#include "tools/commands/main.cc"\n#include <httplib.h>\n',
    'models/kernels/words.cc': '// time(nullptr) and std::random_device are only words here.\n'
                       'const char* s = "rand() system_clock";\n'
                       'int operand(int x) { return x; }\nint y = operand(1);\nint at = event.time(0);\n',
}

BAD = [
    # (rule, path, text)
    ('not-executable', 'tests/x.py', '#!/usr/bin/env python3\n'),
    ('include', 'runtime/base/x.h', HEADER + '#include "compress/payload/b.h"\n'),
    ('include', 'compress/payload/x.cc', '#include "gossip/contract/c.h"\n'),
    ('include', 'compress/payload/x.cc', '#include "models/kernels/m.h"\n'),
    ('include', 'gossip/contract/x.cc', '  #  include "compress/payload/b.h"  // indented\n'),
    ('include', 'gossip/contract/x.cc', '#include <asio.hpp>\n'),
    ('include', 'gossip/contract/x.cc', '#include <asio/ip/tcp.hpp>\n'),
    ('include', 'gossip/contract/x.cc', '#include "gossip/rumor.pb.h"\n'),
    ('include', 'gossip/asio/x.cc', '#include "runtime/node/r.h"\n'),
    ('include', 'gossip/asio/x.cc', '#include <google/protobuf/message_lite.h>\n'),
    ('include', 'models/kernels/x.cc', '#include "runtime/node/r.h"\n'),
    ('include', 'models/kernels/x.cc', '#include <cuda_runtime.h>\n'),
    ('include', 'runtime/node/x.cc', '#include "gossip/asio/x.h"\n', 'gossip/asio/x.h'),
    ('include', 'runtime/node/x.cc', '#include "runtime/sim/world/s.h"\n'),
    ('include', 'runtime/sim/world/x.cc', '#include "runtime/daemon/loop/d.h"\n'),
    ('include', 'runtime/daemon/loop/x.cc', '#include "runtime/sim/world/s.h"\n'),
    ('include', 'runtime/daemon/loop/x.cc', '#include "tools/commands/x.h"\n', 'tools/commands/x.h'),
    ('include', 'compress/payload/x.cc', '#include "compress/link/x.h"\n', 'compress/link/x.h'),
    ('include', 'gossip/links/x.cc', '#include "gossip/protocol.h"\n', 'gossip/protocol.h'),
    ('room', 'models/x.cc', 'int x;\n'),
    ('room', 'runtime/attic/x.cc', 'int x;\n'),
    ('include', 'tools/commands/x.cc', '#include "tests/x.h"\n', 'tests/x.h'),
    ('include', 'tools/commands/x.cc', '#include <boost/test/unit_test.hpp>\n'),
    ('include', 'runtime/node/x.h', HEADER + '#include <nlohmann/json.hpp>\n'),
    ('include', 'runtime/node/x.h', HEADER + '#include <toml++/toml.h>\n'),
    ('include', 'runtime/node/x.h', HEADER + '#include "runtime/run/toml_table.h"\n', 'runtime/run/toml_table.h'),
    ('include-path', 'runtime/node/x.cc', '#include "r.h"\n'),
    ('include-path', 'runtime/node/x.cc', '#include "../node/r.h"\n'),
    ('include-path', 'runtime/node/x.cc', '#include "runtime/gone.h"\n'),
    ('one-user', 'tools/commands/x.cc', '#include <CLI/CLI.hpp>\n'),
    ('one-user', 'tools/words/x.cc', '#include <httplib.h>\n'),
    ('pragma-once', 'models/kernels/x.h', '// A sample header.\nint x();\n'),
    ('header-comment', 'models/kernels/x.h', '#pragma once\nint x();\n'),
    ('header-comment', 'models/kernels/x.h', '\n// Late.\n#pragma once\n'),
    ('tab', 'models/kernels/x.cc', 'int x() {\n\treturn 1;\n}\n'),
    ('tab', 'models/x.md', 'a\tb\n'),
    ('trailing', 'models/kernels/x.cc', 'int x; \n'),
    ('trailing', 'models/kernels/x.cc', 'int x;\r\n'),
    ('last-newline', 'models/kernels/x.cc', 'int x;'),
    ('last-newline', 'models/kernels/x.cc', 'int x;\n\n'),
    ('columns', 'models/kernels/x.cc', '// ' + 'x' * 118 + '\n'),
    ('columns', 'tools/x', '#!/bin/sh\n# ' + 'x' * 119 + '\n'),
    ('file-length', 'models/kernels/x.cc', 'int x;\n' * 501),
    ('file-length', 'tools/x.py', 'x = 1\n' * 501),
    ('entropy', 'tests/x.cc', 'std::random_device device;\n'),
    ('entropy', 'models/kernels/x.cc', 'int x = rand();\n'),
    ('entropy', 'models/kernels/x.cc', 'int x = std::rand ();\n'),
    ('entropy', 'models/kernels/x.cc', 'void f() { srand(1); }\n'),
    ('clock', 'models/kernels/x.cc', 'auto x = time(nullptr);\n'),
    ('clock', 'models/kernels/x.cc', 'auto x = std::time(NULL);\n'),
    ('clock', 'tools/commands/x.cc', 'auto x = ::time(0);\n'),
    ('clock', 'runtime/node/x.cc', 'auto x = std::chrono::steady_clock::now();\n'),
    ('clock', 'runtime/sim/world/x.cc', 'using Clock = std::chrono::system_clock;\n'),
    ('clock', 'gossip/contract/x.cc', 'auto x = std::chrono::high_resolution_clock::now();\n'),
    ('clock', 'gossip/contract/x.cc', 'void f() { clock_gettime(0, nullptr); }\n'),
    ('namespace', 'tests/x.cc', 'using namespace std;\n'),
    ('unordered', 'gossip/contract/x.cc', 'std::unordered_map<int, int> x;\n'),
    ('unordered', 'runtime/node/x.h', HEADER + 'inline std::unordered_set<int> x;\n'),
    ('unordered', 'runtime/sim/world/x.cc', 'std::unordered_map<int, int> x;\n'),
    ('unordered', 'compress/payload/x.cc', 'std::unordered_multimap<int, int> x;\n'),
    ('left-open', 'models/kernels/x.cc', '// TO' 'DO: later\n'),
    ('left-open', 'models/x.md', 'FIX' 'ME\n'),
    ('left-open', 'tools/x', '#!/bin/sh\n# HA' 'CK\n'),
    ('utf-8', 'models/kernels/x.cc', b'// \xff\n'),
    ('long-sentence', 'models/x.md', 'It is ' + 'very ' * 38 + 'long.\n'),
    ('dead-path', 'models/x.md', 'Read `models/gone.h`.\n'),
    ('dead-path', 'models/x.md', 'Read [it](gone.md#chapter).\n'),
    ('banned-word', 'models/x.md', 'Read the error and m' 'end the file.\n'),
    ('banned-word', 'tools/x', '#!/bin/sh\n# It is f' 'or who asks.\n'),
]


def body(lines):
    return '  x();\n' * lines


# (name, first line, lines, source): the only functions that the scanner must find in each source.
FUNCTIONS = [
    ('plain', [('f', 1, 3)], 'int f() {\n' + body(1) + '}\n'),
    ('one line', [('f', 2, 1)], '\nint f() { return 1; }\n'),
    ('long signature', [('f', 1, 4)], 'int f(int a,\n      int b) {\n' + body(1) + '}\n'),
    ('blocks inside', [('f', 1, 7)], 'void f() {\n  if (a) {\n  } else {\n  }\n  for (;;) { x(); }\n  g({1, 2});\n}\n'),
    ('lambda inside', [('f', 1, 5)], 'void f() {\n  g([&](int a) {\n    return a;\n  });\n}\n'),
    ('comments and strings', [('f', 1, 4)], 'int f() {  // {\n  g("}{", \'}\', /* } */ R"(}")"\n    , 1\'000);\n}\n'),
    ('raw delimiter', [('f', 1, 3)], 'int f() {\n  g(R"x(})"})x", u8R"(})");\n}\n'),
    ('quote in a comment', [('f', 2, 3)], "// don't\nint f() {\n  // it's {\n}\n"),
    ('first branch', [('f', 1, 7)], 'int f() {\n#if A\n  if (a) {\n#else\n  if (b) {\n#endif\n  }}\n'),
    ('macro with braces', [('f', 3, 1)], '#define M(x) do { \\\n  x } \nint f() { return 1; }\n'),
    ('methods', [('a', 3, 1), ('b', 4, 3)],
     'namespace n {\nclass C : public B<int(int)> {\n  int a() const { return 1; }\n'
     '  void b() noexcept override {\n  x();\n  }\n'
     '  int c_ = 3;\n  std::vector<int> d_{1, 2};\n};\n}\n'),
    ('access labels', [('a', 3, 1)], 'struct S {\n public:\n  int a() { return 1; }\n private:\n  int b_{2};\n};\n'),
    ('constructor', [('C::C', 1, 4)], 'C::C(int a) : a_{a}, b_(2),\n    c_{} {\n  x();\n}\n'),
    ('constructor, braces only', [('C', 2, 1)], 'struct C {\n  explicit C(int a) : a_{a} {}\n  int a_;\n};\n'),
    ('constructor, base', [('C::C', 1, 1)], 'C::C() noexcept : B<int>{1}, d_{{1, 2}} { x(); }\n'),
    ('destructor', [('~C', 1, 1)], 'struct C { ~C() { x(); } };\n'),
    ('operators', [('operator()', 1, 1), ('operator==', 2, 1), ('operator bool', 3, 1)],
     'struct C { int operator()(int a) const { return a; }\nbool operator==(const C& o) const { return a == o.a; }\n'
     'explicit operator bool() const { return true; } };\n'),
    ('templates', [('f', 1, 2), ('g', 3, 1)],
     'template <class T, class U = std::vector<T>>\nT f(T x) { return x; }\n'
     'template <class T> requires std::integral<T> auto g(T x) -> decltype(x) { return x; }\n'),
    ('attributes', [('f', 1, 1)], '[[nodiscard]] __attribute__((target("avx2"))) int f() { return 1; }\n'),
    ('named lambdas', [('f', 1, 3), ('g', 4, 1)],
     'const auto f = [](int a) {\n  return a;\n};\nstatic const int g = [] { return 1; }();\n'),
    ('test cases', [('BOOST_AUTO_TEST_CASE(a)', 3, 3)],
     'BOOST_AUTO_TEST_SUITE(s)\n\nBOOST_AUTO_TEST_CASE(a) {\n  x();\n}\nBOOST_AUTO_TEST_SUITE_END()\n'),
    ('type after a macro', [('a', 3, 1)], 'BOOST_AUTO_TEST_SUITE(s)\nstruct S {\n  int a() { return 1; }\n};\n'),
    ('no functions', [], 'enum class E : int { a = 1 };\nconst int t[] = {\n1,\n2};\nunion U { int a; };\n'
                         'struct S { int a; } s = {1};\nstd::array<int, f(3)> a{1};\n'
                         'X y = make({1, 2});\nvoid d(O o = {});\n'
                         'extern "C" {\nint e();\n}\nstd::function<void(int)> h{};\n'),
]


def write(root, path, text):
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    if not file.suffix:
        file.chmod(0o755)


def bad_sample_fails(check, rule, path, text, *neighbours):
    """Why the sample was not caught as it should be, or None."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, good in GOOD.items():
            write(root, name, good)
        for name in neighbours:
            write(root, name, HEADER)
        write(root, path, text)
        found = [(complaint.rule, complaint.path) for complaint in check(root)[0]]
    if (rule, path) not in found:
        return f'{path}: [{rule}] was not caught in {text[:70]!r}'
    if set(found) != {(rule, path)}:
        return f'{path}: beside [{rule}], complained about {sorted(set(found) - {(rule, path)})}'
    return None


def good_tree_fails(check):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in GOOD.items():
            write(pathlib.Path(folder), name, text)
        complaints, files = check(pathlib.Path(folder))
    if complaints or files != len(GOOD):
        return f'clean tree: {complaints}, {files} of {len(GOOD)} files read'
    return None


def function_length_fails(check):
    """The limit is met by 70 lines and broken by 71; a CUDA file may have 100."""
    for path, inside, caught in (('models/kernels/x.cc', 68, False), ('models/kernels/x.cc', 69, True),
                                 ('models/kernels/x.h', 69, True),
                                 ('gpu/cuda/x.cu', 98, False), ('gpu/cuda/x.cu', 99, True)):
        source = (HEADER if path.endswith('.h') else '') + 'namespace n {\nvoid f() {\n' + body(inside) + '}\n}\n'
        found = [complaint.rule for complaint in rules.check_functions(path, source)]
        if found != (['function-length'] if caught else []):
            return f'{path} with {inside + 2} lines: {found}'
    return bad_sample_fails(check, 'function-length', 'models/kernels/x.cc', 'void f() {\n' + body(69) + '}\n')


def crowded_room_fails(_):
    """A room may have as many files as the limit says, and not one more. In tests every file counts, not code alone."""
    for folder, count, caught in (('models/data', house.FOLDER_FILES_MAX, False),
                                  ('models/data', house.FOLDER_FILES_MAX + 1, True),
                                  ('tests/unit', house.FOLDER_FILES_MAX, False),
                                  ('tests/unit', house.FOLDER_FILES_MAX + 1, True)):
        suffix = '.py' if folder == 'tests/unit' else '.cc'
        texts = {f'{folder}/x{number}{suffix}': '' for number in range(count)}
        found = [complaint.rule for complaint in house.check_rooms(texts, rules.CODE)]
        if found != (['crowded'] if caught else []):
            return f'{count} files in {folder}: {found}'
    return None


# (rule, path, text, how many of them are there): what the ratchet for prose counts.
PROSE = [
    ('dead-path', 'models/x.md', 'See `models/x.md`, [it](x.md), `a/b`, `models/*`, [web](https://x.y/z).\n', 0),
    ('dead-path', 'models/x.md', '```\n`models/gone.h`\n```\n`models/gone.h`, [it](../models/gone.h)\n', 2),
    ('dead-path', 'models/x.md', '```\nA=1 tests/gone.py x\npython3 tests/gone.py\nbuild/tests/x\n echo tests/a\n```\n',
     2),
    ('long-sentence', 'x.md', 'It is ' + 'very ' * 37 + 'long.\n', 0),
    ('long-sentence', 'x.md', '- It is ' + 'very ' * 20 + '\n  ' + 'very ' * 18 + 'long.\n- Short.\n', 1),
    ('long-sentence', 'x.md', 'It is ' + 'very ' * 30 + 'short. It is ' + 'very ' * 30 + 'short.\n', 0),
    ('long-sentence', 'x.md', '```\n' + 'code ' * 50 + '\n```\n| ' + 'cell ' * 50 + '|\n\n# ' + 'title ' * 50, 0),
    ('long-sentence', 'x.md', 'Run `' + 'code ' * 50 + '` or read [it](https://' + 'address/' * 50 + ').\n', 0),
    ('comment-fragment', 'models/x.cc', '// Of the model.\nint x;  // What it is.\nint y; /* Who asks. */\n', 3),
    ('comment-fragment', 'models/x.cc', '// The size.\n// Of which: half.\n//\n// What follows is next.\n', 1),
    ('comment-fragment', 'models/x.cc', '// Offsets.\nconst char* s = "// What";\n', 0),
    ('banned-word', 'models/x.cc', '// It s' 'ettles. Amendment, mender, settlement.\n', 1),
]


def ratchet_fails(rule, path, text, count):
    """Each count is found, is allowed by a table that says so, and is refused by one that allows one less."""
    where = path if rule in ('long-sentence', 'dead-path') else path.split('/')[0]
    texts, exists = {path: text}, lambda name: name in (path, path.split('/')[0])
    found = len(prose.places(texts, rules.CODE, exists)[rule, where])
    if found != count:
        return f'{path}: [{rule}] counted {found} for {count} in {text[:70]!r}'
    if list(prose.check(texts, rules.CODE, exists, {(rule, where): count})):
        return f'{path}: [{rule}] complained about as many as the table allows'
    if count and [one.rule for one in prose.check(texts, rules.CODE, exists, {(rule, where): count - 1})] != [rule]:
        return f'{path}: [{rule}] did not complain about one more than the table allows'
    return None


def run(check):
    """Tries every sample with `check` (tidy.py). Returns the exit status."""
    failures = [good_tree_fails(check), function_length_fails(check), crowded_room_fails(check)]
    failures += [bad_sample_fails(check, *sample) for sample in BAD]
    failures += [ratchet_fails(*sample) for sample in PROSE]
    for name, expected, source in FUNCTIONS:
        found = sorted((f.first_line, f.name, f.lines) for f in cpp_scan.functions(source))
        if found != sorted((line, function, lines) for function, line, lines in expected):
            failures.append(f'functions, {name}: found {found}')
        else:
            failures.append(None)
    wrong = [failure for failure in failures if failure]
    for failure in wrong:
        print(failure)
    print(f'{len(failures)} samples, {len(wrong)} wrong')
    return 1 if wrong else 0
