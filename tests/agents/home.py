"""An empty home and folder for one run of an agent, as a person without rights, with nothing of ours in its environment."""

import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

# Whoever asks for anything else than this machine meets nobody.
NOWHERE = "http://127.0.0.1:9"
SECONDS = 120


class Home:
    def __init__(self):
        self.root = Path(tempfile.mkdtemp(prefix="agent-"))
        self.home, self.folder = self.root / "home", self.root / "work"
        self.home.mkdir()
        self.folder.mkdir()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.root, ignore_errors=True)

    def run(self, run):
        """What the agent wrote and how it ended; an agent that never ends is stopped and told apart by its code."""
        for name, text in run.files.items():
            path = self.home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        environment = {
            "PATH": os.environ["PATH"], "HOME": str(self.home), "TMPDIR": str(self.root), "TERM": "dumb", "LANG": "C.UTF-8",
            "CI": "1", "NO_COLOR": "1", "HTTP_PROXY": NOWHERE, "HTTPS_PROXY": NOWHERE, "NO_PROXY": "127.0.0.1,localhost",
        } | run.environment
        command = [str(part) for part in run.command]
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            for path in [self.root, *self.root.rglob("*")]:
                os.chown(path, nobody.pw_uid, nobody.pw_gid)
            command = ["setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups", *command]
        try:
            ended = subprocess.run(
                command, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                errors="replace", timeout=SECONDS, check=False,
            )
        except subprocess.TimeoutExpired as error:
            told = b"".join(part for part in (error.stdout, error.stderr) if part)
            return 124, told.decode(errors="replace")
        return ended.returncode, ended.stdout + ended.stderr
