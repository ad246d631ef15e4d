"""Callbacks for frameworks that run the training loop: Lightning and Hugging Face's Trainer.

Each function imports its framework when it is called, so the package requires neither."""
from __future__ import annotations

from typing import Any

from .swarm import Swarm, join


def lightning_callback(run: str, **options: Any) -> Any:
    """Makes a lightning.pytorch.Callback: Trainer(callbacks=[rumor.lightning_callback('my-run', seeds=[...])]).

    Takes the arguments of join() except the model."""
    try:
        from lightning.pytorch import Callback
    except ImportError:
        from pytorch_lightning import Callback

    class RumorCallback(Callback):
        swarm: Swarm | None = None
        steps = 0

        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            self.swarm = join(run, pl_module, **options)
            self.steps = trainer.global_step

        def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, *_: Any) -> None:
            if self.swarm is None or trainer.global_step == self.steps:  # gradients are still being accumulated
                return
            self.steps = trainer.global_step
            loss = outputs.get('loss') if isinstance(outputs, dict) else outputs
            if not self.swarm.step(loss=loss):
                trainer.should_stop = True

        def on_train_end(self, trainer: Any, pl_module: Any) -> None:
            if self.swarm is not None:
                self.swarm.leave()

    return RumorCallback()


def trainer_callback(run: str, **options: Any) -> Any:
    """Makes a transformers.TrainerCallback: Trainer(..., callbacks=[rumor.trainer_callback('my-run', seeds=[...])]).

    Takes the arguments of join() except the model. batch_size defaults to the trainer's."""
    from transformers import TrainerCallback

    class RumorCallback(TrainerCallback):
        swarm: Swarm | None = None

        def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
            batch = args.per_device_train_batch_size * args.gradient_accumulation_steps
            self.swarm = join(run, model, **{'batch_size': batch, **options})

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if self.swarm is not None and not self.swarm.step():
                control.should_training_stop = True

        def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if self.swarm is not None:
                self.swarm.leave()

    return RumorCallback()
