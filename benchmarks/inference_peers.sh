#!/bin/bash
# Our server beside TorchServe, LitServe and a naive server: one model, one load, one torch thread each, alternated.
#   BASELINES=folder-with-run_all.sh BENCH_WORK=its-work-folder ROUNDS=3 benchmarks/inference_peers.sh
# The baselines folder holds setup.sh (TorchServe 0.12, LitServe 0.2.19, the model), run_all.sh and client.py.
# One JSON line per server and round goes to $BENCH_WORK/results.jsonl; benchmarks/inference_table.py reads it.
set -e
: "${BASELINES:?}" "${BENCH_WORK:?}"
root=$(cd "$(dirname "$0")/.." && pwd)
python=${PYTHON:-$root/.venv/bin/python}
port=${PORT:-8095}
export HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false
export MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=100000000000 MALLOC_TOP_PAD_=67108864
for round in $(seq "${ROUNDS:-3}"); do
  for peer in ours ${PEERS:-litserve torchserve naive}; do
    if [ "$peer" = ours ]; then
      (cd "$root" && exec "$python" -m inference_worker serve --engine vits --name tts \
        --option "model=$BENCH_WORK/model" --threads 1 --port "$port" --management-port 0 --metrics-port 0 \
        --max-queue-seconds 3600 --drain-grace 0 ${OURS_ARGS:-}) > "$BENCH_WORK/ours.out" 2> "$BENCH_WORK/ours.err" &
      pid=$!
      for _ in $(seq 240); do curl -sf -o /dev/null "http://127.0.0.1:$port/ready" && break; sleep 0.5; done
      "$BASELINES/run_all.sh" "URL=http://127.0.0.1:$port/predictions/tts,PID=$pid,LABEL=ours"
      curl -s "http://127.0.0.1:$port/metrics" > "$BENCH_WORK/ours-$round.prom"
      kill "$pid" && wait "$pid" || true
    else
      "$BASELINES/run_all.sh" "$peer"
    fi
  done
done
