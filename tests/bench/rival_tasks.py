"""The tasks of rivals.py: a model, its optimizer, the batches of a peer, and a test loss that is alike for all ways."""
import pathlib

import torch
from torch import nn

from torch_data import fashion
from torch_speed import gpt


class Pictures:
    """An MLP on Fashion-MNIST, SGD. Tested with 2,000 pictures, which takes some milliseconds."""
    batch, test_rows, evaluate_every, alone_steps = 32, 2000, 0.5, 300
    optimizer = torch.optim.SGD

    def __init__(self, job):
        self.name, self.width = f'MLP of width {job.width}', job.width
        self.images, self.labels = fashion('train')
        self.test = [part[:self.test_rows] for part in fashion('t10k')]

    def net(self):
        return nn.Sequential(nn.Linear(784, self.width), nn.ReLU(), nn.Linear(self.width, self.width), nn.ReLU(),
                             nn.Linear(self.width, 10))

    def loss(self, net):
        """Of a batch that is drawn at random."""
        rows = torch.randint(0, len(self.images), (self.batch,))
        return nn.functional.cross_entropy(net(self.images[rows]), self.labels[rows])

    def test_loss(self, net):
        with torch.no_grad():
            return nn.functional.cross_entropy(net(self.test[0]), self.test[1]).item()


class Text:
    """A GPT of 6 layers of width 384 (10.8 million parameters) on the bytes of a file, Adam.

    Rows of 64 bytes; the last tenth of the file is held out, and 32 rows spread over it are the test: nats a byte."""
    batch, test_rows, context, evaluate_every, alone_steps = 8, 32, 64, 10, 10
    optimizer = torch.optim.Adam
    shape = 6, 6, 384  # layers, heads, width

    def __init__(self, job):
        self.name = f'GPT 6 x 384 on {pathlib.Path(job.text).name}'
        self.bytes = torch.frombuffer(bytearray(pathlib.Path(job.text).read_bytes()), dtype=torch.uint8).long()
        self.trained = len(self.bytes) * 9 // 10
        held_out = len(self.bytes) - self.trained - self.context - 1
        if held_out < self.test_rows:
            raise SystemExit(f'{job.text} has {len(self.bytes)} bytes; --text needs a text of some 1,000 or more')
        self.test = self.trained + torch.arange(self.test_rows) * (held_out // self.test_rows)

    def net(self):
        net = gpt(*self.shape, self.context)(nn)
        for name, parameter in net.named_parameters():  # as GPT-2 begins
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.02)
            elif name.endswith('bias'):
                nn.init.zeros_(parameter)
        return net

    def _loss(self, net, begins):
        rows = self.bytes[begins[:, None] + torch.arange(self.context + 1)]
        return nn.functional.cross_entropy(net(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())

    def loss(self, net):
        return self._loss(net, torch.randint(0, self.trained - self.context, (self.batch,)))

    def test_loss(self, net):
        with torch.no_grad():
            return self._loss(net, self.test).item()


def make_task(job):
    """The GPT where the job names a text, else the MLP."""
    return Text(job) if job.text else Pictures(job)


def make_net(task):
    """The same weights in every process."""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    return task.net()
