"""The command line of a long test: its doc string is the help, and a Python module that is missing is named.

Call both before the modules are imported, which takes seconds or fails.
"""
import importlib.util
import sys


def check(doc, least):
    """Prints the help and ends for --help, and for fewer than `least` arguments."""
    if {'--help', '-h'} & set(sys.argv[1:]):
        print(doc.strip())
        sys.exit()
    if len(sys.argv) <= least:
        sys.exit(doc.strip())


def needs(*modules):
    """Ends with the remedy where this Python lacks a module."""
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    if missing:
        sys.exit(f'{sys.executable} has no {", ".join(missing)}: run `pip install {" ".join(missing)}`, or take '
                 'another python3')
