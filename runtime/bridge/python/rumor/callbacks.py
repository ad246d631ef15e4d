"""Callbacks for frameworks that run the training loop: Lightning and Hugging Face's Trainer.

Each function imports its framework when it is called, so the package requires neither."""
from __future__ import annotations

import functools
from typing import Any

from .joining import join
from .swarm import Swarm


def _rows_of(batch: Any) -> int:
    """The rows of a batch: the length of the first tensor in it; 0 if there is none."""
    if hasattr(batch, 'shape'):
        return int(batch.shape[0]) if len(batch.shape) > 0 else 1
    parts = batch.values() if hasattr(batch, 'values') else batch if isinstance(batch, (list, tuple)) else ()
    return next((rows for rows in map(_rows_of, parts) if rows > 0), 0)


def _with_steps(options: dict[str, Any], steps: float) -> dict[str, Any]:
    """Tells join() how long the framework will train, for its density, unless its caller has said so."""
    if 'until_samples' in options or not 0 < steps < float('inf'):
        return options
    return {**options, 'options': {'steps': int(steps), **(options.get('options') or {})}}


def lightning_callback(run: str, **options: Any) -> Any:
    """Makes a lightning.pytorch.Callback: Trainer(callbacks=[rumor.lightning_callback('my-run', seeds=[...])]).

    Takes the arguments of join() except the model. Without batch_size it counts the rows of the batches. An exception
    in fit(), Ctrl-C too, ends the peer at once."""
    try:
        from lightning.pytorch import Callback
    except ImportError:
        from pytorch_lightning import Callback  # type: ignore[assignment]

    class RumorCallback(Callback):
        swarm: Swarm | None = None
        steps = rows = 0

        def __reduce__(self) -> Any:
            return functools.partial(lightning_callback, run, **options), ()

        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            _close(self.swarm)
            self.swarm = join(run, pl_module, **_with_steps(options, getattr(trainer, 'estimated_stepping_batches', 0)))
            self.steps, self.rows = trainer.global_step, 0

        def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any = None, *_: Any) -> None:
            self.rows += _rows_of(batch)
            if self.swarm is None or trainer.global_step == self.steps:  # gradients are still being accumulated
                return
            self.steps = trainer.global_step
            rows, self.rows = self.rows, 0
            loss = outputs.get('loss') if isinstance(outputs, dict) else outputs
            if not self.swarm.step(rows if 'batch_size' not in options and rows > 0 else None, loss=loss):
                trainer.should_stop = True

        def on_train_end(self, trainer: Any, pl_module: Any) -> None:
            if self.swarm is not None:
                self.swarm.leave()

        def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
            _close(self.swarm)

    return RumorCallback()


def trainer_callback(run: str, **options: Any) -> Any:
    """Makes a transformers.TrainerCallback: Trainer(..., callbacks=[rumor.trainer_callback('my-run', seeds=[...])]).

    Takes the arguments of join() except the model. batch_size defaults to the trainer's. With load_best_model_at_end
    the trainer's best model stays in place, instead of the weights that all peers share."""
    from transformers import TrainerCallback

    class RumorCallback(TrainerCallback):
        swarm: Swarm | None = None

        def __reduce__(self) -> Any:
            return functools.partial(trainer_callback, run, **options), ()

        def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
            _close(self.swarm)
            batch = args.per_device_train_batch_size * args.gradient_accumulation_steps
            told = _with_steps(options, getattr(state, 'max_steps', 0))
            self.swarm = join(run, model, **{'batch_size': batch, **told})

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if self.swarm is not None and not self.swarm.step():
                control.should_training_stop = True

        def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if self.swarm is not None:
                self.swarm.leave(keep_model=bool(getattr(args, 'load_best_model_at_end', False)))

    return RumorCallback()


def _close(swarm: Swarm | None) -> None:
    """Ends the peer of a fit() that was broken off."""
    if swarm is not None:
        swarm.close()
