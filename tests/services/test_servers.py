"""The private servers are real: they keep what they are given, refuse what they must, and come back after kill -9."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pika
import psycopg
import pytest
import redis

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.services, pytest.mark.slow]


def test_postgres_answers_and_makes_databases(postgres_server):
    url = postgres_server.database_create("second")
    with psycopg.connect(url, autocommit=True) as connection:
        assert connection.execute("SELECT current_database()").fetchone() == ("second",)
    postgres_server.database_drop("second")
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url, connect_timeout=2)


def test_postgres_comes_back_after_kill(postgres_server):
    with psycopg.connect(postgres_server.url(), autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS kept (n int)")
        connection.execute("CHECKPOINT")
    postgres_server.kill()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(postgres_server.url(), connect_timeout=2)
    postgres_server.start()
    with psycopg.connect(postgres_server.url()) as connection:
        assert connection.execute("SELECT count(*) FROM kept").fetchone() == (0,)


def test_rabbitmq_has_quorum_queues_and_confirms(rabbitmq_url):
    with pika.BlockingConnection(pika.URLParameters(rabbitmq_url)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("harness", durable=True, arguments={"x-queue-type": "quorum"})
        channel.basic_publish("", "harness", b"one", mandatory=True)
        _, _, body = channel.basic_get("harness", auto_ack=True)
        channel.queue_delete("harness")
    assert body == b"one"


def test_redis_answers_and_is_empty_after_restart(redis_server):
    client = redis.Redis.from_url(redis_server.url())
    client.set("harness", "1")
    redis_server.kill()
    with pytest.raises(redis.ConnectionError):
        client.ping()
    redis_server.start()
    assert client.get("harness") is None


def test_s3_keeps_objects_and_refuses_tampered_links(s3_server):
    client = s3_server.client()
    client.put_object(Bucket=s3_server.bucket, Key="a/b.flac", Body=b"0123456789", ContentType="audio/flac")
    link = client.generate_presigned_url(
        "get_object", {"Bucket": s3_server.bucket, "Key": "a/b.flac"}, ExpiresIn=60
    )
    request = urllib.request.Request(link, headers={"Range": "bytes=2-4"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        assert (answer.status, answer.read()) == (206, b"234")
    signature = link.rindex("Signature=") + len("Signature=")
    tampered = link[:signature] + ("0" if link[signature] != "0" else "1") + link[signature + 1 :]
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(tampered, timeout=10)
    assert refused.value.code == 403


def test_servers_die_with_their_owner(redis_server, tmp_path: Path):
    """A test run that is killed leaves no server behind."""
    code = (
        "import sys, time; sys.path.insert(0, sys.argv[1])\n"
        "from tests.servers import Redis\n"
        "server = Redis().start(); print(server.port, flush=True); time.sleep(60)\n"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", code, str(ROOT)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"TEST_SERVERS_DIR": str(tmp_path)},
    )
    assert owner.stdout is not None
    client = redis.Redis(port=int(owner.stdout.readline()))
    assert client.ping()
    assert len(list(tmp_path.iterdir())) == 1
    owner.kill()
    owner.wait()
    owner.stdout.close()
    assert _gone(client)
    deadline = time.monotonic() + 5
    while list(tmp_path.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not list(tmp_path.iterdir()), "its folder is left behind"


def _gone(client: redis.Redis, timeout_s: float = 5.0) -> bool:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        try:
            client.ping()
        except redis.ConnectionError:
            return True
        time.sleep(0.05)
    return False
