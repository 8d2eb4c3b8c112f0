#!/bin/sh
# Makes stream.bin from synthetic pictures (ffmpeg and vpxenc of Debian 12); see ../src/warm_up.rs.
set -e
cd "$(dirname "$0")"
work=$(mktemp -d)
# NAME, pictures, frames, then options of vpxenc.
code() {
  name=$1 pictures=$2 frames=$3
  shift 3
  ffmpeg -v error -y -f lavfi -i "$pictures" -frames:v "$frames" -pix_fmt yuv420p -f yuv4mpegpipe "$work/in.y4m"
  vpxenc --quiet --codec=vp9 --ivf --passes=1 --lag-in-frames=0 "$@" -o "$work/$name.ivf" "$work/in.y4m"
}
code flat "color=gray:s=64x64:r=30" 2 --rt --cpu-used=7 --end-usage=q --cq-level=44
code call "testsrc2=s=384x256:r=30,scale=192:128,noise=alls=4:allf=t" 12 --rt --cpu-used=7 --aq-mode=3 \
  --end-usage=cbr --target-bitrate=120 --min-q=40 --max-q=56
code slow "testsrc2=s=384x256:r=30,scale=192:128" 8 --good --cpu-used=1 --auto-alt-ref=0 \
  --end-usage=vbr --target-bitrate=120
cargo run --quiet -p windlass-wasm --example warm_up_stream "$work/flat.ivf" "$work/call.ivf" "$work/slow.ivf" \
  > "$work/stream.bin"
mv "$work/stream.bin" stream.bin
rm -r "$work"
