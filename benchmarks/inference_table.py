"""Reads the JSON lines of inference_peers.sh and prints the medians and ratios as Markdown."""

import json
import statistics
import sys
from collections import defaultdict


def main(path: str) -> None:
    rows = defaultdict(list)
    with open(path, encoding="utf-8") as file:
        for line in file:
            result = json.loads(line)
            rows[result["label"]].append(result)

    def median(label: str, key: str) -> float:
        return statistics.median(r[key] for r in rows[label])

    print(
        "| server | runs | answered | segments/s | server CPU ms/segment | previews, s (all runs) | MiB | other load, cores |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for label in sorted(rows, key=lambda x: -median(x, "seg_per_s")):
        runs = rows[label]
        previews = " · ".join(" ".join(f"{x:g}" for x in r.get("probes", {}).get("lat", [])) for r in runs)
        other = statistics.median(r["other_cpu_s"] / r["total_s"] for r in runs)
        print(
            f"| {label} | {len(runs)} | {sum(r['ok'] for r in runs)}/{sum(r['n'] for r in runs)} "
            f"| {median(label, 'seg_per_s'):.2f} | {median(label, 'server_cpu_ms_per_ok_seg'):.0f} | {previews} "
            f"| {median(label, 'server_rss_mib'):.0f} | {other:.2f} |"
        )
    if "ours" in rows:
        print("\n| ours against | segments/s | CPU per segment |\n|---|---|---|")
        for label in rows:
            if label != "ours":
                speed = median("ours", "seg_per_s") / median(label, "seg_per_s")
                cpu = median("ours", "server_cpu_ms_per_ok_seg") / median(label, "server_cpu_ms_per_ok_seg")
                print(f"| {label} | {speed:.2f} × | {cpu:.2f} × |")


if __name__ == "__main__":
    main(sys.argv[1])
