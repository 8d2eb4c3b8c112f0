#!/bin/sh
# Makes signing.webm from clips of https://github.com/intel-iot-devkit/sample-videos (CC BY 4.0): `./make.sh FOLDER`,
# where FOLDER has eat.mkv, night.mkv and sister.mkv of its folder asl_gestures. Needs ffmpeg with libvpx.
set -eu
from=$1
to=$(dirname "$0")/signing.webm
passes=$(mktemp -d)
join="[0:v][1:v][2:v]concat=n=3,fps=30,crop=480:270:60:30,scale=640:360:flags=lanczos,format=yuv420p[out]"
for pass in 1 2; do
  ffmpeg -v error -y -i "$from/eat.mkv" -i "$from/night.mkv" -i "$from/sister.mkv" -filter_complex "$join" -map "[out]" \
    -an -c:v libvpx-vp9 -b:v 900k -g 60 -row-mt 1 -deadline good -cpu-used 2 -pass $pass -passlogfile "$passes/log" \
    -map_metadata -1 -fflags +bitexact "$to"
done
rm -r "$passes"
