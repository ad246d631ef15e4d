"""Ranks: the processes of one peer. DistributedDataParallel trains in several; the first of them is the peer."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

if TYPE_CHECKING:
    import torch


class Ranks:
    """Does what only the peer's process can do there, and gives the others what came of it. One process: no cost."""

    def __init__(self, model: torch.nn.Module):
        import torch
        wrapped = isinstance(model, torch.nn.parallel.DistributedDataParallel)
        group: Any = model.process_group if wrapped else None
        self._group = group
        self.count = torch.distributed.get_world_size(group) if wrapped else 1
        self.is_peer = not wrapped or torch.distributed.get_rank(group) == 0
        self._first = (torch.distributed.get_global_rank(group, 0)
                       if wrapped and hasattr(torch.distributed, 'get_global_rank') else 0)

    def all_do(self, action: Callable[[], Any]) -> Any:
        """The result of action() in the peer's process, in all of them; an exception there is raised everywhere."""
        if self.count == 1:
            return action()
        import torch
        box: list[Any] = [None, None]
        if self.is_peer:
            try:
                box[0] = action()
            except Exception as error:  # pylint: disable=broad-except
                box[1] = error
        torch.distributed.broadcast_object_list(box, self._first, self._group)
        if box[1] is not None:
            raise box[1]
        return box[0]

    def share(self, tensors: list[torch.Tensor]) -> None:
        """Gives all processes the values of the peer's process."""
        if self.count == 1:
            return
        import torch
        with torch.no_grad():
            for tensor in tensors:
                torch.distributed.broadcast(tensor.detach(), self._first, self._group)
