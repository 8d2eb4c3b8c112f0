#!/usr/bin/env python3
"""Zeroes what an H100 does not need of libonnxruntime_providers_cuda.so (in place of a copy: IN OUT).

Needs the package zstandard and the program c++filt. Sizes and offsets do not change, so the file still links and runs.
- .nv_fatbin: each container (one for each compiled file) keeps its sm_90 ELF alone, at its front, and its length says
  so; the rest becomes zeros. Containers with kernels of language models (CUTLASS, flash attention, llm, large contrib)
  hold one small sm_75 ELF instead, so to the driver they're code for other devices.
- .rodata: cubins of fused attention, which are plain arrays.
"""
import collections, re, struct, subprocess, sys
import zstandard

KEEP = 90
LIMIT_CONTRIB = 16_000

def sections(d, base=0):
    shoff, = struct.unpack_from('<Q', d, base + 0x28)
    es, n, si = struct.unpack_from('<HHH', d, base + 0x3a)
    heads = [struct.unpack_from('<IIQQQQIIQQ', d, base + shoff + i * es) for i in range(n)]
    names = base + heads[si][4]
    return [(bytes(d[names + h[0]:d.index(b'\0', names + h[0])]).decode(), h) for h in heads]

def walk(d):
    """Yields (container, offset of the entry, header size, payload size, kind, arch) of each entry."""
    head = [h for n, h in sections(d) if n == '.nv_fatbin'][0]
    pos, end, number = head[4], head[4] + head[5], 0
    while pos < end:
        if d[pos:pos + 8] == bytes(8):  # padding
            pos += 8
            continue
        magic, _, header, size = struct.unpack_from('<IHHQ', d, pos)
        assert magic == 0xBA55ED50, hex(pos)
        at, stop = pos + header, pos + header + size
        while at < stop:
            kind, version, header, payload = struct.unpack_from('<HHIQ', d, at)
            arch, = struct.unpack_from('<I', d, at + 28)
            assert kind in (1, 2) and version == 0x101 and header in (64, 112), hex(at)
            yield number, at, header, payload, kind, arch
            at += header + payload
        assert at == stop
        pos, number = stop, number + 1
    assert pos == end

def kernels(d, at, header):
    compressed, = struct.unpack_from('<I', d, at + 16)
    flags, = struct.unpack_from('<Q', d, at + 40)
    raw_size, = struct.unpack_from('<Q', d, at + 56)
    assert flags & 0x8000  # zstd
    raw = zstandard.ZstdDecompressor().decompress(bytes(d[at + header:at + header + compressed]), max_output_size=raw_size)
    assert len(raw) == raw_size and raw[:4] == b'\x7fELF'
    assert struct.unpack_from('<H', raw, 18)[0] == 190
    return [n[6:] for n, _ in sections(raw) if n.startswith('.text.')]

def group(name):
    if name.startswith('_ZN7cutlass') or 'cutlass::' in name or 'deep_gemm::' in name:
        return 'cutlass'
    for space in ('cuda', 'flash', 'llm', 'contrib'):
        if re.search(rf'onnxruntime::{space}\b', name):
            return space
    return 'none' if 'EmptyKernel' in name else 'other'

def main(source, target):
    d = bytearray(open(source, 'rb').read())
    size = len(d)
    entries = list(walk(d))
    before = collections.Counter((k, a) for _, _, _, _, k, a in entries)
    bytes_before = collections.Counter()
    for _, _, _, payload, k, a in entries:
        bytes_before[k, a] += payload
    names = {at: kernels(d, at, header) for _, at, header, _, k, a in entries if (k, a) == (2, KEEP)}
    flat = '\n'.join(n for ns in names.values() for n in ns)
    plain = iter(subprocess.run(['c++filt'], input=flat, capture_output=True, text=True, check=True).stdout.split('\n'))
    names = {at: [next(plain) for _ in ns] for at, ns in names.items()}
    kept, dropped = collections.Counter(), collections.Counter()
    # Stands in for what is dropped: the smallest whole sm_75 entry, which no other generation of GPU runs.
    _, at, header, payload, _, _ = min((e for e in entries if e[4:] == (2, 75)), key=lambda e: e[3])
    other = bytes(d[at:at + header + payload])
    kernels(d, at, header)
    containers = collections.defaultdict(list)
    for entry in entries:
        containers[entry[0]].append(entry)
    for of_one in containers.values():
        start = of_one[0][1] - 16
        magic, version, head, size_of_data = struct.unpack_from('<IHHQ', d, start)
        assert (magic, head) == (0xBA55ED50, 16)
        assert sum(e[2] + e[3] for e in of_one) == size_of_data
        data = b''
        for _, at, header, payload, kind, arch in of_one:
            if (kind, arch) != (2, KEEP):
                continue
            groups = {group(n) for n in names[at]}
            core = 'cuda' in groups or not groups - {'none', 'other'}
            core = core or (groups <= {'none', 'other', 'contrib'} and payload <= LIMIT_CONTRIB)
            counts = kept if core else dropped
            counts['entries'] += 1
            counts['bytes'] += payload
            counts['kernels'] += len(names[at])
            if core:
                data += bytes(d[at:at + header + payload])
        data = data or other
        assert len(data) <= size_of_data
        struct.pack_into('<Q', d, start + 8, len(data))
        d[start + 16:start + 16 + size_of_data] = data + bytes(size_of_data - len(data))
    # Programs find containers by the pointers of .nvFatBinSegment, which relocations fill.
    starts = {of_one[0][1] - 16 for of_one in containers.values()}
    segment = [h for n, h in sections(d) if n == '.nvFatBinSegment'][0]
    fatbin = [h for n, h in sections(d) if n == '.nv_fatbin'][0]
    relocated = set()
    for n, h in sections(d):
        if n == '.rela.dyn':
            for offset, kind, addend in struct.iter_unpack('<QQq', d[h[4]:h[4] + h[5]]):
                if segment[3] <= offset < segment[3] + segment[5]:
                    assert kind == 8  # R_X86_64_RELATIVE
                    relocated.add(addend - fatbin[3] + fatbin[4])
    print('pointers in .nvFatBinSegment', len(relocated), 'all containers', relocated == starts)
    print('containers', entries[-1][0] + 1, 'size', size)
    for k in sorted(before):
        print({1: 'PTX', 2: 'ELF'}[k[0]], f'sm_{k[1]}', before[k], 'entries', bytes_before[k], 'bytes')
    print('kept', dict(kept), 'dropped of sm_90', dict(dropped))
    # Cubins as plain arrays.
    ro = [h for n, h in sections(d) if n == '.rodata'][0]
    at, count, total = ro[4], 0, 0
    while (at := d.find(b'\x7fELF\x02\x01\x01', at, ro[4] + ro[5])) >= 0:
        machine, = struct.unpack_from('<H', d, at + 18)
        if machine != 190:
            at += 1
            continue
        shoff, = struct.unpack_from('<Q', d, at + 0x28)
        es, n = struct.unpack_from('<HH', d, at + 0x3a)
        phoff, = struct.unpack_from('<Q', d, at + 0x20)
        pes, pn = struct.unpack_from('<HH', d, at + 0x36)
        length = max([shoff + es * n] + ([phoff + pes * pn] if pn else []) +
                     [h[4] + h[5] for _, h in sections(d, at) if h[1] != 8])
        assert at + length <= ro[4] + ro[5]
        d[at:at + length] = bytes(length)
        at, count, total = at + length, count + 1, total + length
    print('cubins in .rodata', count, total, 'bytes of', ro[5])
    assert len(d) == size
    left = collections.Counter((k, a, any(d[at + h:at + h + p])) for _, at, h, p, k, a in walk(d))
    print('afterwards (kind, arch, not zero):', dict(left))
    open(target, 'wb').write(d)

main(*sys.argv[1:])
