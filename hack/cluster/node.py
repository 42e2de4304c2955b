"""The real node: containerd, kubelet and kube-proxy in namespaces of their own, as a container would be.

One process holds the namespaces (processes, mounts, network, host name). Every interface, route, packet filter rule,
mount, shim and container lives inside, so that killing this one recorded process makes the kernel remove them all,
whatever was killed before it. Outside remain the control groups, which `remove_node` deletes. The same walls keep two
clusters on one machine apart: both may use the kernel's names that kube-proxy and containerd cannot change.

A cable joins the node to the machine: pods reach the API server over it, the API server reaches the kubelet. It leads
nowhere else, so pulling an image fails at once, which is what the demonstrations of it want.
"""

import json
import os
import shutil
import socket
import time
from ipaddress import IPv4Network
from pathlib import Path

import yaml

from hack import HackError
from hack.cluster.certificates import Subject
from hack.cluster.process import POLL_SECONDS, Program
from hack.cluster.site import Site, run
from hack.cluster.state import write_atomically
from hack.images import Image, build_image
from hack.packages import ensure_node_programs, network_plugin_folder, require_root

TOOLS = ("kubelet", "kube-proxy", "pause")
NODE = "worker"
START_SECONDS = 60
CGROUPS = Path("/sys/fs/cgroup")
CGROUP_REMOVAL_SECONDS = 15
KUBELET_PORT = 10250
SOCKET = "/run/containerd/containerd.sock"
INSIDE = ("containerd", "kubelet", "kube-proxy")
HIDDEN_BY_THE_NODE = (Path("/run"), Path("/var/lib"), Path("/var/log"))

KUBELET = Subject("kubelet", f"system:node:{NODE}", "system:nodes")
PROXY = Subject("kube-proxy", "system:kube-proxy")

KERNEL_SETTINGS = {
    "vm/overcommit_memory": 1,
    "vm/panic_on_oom": 0,
    "kernel/panic": 10,
    "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxkeys": 1000000,
    "kernel/keys/root_maxbytes": 25000000,
}
"""What the kubelet insists on. It is shown files that say so already: these settings belong to the whole machine."""

MOVE_IN = """
set -e
mount -n --make-rshared /
mount -n -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/netns
mount -n --bind "$STATE/var-lib" /var/lib
mount -n --bind "$STATE/var-log" /var/log
(cd "$STATE/kernel" && find . -type f) | while read -r setting; do
    if [ -e "/proc/sys/$setting" ]; then mount -n --bind "$STATE/kernel/$setting" "/proc/sys/$setting"; fi
done
hostname "$NODE"
ip link set lo up
echo 1 > /proc/sys/net/ipv4/ip_forward
touch /run/moved-in
exec "$PAUSE"
"""


def prepare_machine(site: Site) -> None:
    """Complain about what makes a node impossible, and install what it needs, before anything is started."""
    require_root()
    _require_visible(site.folder)
    ensure_node_programs()


def ensure_node(site: Site) -> None:
    """Have the node running and Ready."""
    pause = build_image("pause")
    _make_cgroups(site)
    _ensure_walls(site)
    _ensure_cable(site)
    _ensure_runtime(site, pause)
    _ensure_kubelet(site)
    site.processes.ensure(_kube_proxy(site))


def remove_node(site: Site) -> None:
    """Remove what the kernel keeps when the node's processes are gone."""
    if shutil.which("ip"):
        run("ip", "link", "delete", site.identity.link, check=False)
    deadline = time.monotonic() + CGROUP_REMOVAL_SECONDS
    while left := _remove_cgroups(site):
        if time.monotonic() > deadline:
            raise HackError(f"control groups are still in use: {', '.join(map(str, left))}")
        time.sleep(POLL_SECONDS)


def load_image(site: Site, image: Image) -> None:
    """Put an image into the node's store, by name and by name@digest: pods may pin it without any registry."""
    present = _ctr(site, "images", "list", "-q").split()
    if image.pinned in present:
        return
    _ctr(site, "images", "import", f"--base-name={image.name}", str(image.archive))
    _ctr(site, "images", "tag", "--force", f"{image.name}:local", image.pinned)
    _ctr(site, "images", "tag", "--force", f"{image.name}:local", f"{image.name}:latest")


def _ctr(site: Site, *arguments: str) -> str:
    return run(*_enter(site), "ctr", f"--address={SOCKET}", "--namespace=k8s.io", *arguments, seconds=120)


def _require_visible(folder: Path) -> None:
    """The node has its own /run, /var/lib and /var/log, and would not see a cache inside them."""
    for hidden in HIDDEN_BY_THE_NODE:
        if folder.is_relative_to(hidden):
            raise HackError(f"a real node cannot keep its state below {hidden}: set INQUEST_CACHE to another folder")


def _ensure_walls(site: Site) -> None:
    state = site.folder / "node"
    for name in ("var-lib", "var-log", "kernel"):
        (state / name).mkdir(parents=True, exist_ok=True)
    for setting, value in KERNEL_SETTINGS.items():
        write_atomically(state / "kernel" / setting, f"{value}\n")
    if site.processes.ensure(_walls(site, state)):
        for program in INSIDE:
            site.processes.stop(program)
    moved_in = Path(f"/proc/{_walls_pid(site)}/root/run/moved-in")
    site.processes.wait_ready("node", moved_in.exists, START_SECONDS)


def _walls(site: Site, state: Path) -> Program:
    walls = ["--mount", "--net", "--pid", "--ipc", "--uts", "--mount-proc", "--fork", "--kill-child=SIGKILL"]
    surroundings = {"STATE": str(state), "NODE": NODE, "PAUSE": str(site.bin / "pause")}
    return Program("node", ["unshare", *walls, "sh", "-c", MOVE_IN], environment=surroundings)


def _walls_pid(site: Site) -> int:
    record = site.processes.record("node")
    if not record or not site.processes.is_running("node"):
        raise HackError("there is no running node")
    return record.pid


def _enter(site: Site) -> list[str]:
    """What goes before a command to run it inside; it dies with the process that is recorded for it outside."""
    namespaces = Path(f"/proc/{_walls_pid(site)}/ns")
    flags = [f"--{flag}={namespaces / flag}" for flag in ("net", "ipc", "uts")]
    flags += [f"--mount={namespaces / 'mnt'}", f"--pid={namespaces / 'pid_for_children'}"]
    return ["nsenter", *flags, "--", "setpriv", "--pdeathsig=KILL"]


def _ensure_cable(site: Site) -> None:
    identity = site.identity
    if not Path(f"/sys/class/net/{identity.link}").exists():
        run("ip", "link", "add", identity.link, "type", "veth", "peer", "name", "eth0", "netns", str(_walls_pid(site)))
    run("ip", "address", "replace", f"{identity.host_address}/24", "dev", identity.link)
    run("ip", "link", "set", identity.link, "up")
    run(*_enter(site), "ip", "address", "replace", f"{identity.node_address}/24", "dev", "eth0")
    run(*_enter(site), "ip", "link", "set", "eth0", "up")
    for network in (identity.pod_network, identity.service_network):
        run("ip", "route", "replace", str(network), "via", str(identity.node_address))


def _ensure_runtime(site: Site, pause: Image) -> None:
    settings = site.folder / "node" / "containerd.toml"
    write_atomically(settings, _containerd_settings(site, pause))
    _write_network(site.folder / "node" / "net.d", site.identity.pod_network)
    site.processes.ensure(Program("containerd", ["containerd", f"--config={settings}"], prefix=_enter(site)))
    door = f"/proc/{_walls_pid(site)}/root{SOCKET}"
    site.processes.wait_ready("containerd", lambda: _accepts(door), START_SECONDS)
    load_image(site, pause)


def _accepts(path: str) -> bool:
    """Whether somebody listens; a socket's file alone may be left from a server that was killed."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        try:
            client.connect(path)
        except OSError:
            return False
    return True


def _containerd_settings(site: Site, pause: Image) -> str:
    state = site.folder / "node"
    cri = 'plugins."io.containerd.grpc.v1.cri"'
    return f"""\
version = 2
root = "{state / "containerd"}"
state = "/run/containerd"
disabled_plugins = ["io.containerd.internal.v1.opt"]

[grpc]
address = "{SOCKET}"

[{cri}]
sandbox_image = "{pause.name}:local"
restrict_oom_score_adj = true
tolerate_missing_hugetlb_controller = true

[{cri}.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[{cri}.containerd.runtimes.runc.options]
SystemdCgroup = false

[{cri}.cni]
bin_dir = "{network_plugin_folder()}"
conf_dir = "{state / "net.d"}"
"""


def _write_network(folder: Path, pods: IPv4Network) -> None:
    """Each pod has a cable of its own to the node and everything is routed: there is no bridge to hide packets in."""
    addresses = {
        "type": "host-local",
        "dataDir": "/run/cni",
        "ranges": [[{"subnet": str(pods)}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    plugins = [
        {"type": "ptp", "ipMasq": True, "ipam": addresses},
        {"type": "portmap", "capabilities": {"portMappings": True}},
    ]
    network = {"cniVersion": "0.4.0", "name": "inquest", "plugins": plugins}
    write_atomically(folder / "10-inquest.conflist", json.dumps(network, indent=2))


def _ensure_kubelet(site: Site) -> None:
    settings = site.folder / "node" / "kubelet.yaml"
    resolver = site.folder / "node" / "resolv.conf"
    write_atomically(resolver, f"nameserver {site.identity.service_network[10]}\n", mode=0o644)
    write_atomically(settings, yaml.safe_dump(_kubelet_settings(site, resolver), sort_keys=False))
    command = [
        str(site.bin / "kubelet"),
        f"--config={settings}",
        f"--kubeconfig={site.kubeconfig(KUBELET, site.server_for_node)}",
        f"--node-ip={site.identity.node_address}",
        f"--hostname-override={NODE}",
    ]
    site.processes.ensure(Program("kubelet", command, prefix=_enter(site)))
    site.processes.wait_ready("kubelet", lambda: _is_ready(site), START_SECONDS)


def _kubelet_settings(site: Site, resolver: Path) -> dict[str, object]:
    address = site.identity.node_address
    certificate, key = site.authority.issue(Subject("kubelet-serving", NODE, names=[NODE], addresses=[address]))
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(site.authority.certificate)},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(certificate),
        "tlsPrivateKeyFile": str(key),
        "port": KUBELET_PORT,
        "containerRuntimeEndpoint": f"unix://{SOCKET}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{site.identity.cgroup}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "enforceNodeAllocatable": [],
        "makeIPTablesUtilChains": False,
        "resolvConf": str(resolver),
        "clusterDNS": [str(site.identity.service_network[10])],
        "clusterDomain": "cluster.local",
        "volumePluginDir": "/var/lib/kubelet/plugins/volume",
        "nodeStatusUpdateFrequency": "5s",
        "syncFrequency": "10s",
        "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,
    }


def _is_ready(site: Site) -> bool:
    """Both must say so: the node's status may be left from a kubelet that died."""
    if not site.answers_at(str(site.identity.node_address), KUBELET_PORT, "/healthz"):
        return False
    condition = 'jsonpath={.status.conditions[?(@.type=="Ready")].status}'
    return site.kubectl("get", "node", NODE, "--ignore-not-found", "-o", condition) == "True"


def _kube_proxy(site: Site) -> Program:
    settings = site.folder / "node" / "kube-proxy.yaml"
    text = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clusterCIDR": str(site.identity.pod_network),
        "hostnameOverride": NODE,
        "clientConnection": {"kubeconfig": str(site.kubeconfig(PROXY, site.server_for_node))},
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    }
    write_atomically(settings, yaml.safe_dump(text, sort_keys=False))
    return Program("kube-proxy", [str(site.bin / "kube-proxy"), f"--config={settings}"], prefix=_enter(site))


def _make_cgroups(site: Site) -> None:
    for hierarchy in _hierarchies():
        group = hierarchy / site.identity.cgroup
        group.mkdir(exist_ok=True)
        for setting in ("cpuset.cpus", "cpuset.mems"):
            _inherit(hierarchy / setting, group / setting)


def _inherit(parent: Path, child: Path) -> None:
    """The first kind of control groups gives a new one no processor and no memory until it is told."""
    if not _is_unified() and child.exists() and not child.read_text().strip():
        child.write_text(parent.read_text())


def _hierarchies() -> list[Path]:
    """Every tree of control groups: one of the new kind, or one for each controller of the old."""
    if _is_unified():
        return [CGROUPS]
    return [path for path in sorted(CGROUPS.iterdir()) if path.is_dir() and not path.is_symlink()]


def _is_unified() -> bool:
    return (CGROUPS / "cgroup.controllers").exists()


def _remove_cgroups(site: Site) -> list[Path]:
    """Remove what can be removed, innermost first; what is left still has processes that are ending."""
    roots = [hierarchy / site.identity.cgroup for hierarchy in _hierarchies()]
    for root in roots:
        for folder, _, _ in os.walk(root, topdown=False):
            _try_to_remove(Path(folder))
    return [root for root in roots if root.exists()]


def _try_to_remove(cgroup: Path) -> None:
    try:
        cgroup.rmdir()
    except OSError:
        return
