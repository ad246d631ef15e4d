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


class GroupMasters(torch.optim.SGD):
    """As apex O2: what the optimizer has for parameters are float copies of the model's."""
    def __init__(self, parameters, lr):
        self.model = list(parameters)
        super().__init__([p.detach().float().clone() for p in self.model], lr)

    def zero_grad(self, set_to_none=True):
        for p in self.model:
            p.grad = None

    def step(self, closure=None):
        masters = self.param_groups[0]['params']
        for p, master in zip(self.model, masters):
            master.grad = p.grad.float()
        super().step()
        for p, master in zip(self.model, masters):
            p.data.copy_(master)


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
                               (GroupMasters, False, True), (GroupMasters, True, False),
                               (Lookahead, True, False), (ScheduleFree, True, False)):
        torch.manual_seed(3)
        dtype = torch.bfloat16 if kind is GroupMasters else torch.float32
        models = [nn.Linear(64, 64).to(dtype), nn.Linear(64, 64).to(dtype)]
        models[1].load_state_dict(models[0].state_dict())
        optimizers = [kind(model.parameters(), 0.003 if kind is torch.optim.Adam else 0.3) for model in models]
        port = f'127.0.0.1:{free_port()}'
        goal = (torch.randn(64, 64) / 8).to(dtype)

        def batch(half, goal=goal):
            inputs = torch.randn(16, 64).to(goal.dtype)
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


def copies_of_weights_hold_nobody_back():
    """One peer trains. The other's optimizer has a rate of 0 and can only pull back what came."""
    def loss_with(kind, told):
        torch.manual_seed(3)
        models = [nn.Linear(64, 64), nn.Linear(64, 64)]
        models[1].load_state_dict(models[0].state_dict())
        optimizers = [torch.optim.SGD(models[0].parameters(), 0.3), kind(models[1].parameters(), 0.0)]
        port = f'127.0.0.1:{free_port()}'
        goal = torch.randn(64, 64) / 8

        def batch():
            inputs = torch.randn(16, 64)
            return inputs, inputs @ goal
        swarms = [rumor.join('follows', models[0], listen=port, density=0.1, options=FAST),
                  rumor.join('follows', models[1], seeds=port, density=0.1, options=FAST,
                             optimizer=optimizers[1] if told else None)]
        said = ''
        for _ in range(100):
            for model, optimizer, swarm in zip(models, optimizers, swarms):
                said += train(model, optimizer, batch, 2, swarm)[1]
        for swarm in swarms:
            swarm.leave(0.5)
        inputs, targets = batch()
        return ((models[0](inputs) - targets) ** 2).mean().item(), 'writes weights of its own' in said

    plain, _ = loss_with(torch.optim.SGD, False)
    for kind in (Lookahead, ScheduleFree, GroupMasters):
        (loss, warned), (untold, warned_untold) = loss_with(kind, True), loss_with(kind, False)
        assert loss < 1.15 * plain and not warned, (kind, loss, plain)
        assert untold > 1.4 * plain and warned_untold, (kind, untold, plain)
