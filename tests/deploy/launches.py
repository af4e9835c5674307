"""Says what conf/deploy would start, as JSON: for each way to deploy the programs in order, with the arguments, environment,
folders and questions about health that stand in its files. `tests/dev/deployed.rs` starts just that.

What a file leaves to its operator is as it stands there, but for the chart's bucket of logs, which nobody has.
"""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import yaml

DEPLOY = Path(__file__).resolve().parents[2] / "conf/deploy"
RELEASE = "gw"
LOGS = "file:///tmp/logs"


def images():
    """What each stage of the Dockerfile says of the container: environment, entry point, question about health."""
    lines = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    stages, stage = {}, None
    for line in lines:
        word, _, rest = line.partition(" ")
        if word == "FROM" and (found := re.match(r"(\S+) AS (\S+)", rest)):
            before = stages.get(found[1], {"environment": {}})
            stage = stages[found[2]] = {**before, "environment": dict(before["environment"])}
        elif word == "ENV":
            stage["environment"].update(pair.split("=", 1) for pair in shlex.split(rest))
        elif word == "ENTRYPOINT":
            stage["entry"] = json.loads(rest)
        elif word == "HEALTHCHECK":
            stage["check"] = json.loads(rest[rest.index("["):])
    return stages


def launch(name, command, environment, folders, **more):
    environment = {key: str(value) for key, value in environment.items()}
    usual = {"probes": [], "check": None, "ends": False}
    return {"name": name, "command": command, "environment": environment, "folders": folders, **usual, **more}


def units():
    """One admin, one proxy, and a second proxy that takes over as gateway-proxy-handover tells it to."""
    folder = DEPLOY / "systemd"
    handover = (folder / "gateway-proxy-handover").read_text()
    taking_over = dict([re.search(r"^echo (\w+)=(\S+) > ", handover, re.M).groups()])
    asked = re.search(r'"http://127\.0\.0\.1:\$\{port:-(\d+)\}(/\w+)"', handover)
    ready = {"port": int(asked[1]), "path": asked[2]}
    shared = settings_of(folder / "gateway.env")

    def unit(name, file, environment, **more):
        said = directives(folder / file)
        [program] = said["ExecStart"]
        assert "/etc/portcullis/gateway.env" in said["EnvironmentFile"], file
        environment = shared | environment
        state = "/var/lib/" + said["StateDirectory"][0]
        assert said["WorkingDirectory"] == [state], file
        return launch(name, expanded(program, environment), environment, {state: "state", "/etc/portcullis": "etc"}, **more)

    proxy = "gateway-proxy@.service"
    return [
        unit("admin", "gateway-admin.service", {}),
        unit("proxy", proxy, {}, probes=[ready]),
        unit("successor", proxy, taking_over, probes=[ready]),
    ]


def directives(file):
    """Every value of each name, as names may be said several times."""
    said = {}
    for line in file.read_text().splitlines():
        if not line.startswith(("#", "[")) and "=" in line:
            name, value = line.split("=", 1)
            said.setdefault(name, []).append(value)
    return said


def settings_of(file):
    lines = [line for line in file.read_text().splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def expanded(command, environment):
    """As systemd does: a word that is a variable becomes its words, of which there may be none."""
    words = []
    for word in command.split():
        words += environment.get(word[1:], "").split() if word.startswith("$") else [word]
    return words


def check_admin(environment, addresses):
    """A proxy looks for admin where it is."""
    named = environment.get("ADMIN_ADDRESSES")
    assert named is None or named in addresses, f"{named} is none of {addresses}"


def compose():
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    launches = []
    for name in ("redis", "admin", "proxy"):
        service = services[name]
        folders = {path: f"volume-{volume}" for volume, path in (one.split(":") for one in service.get("volumes", []))}
        folders |= {"/run/secrets": "secrets"} if service.get("secrets") else {}
        if "build" in service:
            image = images()[service["build"]["target"]]
            environment = image["environment"] | service["environment"]
            check_admin(environment, {f"admin:{port}" for port in services["admin"]["expose"]})
            launches.append(launch(name, image["entry"], environment, folders, check=image["check"]))
        else:
            launches.append(launch(name, service["command"], {}, folders))
    return launches


def chart():
    helm = [str(Path(sys.executable).with_name("helm")), "template", RELEASE, str(DEPLOY / "helm/portcullis")]
    rendered = subprocess.run([*helm, "--set", f"settings.LOG_STORE_URL={LOGS}"], capture_output=True, text=True, check=True)
    objects = {(one["kind"], one["metadata"]["name"]): one for one in yaml.safe_load_all(rendered.stdout) if one}
    services = [one["spec"] for (kind, _), one in objects.items() if kind == "Service"]
    addresses = {f"{RELEASE}-admin:{port['port']}" for port in objects["Service", f"{RELEASE}-admin"]["spec"]["ports"]}

    def container(kind, name, image, **more):
        pod, built = objects[kind, name]["spec"]["template"], images()[image]
        [said] = pod["spec"]["containers"]
        ports = {port["name"]: port["containerPort"] for port in said.get("ports", [])}
        probes = [said[probe]["httpGet"] for probe in ("startupProbe", "livenessProbe", "readinessProbe") if probe in said]
        for service in services:
            if service["selector"].items() <= pod["metadata"]["labels"].items():
                assert all(port["targetPort"] in ports for port in service["ports"]), f"a service of {name}"
        environment = built["environment"] | {one["name"]: one["value"] for one in said.get("env", [])}
        for source in said["envFrom"]:
            if "configMapRef" in source:
                environment |= objects["ConfigMap", source["configMapRef"]["name"]]["data"]
        # A container has its own copy of a volume, but for the keys, which are one Secret.
        folders = {mount["mountPath"]: mount["name"] if mount["name"] == "keyring" else f"{name}-{mount['name']}" for mount in said["volumeMounts"]}
        check_admin(environment, addresses)
        command = said.get("command", built["entry"]) + said.get("args", [])
        probes = [{"port": ports[probe["port"]], "path": probe["path"]} for probe in probes]
        return launch(image, command, environment, folders, probes=probes, **more)

    return [
        container("Job", f"{RELEASE}-migrate-1", "admin", ends=True),
        container("Deployment", f"{RELEASE}-admin", "admin"),
        container("StatefulSet", f"{RELEASE}-proxy", "proxy"),
    ]


print(json.dumps({"systemd": units(), "compose": compose(), "chart": chart()}, indent=1))
