"""Holds conf/deploy against what it promises. Prints what is wrong, one line each, and ends with 1 if anything is."""

import configparser
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import kubernetes_validate
import yaml

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "conf/deploy"
CHART = DEPLOY / "helm/portcullis"
KUBERNETES = "1.30"
# Of an operator that may be absent: no schema is bundled for it.
FOREIGN = {"PodMonitor"}
RELEASE = "gw"

faults = []


def fault(text):
    faults.append(text)


def settings():
    """Every setting by its environment variable, from the file that a test holds against the programs."""
    text = (ROOT / "conf/gateway.toml").read_text()
    return {name.upper() for name in re.findall(r"^#([a-z][a-z0-9_]*) = ", text, re.M)}


def helm(*arguments, values=None):
    command = [str(Path(sys.executable).with_name("helm")), *arguments]
    if values is not None:
        command += ["--values", "-"]
    text = json.dumps(values) if values is not None else None
    return subprocess.run(command, input=text, capture_output=True, text=True)


def rendered(values):
    made = helm("template", RELEASE, str(CHART), values=values)
    if made.returncode != 0:
        fault(f"helm template with {values}: {made.stderr.strip()}")
        return []
    return [one for one in yaml.safe_load_all(made.stdout) if one]


def named(objects, kind, name):
    found = [one for one in objects if one["kind"] == kind and one["metadata"]["name"] == name]
    if len(found) != 1:
        fault(f"{len(found)} objects are {kind} {name}")
    return found[0] if found else {}


def check_schema(objects, what):
    for one in objects:
        if one["kind"] in FOREIGN:
            continue
        try:
            kubernetes_validate.validate(one, KUBERNETES, strict=True)
        except kubernetes_validate.ValidationError as error:
            fault(f"{what}: {one['kind']} {one['metadata']['name']}: {error.message}")


def check_pods(objects, what):
    """Every pod runs without rights, on a root that is read-only, and knows no token of the cluster."""
    for one in objects:
        if one["kind"] not in ("StatefulSet", "Deployment", "Job"):
            continue
        name = f"{what}: {one['kind']} {one['metadata']['name']}"
        pod = one["spec"]["template"]["spec"]
        if not pod["securityContext"].get("runAsNonRoot"):
            fault(f"{name} may run as root")
        if pod.get("automountServiceAccountToken") is not False:
            fault(f"{name} is given a token of the cluster")
        for container in pod["containers"]:
            security = container["securityContext"]
            if not security["readOnlyRootFilesystem"] or security["allowPrivilegeEscalation"]:
                fault(f"{name} may write its root or gain rights")
            if security["capabilities"] != {"drop": ["ALL"]}:
                fault(f"{name} keeps capabilities")
            if "memory" not in container["resources"].get("limits", {}):
                fault(f"{name} has no bound of memory")
            mounted = {mount["name"] for mount in container["volumeMounts"]}
            held = {volume["name"] for volume in pod["volumes"]}
            held |= {claim["metadata"]["name"] for claim in one["spec"].get("volumeClaimTemplates", [])}
            if mounted != held:
                fault(f"{name} mounts {mounted} of {held}")
            secrets = [source["secretRef"]["name"] for source in container.get("envFrom", []) if "secretRef" in source]
            if "portcullis-keyring" in secrets:
                fault(f"{name} has the master keys in its environment")


def check_selectors(objects, what):
    """Whatever selects pods selects some."""
    pods = [
        one["spec"]["template"]["metadata"]["labels"]
        for one in objects
        if one["kind"] in ("StatefulSet", "Deployment", "Job")
    ]
    for one in objects:
        spec = one.get("spec", {})
        for key, labels in (
            ("selector", spec.get("selector", {})),
            ("podSelector", spec.get("podSelector", {})),
        ):
            labels = labels.get("matchLabels", labels)
            if labels and not any(labels.items() <= pod.items() for pod in pods):
                fault(f"{what}: {key} of {one['kind']} {one['metadata']['name']} fits no pod")


def check_chart(known):
    linted = helm("lint", "--strict", str(CHART))
    if linted.returncode != 0:
        fault(f"helm lint: {linted.stdout.strip()}")
    everything = {
        "settings": {name: f"value of {name}" for name in known - {"DRAIN_TIMEOUT_S"}},
        "proxy": {"autoscaling": {"enabled": True}, "nodeSelector": {"a": "b"}, "tolerations": [{"operator": "Exists"}]},
        "networkPolicy": {"clients": [{"podSelector": {"matchLabels": {"app": "shop"}}}]},
        "serviceAccount": {"annotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/gw"}},
        "image": {"tag": "1", "pullSecrets": [{"name": "registry"}]},
        "podMonitor": {"enabled": True},
    }
    usual = rendered({})
    full = rendered(everything)
    bare = rendered({"migrations": {"enabled": False}, "networkPolicy": {"enabled": False}, "serviceAccount": {"create": False}})
    for objects, what in ((usual, "usual values"), (full, "all values"), (bare, "few values")):
        check_schema(objects, what)
        check_pods(objects, what)
        check_selectors(objects, what)
    kinds = sorted(f"{one['kind']} {one['metadata']['name']}" for one in usual)
    for wanted in (
        "StatefulSet gw-proxy", "Deployment gw-admin", "Job gw-migrate-1", "PodDisruptionBudget gw-proxy",
        "PodDisruptionBudget gw-admin", "NetworkPolicy gw-proxy", "NetworkPolicy gw-admin", "Service gw-proxy",
        "ConfigMap gw-proxy", "ConfigMap gw-admin", "ServiceAccount gw",
    ):  # fmt: skip
        if wanted not in kinds:
            fault(f"there is no {wanted} among {kinds}")
    if any(one["kind"] in ("Job", "NetworkPolicy", "ServiceAccount") for one in bare):
        fault("what is switched off is rendered")
    scaler = named(full, "HorizontalPodAutoscaler", "gw-proxy")
    metric = scaler.get("spec", {}).get("metrics", [{}])[0].get("pods", {}).get("metric", {}).get("name")
    if metric != "gateway_in_flight_requests":
        fault(f"the autoscaler looks at {metric}")
    for program in ("proxy", "admin"):
        data = named(full, "ConfigMap", f"gw-{program}").get("data", {})
        # What belongs to one program wins over what is said for both.
        own = {"proxy": "METRICS_HOST", "admin": "ADMIN_HOST"}[program]
        for name in known - {own, "DRAIN_TIMEOUT_S"}:
            if data.get(name) != f"value of {name}":
                fault(f"{program} is not given {name}")
    drain = named(usual, "StatefulSet", "gw-proxy")["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    # A row of a batch may take 900 s, and is to be stored.
    if drain <= 930 + 5:
        fault(f"a pod is killed after {drain} s, before it has drained")
    if helm("template", RELEASE, str(CHART), values={"settings": {"PROXY_PROT": "1"}}).returncode == 0:
        fault("a setting that does not exist is accepted")
    allowed = json.loads((CHART / "values.schema.json").read_text())["definitions"]["settings"]["propertyNames"]["enum"]
    if set(allowed) != known:
        fault(f"values.schema.json and conf/gateway.toml differ: {sorted(set(allowed) ^ known)}")


def check_compose(known):
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    services = compose["services"]
    for name in ("admin", "proxy"):
        service = services[name]
        for key, value in (("read_only", True), ("cap_drop", ["ALL"]), ("security_opt", ["no-new-privileges:true"])):
            if service.get(key) != value:
                fault(f"compose: {key} of {name} is {service.get(key)}")
        for setting in service["environment"]:
            if setting not in known:
                fault(f"compose: {name} is given {setting}, which is no setting")
        stage = service["build"]["target"]
        if not re.search(rf"^FROM \S+ AS {stage}$", (DEPLOY / "Dockerfile").read_text(), re.M):
            fault(f"compose: the Dockerfile has no stage {stage}")
    for service in services.values():
        for waited in service.get("depends_on", {}):
            if waited not in services:
                fault(f"compose: somebody waits for {waited}, which is not there")
            elif service["depends_on"][waited]["condition"] == "service_healthy":
                if waited not in ("admin", "proxy") and "healthcheck" not in services[waited]:
                    fault(f"compose: {waited} cannot become healthy")
        for volume in service.get("volumes", []):
            if volume.split(":")[0] not in compose["volumes"]:
                fault(f"compose: there is no volume {volume}")


def check_dockerfile():
    lines = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    stages, stage = {}, None
    for line in lines:
        if match := re.match(r"FROM (\S+) AS (\S+)", line):
            stage = match[2]
            stages[stage] = list(stages.get(match[1], []))
        elif stage and line and not line.startswith("#"):
            stages[stage].append(line.strip())
    for name in ("proxy", "admin"):
        words = [line.split()[0] for line in stages.get(name, [])]
        users = [line for line in stages.get(name, []) if line.startswith("USER ")]
        if not users or users[-1].split()[1].split(":")[0] in ("root", "0"):
            fault(f"Dockerfile: {name} runs as root")
        for wanted in ("HEALTHCHECK", "ENTRYPOINT", "EXPOSE"):
            if wanted not in words:
                fault(f"Dockerfile: {name} has no {wanted}")


def check_units(known):
    for name, program in (("gateway-admin.service", "gateway-admin"), ("gateway-proxy@.service", "gateway-proxy")):
        unit = configparser.RawConfigParser(strict=False)
        unit.optionxform = str
        unit.read_string((DEPLOY / "systemd" / name).read_text())
        service = dict(unit["Service"])
        if Path(service["ExecStart"].split()[0]).name != program:
            fault(f"{name} starts {service['ExecStart']}")
        for key, value in (
            ("User", "portcullis"), ("NoNewPrivileges", "yes"), ("ProtectSystem", "strict"), ("ProtectHome", "yes"),
            ("PrivateDevices", "yes"), ("MemoryDenyWriteExecute", "yes"), ("CapabilityBoundingSet", ""),
            ("StateDirectory", "portcullis"),
        ):  # fmt: skip
            if service.get(key) != value:
                fault(f"{name}: {key} is {service.get(key)}")
        # Where systemd is, it reads them itself; the programs need not be installed.
        if shutil.which("systemd-analyze"):
            path = str(DEPLOY / "systemd" / name)
            said = subprocess.run(["systemd-analyze", "verify", "--man=no", path], capture_output=True, text=True)
            for line in said.stderr.splitlines():
                if name.split("@")[0].split(".")[0] in line and "is not executable" not in line:
                    fault(f"systemd: {line}")
    for line in (DEPLOY / "systemd/gateway.env").read_text().splitlines():
        if line and not line.startswith("#") and line.split("=")[0] not in known:
            fault(f"gateway.env has {line.split('=')[0]}, which is no setting")
    script = DEPLOY / "systemd/gateway-proxy-handover"
    if subprocess.run(["sh", "-n", str(script)]).returncode != 0:
        fault("gateway-proxy-handover is no shell script")


known = settings()
check_chart(known)
check_compose(known)
check_dockerfile()
check_units(known)
for text in faults:
    print(f"deploy: {text}", file=sys.stderr)
print(f"deploy: {len(faults)} faults" if faults else "deploy: all well")
sys.exit(1 if faults else 0)
