"""The networks by PyTorch, as a peer of `windlass-lab bench gpu`: cuDNN in half precision, channels last, as one CUDA graph.

    python3 lab/gpu/pytorch_peer.py SECONDS [compiled]

A line of JSON for each case: ms of a picture on the GPU, and with copies from and to pinned memory. `compiled` runs a few
cases by torch.compile instead. What time is left over after SECONDS is not begun.
"""

import json
import sys
import time

import torch
import torch.nn.functional as F
from torch import Tensor, nn

DEADLINE = time.monotonic() + float(sys.argv[1])
COMPILED = "compiled" in sys.argv[2:]
SIZES = ((640, 360), (1280, 720))


def conv(inputs: int, outputs: int) -> nn.Conv2d:
    """A 3x3 convolution that keeps the size."""
    return nn.Conv2d(inputs, outputs, 3, padding=1)


class Network(nn.Module):
    """A network of random weights: 8-bit luma in, residual in 1/64 grey level out."""

    def __init__(self, scale: int) -> None:
        super().__init__()
        self.scale = scale

    def features(self, low: Tensor) -> Tensor:
        """The last convolution's output."""
        raise NotImplementedError

    def forward(self, low: Tensor) -> Tensor:
        """The residual of a batch of pictures."""
        low = low.to(torch.float16).contiguous(memory_format=torch.channels_last) / 255
        return (F.pixel_shuffle(self.features(low), self.scale) * 64).round().to(torch.int16)


class Chain(Network):
    """Convolutions with ReLUs between them."""

    def __init__(self, count: int, channels: int, scale: int) -> None:
        super().__init__(scale)
        widths = [1, *[channels] * (count - 1), scale * scale]
        self.convs = nn.ModuleList(conv(a, b) for a, b in zip(widths, widths[1:], strict=False))

    def features(self, low: Tensor) -> Tensor:
        for layer in self.convs[:-1]:
            low = F.relu(layer(low))
        return self.convs[-1](low)


class Blocks(Network):
    """Residual blocks of two convolutions, and a skip over all of them."""

    def __init__(self, count: int, channels: int, scale: int) -> None:
        super().__init__(scale)
        self.head, self.tail = conv(1, channels), conv(channels, scale * scale)
        self.body = nn.ModuleList(conv(channels, channels) for _ in range(2 * count))

    def features(self, low: Tensor) -> Tensor:
        head = x = self.head(low)
        for first, second in zip(self.body[::2], self.body[1::2], strict=True):
            x = x + second(F.relu(first(x)))
        return self.tail(x + head)


NETWORKS = {
    "chain:5x16x2": lambda: Chain(5, 16, 2),
    "chain:5x32x2": lambda: Chain(5, 32, 2),
    "blocks:8x32x2": lambda: Blocks(8, 32, 2),
    "blocks:8x32x3": lambda: Blocks(8, 32, 3),
}


def median_ms(run, seconds: float = 0.25) -> float:  # noqa: ANN001
    """Median time of some work on the GPU."""
    for _ in range(3):
        run()
    torch.cuda.synchronize()
    times, begun = [], time.monotonic()
    while len(times) < 5 or time.monotonic() - begun < seconds:
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        run()
        last.record()
        last.synchronize()
        times.append(first.elapsed_time(last))
    return sorted(times)[len(times) // 2]


def measure(name: str, width: int, height: int, batch: int) -> None:
    """Measures a network at a size and prints its line."""
    net = NETWORKS[name]().cuda().half().to(memory_format=torch.channels_last).eval()
    run = torch.compile(net, dynamic=False) if COMPILED else net
    shape = (batch, 1, height, width)
    low = torch.randint(0, 256, shape, dtype=torch.uint8, device="cuda")
    with torch.no_grad():
        with torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(3):
                run(low)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            residual = run(low)
    host_low = torch.randint(0, 256, shape, dtype=torch.uint8).pin_memory()
    host_high = torch.empty(residual.shape, dtype=torch.int16).pin_memory()

    def with_copies() -> None:
        low.copy_(host_low, non_blocking=True)
        graph.replay()
        host_high.copy_(residual, non_blocking=True)

    line = {"network": name, "size": f"{width}x{height}", "batch": batch, "compiled": COMPILED}
    line["gpu_ms"] = median_ms(graph.replay) / batch
    line["with_copies_ms"] = median_ms(with_copies) / batch
    print(json.dumps(line), flush=True)


def main() -> None:
    """Measures all cases that there is time for."""
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(0)
    print(torch.__version__, torch.backends.cudnn.version(), torch.cuda.get_device_name(), flush=True)
    batches = (1, 16) if COMPILED else (1, 4, 16)
    for case in ((name, *size, batch) for name in NETWORKS for size in SIZES for batch in batches):
        if time.monotonic() > DEADLINE:
            print("no time left for", case)
            return
        measure(*case)


if __name__ == "__main__":
    main()
