"""Optimizers that write weights of their own over the parameters: warned of, or helped by join(optimizer=)."""
import rumor
import torch
from torch import nn

from torch_case import FAST, free_port, train


class Masters(torch.optim.SGD):
    """As those that keep float masters of half-precision weights."""
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group['params']:
                self.state[p].setdefault('master', p.detach().clone())
                self.state[p].setdefault('moment', torch.zeros_like(p)).mul_(0.5).add_(p.grad)
                self.state[p]['master'].add_(self.state[p]['moment'], alpha=-group['lr'])
                p.data.copy_(self.state[p]['master'])


class ScheduleFree(torch.optim.SGD):
    """Defazio and others, NeurIPS 2024, plain steps: the parameter is y, between z and the mean x of all z."""
    steps = 0

    def step(self, closure=None):
        self.steps += 1
        for group in self.param_groups:
            for p in group['params']:
                z = self.state[p].setdefault('z', p.detach().clone())
                share = 1 / self.steps
                p.data.lerp_(z, share)
                p.data.add_(p.grad, alpha=group['lr'] * (0.9 * (1 - share) - 1))
                z.sub_(p.grad, alpha=group['lr'])

class Lookahead(torch.optim.SGD):
    """Zhang, Lucas, Hinton, Ba, NeurIPS 2019: after five steps halfway back to the slow weights."""
    steps = 0

    def step(self, closure=None):
        super().step()
        self.steps += 1
        for group in self.param_groups:
            for p in group['params']:
                slow = self.state[p].setdefault('slow', p.detach().clone())
                if self.steps % 5 == 0:
                    slow.lerp_(p.detach(), 0.5)
                    p.data.copy_(slow)


def optimizers_with_weights_of_their_own():
    """Two peers, each of which sees half of the inputs: warned of, or as good as without if join() knows of it."""
    for kind, told, warned in ((Masters, False, True), (Masters, True, False), (torch.optim.SGD, False, False),
                               (torch.optim.Adam, False, False), (torch.optim.Adam, True, False),
                               (Lookahead, True, False), (ScheduleFree, True, False)):
        torch.manual_seed(3)
        models = [nn.Linear(64, 64), nn.Linear(64, 64)]
        models[1].load_state_dict(models[0].state_dict())
        optimizers = [kind(model.parameters(), 0.003 if kind is torch.optim.Adam else 0.3) for model in models]
        port = f'127.0.0.1:{free_port()}'
        goal = torch.randn(64, 64) / 8

        def batch(half, goal=goal):
            inputs = torch.randn(16, 64)
            inputs[:, half * 32:half * 32 + 32] = 0
            return inputs, inputs @ goal
        swarms = [rumor.join('masters', model, listen=port if me == 0 else None, seeds=port if me == 1 else (),
                             density=0.1, options=FAST, optimizer=optimizers[me] if told else None)
                  for me, model in enumerate(models)]
        said = ''
        for _ in range(40):
            for me in range(2):
                said += train(models[me], optimizers[me], lambda half=me: batch(half), 5, swarms[me])[1]
        assert ('writes weights of its own' in said) == warned, (kind, said)
        for swarm in swarms:
            swarm.leave(0.5)
        for me in range(2):  # each has learned what only the other has seen; it began at 0.5
            inputs, targets = batch(1 - me)
            loss = ((models[me](inputs) - targets) ** 2).mean().item()
            assert warned or loss < 0.35, (kind, told, me, loss)
