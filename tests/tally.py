#!/usr/bin/env python3
"""Counts what a `meson test` run did, case by case. tools/test calls it.

usage: tally.py targets BUILD [SUITE...]   ninja targets that the tests of these suites need (no suite: all of them)
       tally.py clean BUILD                removes the results of earlier runs
       tally.py count BUILD [SUITE...]     names every failure on stderr, then prints "PASSED FAILED SKIPPED"
       tally.py slowest SINCE BUILD...     the ten slowest targets and tests since a time (Unix seconds)
       tally.py self-test

A Boost.Test program counts its cases, from the JUnit file that its --logger argument names; a program of another kind
counts as one. A program that failed counts as one failure more when no case of it failed: it crashed, or a sanitizer
complained at its end. A test of which there is no result at all is a failure too. A case that a program has switched
off (tests/sim/part.cc) does not count.
"""

import json
import pathlib
import re
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

GOOD = ('OK', 'EXPECTEDFAIL')
SWITCHED_OFF = re.compile(r"reason: 'disabled'")
SHOWN = 10


def tests_of(build, suites):
    """The tests that Meson knows in these suites (none given: all)."""
    tests = json.loads((build / 'meson-info' / 'intro-tests.json').read_text())
    wanted = set(suites)
    return [test for test in tests if not wanted or wanted & {suite.split(':')[-1] for suite in test['suite']}]


def junit_file(command):
    """The JUnit file that a Boost.Test command line names, or None."""
    for argument in command:
        match = re.match(r'--logger=(?:.*:)?JUNIT,\w*,(.+)$', argument)
        if match:
            return pathlib.Path(match.group(1).split(':')[0])
    return None


def targets(build, suites):
    """Paths of what the tests run or read, relative to the build folder, for ninja."""
    needed = {target for test in tests_of(build, suites) for target in test['depends']}
    known = json.loads((build / 'meson-info' / 'intro-targets.json').read_text())
    files = [file for target in known if target['id'] in needed for file in target['filename']]
    return sorted(pathlib.Path(file).relative_to(build.resolve()).as_posix() for file in files)


def clean(build):
    for old in (build / 'meson-logs').glob('testlog*'):
        old.unlink()
    for test in tests_of(build, []):
        file = junit_file(test['cmd'])
        if file:
            file.unlink(missing_ok=True)


def junit_cases(file):
    """(passed, names of failed, skipped) of a JUnit file, or None when it is absent or cut off."""
    try:
        # Boost copies the operands of a check as they are; XML allows few control characters.
        text = re.sub(r'[^\t\n\r -\uFFFD]', '?', file.read_bytes().decode('utf-8', 'replace'))
        root = ElementTree.fromstring(re.sub(r'^<\?xml[^>]*>', '', text))
    except (OSError, ElementTree.ParseError):
        return None
    passed, failed, skipped = 0, [], 0
    for case in root.iter('testcase'):
        kinds = {child.tag for child in case}
        if kinds & {'failure', 'error'}:
            failed.append(case.get('name', '?'))
        elif 'skipped' in kinds:
            skipped += not SWITCHED_OFF.search(''.join(case.itertext()))
        else:
            passed += 1
    return passed, failed, skipped


def count_program(name, result, command):
    """(passed, complaints, skipped) of one line of Meson's log."""
    file = junit_file(command)
    if result == 'SKIP':
        return 0, [], 1
    if not file:
        return (1, [], 0) if result in GOOD else (0, [f'{name}: {result}'], 0)
    cases = junit_cases(file)
    if not cases or not (cases[0] or cases[1] or cases[2]):
        return 0, [f'{name}: {result}, without results (it crashed, or has no cases)'], 0
    passed, failed, skipped = cases
    complaints = [f'{name}: {case}' for case in failed]
    if not failed and result not in GOOD:
        complaints.append(f'{name}: {result}, though no case failed (a crash, a time-out or a sanitizer)')
    return passed, complaints, skipped


def count(build, suites):
    """(passed, complaints, skipped) over the run whose log is in `build`."""
    log = build / 'meson-logs' / 'testlog.json'
    lines = [json.loads(line) for line in log.read_text().splitlines()] if log.is_file() else []
    passed, complaints, skipped, files, seen = 0, [], 0, {}, []
    for line in lines:
        # Meson puts the project or suite before the name, with blanks around the separator.
        name = re.split(r'[:/] ', line['name'])[-1].strip()
        seen.append(name)
        more_passed, more_complaints, more_skipped = count_program(name, line['result'], line['command'])
        passed, skipped = passed + more_passed, skipped + more_skipped
        complaints += more_complaints
        file = junit_file(line['command'])
        if file and files.setdefault(file, name) != name:
            complaints.append(f'{name}: writes its results over those of {files[file]} ({file})')
    known = tests_of(build, suites)
    complaints += [f'{test["name"]}: did not run' for test in known if test['name'] not in seen]
    if not known:
        complaints.append(f'{" ".join(suites)}: no such tests')
    return passed, complaints, skipped


def built(build, since):
    """(seconds, name) of what ninja has made since then, in this folder."""
    log, seconds = build / '.ninja_log', {}
    for line in log.read_text().splitlines() if log.is_file() else []:
        columns = line.split('\t')
        if len(columns) == 5:
            start, end, _, output, _ = columns
            if (build / output).is_file() and (build / output).stat().st_mtime >= since:
                seconds[output] = (int(end) - int(start)) / 1000
    return [(taken, f'{build.name}/{output}') for output, taken in seconds.items()]


def slowest_case(file):
    """(seconds, name) of the longest case in a JUnit file, or None."""
    try:
        cases = ElementTree.fromstring(re.sub(r'[^\t\n\r -\uFFFD]', '?', file.read_text())).iter('testcase')
        return max(((float(case.get('time', 0)), f'{case.get("classname")}/{case.get("name")}') for case in cases),
                   default=None)
    except (OSError, ValueError, ElementTree.ParseError):
        return None


def ran(build):
    """(seconds, name) of the tests whose log is in this folder."""
    log = build / 'meson-logs' / 'testlog.json'
    for line in map(json.loads, log.read_text().splitlines() if log.is_file() else []):
        name = f'{build.name}: {re.split("[:/] ", line["name"])[-1].strip()}'
        file = junit_file(line['command'])
        longest = slowest_case(file) if file else None
        yield line['duration'], name + (f' (longest case: {longest[1]}, {longest[0]:.1f} s)' if longest else '')


def slowest(since, builds):
    """Prints the tables. Times are on the clock, with all that ran beside."""
    for title, rows in (('targets', [row for build in builds for row in built(build, since)]),
                        ('tests', [row for build in builds for row in ran(build)])):
        if rows:
            print(f'the slowest {title} (seconds on the clock):')
        for taken, name in sorted(rows, reverse=True)[:SHOWN]:
            print(f'{taken:8.1f}  {name}')


def self_test():
    """A run of every kind of result, counted."""
    xml = ('<testsuite><testcase name="a"/><testcase name="b">{}</testcase>'
           '<testcase name="c"><skipped/></testcase>'
           '<testcase name="d"><skipped/><system-out>- reason: \'disabled\'</system-out></testcase></testsuite>')
    programs = [  # name, result, JUnit text or None for no Boost program, what it adds
        ('fine', 'OK', xml.format('<system-out/>'), (2, 0, 1)),
        ('raw-bytes', 'OK', '<?xml version="1.0" encoding="UTF-8"?>' + xml.format('\x01\x1b'), (2, 0, 1)),
        ('bad-case', 'FAIL', xml.format('<failure/>'), (1, 1, 1)),
        ('bad-end', 'FAIL', xml.format(''), (2, 1, 1)),
        ('late', 'TIMEOUT', '', (0, 1, 0)),
        ('cut-off', 'FAIL', xml[:40], (0, 1, 0)),
        ('silent', 'OK', '', (0, 1, 0)),
        ('empty', 'OK', '<testsuite/>', (0, 1, 0)),
        ('script', 'OK', None, (1, 0, 0)),
        ('broken-script', 'ERROR', None, (0, 1, 0)),
        ('canary', 'EXPECTEDFAIL', None, (1, 0, 0)),
        ('dead-canary', 'UNEXPECTEDPASS', None, (0, 1, 0)),
        ('no-data', 'SKIP', None, (0, 0, 1)),
    ]
    with tempfile.TemporaryDirectory() as folder:
        build = pathlib.Path(folder)
        (build / 'meson-logs').mkdir()
        (build / 'meson-info').mkdir()
        lines, known = [], [{'name': 'never-ran', 'suite': ['rumor:unit'], 'cmd': [], 'depends': []}]
        for name, result, text, _ in programs:
            command = ['program']
            if text is not None:
                file = build / f'{name}.xml'
                command.append(f'--logger=HRF,test_suite:JUNIT,all,{file}')
                if text:
                    file.write_text(text)
            lines.append(json.dumps({'name': f'rumor:unit / {name}', 'result': result, 'command': command}))
            known.append({'name': name, 'suite': ['rumor:unit', 'rumor:threads'], 'cmd': command, 'depends': []})
        (build / 'meson-logs' / 'testlog.json').write_text('\n'.join(lines) + '\n')
        (build / 'meson-info' / 'intro-tests.json').write_text(json.dumps(known))
        passed, complaints, skipped = count(build, ['unit'])
        found = [passed, len(complaints), skipped]
        clean(build)
        cleaned = not list(build.glob('*.xml')) and not list(build.glob('meson-logs/*'))
        after = count(build, ['threads'])
    expected = [sum(program[3][i] for program in programs) for i in range(3)]
    expected[1] += 1  # never-ran
    print(f'counted {found}, expected {expected}; cleaned: {cleaned}; without a log: {len(after[1])} did not run')
    return 0 if found == expected and cleaned and after[0] == 0 and len(after[1]) == len(programs) else 1


def main(arguments):
    if arguments == ['self-test']:
        return self_test()
    if len(arguments) > 1 and arguments[0] == 'slowest':
        return slowest(float(arguments[1]), [pathlib.Path(build) for build in arguments[2:]])
    if len(arguments) < 2 or arguments[0] not in ('targets', 'clean', 'count'):
        sys.exit(__doc__)
    command, build, suites = arguments[0], pathlib.Path(arguments[1]), arguments[2:]
    if command == 'targets':
        for target in targets(build, suites):
            print(target)
    elif command == 'clean':
        clean(build)
    else:
        passed, complaints, skipped = count(build, suites)
        for complaint in complaints:
            print(f'  failed: {complaint}', file=sys.stderr)
        print(passed, len(complaints), skipped)
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
