"""Networks by PyTorch (cuDNN, fp16, channels last, CUDA graph), eager and compiled: ms a picture on the card, and with copies."""
import json, sys, time, torch, torch.nn as nn, torch.nn.functional as F
torch.backends.cudnn.benchmark = True
torch.manual_seed(0)
DEADLINE = time.monotonic() + float(sys.argv[1])

class Chain(nn.Module):
    def __init__(self, s, c, n):
        super().__init__()
        w = [1] + [c] * (n - 1) + [s * s]
        self.convs = nn.ModuleList(nn.Conv2d(a, b, 3, padding=1) for a, b in zip(w, w[1:]))
        self.s = s
    def forward(self, u8):
        x = u8.to(torch.float16).contiguous(memory_format=torch.channels_last) / 255
        for conv in self.convs[:-1]:
            x = F.relu(conv(x))
        x = F.pixel_shuffle(self.convs[-1](x), self.s)
        return (x * 64).round().to(torch.int16)

class Blocks(nn.Module):
    def __init__(self, s, c, n):
        super().__init__()
        self.head = nn.Conv2d(1, c, 3, padding=1)
        self.body = nn.ModuleList(nn.Conv2d(c, c, 3, padding=1) for _ in range(2 * n))
        self.tail = nn.Conv2d(c, s * s, 3, padding=1)
        self.s = s
    def forward(self, u8):
        x = u8.to(torch.float16).contiguous(memory_format=torch.channels_last) / 255
        x = head = self.head(x)
        for a, b in zip(self.body[::2], self.body[1::2]):
            x = x + b(F.relu(a(x)))
        x = F.pixel_shuffle(self.tail(x + head), self.s)
        return (x * 64).round().to(torch.int16)

NETS = {"chain:5x16x2": lambda: Chain(2, 16, 5), "chain:5x32x2": lambda: Chain(2, 32, 5),
        "blocks:8x32x2": lambda: Blocks(2, 32, 8), "blocks:8x32x3": lambda: Blocks(3, 32, 8)}

def median(run, seconds=0.25):
    for _ in range(3): run()
    torch.cuda.synchronize()
    times, begun = [], time.monotonic()
    while len(times) < 5 or time.monotonic() - begun < seconds:
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        a.record(); run(); b.record(); b.synchronize(); times.append(a.elapsed_time(b))
    return sorted(times)[len(times) // 2]

def graphed(f, x):
    s = torch.cuda.Stream()
    with torch.cuda.stream(s), torch.no_grad():
        for _ in range(3): f(x)
    torch.cuda.synchronize()
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g), torch.no_grad(): out = f(x)
    return g.replay, out

def case(name, w, h, batch, how):
    net = NETS[name]().cuda().half().to(memory_format=torch.channels_last).eval()
    s = net.s
    f = torch.compile(net, dynamic=False) if how == "compiled" else net
    x = torch.randint(0, 256, (batch, 1, h, w), dtype=torch.uint8, device="cuda")
    run, out = graphed(f, x)
    on_card = median(run)
    low = torch.randint(0, 256, (batch, 1, h, w), dtype=torch.uint8).pin_memory()
    high = torch.empty((batch, 1, s * h, s * w), dtype=torch.int16).pin_memory()
    def whole():
        x.copy_(low, non_blocking=True); run(); high.copy_(out.view(high.shape), non_blocking=True)
    with_copies = median(whole)
    print(json.dumps({"network": name, "size": f"{w}x{h}", "batch": batch, "how": how, "card_ms": round(on_card / batch, 5),
                      "copies_ms": round(with_copies / batch, 5)}), flush=True)

print(torch.__version__, torch.backends.cudnn.version(), torch.cuda.get_device_name(), flush=True)
if sys.argv[2:] != ["compiled"]:
  a = torch.randn(8192, 8192, device="cuda", dtype=torch.float16); b = torch.randn_like(a)
  print("fp16 matmul TFLOP/s", 2 * 8192**3 / median(lambda: a @ b) / 1e9, flush=True)
  big = torch.empty(1 << 30, dtype=torch.uint8, device="cuda"); other = torch.empty_like(big)
  print("copy GB/s read+written", 2 * big.numel() / median(lambda: other.copy_(big)) / 1e6, flush=True)
  del big, other
cases = [(n, w, h, b, "eager") for n in NETS for w, h in ((640, 360), (1280, 720)) for b in (1, 4, 16)]
cases = [] if sys.argv[2:] == ["compiled"] else cases
cases += [("blocks:8x32x3", 1280, 720, 4, "compiled"), ("chain:5x16x2", 640, 360, 16, "compiled"), ("blocks:8x32x2", 640, 360, 16, "compiled"), ("blocks:8x32x3", 1280, 720, 1, "compiled"), ("chain:5x16x2", 640, 360, 1, "compiled"),("chain:5x32x2", 640, 360, 16, "compiled")]
for c in cases:
    if time.monotonic() > DEADLINE: print("deadline before", c); break
    try: case(*c)
    except Exception as e: print("FAILED", c, repr(e)[:300], flush=True)
    torch.cuda.empty_cache()
