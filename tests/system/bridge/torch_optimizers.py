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


class NewMasters(torch.optim.SGD):
    """The same, but each step makes new tensors for them."""
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group['params']:
                self.state[p]['master'] = self.state[p].get('master', p.detach().clone()) - group['lr'] * p.grad
                p.data.copy_(self.state[p]['master'])


class HiddenMasters(torch.optim.SGD):
    """Keeps them where nobody looks."""
    masters = None

    def step(self, closure=None):
        super().step()
        parameters = [p for group in self.param_groups for p in group['params']]
        self.masters = self.masters or [p.detach().clone() for p in parameters]
        for p, master in zip(parameters, self.masters):
            master.sub_(p.grad, alpha=self.param_groups[0]['lr'])
            p.data.copy_(master)


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


class Madgrad(torch.optim.SGD):
    """Defazio and Jelassi, JMLR 2022, without its roots: the parameter follows a sum of gradients from its start."""
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group['params']:
                start = self.state[p].setdefault('x0', p.detach().clone())
                gradients = self.state[p].setdefault('s', torch.zeros_like(p)).add_(p.grad)
                p.data.lerp_(start - group['lr'] * gradients, 0.1)


class Distances(torch.optim.SGD):
    """Keeps the start to measure distances from it, as Prodigy does (Mishchenko and Defazio, ICML 2024)."""
    def step(self, closure=None):
        super().step()
        for group in self.param_groups:
            for p in group['params']:
                self.state[p].setdefault('p0', p.detach().clone())


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


class HiddenLookahead(torch.optim.SGD):
    """Lookahead with its slow weights where nobody looks, as in a loop written by hand."""
    steps, slow = 0, None

    def step(self, closure=None):
        super().step()
        self.steps += 1
        parameters = [p.data for group in self.param_groups for p in group['params']]
        self.slow = self.slow or [p.clone() for p in parameters]
        for p, slow in zip(parameters, self.slow if self.steps % 5 == 0 else ()):
            p.copy_(slow.lerp_(p, 0.5))


def optimizers_with_weights_of_their_own():
    """Two peers, each of which sees half of the inputs: helped where the weights are found or told of, else warned."""
    for kind, told, warned in ((torch.optim.SGD, False, False), (torch.optim.Adam, False, False),
                               (torch.optim.Adam, True, False), (Distances, False, False),
                               (Masters, False, False), (Masters, True, False), (NewMasters, False, False),
                               (HiddenMasters, False, True), (GroupMasters, False, True), (GroupMasters, True, False),
                               (Lookahead, False, False), (Lookahead, True, False), (HiddenLookahead, False, True),
                               (ScheduleFree, False, False), (ScheduleFree, True, False), (Madgrad, False, False)):
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
        assert any(text in said for text in ('writes weights of its own', 'older weights')) == warned, (kind, said)
        for swarm in swarms:
            swarm.leave(0.5)
        for me in range(2):  # each has learned what only the other has seen; it began at 0.5
            inputs, targets = batch(1 - me)
            loss = ((models[me](inputs) - targets) ** 2).mean().item()
            assert warned or loss < 0.35, (kind, told, me, loss)
        if kind is Distances:
            p0 = [optimizer.state[model.weight]['p0'] for model, optimizer in zip(models, optimizers)]
            assert (p0[0] - p0[1]).abs().max() < 0.1, 'a start has moved'


def copies_of_weights_hold_nobody_back():
    """One peer trains. The other's optimizer has a rate of next to nothing and can only pull back what came."""
    def loss_with(kind, told):
        torch.manual_seed(3)
        models = [nn.Linear(64, 64), nn.Linear(64, 64)]
        models[1].load_state_dict(models[0].state_dict())
        optimizers = [torch.optim.SGD(models[0].parameters(), 0.3), kind(models[1].parameters(), 1e-4)]
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
    for kind, told in ((Lookahead, True), (Lookahead, False), (ScheduleFree, True), (ScheduleFree, False),
                       (GroupMasters, True)):
        loss, warned = loss_with(kind, told)
        assert loss < 1.15 * plain and not warned, (kind, told, loss, plain)
    loss, warned = loss_with(GroupMasters, False)
    assert loss > 1.4 * plain and warned, (loss, plain)
