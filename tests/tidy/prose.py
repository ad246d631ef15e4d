"""The ratchet for prose: long sentences and dead paths in pages, banned words, comments that begin with a fragment.

COUNTS is the one table. Each number is today's count and may only fall: a change that lowers a count lowers its number.
`tests/tidy.py --counts` prints the table as it should be now. A page or folder that the table lacks is held to zero.
"""

import posixpath
import re

import cpp_scan
from complaint import Complaint

WORDS_MAX = 40  # in one sentence of a page

# (word, the word of the field). The glossary in ARCHITECTURE.md says more. Files of this folder are not checked.
BANNED = [
    (re.compile(r'\b[Mm]end(?:s|ed|ing)?\b'), 'fix, remedy'),
    (re.compile(r'\b[Ff]oret(?:ell|old)\w*'), 'predict'),
    (re.compile(r'\b[Ss](?:tands?|tood) back\b'), 'run at a lower priority'),
    (re.compile(r'\b[Ff]or who\b'), 'for whoever, for the one who'),
    (re.compile(r'\b[Ss]ettl(?:e|ed|es|ing)\b'), 'apply, finish or normalize'),
]
# A line of a code block that runs a script of the tree.
COMMAND = re.compile(r'^(?:\w+=\S+ )*(?:python3 )?((?:tests|tools|runtime)/[\w.-]+(?:/[\w.-]+)*)', re.MULTILINE)
FRAGMENT = re.compile(r'(?:What|Who|Of)\b')  # as the first word of a comment

# (rule, folder or page): how many there are.
COUNTS = {
    ('long-sentence', 'compress/ADAPT.md'): 2,
    ('long-sentence', 'compress/FORMAT.md'): 1,
}

RULES = {
    'long-sentence': f'sentences of more than {WORDS_MAX} words',
    'banned-word': 'words that the glossary replaces',
    'comment-fragment': 'comments that begin with What, Who or Of',
    'dead-path': 'paths that do not exist',
}


def paragraphs(text):
    """[(line number, text)] of a page: its paragraphs and list items, without code, tables and headings."""
    found, open_lines, start, fenced = [], [], 1, False
    for number, line in enumerate(text.split('\n') + [''], 1):
        is_fence = line.lstrip().startswith('```')
        fenced ^= is_fence
        skipped = fenced or is_fence or not line.strip() or line.lstrip().startswith(('|', '#', '<'))
        item = re.match(r'\s*(?:[-*]|\d+\.)\s+', line)
        if (skipped or item) and open_lines:
            found.append((start, ' '.join(open_lines)))
            open_lines = []
        if not skipped:
            start = start if open_lines else number
            open_lines.append(line[item.end():] if item else line.strip())
    return found


def sentences(text):
    """[(line of its paragraph, words)] of a page. Code in a line counts as one word, a link's address as none."""
    found = []
    for number, paragraph in paragraphs(text):
        plain = re.sub(r'`[^`]*`', 'Code', paragraph)
        plain = re.sub(r'\[([^\]]*)\]\([^)]*\)', r'\1', plain).replace('*', '')
        for sentence in re.split(r'(?<=[.!?])[)"\']*\s+(?=[A-Z("\d])', plain):
            found.append((number, [word for word in sentence.split() if re.search(r'\w', word)]))
    return found


def long_sentences(text):
    """[(line, its first words)]"""
    return [(line, ' '.join(words[:6])) for line, words in sentences(text) if len(words) > WORDS_MAX]


def dead_paths(path, text, exists):
    """[(line, path)] that a page links to, names from the repository root or runs, and that are not there."""
    fence = re.compile(r'^```.*?^```$', re.MULTILINE | re.DOTALL)
    prose = fence.sub(lambda match: '\n' * match.group().count('\n'), text)
    found = [(text.count('\n', 0, match.start()) + 1, match.group(1)) for match in COMMAND.finditer(text)
             if not exists(match.group(1))]
    for match in re.finditer(r'`([\w.-]+(?:/[\w.-]+)+)/?`|\]\((?![a-z]+:)([^)#\s]+)', prose):
        named, link = match.groups()
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), link)) if link else named
        if (link or exists(named.split('/')[0])) and not exists(target):
            found.append((prose.count('\n', 0, match.start()) + 1, target))
    return found


def banned_words(text):
    """[(line, word and what to write)]"""
    return [(text.count('\n', 0, match.start()) + 1, f'"{match.group()}": {instead}')
            for pattern, instead in BANNED for match in pattern.finditer(text)]


def fragments(text):
    """[(line, its first words)] of comments that begin with a fragment."""
    return [(line, ' '.join(comment.split()[:6])) for line, comment in cpp_scan.comments(text)
            if FRAGMENT.match(comment)]


def places(texts, code, exists):
    """{(rule, page or top folder): [(path, line, text)]}"""
    found = {}
    for path in sorted(texts):
        if path.startswith('tests/tidy/'):
            continue
        folder = path.split('/')[0] if '/' in path else 'root'
        page = path.endswith('.md')
        seen = {('banned-word', folder): banned_words(texts[path])}
        if page:
            seen['long-sentence', path] = long_sentences(texts[path])
            seen['dead-path', path] = dead_paths(path, texts[path], exists)
        if path.endswith(code):
            seen['comment-fragment', folder] = fragments(texts[path])
        for key, those in seen.items():
            found.setdefault(key, []).extend((path, line, text) for line, text in those)
    return found


def check(texts, code, exists, counts=None):
    """A complaint for each page or folder that has more of something than the table says."""
    counts = COUNTS if counts is None else counts
    for (rule, where), found in places(texts, code, exists).items():
        most = counts.get((rule, where), 0)
        if len(found) > most:
            shown = '; '.join(f'{path}:{line} {text}' for path, line, text in found[:20])
            text = f'{where} has {len(found)} {RULES[rule]}; tests/tidy/prose.py allows {most}: {shown}'
            yield Complaint(found[0][0], found[0][1], rule, text)


def table(texts, code, exists):
    """COUNTS as it should be for this tree. `exists(path)` tells whether a file or folder is there."""
    rows = sorted((key, len(found)) for key, found in places(texts, code, exists).items() if found)
    return 'COUNTS = {\n' + ''.join(f'    {key!r}: {count},\n' for key, count in rows) + '}'
