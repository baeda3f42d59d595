"""A separate PostgreSQL server for tests and benchmarks, from Debian's package.

It runs in a temporary folder, listens on a Unix socket, and ends with the process that made it, however that
ends: a small shell waits at a pipe and cleans up. Under root it runs as the user `postgres`.

`python pg_server.py COMMAND…` runs a command with a server's folder in `FIELDSTONE_TEST_POSTGRESQL`, or
without the variable if PostgreSQL is not installed.
"""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
import tempfile
from pathlib import Path

_WARDEN = 'read _; "$0/pg_ctl" -D "$1/data" -m immediate stop; rm -rf "$1"'


def programs() -> Path | None:
    """The folder of the server's programs, which Debian keeps outside PATH."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found += [Path(p) for p in os.environ.get("PATH", "").split(os.pathsep) if p]
    return next((p for p in found if (p / "initdb").exists() and (p / "pg_ctl").exists()), None)


class Server:
    """A running server; `url` names its database."""

    def __init__(self, bin: Path, folder: Path | None = None, settings: str = "-c fsync=off") -> None:
        self.bin, self._user = bin, pwd.getpwnam("postgres") if os.getuid() == 0 else None
        self.folder = Path(tempfile.mkdtemp(prefix="fieldstone-pg-", dir=folder))
        self.folder.chmod(0o755)
        self._as: dict[str, int] = {}
        if self._user:
            os.chown(self.folder, self._user.pw_uid, self._user.pw_gid)
            self._as = {"user": self._user.pw_uid, "group": self._user.pw_gid}
        self._warden = subprocess.Popen(
            ["sh", "-c", _WARDEN, str(bin), str(self.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
            **self._as,
        )
        self._run(
            "initdb", "-D", "data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "-N"
        )
        options = f"-k {self.folder} -c listen_addresses= -c log_min_messages=fatal {settings}"
        self._run("pg_ctl", "-D", "data", "-w", "-s", "-l", "log", "-o", options, "start")
        self.url = f"postgresql:///postgres?host={self.folder}&user=postgres"

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [str(self.bin / program), *arguments],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            check=True,
            **self._as,
        )

    def sql(self, statement: str) -> str:
        """psql's output for a statement, without frames."""
        done = subprocess.run(
            [str(self.bin / "psql"), "-qXAt", "-h", str(self.folder), "-U", "postgres", "-c", statement],
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def close(self) -> None:
        """Stops it and removes its folder."""
        self._warden.communicate()


def main(command: list[str]) -> int:
    """Runs a command next to a server; returns its exit code."""
    bin = programs()
    if not bin:
        return subprocess.run(command).returncode
    server = Server(bin, settings="-c fsync=off -c max_connections=200")
    try:
        environment = os.environ | {"FIELDSTONE_TEST_POSTGRESQL": str(server.folder)}
        return subprocess.run(command, env=environment).returncode
    finally:
        server.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
