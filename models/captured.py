"""Steps of training without a word from the host: on a GPU each is one CUDA graph, from the batch to the mean weights.

In: a network, the mean of its weights, and what gives the loss of a batch that is drawn where the network is. Networks
as small as these take longer to launch than to compute. Where capturing fails, and on CPUs, steps are made one by one.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

import network

WARM = 3  # steps before a capture, in which libraries choose their kernels
AHEAD = 10  # steps that the host may launch before it waits for those that it launched before


class Steps:
    """Adam's steps down a loss of two kinds, each captured when it is first asked for."""

    def __init__(
        self,
        net: network.Net,
        mean: dict[str, Tensor],
        loss: Callable[[bool, torch.Generator], Tensor],
        generator: torch.Generator,
        graph: bool,
    ) -> None:
        self.device = generator.device
        self.captures = graph and self.device.type == "cuda"
        self.loss, self.generator = loss, generator
        self.parameters = dict(net.named_parameters())
        self.mean = [mean[name] for name in self.parameters]
        self.rate = torch.zeros((), device=self.device)
        self.follow = torch.zeros((), device=self.device)  # the share of the weights that their mean takes up
        on_gpu = self.device.type == "cuda"
        some = {"betas": (0.9, 0.99), "fused": True, "capturable": on_gpu}
        self.optimizer = torch.optim.Adam(net.parameters(), lr=self.rate, **some)
        self.ready: dict[bool, tuple[Callable[[], object], Tensor]] = {}
        self.count, self.events = 0, []
        if on_gpu:
            # Variances are differences of large squares in `perceived.py`: TF32 would lose them.
            torch.backends.cudnn.allow_tf32 = False
            torch.backends.cudnn.benchmark = True

    def go(self, squared: bool, rate: float, keep: float) -> Tensor:
        """A step with that learning rate, after which the mean keeps such a share; gives the loss, in place."""
        self.rate.fill_(rate)
        self.follow.fill_(1.0 - keep)
        if not self.captures:
            out = self._step(squared)
        else:
            if squared not in self.ready:
                self._capture(squared)
            out = self._step(squared) if squared not in self.ready else self._replayed(squared)
        self.count += 1
        if self.device.type == "cuda" and self.count % AHEAD == 0:
            self.events.append(torch.cuda.Event())
            self.events[-1].record()
            if len(self.events) > 1:
                self.events.pop(0).synchronize()
        return out

    def _replayed(self, squared: bool) -> Tensor:
        replay, out = self.ready[squared]
        replay()
        return out

    def _step(self, squared: bool) -> Tensor:
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(squared, self.generator)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.parameters.values(), 20.0)
        self.optimizer.step()
        with torch.no_grad():
            change = torch._foreach_sub(list(self.parameters.values()), self.mean)
            torch._foreach_mul_(change, self.follow)
            torch._foreach_add_(self.mean, change)
        return loss.detach()

    def _capture(self, squared: bool) -> None:
        """Makes a graph of the step, after a few that count as steps too."""
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(WARM):
                self._step(squared)
        torch.cuda.current_stream().wait_stream(aside)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        try:
            graph.register_generator_state(self.generator)
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                out = self._step(squared)
        except RuntimeError as error:
            print(f"no graph of the step, they are made one by one: {error}", flush=True)
            self.captures = False
            self.ready.clear()
            torch.cuda.synchronize()
            self.generator = torch.Generator(self.device).manual_seed(self.generator.initial_seed() + 1)
            return
        self.ready[squared] = (graph.replay, out)
