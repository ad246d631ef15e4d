#!/usr/bin/env python3
"""Every long test says how it is used, without the modules and programs that it needs to run.

usage: help_test.py
"""
import os
import pathlib
import subprocess
import sys


def main():
    here, wrong = pathlib.Path(__file__).resolve().parent, []
    scripts = [path for path in sorted(here.iterdir()) if path.is_file() and os.access(path, os.X_OK)]
    assert len(scripts) > 10, scripts
    for script in scripts:
        if script.name == pathlib.Path(__file__).name:
            continue
        run = subprocess.run([script, '--help'], capture_output=True, text=True, timeout=60, check=False)
        if run.returncode != 0 or 'usage:' not in run.stdout or run.stderr:
            wrong.append(f'{script.name} --help: status {run.returncode}\n{run.stdout}{run.stderr}')
    print('\n'.join(wrong) or 'ok')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
