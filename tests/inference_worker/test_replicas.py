"""What goes wrong on a device, provoked: death, hang, lack of memory, poison, callers that leave."""

import asyncio
import os
import signal
import time

import httpx
import psutil
import pytest


def metric(server, name: str, **labels: str) -> float:
    """A metric's value now, 0 when it has not been counted yet."""
    return server.service.metrics.registry.get_sample_value(name, labels) or 0.0


async def test_kill_under_load_every_request_is_answered(serve):
    async with serve(options={"delay_ms": "15"}, max_batch=8) as server:
        version = server.service.registry.find("fake")
        jobs = [asyncio.create_task(server.say(f"Segment number {i} of the book.")) for i in range(250)]
        for _ in range(2):
            await asyncio.sleep(0.4)
            while not version.running():
                await asyncio.sleep(0.005)
            os.kill(version.replicas[0].pid, signal.SIGKILL)
        answers = await asyncio.gather(*jobs)
        assert [a.status_code for a in answers] == [200] * 250
        assert metric(server, "tts_replica_restarts_total", model="fake", reason="ended") == 2


async def test_death_while_idle_is_seen_and_healed(serve):
    async with serve() as server:
        version = server.service.registry.find("fake")
        first = version.replicas[0].pid
        os.kill(first, signal.SIGKILL)
        async with asyncio.timeout(10):
            while not version.replicas or version.replicas[0].pid == first:
                await asyncio.sleep(0.02)
        assert (await server.say("Hello.")).status_code == 200


async def test_poison_text_is_refused_and_its_neighbours_are_spoken(serve):
    async with serve(options={"crash_on": "poison", "delay_ms": "50"}, max_batch=4) as server:
        texts = ["A good line.", "A poison line", "Another good.", "One more line."]
        answers = await asyncio.gather(*(server.say(t) for t in texts))
        assert [a.status_code for a in answers] == [200, 422, 200, 200]
        assert answers[1].json()["error"]["code"] == "text_not_speakable"


async def test_device_fault_replaces_the_child_and_retries(serve, tmp_path):
    options = {"crash_on": "flaky", "crash_once_file": str(tmp_path / "had")}
    async with serve(options=options) as server:
        assert (await server.say("A flaky line.")).status_code == 200
    async with serve(options={"fault_on": "broken"}) as server:
        assert (await server.say("A broken line.")).status_code == 422
        assert metric(server, "tts_replica_restarts_total", model="fake", reason="device") == 3


async def test_hang_is_killed_by_the_watchdog(serve):
    async with serve(options={"hang_on": "sleepy"}, watchdog_s=0.3) as server:
        sleepy, fine = await asyncio.gather(
            server.say("A sleepy line."), server.say("A good one, much longer.")
        )
        assert sleepy.status_code == 422
        assert fine.status_code == 200
        assert metric(server, "tts_replica_restarts_total", model="fake", reason="hung") == 3


async def test_out_of_memory_halves_the_batch_and_learns(serve):
    async with serve(options={"oom_above": "150", "delay_ms": "80"}, max_batch=8) as server:
        version = server.service.registry.find("fake")
        texts = [f"A line of thirty characters. {i}" for i in range(12)]
        answers = await asyncio.gather(*(server.say(t) for t in texts))
        assert [a.status_code for a in answers] == [200] * 12
        assert metric(server, "tts_oom_splits_total", model="fake") >= 1
        assert max(int(a.headers["x-batch-size"]) for a in answers) <= 4
        assert version.scheduler.limits.memory_cost < float("inf")
        alone = await server.say("x" * 151)
        assert alone.status_code == 507
        assert alone.json()["error"]["code"] == "too_long"


async def test_runaway_is_capped_and_reported(serve):
    async with serve(options={"runaway_on": "babble"}) as server:
        answer = await server.say("Please babble on and on and on.")
        assert answer.headers["x-truncated"] == "true"
        expected = 31 * 0.06
        assert len(answer.content) / 2 / 24_000 < 3.5 * (expected + 0.5)


async def test_previews_pass_a_book(serve):
    async with serve(options={"delay_ms": "60"}, max_batch=4) as server:
        jobs = [asyncio.create_task(server.say(f"Segment {i:03d} of the book.")) for i in range(100)]
        await asyncio.sleep(0.3)
        before = sum(j.done() for j in jobs)
        preview = await server.say("A preview.", headers={"X-Priority": "interactive"})
        passed = sum(j.done() for j in jobs) - before
        assert preview.status_code == 200
        assert (
            passed <= 4 * 4
        )  # the running batch, and a few that were answered while we looked: not the book
        for job in jobs:
            job.cancel()
        await asyncio.gather(*jobs, return_exceptions=True)


async def test_callers_that_leave_free_the_device_within_one_batch(serve):
    async with serve(options={"delay_ms": "200"}, max_batch=4) as server:
        version = server.service.registry.find("fake")
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(base_url=server.url, timeout=60, limits=limits) as client:
            body = {"input": "Some line or other.", "response_format": "wav"}
            jobs = [
                asyncio.create_task(client.post("/v1/audio/speech", json={**body, "input": f"Line {i}"}))
                for i in range(250)
            ]
            while not version.running():
                await asyncio.sleep(0.01)
            for job in jobs:
                job.cancel()
            await asyncio.gather(*jobs, return_exceptions=True)
        async with asyncio.timeout(20):
            while version.running() or version.waiting():
                await asyncio.sleep(0.01)
        before = metric(server, "tts_device_busy_seconds_total", model="fake", device="cpu")
        await asyncio.sleep(0.3)
        assert metric(server, "tts_device_busy_seconds_total", model="fake", device="cpu") == before
        assert metric(server, "tts_requests_total", model="fake", lane="bulk", outcome="cancelled") > 200


async def test_deadline_is_answered_in_time_and_never_spoken(serve):
    async with serve(options={"delay_ms": "2000"}, max_batch=1) as server:
        first = asyncio.create_task(server.say("The first line."))
        await asyncio.sleep(0.1)
        late = await server.say("The second line.", headers={"X-Deadline-Ms": "100"})
        assert late.status_code == 504
        assert not first.done()  # answered while the device was still busy with another
        assert (await first).status_code == 200
        assert (await server.say("x", headers={"X-Deadline-Ms": "soon"})).status_code == 400


async def test_full_queue_refuses_at_once(serve):
    async with serve(options={"delay_ms_per_char": "10"}, max_batch=1, max_queue_s=2.0) as server:
        answers = await asyncio.gather(*(server.say(f"Some line of the book {i}.") for i in range(30)))
        codes = [a.status_code for a in answers]
        assert set(codes) == {200, 503}
        busy = next(a for a in answers if a.status_code == 503)
        assert busy.json()["error"]["code"] == "busy"
        assert int(busy.headers["retry-after"]) >= 1


async def test_equal_waiting_requests_are_spoken_once(serve):
    async with serve(options={"delay_ms": "100"}, max_batch=1) as server:
        block = asyncio.create_task(server.say("Something else."))
        await asyncio.sleep(0.05)
        a, b = await asyncio.gather(
            server.say("The same line."), server.say("The same line.", response_format="pcm")
        )
        await block
        assert a.content[44:] == b.content
        assert metric(server, "tts_single_flight_total", model="fake") == 1
        assert metric(server, "tts_batch_items_sum", model="fake") == 2


async def test_two_devices_work_side_by_side(serve):
    async with serve(options={"delay_ms": "1000"}, devices=("cpu", "cpu"), workers=2, max_batch=1) as server:
        version = server.service.registry.find("fake")
        await version.until_ready(2, 10)
        assert len({r.pid for r in version.replicas.values()}) == 2
        start = time.monotonic()
        answers = await asyncio.gather(*(server.say(f"Line number {i}.") for i in range(4)))
        assert [a.status_code for a in answers] == [200] * 4
        assert time.monotonic() - start < 3.9  # four seconds of device time


async def test_a_model_that_cannot_load_says_so(serve):
    async with serve(wait=False, options={"fail_load": "1"}) as server:
        version = server.service.registry.find("fake")
        async with asyncio.timeout(20):
            while not version.failure:
                await asyncio.sleep(0.05)
        assert (await server.http.get("/ready")).status_code == 503
        answer = await server.say("Hello.")
        assert answer.status_code == 503
        assert "told not to load" not in answer.text  # the reason is the operator's, in the log


@pytest.mark.slow
async def test_memory_stays_flat(serve):
    """600 requests here; SOAK_REQUESTS=5000 for the figure in benchmarks/README.md."""
    requests = int(os.environ.get("SOAK_REQUESTS", "600"))
    async with serve(max_batch=8) as server:
        me = psutil.Process()

        async def many(n: int) -> None:
            gate = asyncio.Semaphore(32)

            async def one(i: int) -> None:
                async with gate:
                    assert (await server.say(f"Line {i} of many.")).status_code == 200

            await asyncio.gather(*(one(i) for i in range(n)))

        await many(200)
        child = psutil.Process(server.service.registry.find("fake").replicas[0].pid)
        before = me.memory_info().rss + child.memory_info().rss
        await many(requests)
        after = me.memory_info().rss + child.memory_info().rss
        assert after < before * 1.05
