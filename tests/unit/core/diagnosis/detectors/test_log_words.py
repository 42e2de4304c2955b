"""What many programs write when something is wrong, and what is read out of it."""

from __future__ import annotations

import pytest

from inquest.core.diagnosis.detectors.logs.words import MAX_LINE, endpoint_in, frame_in, lines_of, said_in, telling_line
from tests.support.tables import each_row

SAID = {
    "panic: dial tcp 10.96.1.4:5432: connect: connection refused": ("refused", {"host": "10.96.1.4", "port": "5432"}),
    'OperationalError: connection to server at "db" (10.0.0.1), port 5432 failed: Connection refused': (
        "refused",
        {"host": "db", "port": "5432"},
    ),
    "Error 111 connecting to redis-cart:6380. Connection refused.": ("refused", {"host": "redis-cart", "port": "6380"}),
    "Error: P1001: Can't reach database server at `db`:`5432`": ("refused", {"host": "db", "port": "5432"}),
    "HTTPConnectionPool(host='catalog', port=80): Max retries exceeded with url: /": (
        "refused",
        {"host": "catalog", "port": "80"},
    ),
    "Can't connect to MySQL server on 'mysql:3306' (111)": ("refused", {"host": "mysql", "port": "3306"}),
    "waiting for postgres:5432...": ("refused", {"host": "postgres", "port": "5432"}),
    "dial tcp: lookup redis-carts on 10.96.0.10:53: no such host": ("dns", {"host": "redis-carts"}),
    "Error: getaddrinfo ENOTFOUND databse.shop.svc": ("dns", {"host": "databse.shop.svc"}),
    "java.net.UnknownHostException: kafka-x": ("dns", {"host": "kafka-x"}),
    'could not translate host name "pgsql" to address: Name or service not known': ("dns", {"host": "pgsql"}),
    "** server can't find db.shop.svc.cluster.local: NXDOMAIN": ("dns", {"host": "db.shop.svc.cluster.local"}),
    "Could not resolve service-registry: Name or service not known": ("dns", {"host": "service-registry"}),
    "Seed provider couldn't lookup host ring-0.ring.shop": ("dns", {"host": "ring-0.ring.shop"}),
    "OOM command not allowed when used memory > 'maxmemory'.": ("storeFull", {}),
    "not authorized on geo-db to execute command { count: 1 }": ("auth", {}),
    "permission denied for table orders": ("auth", {}),
    "* Vault is sealed": ("refused", {}),
    "Unable to resolve service for type 'Shop.IRepo'": ("error", {}),
    "wget: bad address 'db.shop.svc'": ("dns", {"host": "db.shop.svc"}),
    'FATAL:  password authentication failed for user "shop"': ("auth", {"user": "shop"}),
    "Access denied for user 'root'@'10.2.2.2' (using password: YES)": ("auth", {"mysqluser": "root"}),
    "NOAUTH Authentication required.": ("auth", {}),
    "pq: sorry, too many clients already": ("tooManyConnections", {}),
    "HikariPool-1 - Connection is not available, request timed out after 30000ms (total=10, active=10)": (
        "tooManyConnections",
        {},
    ),
    "HikariPool-1 - Connection is not available, request timed out after 30001ms (total=0, active=0)": ("refused", {}),
    "The MySQL server is running with the --read-only option so it cannot execute this statement": (
        "readOnlyDatabase",
        {},
    ),
    "x509: certificate has expired or is not yet valid: current time": (
        "certificate",
        {"x509": "certificate has expired or is not yet valid: current time"},
    ),
    "http: server gave HTTP response to HTTPS client": ("protocol", {}),
    "listen tcp :8080: bind: address already in use": ("portInUse", {"port": "8080"}),
    "Error: listen EADDRINUSE: address already in use :::3000": ("portInUse", {"port": "3000"}),
    "exec /entrypoint.sh: exec format error": ("execFormat", {}),
    "/bin/sh: 1: serve: not found": ("commandMissing", {"what": "serve"}),
    "bash: line 1: serve: command not found": ("commandMissing", {"what": "serve"}),
    "exec /entrypoint.sh: no such file or directory": ("commandMissing", {"entry": "/entrypoint.sh"}),
    "Error: Cannot find module '/app/server.js'": ("commandMissing", {"module": "/app/server.js"}),
    "Error: unknown flag: --prot": ("badFlag", {"flag": "--prot"}),
    "app: error: unrecognized arguments: --prot 80": ("badFlag", {"option": "--prot"}),
    "app: error: the following arguments are required: --port": ("badFlag", {"needed": "--port"}),
    "write /data/wal: no space left on device": ("diskFull", {}),
    "touch: /app/x: Read-only file system": ("readOnlyFiles", {"path": "/app/x"}),
    "mkdir: cannot create directory '/data/x': Permission denied": ("permission", {"made": "/data/x"}),
    "start.sh: line 10: /app/start.sh: Permission denied": ("permission", {"path": "/app/start.sh"}),
    "nginx: [emerg] bind() to 0.0.0.0:80 failed (13: Permission denied)": ("privileged", {"port": "80"}),
    "Error: required environment variable DATABASE_URL is not set": ("envMissing", {"name": "DATABASE_URL"}),
    "panic: API_KEY must be set": ("envMissing", {"word": "API_KEY"}),
    "REDIS_ADDR: unbound variable": ("envMissing", {"shell": "REDIS_ADDR"}),
    "KeyError: 'DB_HOST'": ("envMissing", {"key": "DB_HOST"}),
    "required key DB_URL missing value": ("envMissing", {"required_key": "DB_URL"}),
    'strconv.Atoi: parsing "80a0": invalid syntax': ("badConfig", {"parsed": "80a0"}),
    "open /etc/app/config.yaml: no such file or directory": ("fileMissing", {"path": "/etc/app/config.yaml"}),
    "java.lang.OutOfMemoryError: Java heap space": ("heap", {"space": "Java heap space"}),
    "PANIC recovery: the database system is in recovery mode": ("databaseBroken", {}),
    "request queue is full": ("overload", {}),
    "failed to reload config: line 3": ("reload", {}),
    "ValueError: no price": ("panic", {"python": "ValueError"}),
    "ERROR order 7 is unknown": ("error", {}),
}


@each_row(("line", "expected"), SAID.items(), ids=SAID)
def test_a_line_says_what_is_wrong(line: str, expected: tuple[str, dict[str, str]]) -> None:
    found = said_in(f"starting\n{line}\n")[0]

    assert (found.kind, found.named) == expected
    assert found.line == line


@pytest.mark.parametrize(
    "line",
    [
        "GET /errors/7 200 in 3 ms",
        "listening on :8080",
        "connected to redis:6379",
        "relation users exists",
        "no flags given, using the built-in ones",
    ],
)
def test_an_ordinary_line_says_nothing(line: str) -> None:
    assert said_in(line) == []


def test_the_address_may_stand_on_the_line_beside() -> None:
    found = said_in("connecting to cache:6379\nConnectionError: Connection refused\n")[0]

    assert (found.kind, found.named) == ("refused", {"host": "cache", "port": "6379"})


def test_what_proves_most_comes_first_and_of_that_the_last_that_names_something() -> None:
    text = "lookup a: no such host\nlookup b: no such host\npanic: no way\n"

    assert [each.named for each in said_in(text)[:2]] == [{"host": "b"}, {"host": "a"}]


def test_a_time_stamp_is_no_part_of_a_line() -> None:
    assert lines_of("2026-11-22T09:58:00.123456789Z sh: serve: not found\n") == ["sh: serve: not found"]


def test_a_source_file_with_a_line_number_is_no_address() -> None:
    assert endpoint_in("main.go:12: cannot reach it") == {}


@pytest.mark.parametrize(
    "line",
    [
        "(Background on this error at: https://docs.db.example.test/e/20/4xp6)",
        "For more information see https://www.example.com/connection-errors",
        "error: read https://errors.example.org/E42 to learn how to repair it",
    ],
)
def test_a_page_to_read_about_an_error_is_nobody_who_was_called(line: str) -> None:
    assert endpoint_in(line) == {}


def test_the_address_beside_a_page_to_read_is_found() -> None:
    line = "cannot reach http://cart:7070/items, see https://docs.example.com/errors#reach"

    assert endpoint_in(line) == {"host": "cart", "port": "7070"}


def test_the_port_that_is_taken_stands_behind_times_and_places_in_source_files() -> None:
    said = said_in(
        'time=2026-11-22T07:15:11.209Z source=main.go:240 msg="listen tcp :9256: bind: address already in use"'
    )

    assert next(each for each in said if each.kind == "portInUse").named == {"port": "9256"}


def test_a_long_line_is_cut_before_it_is_read() -> None:
    line = "x" * MAX_LINE + " connection refused"

    assert said_in(line) == []


FRAMES = {
    'Traceback\n  File "/lib/site-packages/a.py", line 1, in f\n  File "/app/a.py", line 3, in main\nKeyError: 1': (
        'File "/app/a.py", line 3, in main'
    ),
    "Error: x\n    at parse (/app/src/parse.js:10:9)\n    at node:internal/main:1:2": "parse (/app/src/parse.js:10:9)",
    "panic: x\n\ngoroutine 1 [running]:\nmain.main()\n\t/src/main.go:17 +0x5d": "/src/main.go:17",
    "java.lang.X: y\n\tat java.base/java.lang.Z.f(Z.java:1)\n\tat com.shop.Main.main(Main.java:12)": (
        "com.shop.Main.main(Main.java:12)"
    ),
    "no frame at all": "",
}


@pytest.mark.parametrize(("text", "frame"), FRAMES.items())
def test_the_frame_is_the_applications_own(text: str, frame: str) -> None:
    assert frame_in(text) == frame


def test_the_telling_line_is_none_of_the_frames() -> None:
    assert telling_line("panic: no route\n\n\tmain.go:12 +0x1\n") == "panic: no route"
