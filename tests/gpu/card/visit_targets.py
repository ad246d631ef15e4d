"""What the GPU's half is to reach, beside what a visit found there."""

# What AdamW by itself moves, bytes a parameter: gradient, weights and two moments read, all but the gradient written.
ADAMW_BYTES = 28
LOSS_DIFFERENCE_MAX = 1e-3


def targets(visit):
    """One row a target that a visit says something of: what it is, at least or at most what, found, met."""
    bench, steps = visit.get('bench', {}), visit['steps']
    rows = []

    def row(what, found, least=None, most=None):
        met = found >= least if least is not None else found <= most
        rows.append({'what': what, 'found': found, **({'least': least} if least is not None else {'most': most}),
                     'met': met})

    passes, codec, gpt, muon, kernels = (bench.get(part) for part in ('passes', 'codec', 'gpt2', 'muon', 'kernels'))
    for one in passes['passes'] if passes else ():
        row(f'pass over {one["params"]} parameters, of the speed of a copy', one['scan_share_of_copy'], least=0.8)
        row(f'with selection, in such passes, {one["params"]} parameters', one['scan_select_emit_passes'], most=1.3)
    for what, most in (('encode', 3e-4), ('decode', 3e-4), ('apply', 1e-4)) if codec else ():
        row(f'{what} an update of {codec["params"]} parameters, seconds', codec[f'{what}_s'], most=most)
    if gpt and passes:
        step = gpt['repeated_s'] + gpt['optimizer_and_update_s']
        optimizer = ADAMW_BYTES * passes['passes'][0]['params'] / passes['copy_bytes_per_second']
        row('what gossip adds to a step of GPT-2, of the step', (gpt['optimizer_and_update_s'] - optimizer) / step,
            most=0.02)
    if gpt and kernels:
        row('loss and gradient of GPT-2, of the speed of its widest product',
            gpt['operations_per_second'] / kernels['products_per_second']['bf16'], least=0.5)
    if gpt and muon:
        row("Muon's step of GPT-2, of loss and gradient", muon['repeated_s'] / gpt['repeated_s'], most=0.5)
    if 'speed' in steps.get('torch speed', {}):
        row("GPT-2's tokens a second, in PyTorch's", steps['torch speed']['speed'], least=1.0)
    if steps.get('torch losses', {}).get('result'):
        row("the first losses of GPT-2 in float32, off from PyTorch's",
            steps['torch losses']['result']['largest_difference'], most=LOSS_DIFFERENCE_MAX)
    return rows


def told(rows):
    """As lines for people."""
    for row in rows:
        bound = f'at least {row["least"]:g}' if 'least' in row else f'at most {row["most"]:g}'
        yield f'{"met" if row["met"] else "MISSED":7}{row["found"]:<12.4g}{bound:17}{row["what"]}'
