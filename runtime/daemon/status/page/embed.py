#!/usr/bin/env python3
"""Puts the page of the status address into one piece, as a C++ array, with the policy that lets nothing else run.

usage: embed.py INDEX.html OUT.cc     INDEX names its style and scripts as files beside it
"""
import base64
import hashlib
import pathlib
import re
import sys


def inline(folder, html):
    """The page, and the source expressions (Content Security Policy 3, 2.3.1) of its style and its script."""
    style = (folder / re.search(r'<link rel="stylesheet" href="([\w.]+)">\n', html)[1]).read_text(encoding='utf-8')
    scripts = re.findall(r'<script src="([\w.]+)"></script>\n', html)
    script = ''.join((folder / name).read_text(encoding='utf-8') for name in scripts)
    for name, text in (('style', style), ('script', script)):
        if f'</{name}' in text:
            sys.exit(f'embed.py: the {name} of the page would end early at "</{name}"')
    html = re.sub(r'<link rel="stylesheet"[^>]*>', lambda _: f'<style>{style}</style>', html)
    html = re.sub(r'(<script src="[\w.]+"></script>\n)+', lambda _: f'<script>{script}</script>\n', html)
    hashes = [f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
              for text in (style, script)]
    return html, *hashes


def main(index, out):
    index = pathlib.Path(index)
    html, style, script = inline(index.parent, index.read_text(encoding='utf-8'))
    policy = (f"default-src 'none'; style-src {style}; script-src {script}; connect-src 'self'; img-src data:; "
              "base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
    data = html.encode()
    rows = [','.join(str(byte) for byte in data[at:at + 32]) for at in range(0, len(data), 32)]
    pathlib.Path(out).write_text(
        '// Made by embed.py.\n#include "runtime/daemon/status/status_page.h"\n\nnamespace rumor::daemon {\n'
        'namespace {\nconstexpr unsigned char page[] = {\n' + ',\n'.join(rows) + '};\n}  // namespace\n'
        'const std::string_view status_page(reinterpret_cast<const char*>(page), sizeof page);\n'
        f'const std::string_view status_page_policy = "{policy}";\n'
        '}  // namespace rumor::daemon\n', encoding='utf-8')


if __name__ == '__main__':
    main(*sys.argv[1:])
