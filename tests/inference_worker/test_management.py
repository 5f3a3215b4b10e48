"""TorchServe's verbs as its users type them, a token in front, and a state that outlives a restart."""

import asyncio
import json
import time

import httpx
import pytest

from inference_worker.store import Store

NAME = "multispk_20250121_tts"


def add(folder, entry: str, revision: str, **options: str) -> None:
    source = folder.parent / f"src-{entry}"
    source.mkdir()
    (source / "config.json").write_text(json.dumps({"revision": revision}))
    all_options = {"revision": revision, **options}
    Store(folder).add(entry, source, engine="fake", licence="MIT", revision=revision, options=all_options)


async def until(check, timeout_s: float = 15.0) -> None:
    async with asyncio.timeout(timeout_s):
        while not await check():
            await asyncio.sleep(0.02)


async def test_the_lines_torchserve_users_know(serve, store_folder):
    add(store_folder, NAME, "1.0")
    async with serve(engine="none", model_store=store_folder) as server:
        admin = server.admin
        answer = await admin.post(f"/models?model_name={NAME}&url={NAME}&initial_workers=1")
        assert answer.status_code == 202
        assert answer.json() == {"status": "Processing worker updates..."}

        async def ready():
            return (await admin.get(f"/models/{NAME}")).json()[0]["workers"][0]["status"] == "READY"

        await until(ready)
        listed = (await admin.get("/models")).json()
        assert listed == {"models": [{"modelName": NAME, "modelUrl": NAME}]}
        answer = await server.http.post(f"/predictions/{NAME}", json={"text": "Hello there."})
        assert answer.status_code == 200
        assert answer.headers["x-model-revision"] == "1.0"
        scaled = await admin.put(f"/models/{NAME}?min_worker=3&synchronous=true")
        assert scaled.json() == {"status": f"Workers scaled to 3 for model: {NAME}"}
        assert len((await admin.get(f"/models/{NAME}/all")).json()[0]["workers"]) == 3
        assert (await admin.put(f"/models/{NAME}?min_worker=1")).status_code == 202
        down = server.service.registry.find(NAME)
        async with asyncio.timeout(5):
            while len(down.replicas) > 1:
                await asyncio.sleep(0.02)
        gone = await admin.delete(f"/models/{NAME}")
        assert gone.json() == {"status": f'Model "{NAME}" unregistered'}
        assert (await admin.get("/models")).json() == {"models": []}
        missing = await admin.delete(f"/models/{NAME}")
        assert missing.status_code == 404
        assert missing.json()["type"] == "ModelNotFoundException"


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:9/evil.mar",
        "https://example.org/model.mar",
        "file:///etc/passwd",
        "../outside",
        "..",
        "a/../b",
        "/etc/passwd",
        "unlisted",
        "",
        "%00",
        ".state",
    ],
)
async def test_only_store_entries_are_loaded(serve, store_folder, url):
    (store_folder.parent / "outside").mkdir()
    (store_folder.parent / "outside" / "manifest.json").write_text("{}")
    async with serve(engine="none", model_store=store_folder) as server:
        answer = await server.admin.post("/models", params={"url": url, "initial_workers": "1"})
        assert answer.status_code == 400
        assert answer.json()["type"] == "BadRequestException"
        assert str(store_folder) not in answer.text


async def test_token(serve, store_folder):
    add(store_folder, "one", "1")
    async with serve(engine="none", model_store=store_folder) as server, httpx.AsyncClient() as anyone:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic test-token"}):
            for method, path in (("GET", "/models"), ("POST", "/models?url=one"), ("DELETE", "/models/one")):
                answer = await anyone.request(method, server.management_url + path, headers=headers)
                assert answer.status_code == 401
        assert (await server.admin.get("/store")).json() == {"entries": ["one"]}


async def test_versions_switch_under_load_without_a_failure(serve, store_folder):
    add(store_folder, "v1", "1.0", delay_ms="10")
    add(store_folder, "v2", "2.0", delay_ms="10", load_ms="300")
    async with serve(engine="none", model_store=store_folder) as server:
        admin = server.admin
        await admin.post("/models?url=v1&model_name=tts&initial_workers=1&synchronous=true")
        seen: list[tuple[int, str]] = []
        stop = False

        async def caller(n: int) -> None:
            i = 0
            while not stop:
                i += 1
                answer = await server.say(f"Line {i} of caller {n}.", model="tts")
                seen.append((answer.status_code, answer.headers.get("x-model-revision", "")))

        callers = [asyncio.create_task(caller(n)) for n in range(16)]
        early = await admin.put("/models/tts/2.0/set-default")
        assert early.status_code == 404
        await admin.post("/models?url=v2&model_name=tts&initial_workers=1")
        not_yet = await admin.put("/models/tts/2.0/set-default")
        assert not_yet.status_code == 409
        assert (await server.say("Old.", model="tts")).headers["x-model-revision"] == "1.0"

        async def flipped():
            return (await admin.put("/models/tts/2.0/set-default")).status_code == 200

        await until(flipped)
        await asyncio.sleep(0.3)
        pinned = await server.say("Pinned.", model="tts@1.0")
        assert pinned.headers["x-model-revision"] == "1.0"
        assert (await admin.put("/models/tts/1.0/set-default")).status_code == 200  # rollback
        await asyncio.sleep(0.2)
        assert (await admin.put("/models/tts/2.0/set-default")).status_code == 200
        forbidden = await admin.delete("/models/tts/2.0")
        assert forbidden.status_code == 403
        assert (await admin.delete("/models/tts/1.0")).status_code == 200
        await asyncio.sleep(0.2)
        stop = True
        await asyncio.gather(*callers)
        assert {code for code, _ in seen} == {200}
        assert {revision for _, revision in seen} == {"1.0", "2.0"}
        assert seen[-1][1] == "2.0"
        gone = await server.say("Pinned.", model="tts@1.0")
        assert gone.status_code == 409
        assert gone.json()["error"]["code"] == "revision_mismatch"


async def test_a_version_that_does_not_load_leaves_the_old_one_alone(serve, store_folder):
    add(store_folder, "v1", "1.0")
    add(store_folder, "v2", "2.0", fail_load="1")
    async with serve(engine="none", model_store=store_folder) as server:
        await server.admin.post("/models?url=v1&model_name=tts&initial_workers=1&synchronous=true")
        answer = await server.admin.post("/models?url=v2&model_name=tts&initial_workers=1&synchronous=true")
        assert answer.status_code == 500
        assert (await server.say("Hello.", model="tts")).headers["x-model-revision"] == "1.0"
        assert len((await server.admin.get("/models/tts/all")).json()) == 1


async def test_state_survives_a_restart(serve, store_folder):
    add(store_folder, "v1", "1.0")
    add(store_folder, "v2", "2.0")
    settings = {"engine": "none", "model_store": store_folder, "state_dir": store_folder / ".state"}
    async with serve(**settings) as server:
        for entry in ("v1", "v2"):
            await server.admin.post(f"/models?url={entry}&model_name=tts&initial_workers=1&synchronous=true")
        await server.admin.put("/models/tts/2.0/set-default")
        await server.admin.put("/models/tts/1.0?min_worker=2&synchronous=true")
    async with serve(**settings) as server:
        await server.ready()
        versions = {v["modelVersion"]: v for v in (await server.admin.get("/models/tts/all")).json()}
        assert set(versions) == {"1.0", "2.0"}
        assert versions["2.0"]["default"]
        assert versions["1.0"]["minWorkers"] == 2
        assert (await server.say("Hello.", model="tts")).headers["x-model-revision"] == "2.0"
        await server.admin.delete("/models/tts")
    async with serve(**settings) as server:
        assert (await server.admin.get("/models")).json() == {"models": []}


async def test_entry_changed_on_disk_is_not_loaded(serve, store_folder):
    add(store_folder, "v1", "1.0")
    (store_folder / "v1" / "config.json").write_text("tampered")
    async with serve(engine="none", model_store=store_folder) as server:
        answer = await server.admin.post("/models?url=v1&initial_workers=1")
        assert answer.status_code == 400
        assert "sha256" in answer.json()["message"]


async def test_bad_numbers_and_conflicts(serve, store_folder):
    add(store_folder, "v1", "1.0")
    async with serve(engine="none", model_store=store_folder) as server:
        for query in (
            "min_worker=-1",
            "min_worker=1e3",
            "min_worker=999",
            "min_worker=3&max_worker=2",
            "min_worker=٣",
        ):
            await server.admin.post("/models?url=v1")
            assert (await server.admin.put(f"/models/v1?{query}")).status_code == 400
        again = await server.admin.post("/models?url=v1&initial_workers=1")
        assert again.status_code == 409
        assert again.json()["type"] == "ConflictStatusException"


async def test_unregister_answers_what_waits(serve, store_folder):
    add(store_folder, "v1", "1.0", delay_ms="100")
    async with serve(engine="none", model_store=store_folder, max_batch=1) as server:
        await server.admin.post("/models?url=v1&initial_workers=1&synchronous=true")
        jobs = [asyncio.create_task(server.say(f"Line {i}.", model="v1")) for i in range(5)]
        await asyncio.sleep(0.15)
        start = time.monotonic()
        assert (await server.admin.delete("/models/v1")).status_code == 200
        assert time.monotonic() - start > 0.2
        assert [a.status_code for a in await asyncio.gather(*jobs)] == [200] * 5


async def test_a_version_beside_the_built_in_one_does_not_take_over_by_itself(serve, store_folder):
    add(store_folder, "v2", "2.0", load_ms="300")
    async with serve(engine="fake", model_store=store_folder) as server:
        answer = await server.admin.post("/models?url=v2&model_name=fake&initial_workers=1")
        assert answer.status_code == 202
        assert (await server.say("Hello.", model="fake")).headers["x-model-revision"] == "fake-1"
        await server.service.registry.find("fake@2.0").until_ready(1, 10)
        assert (await server.say("Hello.", model="fake")).headers["x-model-revision"] == "fake-1"
        listed = {m["revision"]: m["default"] for m in (await server.http.get("/v1/models")).json()["data"]}
        assert listed == {"fake-1": True, "2.0": False}
        assert (await server.admin.put("/models/fake/2.0/set-default")).status_code == 200
        assert (await server.say("Hello.", model="fake")).headers["x-model-revision"] == "2.0"
        assert (await server.admin.put("/models/fake/fake-1/set-default")).status_code == 200
        assert (await server.say("Hello.", model="fake")).headers["x-model-revision"] == "fake-1"
