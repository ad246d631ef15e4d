#!/usr/bin/env python3
"""Checks what the compiler does not: who includes whom, lengths, white space, banned words. Rules: tests/tidy/rules.py.

usage: tidy.py [ROOT]      checks the tree, one line for each complaint; exit status 1 when there are any
       tidy.py --self-test feeds samples that must be caught and samples that must not (tests/tidy/self_test.py)
       tidy.py --counts    prints the table of tests/tidy/prose.py as it should be now, and each place that it counts
"""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / 'tidy'))
sys.dont_write_bytecode = True

import prose  # noqa: E402
import rules  # noqa: E402
import self_test  # noqa: E402

FOLDERS = ['.ci', 'compress', 'gossip', 'gpu', 'models', 'runtime', 'tests', 'tools']
SUFFIXES = rules.CODE + rules.SCRIPTS + ('.md', '.toml', '.html', '.css', '.js')


def text_files(root):
    """Every text file of the tree that people write: known folders, known suffixes or none (scripts), no corpora."""
    for path in sorted(root.iterdir()):
        if path.is_file() and (path.suffix in SUFFIXES or path.name.startswith('.')) and path.name != '.git':
            yield path
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob('*')):
            parts = path.relative_to(root).parts
            if '__pycache__' in parts or any(part.startswith('corpus') for part in parts[:-1]) or not path.is_file():
                continue
            if path.suffix in SUFFIXES or (not path.suffix and is_script(path)):
                yield path


def is_script(path):
    with path.open('rb') as file:
        return file.read(2) == b'#!'


def read(root):
    """{path: text} of the tree under `root`, and complaints about files that are not UTF-8."""
    texts, complaints = {}, []
    for path in text_files(root):
        name = path.relative_to(root).as_posix()
        try:
            texts[name] = path.read_bytes().decode('utf-8')
        except UnicodeDecodeError as error:
            complaints.append(rules.Complaint(name, 1, 'utf-8', f'not UTF-8: {error.reason} at byte {error.start}'))
    return texts, complaints


def check(root):
    """All complaints about the tree under `root`, and the number of files read."""
    texts, complaints = read(root)
    for name, text in texts.items():
        complaints += rules.check_file(name, text, lambda path: (root / path).is_file())
        if text.startswith('#!') and not os.access(root / name, os.X_OK):
            complaints.append(rules.Complaint(name, 1, 'not-executable', 'it begins with #!: chmod +x'))
    complaints += rules.check_tree(texts, lambda path: (root / path).exists())
    return complaints, len(texts)


def print_counts(root):
    texts, _ = read(root)
    exists = lambda path: (root / path).exists()  # noqa: E731
    for (rule, _), found in sorted(prose.places(texts, rules.CODE, exists).items()):
        for path, line, text in found:
            print(f'{path}:{line}: [{rule}] {text}')
    print(prose.table(texts, rules.CODE, exists))
    return 0


def main(arguments):
    if arguments == ['--self-test']:
        return self_test.run(check)
    here = pathlib.Path(__file__).resolve().parent.parent
    if arguments == ['--counts']:
        return print_counts(here)
    root = pathlib.Path(arguments[0] if arguments else here)
    complaints, files = check(root)
    for complaint in complaints:
        print(f'{complaint.path}:{complaint.line}: [{complaint.rule}] {complaint.text}')
    print(f'{files} files, {len(complaints)} complaints')
    if files < 20:
        print(f'only {files} files under {root}: is that the repository?')
        return 1
    return 1 if complaints else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
