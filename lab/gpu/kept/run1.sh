. .gpu/common.sh
{ nvidia-smi; nvidia-smi -q | grep -i -E 'product name|driver version|cuda version|graphics|sm  |memory  |mig|link gen|link width|current|max ' | head -60; nproc; lscpu | grep -E 'Model name|NUMA'; free -g | head -2; ldd --version | head -1; echo "$LD_LIBRARY_PATH"; which nvcc ncu compute-sanitizer; ldd $W/windlass-lab | grep -i 'not found'; } > $OUT/a_card.txt 2>&1
export RUST_LOG=windlass_sr=debug
python3 -c "import ctypes;print(ctypes.CDLL('libcuda.so.1').cuInit(0))"
step b_conf 75 windlass-lab bench gpu --conformance --variants mma,wgmma --networks chain:5x16x2 --sizes 64x64 --batches 1 --workers 0 --seconds 0.05 --cost chain:5x16x2@64x64p30
tail -c 1500 $OUT/b_conf.err; tail -c 600 $OUT/b_conf.out
step c_nets 80 windlass-lab bench gpu --variants mma,wgmma --networks chain:5x16x2,chain:5x16x3,chain:5x32x2,blocks:8x32x2,blocks:8x32x3,blocks:8x32x3+twin --sizes 640x360,1280x720 --batches 1,4,16 --workers 16 --seconds 0.12 --json
(step e_san 40 compute-sanitizer --tool memcheck windlass-lab bench gpu --conformance --variants mma,wgmma --networks chain:5x16x2 --sizes 64x64 --batches 1 --workers 0 --seconds 0.01 --cost chain:5x16x2@64x64p30) &
step f_load 40 windlass-lab loadtest --own --publishers 12 --media .gpu/m720 --seconds 15 --ramp 3 --threads 2 --json -- --device cuda --network models/xs-x3.safetensors --anchor-fraction 0.075 --max-enhanced 64 --max-total-participants 500 --log info
wait
grep -c . $OUT/e_san.out; tail -3 $OUT/e_san.out; tail -c 700 $OUT/f_load.err; head -c 1500 $OUT/f_load.out
cat $OUT/*.err | tail -c 200000 > $OUT/errs.txt; tar czf $OUT/all.tar.gz -C $OUT $(cd $OUT; ls | grep -v tar); cd $OUT; ls | grep -v -E 'all.tar.gz|c_nets.out|d_torch.out' | xargs rm -f
echo "END $(now)s"
