#!/usr/bin/env python3
"""Times the networks of windlass-sr with onnxruntime's CUDA provider. One JSON line for each case on stdout.

Start: python3 ort_bench.py          (ORT_BENCH_SECONDS=55: the time that it takes at most)
       python3 ort_bench.py --cpu    (tiny pictures with the CPU provider: tries the script itself)

Takes onnxruntime from ort/ beside this file, or unpacks ort.tar.xz beside this file (or given by ORT_TAR) into
ORT_DIR (/tmp/ort-gpu). Finds NVIDIA's wheels by itself, and starts itself again with LD_LIBRARY_PATH and PYTHONPATH.

Networks in half precision, batch and size fixed: u8 luma -> Cast, x/255 - 0.5 -> convolutions -> DepthToSpace (CRD).
Modes: device            input and output stay on the card, each run waited for
       device_graph      the same as one CUDA graph
       host_pinned       u8 from host memory to half precision in host memory, both pinned, copies by onnxruntime
       host_pageable     the same with ordinary memory
       host_graph        pinned memory, copies by cudaMemcpy around the CUDA graph
"""
import ctypes, gc, glob, json, os, site, statistics, sys, threading, time

BEGIN = time.monotonic()
CPU = '--cpu' in sys.argv
HERE = os.path.dirname(os.path.abspath(__file__))


def nvidia_folders():
    roots = [*sys.path, *site.getsitepackages()]
    try:
        import nvidia
        roots += [os.path.dirname(p) for p in nvidia.__path__]
    except ImportError:
        pass
    found = [f for r in roots if r for f in sorted(glob.glob(os.path.join(r, 'nvidia', '*', 'lib')))]
    found += sorted(glob.glob('/usr/local/cuda*/lib64'))
    return list(dict.fromkeys(os.path.realpath(f) for f in found))


def start_again():
    """Starts this script again with the folders set. Only the loader's start reads LD_LIBRARY_PATH."""
    package = os.path.join(HERE, 'ort')
    if not os.path.isdir(package):
        target = os.environ.get('ORT_DIR', '/tmp/ort-gpu')
        package = os.path.join(target, 'ort')
        archive = os.environ.get('ORT_TAR', os.path.join(HERE, 'ort.tar.xz'))
        if not os.path.isdir(package) and os.path.isfile(archive):
            import tarfile
            with tarfile.open(archive) as tar:
                tar.extractall(target, filter='data')
    env = dict(os.environ, ORT_BENCH_CHILD='1', CUDA_MODULE_LOADING='LAZY')
    for name, values in ('PYTHONPATH', [package]), ('LD_LIBRARY_PATH', nvidia_folders()):
        env[name] = ':'.join([*values, *filter(None, [os.environ.get(name)])])
    os.execve(sys.executable, [sys.executable, os.path.abspath(__file__), *sys.argv[1:]], env)


if not os.environ.get('ORT_BENCH_CHILD'):
    start_again()

import numpy as np
from onnx import TensorProto, helper, numpy_helper

LIMIT = float(os.environ.get('ORT_BENCH_SECONDS', '55'))


def say(**line):
    print(json.dumps(line), flush=True)


def preload():
    """Loads NVIDIA's libraries in the order of their needs, so that names alone find them afterwards."""
    loaded, missing = {}, []
    names = ['libcudart.so.13', 'libnvJitLink.so.13', 'libnvrtc.so.13', 'libcublasLt.so.13', 'libcublas.so.13',
             'libcurand.so.10', 'libcufft.so.12', 'libcudnn.so.9']
    for name in names:
        paths = [os.path.join(f, name) for f in nvidia_folders()]
        for path in [*filter(os.path.isfile, paths), name]:
            try:
                loaded[name] = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
                break
            except OSError as e:
                error = str(e)
        else:
            missing.append(error)
    return loaded, missing


LIBRARIES, MISSING = ({}, []) if CPU else preload()
import onnxruntime as ort


class Network:
    def __init__(self, kind, count, channels, scale):
        self.kind, self.scale = kind, scale
        self.convs = count if kind == 'chain' else 2 * count + 2
        self.name = f'{kind}:{count}x{channels}x{scale}'
        rng = np.random.default_rng(1)
        self.weights = []
        for n in range(self.convs):
            outputs = scale * scale if n + 1 == self.convs else channels
            inputs = 1 if n == 0 else channels
            size = np.sqrt(2 / (9 * inputs)) * (0.3 if self.ends_block(n) else 1)
            w = rng.normal(0, size, (outputs, inputs, 3, 3))
            self.weights.append((w, rng.normal(0, 0.1, outputs)))

    def ends_block(self, n):
        return self.kind == 'blocks' and 0 < n < self.convs - 1 and n % 2 == 0

    def model(self, batch, height, width, half):
        dtype, kind = (np.float16, TensorProto.FLOAT16) if half else (np.float32, TensorProto.FLOAT)
        nodes, constants = [], []

        def constant(name, value):
            constants.append(numpy_helper.from_array(np.asarray(value).astype(dtype), name))
            return name

        def add(op, inputs, output, **attributes):
            nodes.append(helper.make_node(op, inputs, [output], name=output, **attributes))
            return output

        def conv(n, x, relu):
            w, b = (constant(f'{k}{n}', v) for k, v in zip('wb', self.weights[n]))
            y = add('Conv', [x, w, b], f'conv{n}', kernel_shape=[3, 3], pads=[1, 1, 1, 1])
            return add('Relu', [y], f'relu{n}') if relu else y

        x = add('Cast', ['x'], 'cast', to=kind)
        x = add('Mul', [x, constant('factor', 1 / 255)], 'scaled')
        x = add('Sub', [x, constant('mean', 0.5)], 'centred')
        last = self.convs - 1
        if self.kind == 'chain':
            for n in range(last):
                x = conv(n, x, True)
        else:
            head = x = conv(0, x, False)
            for n in range(1, last, 2):
                x = add('Add', [x, conv(n + 1, conv(n, x, True), False)], f'sum{n}')
            x = add('Add', [x, head], 'sum')
        add('DepthToSpace', [conv(last, x, False)], 'y', mode='CRD', blocksize=self.scale)
        high = self.shape(batch, height, width)
        graph = helper.make_graph(
            nodes, 'network',
            [helper.make_tensor_value_info('x', TensorProto.UINT8, [batch, 1, height, width])],
            [helper.make_tensor_value_info('y', kind, high)], constants)
        opset = [helper.make_opsetid('', 17)]
        return helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString()

    def shape(self, batch, height, width):
        return [batch, 1, self.scale * height, self.scale * width]


def cuda(name, *args):
    status = getattr(LIBRARIES['libcudart.so.13'], name)(*args)
    if status:
        raise RuntimeError(f'{name}: CUDA error {status}')


def pointer(array):
    return ctypes.c_void_p(array.ctypes.data)


class DeviceBuffer:
    def __init__(self, size):
        self.at = ctypes.c_void_p()
        self.size = size
        cuda('cudaMalloc', ctypes.byref(self.at), ctypes.c_size_t(size))

    def free(self):
        cuda('cudaFree', self.at)


def median_ms(run, seconds):
    for _ in range(3):
        run()
    times, end = [], time.perf_counter() + seconds
    while len(times) < 3 or (time.perf_counter() < end and len(times) < 5000):
        t = time.perf_counter()
        run()
        times.append(time.perf_counter() - t)
    return statistics.median(times) * 1e3, len(times)


def session(model, options, graph):
    so = ort.SessionOptions()
    so.log_severity_level = 3
    so.add_session_config_entry('session.record_ep_graph_assignment_info', '1')
    if options is None:
        return ort.InferenceSession(model, so, providers=['CPUExecutionProvider'])
    options = dict(options, enable_cuda_graph='1' if graph else '0')
    made = ort.InferenceSession(model, so, providers=[('CUDAExecutionProvider', options)], enable_fallback=0)
    return made


def placement(made):
    """Nodes on each provider, by operator."""
    nodes = {}
    for part in made.get_provider_graph_assignment_info():
        ops = nodes.setdefault(part.ep_name, {})
        for node in part.get_nodes():
            op = node.op_type if not node.domain else f'{node.domain}.{node.op_type}'
            ops[op] = ops.get(op, 0) + 1
    return nodes


REFERENCES = {}


def reference(net, height, width, picture):
    key = (net.name, height, width)
    if key not in REFERENCES:
        made = session(net.model(1, height, width, False), None, False)
        REFERENCES[key] = made.run(None, {'x': picture})[0]
    return REFERENCES[key]


GRAPHS = {'work': not CPU}
CURRENT = {}


def case(net, height, width, batch, variant, options, seconds):
    line = CURRENT['line'] = dict(net=net.name, size=f'{width}x{height}', batch=batch, variant=variant)
    line['options'] = options
    shape = net.shape(batch, height, width)
    x = np.random.default_rng(2).integers(0, 256, (batch, 1, height, width), dtype=np.uint8)
    y = np.zeros(shape, np.float16)
    t = time.monotonic()
    model = net.model(batch, height, width, True)
    made = None
    if GRAPHS['work']:
        try:
            made = session(model, options, True)
            line['graph_session'] = True
        except Exception as e:
            line['graph_error'] = repr(e)[-400:]
    if made is None:
        made = session(model, options, False)
    line['session_s'] = round(time.monotonic() - t, 3)
    line['providers'] = made.get_providers()
    if not CPU and 'CUDAExecutionProvider' not in line['providers']:
        raise RuntimeError('no CUDA provider')
    try:
        line['nodes'] = placement(made)
    except Exception as e:
        line['nodes'] = repr(e)[:200]
    without = ort.RunOptions()
    without.add_run_config_entry('gpu_graph_id', '-1')
    modes = line['modes'] = {}

    def timed(mode, run, seconds):
        try:
            ms, runs = median_ms(run, seconds)
            modes[mode] = dict(ms=round(ms, 4), per_picture=round(ms / batch, 4), runs=runs)
        except Exception as e:
            modes[mode] = dict(error=repr(e)[-400:])
            return False
        return True

    host = made.io_binding()
    host.bind_output('y', 'cpu', 0, np.float16, shape, y.ctypes.data)

    def host_run():
        host.bind_cpu_input('x', x)  # binding is what copies the input
        made.run_with_iobinding(host, without)

    t = time.monotonic()
    host_run()
    line['first_ms'] = round((time.monotonic() - t) * 1e3, 1)
    if height <= 360:
        expected = reference(net, height, width, x[:1])[0]
        error = y[0].astype(np.float32) - expected
        rms = float(np.sqrt(np.mean(expected ** 2)))
        line['check'] = dict(rms=round(rms, 4), rms_error=round(float(np.sqrt(np.mean(error ** 2))) / rms, 6),
                             max_error=round(float(np.abs(error).max()) / rms, 6))
    if CPU:
        timed('host', host_run, seconds)
        say(**line)
        return line
    low, high = DeviceBuffer(x.nbytes), DeviceBuffer(y.nbytes)
    up, down = 1, 2
    registered = []
    try:
        cuda('cudaMemcpy', low.at, pointer(x), ctypes.c_size_t(low.size), up)
        device = made.io_binding()
        device.bind_input('x', 'cuda', 0, np.uint8, list(x.shape), low.at.value)
        device.bind_output('y', 'cuda', 0, np.float16, shape, high.at.value)
        timed('device', lambda: made.run_with_iobinding(device, without), seconds)
        timed('host_pageable', host_run, seconds * 0.3)
        for array in x, y:
            cuda('cudaHostRegister', pointer(array), ctypes.c_size_t(array.nbytes), 0)
            registered.append(array)
        timed('host_pinned', host_run, seconds)
        if line.get('graph_session'):
            def host_graph():
                cuda('cudaMemcpy', low.at, pointer(x), ctypes.c_size_t(low.size), up)
                made.run_with_iobinding(device)
                cuda('cudaMemcpy', pointer(y), high.at, ctypes.c_size_t(high.size), down)

            before = y.copy()
            GRAPHS['work'] = timed('device_graph', lambda: made.run_with_iobinding(device), seconds)
            if GRAPHS['work']:
                y.fill(0)
                timed('host_graph', host_graph, seconds * 0.3)
                difference = np.abs(y.astype(np.float32) - before.astype(np.float32)).max()
                line['graph_differs_by'] = float(difference)
    finally:
        say(**line)
        CURRENT.clear()
        # Sessions with a graph go first, since their graph uses the buffers.
        device = host = host_graph = host_run = made = None
        for array in registered:
            LIBRARIES['libcudart.so.13'].cudaHostUnregister(pointer(array))
        gc.collect()
        low.free()
        high.free()
    return line


def watchdog():
    time.sleep(max(1, LIMIT + 4 - (time.monotonic() - BEGIN)))
    say(stopped='time is up', unfinished=CURRENT.get('line'))
    os._exit(0)


def main():
    threading.Thread(target=watchdog, daemon=True).start()
    say(onnxruntime=ort.__version__, file=ort.__file__, available=ort.get_available_providers(), python=sys.version,
        build=ort.get_build_info(), cpu=CPU, libraries={k: v._name for k, v in LIBRARIES.items()}, missing=MISSING,
        cudnn=LIBRARIES['libcudnn.so.9'].cudnnGetVersion() if 'libcudnn.so.9' in LIBRARIES else None)
    nets = [Network('chain', 5, 16, 2), Network('blocks', 8, 32, 2), Network('blocks', 8, 32, 3)]
    small, large = ((27, 48), (54, 96)) if CPU else ((360, 640), (720, 1280))
    nhwc = dict(cudnn_conv_algo_search='EXHAUSTIVE', prefer_nhwc='1')
    nchw = dict(nhwc, prefer_nhwc='0')
    fused = dict(nhwc, fuse_conv_bias='1')
    quick = dict(nhwc, cudnn_conv_algo_search='HEURISTIC')
    layouts = [('nhwc', nhwc), ('nchw', nchw)]
    tiers = [([(small, 1), (small, 16), (large, 1), (large, 4)], layouts), ([(small, 4), (large, 16)], layouts),
             ([(small, 16)], [('nhwc_fuse_bias', fused), ('nhwc_heuristic', quick)])]
    cases = [(net, size, batch, *layout) for inputs, variants in tiers for size, batch in inputs for net in nets
             for layout in variants]
    overheads, failures, heuristic = [1.0], 0, False
    for done, (net, (height, width), batch, variant, options) in enumerate(cases):
        left = LIMIT - (time.monotonic() - BEGIN)
        overhead = statistics.mean(overheads[-6:])
        if left < overhead + 0.5:
            say(stopped='no time left', cases=[f'{c[0].name} {c[1][1]}x{c[1][0]} b{c[2]} {c[3]}' for c in cases[done:]])
            break
        # Three modes of full and two of a third of the length.
        seconds = min(0.4, max(0.05, (left / (len(cases) - done) - overhead) / 3.6))
        if CPU:
            options, seconds = None, 0.02
        elif heuristic:
            options = dict(options, cudnn_conv_algo_search='HEURISTIC')
        t = time.monotonic()
        try:
            line = case(net, height, width, batch, variant, options, seconds)
            failures = 0
            # A search that takes long for few convolutions would take all the time for many.
            if not CPU and line.get('first_ms', 0) / net.convs > 400 and batch == 1:
                heuristic = True
        except Exception as e:
            say(failed=repr(e)[-500:], **{k: v for k, v in (CURRENT.get('line') or {}).items()})
            CURRENT.clear()
            failures += 1
            gc.collect()
        overheads.append(max(0.05, time.monotonic() - t - 3.6 * seconds))
        if failures >= 4:
            say(stopped='four failures one after the other')
            break
    say(total_s=round(time.monotonic() - BEGIN, 1))
    sys.stdout.flush()
    os._exit(0)


main()
