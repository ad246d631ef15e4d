"""The course of a visit (tests/gpu/visit): which steps there are, what runs beside what, and what is kept of each."""
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import time

from visit_targets import LOSS_DIFFERENCE_MAX, targets

SKIPPED = 77
SIDE_BY_SIDE = 8  # processes on the GPU, while nothing is timed
GPT2, BILLION = 124_439_808, 1_000_000_000
# Suites that want the GPU's whole memory: after the others.
ALONE = ('gpu_limit',)
# Sanitizers make kernels tens of times slower: every slot, and of the rest what is small.
SANITIZED = ('gpu_scan', 'gpu_codec/the_slots*:gpu_codec/random*:gpu_codec/apply*',
             'gpu_compressor/one_parameter:gpu_compressor/steps_of*:gpu_device_replica/all*:gpu_device_replica/entries*'
             ':gpu_range_guard/the_mark*:gpu_range_guard/an_update*', 'gpu_model_kernels:gpu_bf16_kernels',
             'gpu_picture_kernels:gpu_optimizer_kernels', 'gpu_llama_kernels', 'gpu_attention', 'gpu_matmul')
TOOLS = ('memcheck', 'racecheck', 'synccheck')
PARTS = ('passes', 'codec', 'arrival', 'kernels', 'gpt2', 'llama', 'muon', 'mlp', 'several_gpus')


def python_with_torch():
    for python in (sys.executable, 'python3', '/usr/bin/python3'):
        if shutil.which(python) and not subprocess.run([python, '-c', 'import torch'], capture_output=True,
                                                       check=False).returncode:
            return python
    return None


def last_object(output):
    """The last line that is a JSON object; None if there is none."""
    for line in reversed(output.splitlines()):
        if line.startswith(('{', '"')):
            try:
                return json.loads(line)
            except json.JSONDecodeError:
                pass
    return None


def as_text(result):
    """As JSON, with a line for each step, part and target."""
    members = []
    for name, value in result.items():
        if isinstance(value, dict):
            lines = [f'{json.dumps(key)}: {json.dumps(one)}' for key, one in value.items()]
            value = '{\n  ' + ',\n  '.join(lines) + '\n }'
        elif isinstance(value, list):
            value = '[\n  ' + ',\n  '.join(json.dumps(one) for one in value) + '\n ]'
        else:
            value = json.dumps(value)
        members.append(f' {json.dumps(name)}: {value}')
    return '{\n' + ',\n'.join(members) + '\n}\n'


class Visit:
    """One visit. `files` says where each program lies; `kept` receives all that is known after every step."""

    def __init__(self, files, companions, seconds, kept=None, emulated=False, path=None):
        self.files, self.companions, self.kept, self.emulated = files, companions, kept, emulated
        self.began = time.monotonic()
        self.end = self.began + seconds
        self.lock = threading.Lock()
        self.environment = dict(os.environ, RUMOR_CUDA=str(files['librumor_cuda.so']))
        self.environment.setdefault('CUDA_MODULE_LOADING', 'EAGER')  # a kernel that does not load is found at once
        if path is not None:
            self.environment['PATH'] = path
        folder = files['test_gpu'].parent
        if files['rumor'].parent == folder:  # packed: libraries lie beside the programs
            self.environment['LD_LIBRARY_PATH'] = os.pathsep.join(
                [str(folder)] + os.environ.get('LD_LIBRARY_PATH', '').split(os.pathsep)).rstrip(os.pathsep)
        if not emulated:
            self.environment['RUMOR_GPU_TEST'] = 'device'
        self.result = {'gpu': None, 'skipped': None, 'complete': False, 'seconds': 0, 'steps': {}}

    def run(self, name, command, seconds_max, environment=None):
        """Runs one step within what is left of the visit; notes how it went and returns (status, output)."""
        seconds = min(seconds_max, self.end - time.monotonic())
        began, output = time.monotonic(), ''
        if seconds < 1:
            status = 'timeout'
        else:
            try:
                done = subprocess.run([str(word) for word in command], env=environment or self.environment,
                                      timeout=seconds, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
                output = done.stdout.decode(errors='replace')
                status = {0: 'passed', SKIPPED: 'skipped'}.get(done.returncode, 'failed')
                if status == 'failed':
                    output += f'\nexit status {done.returncode}'
            except subprocess.TimeoutExpired as late:
                output, status = (late.stdout or b'').decode(errors='replace'), 'timeout'
            except OSError as error:
                output, status = str(error), 'failed'
        seconds = round(time.monotonic() - began, 3)
        step = {'status': status, 'seconds': seconds}
        if status != 'passed':
            step['said'] = output[-4000:]
        self.note(name, step)
        print(f'{name}: {status} in {seconds} s', file=sys.stderr, flush=True)
        return status, output

    def note(self, name, step):
        with self.lock:
            self.result['steps'][name] = step
            self.keep()

    def keep(self):
        self.result['seconds'] = round(time.monotonic() - self.began, 3)
        if self.kept:
            self.kept.write_text(as_text(self.result))

    def step(self, name):
        return self.result['steps'].get(name, {})

    # ---- correctness

    def suites(self):
        """The suites of test_gpu, and its first line; None where there is no GPU."""
        status, output = self.run('there', [self.files['test_gpu'], '--list_content'], 60)
        if status != 'passed':
            return None, output
        named = re.search(r'test_gpu: (?:ON THE GPU|kernels) (.+)', output)
        self.result['gpu'] = named.group(1) if named else '?'
        return re.findall(r'^(gpu_\w+)\*', output, re.M), output

    def suite(self, name):
        _, output = self.run(f'correctness {name}', [self.files['test_gpu'], f'--run_test={name}'], 100)
        self.step(f'correctness {name}')['failures'] = sorted(set(re.findall(r'error: in "([^"]+)"', output)))

    def sanitize(self, tool, tests):
        name = f'{tool} {tests.split("/")[0].split(":")[0]}'
        places = self.environment['PATH'].split(os.pathsep) + ([] if self.emulated else ['/usr/local/cuda/bin'])
        program = shutil.which('compute-sanitizer', path=os.pathsep.join(places))
        if program is None:
            self.note(name, {'status': 'skipped', 'seconds': 0, 'said': 'no compute-sanitizer here'})
            return
        _, output = self.run(name, [program, '--tool', tool, '--error-exitcode', '1', self.files['test_gpu'],
                                    f'--run_test={tests}'], 150)
        # racecheck says how many hazards, the others how many errors.
        found = re.findall(r'(?:ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard)', output)
        step = self.step(name)
        step['errors'] = sum(int(number) for pair in found for number in pair if number) if found else None
        if step['status'] == 'passed' and step['errors'] != 0:
            step['status'] = 'failed'

    def peers(self):
        """A peer on the GPU and one on the processor, with equal digests."""
        if self.emulated:
            self.note('peers', {'status': 'skipped', 'seconds': 0, 'said': 'tests/system/gpu_peer.py'})
        else:
            self.run('peers', [sys.executable, self.companions['gpu_peer.py'], self.files['rumor']], 140)

    def losses(self, python, file):
        """The first losses here and with PyTorch; PyTorch also compiles its step, for the times later."""
        words = ['--emulated'] if self.emulated else []
        if self.run('losses', [self.files['bench_gpu'], *words, '--losses', file], 60)[0] != 'passed':
            return
        command = [python, self.companions['torch_gpt.py'], file, '--seconds', '0']
        status, output = self.run('torch losses', command, 150, os.environ)
        step = self.step('torch losses')
        step['result'] = last_object(output)
        if status == 'passed' and not step['result']['largest_difference'] < LOSS_DIFFERENCE_MAX:
            step['status'] = 'failed'

    def side_by_side(self, jobs):
        with concurrent.futures.ThreadPoolExecutor(min(SIDE_BY_SIDE, 2 * (os.cpu_count() or 1))) as pool:
            for one in [pool.submit(*job) for job in jobs]:
                one.result()

    def correctness(self, suites, python, file):
        jobs = [(self.losses, python, file)] if python else []
        jobs += [(self.peers,)] + [(self.suite, name) for name in suites if name not in ALONE]
        self.side_by_side(jobs)
        for name in suites:
            if name in ALONE:
                self.suite(name)

    # ---- speed: one process at a time

    def bench(self):
        words = ['--emulated'] if self.emulated else []
        sizes = [60_000, 9_000] if self.emulated else [GPT2, BILLION]
        self.result['bench'] = {}
        for part in PARTS:
            needs = sizes if part in ('passes', 'codec', 'arrival') else []
            status, output = self.run(f'bench {part}', [self.files['bench_gpu'], *words, part, *needs], 60)
            if status == 'passed':
                self.result['bench'][part] = last_object(output)

    def torch_speed(self, python, file):
        status, output = self.run('torch speed', [python, self.companions['torch_gpt.py'], file, '--only-speed'], 100,
                                  os.environ)
        if status != 'passed':
            return
        found = self.step('torch speed')['result'] = last_object(output)
        own = self.result['bench'].get('gpt2') or {}
        if 'tokens_per_second' in own:
            self.step('torch speed')['speed'] = own['tokens_per_second'] / found['tokens_per_second']

    def go(self, folder):
        """All steps. Returns the exit status."""
        absent = [str(path) for path in self.files.values() if not path.is_file() and not self.emulated]
        if absent:
            self.result['skipped'] = 'not built: ' + ', '.join(absent)
            print(f'visit: {self.result["skipped"]}', file=sys.stderr)
            return self.finish(1)
        suites, said = self.suites()
        if suites is None:
            self.result['skipped'] = said.strip()
            print(f'visit: no GPU here: {said.strip()}', file=sys.stderr)
            return self.finish(SKIPPED if self.step('there')['status'] == 'skipped' else 1)
        python, file = python_with_torch(), pathlib.Path(folder) / 'gpt.safetensors'
        if python is None:
            self.note('torch losses', {'status': 'skipped', 'seconds': 0, 'said': 'no PyTorch here'})
        self.correctness(suites, python, file)
        self.bench()
        if python and file.is_file():
            self.torch_speed(python, file)
        self.side_by_side([(self.sanitize, tool, tests) for tool in TOOLS for tests in SANITIZED])
        self.result['complete'] = True
        good = all(step['status'] in ('passed', 'skipped') for step in self.result['steps'].values())
        return self.finish(0 if good else 1)

    def finish(self, status):
        self.result['targets'] = targets(self.result)
        self.keep()
        return status
