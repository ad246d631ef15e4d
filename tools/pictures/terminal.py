#!/usr/bin/env python3
"""Draws what a terminal showed as an SVG card, readable on light and dark pages.

usage: terminal.py TITLE < TEXT > FILE.svg      lines that begin with "$ " are commands; equal digests are coloured
"""
import html
import re
import sys

CHARACTER, LINE, MARGIN, BAR = 7.8, 19, 18, 34  # pixels
STYLE = '''
  .card { fill: #161b22; stroke: #6e7681; }
  text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #d1d9e0;
         white-space: pre; }
  .title { fill: #9198a1; }
  .command { fill: #7ee787; font-weight: bold; }
  .digest { fill: #79c0ff; }
'''


def drawn(line):
    text = html.escape(line, quote=False)
    if line.startswith('$ '):
        return f'<tspan class="command">{text}</tspan>'
    return re.sub(r'\b[0-9a-f]{32}\b', r'<tspan class="digest">\g<0></tspan>', text)


def main(title):
    lines = sys.stdin.read().rstrip('\n').split('\n')
    width = round(max(map(len, lines)) * CHARACTER + 2 * MARGIN)
    height = BAR + len(lines) * LINE + MARGIN
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
          f'role="img">')
    print(f'<title>{html.escape(title)}</title>\n<style>{STYLE}</style>')
    print(f'<rect class="card" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8"/>')
    for number, colour in enumerate(('#ff5f57', '#febc2e', '#28c840')):
        print(f'<circle cx="{20 + 18 * number}" cy="18" r="5.5" fill="{colour}"/>')
    print(f'<text class="title" x="{width / 2}" y="22" text-anchor="middle">{html.escape(title)}</text>')
    for number, line in enumerate(lines):
        if line:
            y = BAR + LINE * (number + 0.8)
            print(f'<text x="{MARGIN}" y="{y:.1f}" xml:space="preserve" textLength="{len(line) * CHARACTER:.1f}" '
                  f'lengthAdjust="spacingAndGlyphs">{drawn(line)}</text>')
    print('</svg>')


if __name__ == '__main__':
    main(sys.argv[1])
