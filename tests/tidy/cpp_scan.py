"""Reads C++ just well enough to measure it: blanks comments and literals, finds functions and their lengths.

Not a parser. It follows brackets outside comments, strings and preprocessor lines, and decides what an opening brace
starts by the text before it. Where #if has several branches, the first one is read, so that braces stay balanced.
"""

import re
from typing import NamedTuple


class Function(NamedTuple):
    name: str
    first_line: int  # where the signature starts, counted from 1
    lines: int  # signature to closing brace, both included


# In this order: a quote inside a comment is no string, a slash inside a string no comment, and the mark that separates
# digits (1'000) opens no character literal.
_LITERALS = re.compile(
    r'(?P<comment>//(?:\\\n|[^\n])*|/\*.*?(?:\*/|\Z))'
    r'|(?P<raw>\b(?:u8|[uUL])?R"(?P<delimiter>[^\s()\\]{0,16})\(.*?(?:\)(?P=delimiter)"|\Z))'
    r'|(?P<number>\b\d(?:\'?[0-9A-Za-z_.])*)'
    r'|(?P<text>"(?:\\.|[^"\\\n])*"?)'
    r"|(?P<char>'(?:\\.|[^'\\\n])+')",
    re.DOTALL,
)


def _blank(text):
    return re.sub(r'[^\n]', ' ', text)


def strip(source, keep_strings=False):
    """`source` with comments blanked and strings emptied; line numbers and columns stay the same."""

    def replace(match):
        if match.lastgroup == 'number':
            return match.group()
        if match.lastgroup == 'comment':
            return _blank(match.group())
        if keep_strings:
            return match.group()
        return '"' + _blank(match.group())[1:-1] + '"' if len(match.group()) > 1 else '"'

    return _LITERALS.sub(replace, source)


def comments(source):
    """[(line number, text)] of every paragraph of comment. Lines that follow each other are one paragraph."""
    found, end = [], 0
    for match in _LITERALS.finditer(source):
        if match.lastgroup != 'comment':
            continue
        line = source.count('\n', 0, match.start()) + 1
        text = re.sub(r'^/[/*]+<?|\*/$', '', match.group()).strip()
        between = source[end:match.start()] if found else 'x'
        goes_on = not between.strip() and between.count('\n') == 1
        if goes_on and text and found[-1][1]:
            found[-1] = (found[-1][0], found[-1][1] + ' ' + text)
        else:
            found.append((line, text))
        end = match.end()
    return [(line, text) for line, text in found if text]


def without_preprocessor(code):
    """Blanks directives with their continuation lines, and every branch of an #if but the first."""
    out, branches, continued = [], [], False
    for line in code.split('\n'):
        directive = re.match(r'\s*#\s*(\w+)', line)
        if continued or directive:
            if directive and not continued:
                word = directive.group(1)
                if word in ('if', 'ifdef', 'ifndef'):
                    branches.append(True)
                elif word in ('else', 'elif') and branches:
                    branches[-1] = False
                elif word == 'endif' and branches:
                    branches.pop()
            continued = line.rstrip().endswith('\\')
            out.append('')
        else:
            out.append(line if all(branches) else '')
    return '\n'.join(out)


def includes(source):
    """(line number, name, quoted) of every #include that is not commented out."""
    code = strip(source, keep_strings=True)
    for match in re.finditer(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', code, re.MULTILINE):
        yield code.count('\n', 0, match.start()) + 1, match.group(2), match.group(1) == '"'


_ATTRIBUTES = re.compile(
    r'\[\[.*?\]\]|\balignas\s*\([^()]*\)|__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)', re.DOTALL)
_SCOPE = re.compile(r'(?:inline\s+)?(?:namespace\b|extern\s*"[^"]*"\s*$)')
_TYPE = re.compile(r'(?:export\s+|typedef\s+|static\s+|constexpr\s+|inline\s+|const\s+)*(?:class|struct|union|enum)\b')
_AFTER_PARAMETERS = re.compile(
    r'\s*(?:(?:const|volatile|noexcept|override|final|mutable|constexpr|try|&&?)\s*)*'
    r'(?:->.*|requires\b.*|:(?!:).*)?$',
    re.DOTALL,
)
_INITIALISERS = re.compile(r'\)\s*(?:noexcept\s*(?:\(\s*\))?\s*)?(?:try\s*)?:(?!:)')


def _without_template(head):
    """Drops leading template<...> and requires clauses that stand between it and the declaration."""
    while True:
        head = head.lstrip()
        match = re.match(r'template\s*<', head)
        if not match:
            return head
        depth, at = 1, match.end()
        while at < len(head) and depth:
            # The arrow and comparisons inside a parameter list are rare enough to leave out; brackets decide.
            depth += {'<': 1, '>': -1}.get(head[at], 0) if head[at - 1:at + 1] != '->' else 0
            at += 1
        head = head[at:]


def _groups_end(head):
    """The ends of the outermost parenthesis groups of `head`."""
    depth, ends = 0, []
    for at, letter in enumerate(head):
        if letter == '(':
            depth += 1
        elif letter == ')':
            depth -= 1
            if depth == 0:
                ends.append(at + 1)
    return ends


def _without_macros(head):
    """Drops macro calls that stand before a declaration without a semicolon, such as BOOST_AUTO_TEST_SUITE(name)."""
    while re.match(r'\s*[A-Z][A-Z0-9_]{3,}\s*\(', head):
        ends = _groups_end(head)
        if not ends or not re.match(r'\s*\n\s*[\w\[]', head[ends[0]:]):
            break
        head = head[ends[0]:]
    return head.lstrip()


def _declaration(head):
    """The bare declaration before a brace: no macros ahead of it, no template<...>, no attributes."""
    return _without_template(_ATTRIBUTES.sub(' ', _without_macros(head))).strip()


def _kind(head):
    """'scope', 'type', 'function' or 'value': what a brace after `head` opens, outside any function."""
    plain = _declaration(head)
    if not plain or _SCOPE.match(plain):
        return 'scope'
    if _TYPE.match(plain) and not re.search(r'\)\s*(?:const\s*)?(?:noexcept\s*)?$', plain):
        return 'type'
    if re.search(r'=\s*\[[^\]]*\]$', plain):
        return 'function'  # a lambda without parameters
    return 'function' if any(_AFTER_PARAMETERS.match(plain[end:]) for end in _groups_end(plain)) else 'value'


def _name(head):
    plain = _declaration(head)
    lambda_name = re.match(r'(?:[\w:<>*&]+\s+)*(\w+)\s*=\s*\[', plain)
    if lambda_name:
        return lambda_name.group(1)
    macro = re.match(r'([A-Z][A-Z0-9_]+)\s*\(\s*([\w:]+)', plain)
    if macro:
        return f'{macro.group(1)}({macro.group(2)})'
    found = re.search(r'((?:\w+(?:<[^()]*>)?::)*(?:operator\s*(?:\(\s*\)|[^\s(]+)|~?\w+))\s*\(', plain)
    return found.group(1) if found else 'function'


class _Scanner:
    """One pass over stripped code. The stack holds what each open brace started."""

    def __init__(self, code):
        self.code = code
        self.stack = []  # (kind, head, where the head starts, parentheses open around it)
        self.head_start = 0
        self.parens = 0
        self.found = []

    def inside_function(self):
        return any(entry[0] == 'function' for entry in self.stack)

    def open(self, at):
        head = self.code[self.head_start:at]
        if self.inside_function() or self.parens:
            kind = 'value'
        elif _INITIALISERS.search(head) and re.search(r'[\w>]\s*$', head):
            kind = 'value'  # Name() : member_{...}
        else:
            kind = _kind(head)
        self.stack.append((kind, head, self.head_start, self.parens))
        self.parens = 0
        if kind != 'value':
            self.head_start = at + 1

    def close(self, at):
        if not self.stack:
            self.head_start = at + 1
            return
        kind, head, start, self.parens = self.stack.pop()
        if kind == 'value':
            return
        if kind == 'function':
            first = start + len(head) - len(_without_macros(head))
            line = self.code.count('\n', 0, first) + 1
            self.found.append(Function(_name(head), line, self.code.count('\n', first, at) + 1))
        self.head_start = at + 1

    def run(self):
        for at, letter in enumerate(self.code):
            if letter == '{':
                self.open(at)
            elif letter == '}':
                self.close(at)
            elif letter == '(':
                self.parens += 1
            elif letter == ')':
                self.parens = max(0, self.parens - 1)
            elif letter == ';' and not self.parens and not self.inside_value():
                self.head_start = at + 1
            elif letter == ':' and self.is_access_label(at):
                self.head_start = at + 1
        return self.found

    def inside_value(self):
        return bool(self.stack) and self.stack[-1][0] == 'value'

    def is_access_label(self, at):
        return bool(re.fullmatch(r'\s*(?:public|private|protected)\s*', self.code[self.head_start:at]))


def functions(source):
    """Every function with a body, in order of their ends. Lambdas and local types count with what holds them."""
    return _Scanner(without_preprocessor(strip(source))).run()
