"""What the programs of a coverage build have run, as gcov tells it. tests/coverage and tests/soak use it."""
import glob
import gzip
import json
import os
import subprocess
import tempfile


def clean(build):
    """Forgets all runs of the programs in `build`."""
    for path in glob.glob(os.path.join(build, '**', '*.gcda'), recursive=True):
        os.unlink(path)


def lines_of(build, root):
    """{file relative to `root`: {line: times run}}. A line of a template or an inline function counts once."""
    seen = {}
    for data in glob.glob(os.path.join(os.path.abspath(build), '**', '*.gcno'), recursive=True):
        with tempfile.TemporaryDirectory() as scratch:  # of its own: gcov names its output after the source alone
            subprocess.run(['gcov', '--json-format', data], check=True, cwd=scratch, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
            for path in glob.glob(os.path.join(scratch, '*.gcov.json.gz')):
                with gzip.open(path, 'rt') as file:
                    for entry in json.load(file)['files']:
                        name = os.path.relpath(os.path.join(build, entry['file']), root)
                        counts = seen.setdefault(name, {})
                        for line in entry['lines']:
                            counts[line['line_number']] = counts.get(line['line_number'], 0) + line['count']
    return seen
