"""The store, the API server and the controllers: enough for CRDs, admission policies, RBAC and the operator itself.

Needs no root. Until there is a node, everything listens on the loopback only.
"""

from ipaddress import IPv4Address

from hack.cluster.audit import audit_options
from hack.cluster.certificates import Subject
from hack.cluster.process import Program
from hack.cluster.site import ADMIN, LOOPBACK, Site, plain_answer

START_SECONDS = 300
"""A bound for a machine that is many times slower; a program that dies ends the wait at once."""

TOOLS = ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl")

HURRY = ("--kube-api-qps=200", "--kube-api-burst=400")
"""The usual 20 requests a second make each start four seconds longer: every controller asks for a token of its own."""

CONTROLLERS = Subject("kube-controller-manager", "system:kube-controller-manager")
KUBELET_CLIENT = Subject("kubelet-client", "kube-apiserver-kubelet-client", "system:masters")
FRONT_PROXY = Subject("front-proxy", "front-proxy")
SERVING = Subject("loopback", "localhost", names=["localhost"])


def ensure_control_plane(site: Site, *, exposed: bool) -> None:
    """Have the control plane running and ready; exposed to the node's network where there is a node."""
    processes = site.processes
    processes.ensure(_etcd(site))
    processes.wait_ready("etcd", lambda: plain_answer(site.identity.ports["etcd"], "/health"), START_SECONDS)
    processes.ensure(_apiserver(site, exposed=exposed))
    processes.wait_ready("kube-apiserver", lambda: site.answers("kube-apiserver", "/readyz"), START_SECONDS)
    site.kubeconfig(ADMIN)
    processes.ensure(_controller_manager(site))
    processes.wait_ready(
        "kube-controller-manager",
        lambda: site.answers("kube-apiserver", "/api/v1/namespaces/default/serviceaccounts/default"),
        START_SECONDS,
    )


def serving_files(site: Site) -> tuple[str, str]:
    """Certificate and key for whoever serves on the loopback."""
    subject = Subject(SERVING.file, SERVING.common_name, names=SERVING.names, addresses=[IPv4Address(LOOPBACK)])
    certificate, key = site.authority.issue(subject)
    return f"--tls-cert-file={certificate}", f"--tls-private-key-file={key}"


def _etcd(site: Site) -> Program:
    client, peer = (f"http://{LOOPBACK}:{site.identity.ports[name]}" for name in ("etcd", "etcd-peer"))
    command = [
        str(site.bin / "etcd"),
        f"--data-dir={site.folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]
    return Program("etcd", command)


def _apiserver(site: Site, *, exposed: bool) -> Program:
    command = [
        str(site.bin / "kube-apiserver"),
        *_api_listening(site, exposed=exposed),
        *_api_trust(site),
        *audit_options(site),
    ]
    command += [
        f"--etcd-servers=http://{LOOPBACK}:{site.identity.ports['etcd']}",
        f"--service-cluster-ip-range={site.identity.service_network}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement",
        "--allow-privileged",
        "--kubelet-preferred-address-types=InternalIP",
        "--enable-aggregator-routing",
        "--profiling=false",
    ]
    return Program("kube-apiserver", command)


def _api_listening(site: Site, *, exposed: bool) -> list[str]:
    """Pods come in by the node's cable; without a node nobody needs the address to be written into the cluster."""
    listening = [
        f"--secure-port={site.identity.ports['kube-apiserver']}",
        f"--advertise-address={site.identity.host_address}",
    ]
    if exposed:
        return [*listening, "--bind-address=0.0.0.0"]
    return [*listening, f"--bind-address={LOOPBACK}", "--endpoint-reconciler-type=none"]


def _api_trust(site: Site) -> list[str]:
    authority = site.authority
    certificate, key = authority.issue(_api_subject(site))
    kubelet_certificate, kubelet_key = authority.issue(KUBELET_CLIENT)
    proxy_certificate, proxy_key = authority.issue(FRONT_PROXY)
    private, public = authority.service_account_keys()
    return [
        f"--client-ca-file={authority.certificate}",
        f"--tls-cert-file={certificate}",
        f"--tls-private-key-file={key}",
        f"--kubelet-certificate-authority={authority.certificate}",
        f"--kubelet-client-certificate={kubelet_certificate}",
        f"--kubelet-client-key={kubelet_key}",
        f"--proxy-client-cert-file={proxy_certificate}",
        f"--proxy-client-key-file={proxy_key}",
        f"--requestheader-client-ca-file={authority.certificate}",
        f"--requestheader-allowed-names={FRONT_PROXY.common_name}",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={public}",
        f"--service-account-signing-key-file={private}",
    ]


def _api_subject(site: Site) -> Subject:
    names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"]
    addresses = [IPv4Address(LOOPBACK), site.identity.host_address, site.identity.service_network[1]]
    return Subject(
        "kube-apiserver", "kube-apiserver", names=[*names, f"{names[-1]}.cluster.local"], addresses=addresses
    )


def _controller_manager(site: Site) -> Program:
    private, _ = site.authority.service_account_keys()
    command = [
        str(site.bin / "kube-controller-manager"),
        f"--kubeconfig={site.kubeconfig(CONTROLLERS)}",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={site.identity.ports['kube-controller-manager']}",
        *serving_files(site),
        f"--root-ca-file={site.authority.certificate}",
        f"--service-account-private-key-file={private}",
        "--use-service-account-credentials",
        *HURRY,
        "--leader-elect=false",
        "--profiling=false",
    ]
    return Program("kube-controller-manager", command)
