"""Figures of use for `kubectl top`: the metrics server runs beside the API server and is announced to it by hand."""

from hack.cluster.certificates import Subject
from hack.cluster.controlplane import START_SECONDS
from hack.cluster.process import Program
from hack.cluster.site import Site

TOOLS = ("metrics-server",)
NAME = "metrics-server"
NAMESPACE = "kube-system"
API = "v1beta1.metrics.k8s.io"
USER = Subject("metrics-server", "system:metrics-server", "system:masters")


def ensure_metrics(site: Site) -> None:
    """Have the metrics API answer; its first figures come two resolutions (30 s) after the start."""
    site.processes.ensure(_server(site))
    host, port = str(site.identity.host_address), site.identity.ports[NAME]
    site.processes.wait_ready(NAME, lambda: site.answers_at(host, port, "/livez"), START_SECONDS)
    site.apply(
        _service(port),
        _endpoints(host, port),
        _api_service(),
        proof=f"/apis/apiregistration.k8s.io/v1/apiservices/{API}",
    )


def _server(site: Site) -> Program:
    address = site.identity.host_address
    serving = Subject("metrics-server-serving", f"{NAME}.{NAMESPACE}.svc", names=[_host()], addresses=[address])
    certificate, key = site.authority.issue(serving)
    kubeconfig = site.kubeconfig(USER)
    command = [
        str(site.bin / NAME),
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        f"--bind-address={address}",
        f"--secure-port={site.identity.ports[NAME]}",
        f"--tls-cert-file={certificate}",
        f"--tls-private-key-file={key}",
        f"--client-ca-file={site.authority.certificate}",
        f"--kubelet-certificate-authority={site.authority.certificate}",
        "--kubelet-preferred-address-types=InternalIP",
        "--metric-resolution=15s",
        "--kubelet-request-timeout=10s",
    ]
    return Program(NAME, command)


def _host() -> str:
    return f"{NAME}.{NAMESPACE}.svc"


def _service(port: int) -> dict[str, object]:
    """Without a selector: no pod serves it."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "spec": {"ports": [{"name": "https", "port": 443, "targetPort": port}]},
    }


def _endpoints(host: str, port: int) -> dict[str, object]:
    labels = {"kubernetes.io/service-name": NAME}
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": labels},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [host], "conditions": {"ready": True}}],
        "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
    }


def _api_service() -> dict[str, object]:
    service = {"name": NAME, "namespace": NAMESPACE, "port": 443}
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": API},
        "spec": {
            "group": "metrics.k8s.io",
            "version": "v1beta1",
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "service": service,
            "insecureSkipTLSVerify": True,
        },
    }
