. .gpu/common.sh
LAB="windlass-lab bench gpu --cost chain:5x16x2@64x64p30"
step c_nets 140 windlass-lab bench gpu --variants mma,wgmma --networks chain:5x16x2,chain:5x16x3,chain:5x32x2,blocks:8x32x2,blocks:8x32x3,blocks:8x32x3+twin --sizes 640x360,1280x720 --batches 1,4,16 --workers 16 --seconds 0.1 --cost blocks:8x32x3@1280x720p60,chain:5x16x2@640x360p30,chain:5x16x3@640x360p30 --json
tail -c 300 $OUT/c_nets.err; python3 - <<'P'
import json,os
try:
  d=json.load(open(os.environ['OUT']+'/c_nets.out'))
  print({k:d[k] for k in ('tensor_tflops','memory_gbps','upload_gbps','download_gbps')})
  for r in d['rows']: print(r['model'],r['variant'],r['input'],r['batch'],*(round(r[k],4) for k in ('frame_ms','p50_ms','p99_ms','tflops','peak_share','floor_ms','refit_ms','upload_ms')),r['floor'])
except Exception as e: print(e)
P
export RUST_LOG=info
load() { step $1 32 windlass-lab loadtest --own --publishers $2 --media .gpu/$3 --seconds 12 --ramp 3 --settle 3 --threads 2 --json -- --device cuda --network $4 --anchor-fraction 0.075 --max-enhanced 128 --max-total-participants 1000 --captured off; python3 -c "
import json;r=json.load(open('$OUT/$1.out'))['rows'][0]
print({k:r.get(k) for k in ('publishers','enhanced','received_fps','anchors','anchors_per_s','anchor_fraction','anchor_p50_ms','anchor_p99_ms','anchor_max_ms','anchors_late','anchors_given_up','budget_miss_rate','compute_load','cpu_cores','clients_cpu_cores')})"; grep -i -E 'started|measured|disabled|GPU|warn|chosen' $OUT/$1.err | grep -v participant | head -8 | cut -c1-250; }
load f1 14 m720 models/xs-x3.safetensors
ORT_BENCH_SECONDS=34 step h_ort 45 python3 .gpu/ort_bench.py
tail -c 3500 $OUT/h_ort.out; tail -c 300 $OUT/h_ort.err
load f2 60 m360 models/l-x2.safetensors
prof() { step n_$1 25 ncu --clock-control none --kill yes --csv --page raw --section SpeedOfLight --section ComputeWorkloadAnalysis --section Occupancy --section SchedulerStats -k regex:$2 -s $3 -c $4 windlass-lab bench gpu --cost chain:5x16x2@64x64p30 --workers 0 --seconds 0.01 --batches $5 --networks $6 --sizes $7 --variants $8; }
prof l3w 'group' 20 10 4 blocks:8x32x3 1280x720 wgmma
prof l3m 'group' 16 8 4 blocks:8x32x3 1280x720 mma
prof xs2 'group' 2 1 16 chain:5x16x2 640x360 mma
step d_torch 30 python3 .gpu/torch_bench.py 24 compiled
tail -6 $OUT/d_torch.out
tar czf $OUT/all.tar.gz -C $OUT $(cd $OUT; ls | grep -v tar); tar czf $OUT/cache.tar.gz -C /tmp cache; cd $OUT; ls | grep -v -E 'tar.gz' | xargs rm -f
echo "END $(now)s"
