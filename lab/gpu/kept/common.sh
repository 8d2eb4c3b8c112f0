# Sourced: unpacks, finds libraries, runs steps with limits.
S=$(date +%s); now() { echo $(( $(date +%s) - S )); }
W=/tmp/w; mkdir -p $W; export HOME=/root XDG_CACHE_HOME=/tmp/cache
for f in windlass-lab windlass; do [ -f .gpu/$f.xz ] && { xz -dc .gpu/$f.xz > $W/$f || python3 -c "import lzma,sys;sys.stdout.buffer.write(lzma.open('.gpu/$f.xz').read())" > $W/$f; chmod +x $W/$f; }; done
[ -f .gpu/libs.tar.gz ] && mkdir -p $W/libs && tar xzf .gpu/libs.tar.gz -C $W/libs
P=$(python3 -c "import sysconfig;print(sysconfig.get_paths()['purelib'])")
N=$(find / -name 'libnvrtc.so*' -not -path '/proc/*' -not -path '*/stubs/*' 2>/dev/null | xargs -n1 dirname | sort -u | tr '\n' ':')
export LD_LIBRARY_PATH=$N$W/libs:$LD_LIBRARY_PATH PATH=$W:/usr/local/cuda/bin:$(ls -d /opt/nvidia/nsight-compute/* 2>/dev/null | tail -1):$PATH
step() { local name=$1 limit=$2; shift 2; local b=$(now); timeout -s INT -k 6 $limit "$@" > $OUT/$name.out 2> $OUT/$name.err; echo "STEP $name rc=$? from ${b}s to $(now)s"; }
