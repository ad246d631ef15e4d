#!/usr/bin/env python3
"""Runs the cases of modules: each function of a module without a leading underscore is one, with an empty folder if it
takes an argument.

usage: torch_cases.py RUMOR LIBRARY PACKAGE MODULE...
       torch_cases.py inside MODULE [CASE]...     in a process that has PyTorch, RUMOR, RUMOR_LIBRARY, RUMOR_PACKAGE
Skipped (exit status 77) where no python3 here has PyTorch.
"""
import importlib
import os
import subprocess
import sys
import tempfile
import time
import types


def main(rumor, library, package, modules):
    os.environ.update(RUMOR=rumor, RUMOR_LIBRARY=library, RUMOR_PACKAGE=package, PYTHONDONTWRITEBYTECODE='1')
    from torch_peers import python_with_torch
    python = python_with_torch()
    sys.exit(max(subprocess.run([python, __file__, 'inside', module], check=False).returncode for module in modules))


def inside(module, names):
    sys.path.insert(0, os.environ['RUMOR_PACKAGE'])
    import torch
    torch.set_num_threads(1)
    cases = [case for name, case in vars(importlib.import_module(module)).items()
             if isinstance(case, types.FunctionType) and case.__module__ == module and name[0] != '_']
    for case in cases:
        if names and case.__name__ not in names:
            continue
        torch.manual_seed(1)
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix='rumor-case-') as folder:
            case(*([os.path.join(folder, 'state')] if case.__code__.co_argcount else []))
        print(f'{time.monotonic() - began:6.1f} s  {case.__name__}', flush=True)


if __name__ == '__main__':
    if sys.argv[1] == 'inside':
        inside(sys.argv[2], sys.argv[3:])
    else:
        main(*sys.argv[1:4], sys.argv[4:])
