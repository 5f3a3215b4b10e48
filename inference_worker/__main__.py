"""Command line: serve, check, bench, store, fetch-voices."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path


def _pairs(values: list[str]) -> dict[str, str]:
    out = {}
    for value in values:
        key, sep, text = value.partition("=")
        if not sep or not key:
            raise SystemExit(f"expected KEY=VALUE, got {value!r}")
        out[key] = text
    return out


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    env = os.environ.get
    top = argparse.ArgumentParser(prog="python -m inference_worker", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True)

    serve = commands.add_parser("serve", help="run the server")
    serve.add_argument(
        "--engine", default=env("INFERENCE_ENGINE", "kokoro"), help="engine of the first model, or none"
    )
    serve.add_argument("--name", default="", help="name of the first model (default: the engine's)")
    serve.add_argument(
        "--option", action="append", default=[], metavar="KEY=VALUE", help="option of the engine"
    )
    serve.add_argument(
        "--load", action="append", default=[], metavar="NAME=ENTRY", help="a model store entry to load"
    )
    serve.add_argument(
        "--alias", action="append", default=[], metavar="ALIAS=NAME", help="another name of a model"
    )
    serve.add_argument("--host", default=env("INFERENCE_HOST", "127.0.0.1"))
    serve.add_argument("--port", type=int, default=int(env("INFERENCE_PORT", "8080")))
    serve.add_argument("--management-host", default=env("INFERENCE_MANAGEMENT_HOST", "127.0.0.1"))
    serve.add_argument(
        "--management-port", type=int, default=int(env("INFERENCE_MANAGEMENT_PORT", "8081")), help="0 = off"
    )
    serve.add_argument("--metrics-host", default=env("INFERENCE_METRICS_HOST", "127.0.0.1"))
    serve.add_argument(
        "--metrics-port", type=int, default=int(env("INFERENCE_METRICS_PORT", "8082")), help="0 = off"
    )
    serve.add_argument(
        "--devices", default=env("INFERENCE_DEVICES", "cpu"), help="cpu, or cuda:0,cuda:1: a replica each"
    )
    serve.add_argument(
        "--workers", type=int, default=int(env("INFERENCE_WORKERS", "0")), help="replicas (0 = one a device)"
    )
    serve.add_argument(
        "--threads",
        type=int,
        default=int(env("INFERENCE_THREADS", "0")),
        help="CPU threads a replica (0 = all cores shared)",
    )
    serve.add_argument("--model-store", type=Path, default=env("INFERENCE_MODEL_STORE"))
    serve.add_argument(
        "--state-dir",
        type=Path,
        default=env("INFERENCE_STATE_DIR"),
        help="what outlives a restart (default: STORE/.state)",
    )
    serve.add_argument(
        "--max-queue-seconds", type=float, default=float(env("INFERENCE_MAX_QUEUE_SECONDS", "300"))
    )
    serve.add_argument(
        "--max-batch", type=int, default=int(env("INFERENCE_MAX_BATCH", "0")), help="items (0 = measured)"
    )
    serve.add_argument(
        "--bulk-batch-seconds", type=float, default=2.0, help="device time of a bulk batch at most"
    )
    serve.add_argument(
        "--watchdog-seconds", type=float, default=float(env("INFERENCE_WATCHDOG_SECONDS", "30"))
    )
    serve.add_argument("--warmup-seconds", type=float, default=float(env("INFERENCE_WARMUP_SECONDS", "20")))
    serve.add_argument("--drain-grace", type=float, default=float(env("INFERENCE_DRAIN_GRACE_SECONDS", "5")))
    serve.add_argument("--exit-with-stdin", action="store_true", help="end when standard input closes")
    serve.add_argument("--log-level", default=env("INFERENCE_LOG_LEVEL", "info"))

    check = commands.add_parser("check", help="devices, engines, one spoken sentence")
    check.add_argument("--engine", default=env("INFERENCE_ENGINE", "kokoro"))
    check.add_argument("--option", action="append", default=[], metavar="KEY=VALUE")
    check.add_argument("--device", default="")
    check.add_argument("--json", action="store_true")

    bench = commands.add_parser("bench", help="so many concurrent segments against a server")
    bench.add_argument("--segments", type=int, default=250)
    bench.add_argument("--url", default="", help="a running server (default: start one)")
    bench.add_argument("--engine", default="kokoro")
    bench.add_argument("--model", default="")
    bench.add_argument("--voice", default="")
    bench.add_argument("--option", action="append", default=[], metavar="KEY=VALUE")
    bench.add_argument("--devices", default="cpu")
    bench.add_argument("--workers", type=int, default=0)
    bench.add_argument("--threads", type=int, default=0)
    bench.add_argument("--max-batch", type=int, default=0)
    bench.add_argument("--repeat", type=int, default=1)
    bench.add_argument("--price", type=float, default=0.0, help="dollars an hour of this machine")
    bench.add_argument("--note", default="")
    bench.add_argument("--out", type=Path, help="write the JSON here")
    bench.add_argument(
        "--compare", type=Path, nargs="+", help="lay result files beside each other and do nothing else"
    )

    store = commands.add_parser("store", help="keep the model store")
    store.add_argument("--model-store", type=Path, default=env("INFERENCE_MODEL_STORE"))
    actions = store.add_subparsers(dest="action", required=True)
    actions.add_parser("list")
    verify = actions.add_parser("verify")
    verify.add_argument("entries", nargs="*")
    add = actions.add_parser("add")
    add.add_argument("entry")
    add.add_argument("source", help="a folder, or hub:REPO[@REVISION]")
    add.add_argument("--engine", required=True)
    add.add_argument("--licence", required=True)
    add.add_argument("--revision", default="")
    add.add_argument("--option", action="append", default=[], metavar="KEY=VALUE")

    fetch = commands.add_parser("fetch-voices", help="fetch and verify the Kokoro voices")
    fetch.add_argument("folder", type=Path, nargs="?")
    return top


def _serve(args: argparse.Namespace) -> int:
    from inference_worker.config import ServerConfig
    from inference_worker.run import run

    store = Path(args.model_store) if args.model_store else None
    state = Path(args.state_dir) if args.state_dir else store / ".state" if store else None
    options = _pairs(args.option)
    if extra := os.environ.get("INFERENCE_ENGINE_OPTIONS"):
        options = {**{str(k): str(v) for k, v in json.loads(extra).items()}, **options}
    token = os.environ.get("INFERENCE_MANAGEMENT_TOKEN", "")
    config = ServerConfig(
        host=args.host,
        port=args.port,
        management_host=args.management_host,
        management_port=args.management_port,
        metrics_host=args.metrics_host,
        metrics_port=args.metrics_port,
        engine=args.engine,
        name=args.name,
        options=options,
        load=tuple(_pairs(args.load).items()),
        aliases=_pairs(args.alias),
        devices=tuple(d.strip() for d in args.devices.split(",") if d.strip()) or ("cpu",),
        workers=args.workers,
        threads=args.threads,
        model_store=store,
        state_dir=state,
        management_token=token,
        api_key=os.environ.get("INFERENCE_API_KEY", ""),
        max_queue_s=args.max_queue_seconds,
        max_batch=args.max_batch,
        bulk_batch_s=args.bulk_batch_seconds,
        watchdog_s=args.watchdog_seconds,
        warmup_budget_s=args.warmup_seconds,
        drain_grace_s=args.drain_grace,
        exit_with_stdin=args.exit_with_stdin,
        log_level=args.log_level,
    )
    return run(config)


def _store(args: argparse.Namespace) -> int:
    from inference_worker.errors import StoreRefused
    from inference_worker.store import Store

    if not args.model_store:
        raise SystemExit("name the folder with --model-store or INFERENCE_MODEL_STORE")
    store = Store(Path(args.model_store))
    try:
        if args.action == "add":
            entry = store.add(
                args.entry,
                _source(args.source),
                engine=args.engine,
                licence=args.licence,
                revision=args.revision,
                options=_pairs(args.option),
            )
            print(f"{entry.name}\t{entry.engine}\t{entry.revision}\t{len(entry.files)} files")
            return 0
        names = store.names() if args.action == "list" else args.entries or store.names()
        for name in names:
            entry = store.entry(name) if args.action == "list" else store.verify(name)
            print(
                f"{entry.name}\t{entry.engine}\t{entry.revision}\t{entry.licence}\t{len(entry.files)} files"
            )
    except StoreRefused as exc:
        print(exc, file=sys.stderr)
        return 1
    return 0


def _source(text: str) -> Path:
    """A folder, or the local snapshot of a hub repository ("hub:REPO@REVISION")."""
    if not text.startswith("hub:"):
        return Path(text)
    from huggingface_hub import snapshot_download

    repo, _, revision = text.removeprefix("hub:").partition("@")
    allow = ["*.safetensors", "*.json", "*.txt", "*.model", "*.onnx"]
    return Path(snapshot_download(repo, revision=revision or None, allow_patterns=allow))


def main(argv: list[str] | None = None) -> int:
    """Run a command; the exit status."""
    args = parser().parse_args(argv)
    if args.command == "serve":
        return _serve(args)
    if args.command == "store":
        return _store(args)
    if args.command == "fetch-voices":
        from inference_worker.engines.kokoro import voices_dir, voices_fetch

        folder = args.folder or voices_dir()
        try:
            print(f"{len(voices_fetch(folder))} voices in {folder}")
        except RuntimeError as exc:
            print(exc, file=sys.stderr)
            return 1
        return 0
    if args.command == "check":
        from inference_worker.check import check

        return check(args.engine, _pairs(args.option), args.device, as_json=args.json)
    from inference_worker.bench import bench

    return bench(args, _pairs(args.option))


if __name__ == "__main__":
    sys.exit(main())
