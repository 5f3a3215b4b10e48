"""What may lie in the model store, and what is never read from it."""

import json

import pytest

from inference_worker.__main__ import main
from inference_worker.errors import StoreRefused
from inference_worker.store import Store


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "source"
    (folder / "sub").mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "sub" / "vocab.json").write_text("{}")
    (folder / ".git").mkdir()
    (folder / ".git" / "x").write_text("not copied")
    return folder


def test_add_verify_list(store_folder, source, capsys):
    args = ["store", "--model-store", str(store_folder)]
    assert main([*args, "add", "voice", str(source), "--engine", "vits", "--licence", "CC-BY-4.0"]) == 0
    assert main([*args, "list"]) == 0
    assert main([*args, "verify"]) == 0
    line = capsys.readouterr().out.splitlines()[-1].split("\t")
    assert line[:2] == ["voice", "vits"]
    assert line[3:] == ["CC-BY-4.0", "2 files"]
    entry = Store(store_folder).verify("voice")
    assert sorted(entry.files) == ["model.safetensors", "sub/vocab.json"]
    same = Store(store_folder).add("again", source, engine="vits", licence="CC-BY-4.0")
    assert same.revision == entry.revision  # named after the bytes


def test_tampering_is_seen(store_folder, source):
    store = Store(store_folder)
    store.add("voice", source, engine="vits", licence="MIT")
    (store_folder / "voice" / "model.safetensors").write_bytes(b"other")
    with pytest.raises(StoreRefused, match="sha256"):
        store.verify("voice")
    assert main(["store", "--model-store", str(store_folder), "verify"]) == 1


def test_unlisted_file_is_seen(store_folder, source):
    store = Store(store_folder)
    store.add("voice", source, engine="vits", licence="MIT")
    (store_folder / "voice" / "extra.json").write_text("{}")
    with pytest.raises(StoreRefused, match=r"extra\.json"):
        store.verify("voice")


@pytest.mark.parametrize(
    "name", ["pytorch_model.bin", "model.pt", "model.pth", "weights.pkl", "model.ckpt", "x.py"]
)
def test_nothing_that_runs_code_when_opened(store_folder, source, name):
    (source / name).write_bytes(b"x")
    with pytest.raises(StoreRefused, match="safetensors"):
        Store(store_folder).add("voice", source, engine="vits", licence="MIT")
    assert Store(store_folder).names() == []


@pytest.mark.parametrize(
    "change",
    [
        {"files": {"../../outside": "0"}},
        {"files": {"/etc/passwd": "0"}},
        {"files": []},
        {"engine": 7},
        {"revision": "../x"},
        {"options": {"a": 1}},
    ],
)
def test_bad_manifest(store_folder, source, change):
    store = Store(store_folder)
    store.add("voice", source, engine="vits", licence="MIT")
    path = store_folder / "voice" / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(StoreRefused, match="not well formed"):
        store.verify("voice")


def test_symlinks_are_not_followed(store_folder, source, tmp_path):
    store = Store(store_folder)
    store.add("voice", source, engine="vits", licence="MIT")
    (store_folder / "link").symlink_to(store_folder / "voice")
    with pytest.raises(StoreRefused):
        store.entry("link")
    secret = tmp_path / "secret.json"
    secret.write_text("{}")
    (store_folder / "voice" / "sub" / "vocab.json").unlink()
    (store_folder / "voice" / "sub" / "vocab.json").symlink_to(secret)
    with pytest.raises(StoreRefused):
        store.verify("voice")
