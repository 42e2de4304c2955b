"""Lines about what the other side answers: no more connections, wrong credentials, another protocol, no right."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from inquest.api.refs import TargetRef
from inquest.core.cluster.relations import config_maps_of
from inquest.core.diagnosis.detectors.citations import cite, cited
from inquest.core.diagnosis.detectors.containers import containers_of, pod_field
from inquest.core.diagnosis.detectors.logs.view import LogCause, LogView, external, held, holder
from inquest.core.diagnosis.detectors.logs.words import LogFinding
from inquest.core.diagnosis.detectors.network.callee import (
    BROKERS,
    DATABASES,
    SQL,
    Callee,
    callee,
    database_called,
    is_database,
)
from inquest.core.diagnosis.detectors.network.network_reading import addresses_of, called_service
from inquest.core.diagnosis.detectors.platform.bindings import (
    BoundSetting,
    key_field,
    place_of,
    secret_of,
    secret_variable,
)
from inquest.core.diagnosis.detectors.workloads import container_specs
from inquest.core.evidence.evidence import ObservedObject
from inquest.core.evidence.snapshot import Snapshot


def _database(view: LogView, said: LogFinding, kinds: tuple[str, ...] = DATABASES) -> Callee | None:
    """The database a line is about: itself, the one it calls, or the only one that its settings name."""
    pod = view.container.pod
    if is_database(pod, kinds):
        return Callee(view.ref.name, workload=view.ref, pods=(pod,))
    host = said.named.get("host", "")
    called = callee(view.snapshot, host, pod.namespace) if host else None
    if called and (called.workload or (not called.in_cluster and not called.local)):
        return called
    return database_called(view.snapshot, list(_settings_of(view.snapshot, pod)), pod.namespace, kinds)


def _database_ref(view: LogView, called: Callee | None) -> TargetRef:
    if called is None:
        return view.ref
    return called.workload or (called.service.ref if called.service else external(called.host))


def too_many_connections(view: LogView, said: LogFinding) -> LogCause:
    """A server that is full: its own limit where that was read."""
    called = _database(view, said)
    ref = _database_ref(view, called)
    place = _setting_of(view, called, "max_connections", "max-connections", "maxclients", "MAX_CONNECTIONS")
    pool = place_of(view.snapshot, view.container, "pool_size", "max_open_conns", "maximumPoolSize", "pool-size")
    found = place or BoundSetting(ref, "process", said.line)
    return LogCause(
        "ConnectionsExhausted",
        BoundSetting(found.ref if place else ref, found.field, found.value, found.citations),
        0.85 if called else 0.7,
        f"{ref.display} takes no more connections",
        facts={"caller": view.ref.display, **held(place), **({"pool": pool.field} if pool else {})},
        refuted_by=(f"{ref.display} has free connections.",),
        actions=("PatchConfiguration",),
    )


def _setting_of(view: LogView, called: Callee | None, *words: str) -> BoundSetting | None:
    for pod in called.pods[:1] if called else ():
        for container in containers_of(pod):
            found = place_of(view.snapshot, container, *words)
            if found:
                return found
    return None


def read_only_database(view: LogView, said: LogFinding) -> LogCause:
    """A database that takes no writes, or the Service of its readers that a writer was given."""
    misled = _sent_to_readers(view, said)
    if misled is not None:
        return misled
    called = _database(view, said)
    ref = _database_ref(view, called)
    place = _setting_of(
        view, called, "read_only", "read-only", "readonly", "default_transaction_read_only", "super_read_only"
    )
    summary = f"{ref.display} takes no writes"
    return _takes_no_writes(view, said, ref, place, summary, 0.85 if called else 0.7)


def store_full(view: LogView, said: LogFinding) -> LogCause | None:
    """A store that has no room for what it is given: the one that is called, and the bound it is set to."""
    called = _database(view, said)
    if called is None:
        return None
    ref = _database_ref(view, called)
    place = _setting_of(view, called, "--maxmemory", "maxmemory")
    summary = f"{ref.display} has no room for what it is given, and takes no writes"
    return _takes_no_writes(view, said, ref, place, summary, 0.85)


def _takes_no_writes(
    view: LogView, said: LogFinding, ref: TargetRef, place: BoundSetting | None, summary: str, confidence: float
) -> LogCause:
    """`place` is the setting that makes it so, where one was found."""
    found = place or BoundSetting(ref, "process", said.line)
    return LogCause(
        "DatabaseFailing",
        found,
        confidence,
        summary,
        facts={"caller": view.ref.display, **held(place)},
        refuted_by=(f"{ref.display} accepts writes.",),
        actions=("PatchConfiguration",),
    )


def broker_full(view: LogView, said: LogFinding) -> LogCause | None:
    """A broker that takes no more messages, because nobody fetches them."""
    called = _database(view, said, BROKERS)
    if called is None:
        return None
    ref = _database_ref(view, called)
    asleep = _sleeping_reader(view, called)
    found = BoundSetting(asleep.ref, "spec.replicas", "0") if asleep else BoundSetting(ref, "process", said.line)
    asleep_too = f", and {found.ref.display}, which fetches from it, is scaled to zero" if asleep else ""
    return LogCause(
        "ScaledToZero" if asleep else "Overloaded",
        found,
        0.85 if asleep else 0.8,
        f"{ref.display} lets nobody publish{asleep_too}",
        citations=cited(view.snapshot, asleep.evidence, '"replicas":0', f'"name":"{asleep.name}"') if asleep else (),
        facts={"caller": view.ref.display, "broker": ref.display},
        refuted_by=(f"{ref.display} takes messages.",),
        actions=("ScaleReplicas",) if asleep else (),
    )


def _sleeping_reader(view: LogView, called: Callee) -> ObservedObject | None:
    """The one workload that is told of the broker and is scaled to nothing."""
    found = [
        each
        for each in view.snapshot.of_kind("Deployment", "StatefulSet")
        if each.spec.get("replicas") == 0 and _names(view, each, called)
    ]
    return found[0] if len(found) == 1 else None


def _names(view: LogView, workload: ObservedObject, called: Callee) -> bool:
    service = called.service.name if called.service else called.name
    return any(each.host.partition(".")[0] == service for each in addresses_of(view.snapshot, workload))


def _settings_of(snapshot: Snapshot, pod: ObservedObject) -> Iterator[str]:
    """Values of environment, arguments and ConfigMaps that a pod takes."""
    for _, container in container_specs(pod):
        yield from (str(each) for word in ("command", "args") for each in container.get(word) or ())
        yield from (str(each["value"]) for each in container.get("env") or () if each.get("value"))
    for name in config_maps_of(pod.object):
        found = snapshot.at("ConfigMap", pod.namespace, name)
        yield from map(str, found.data.values() if found else ())


def advertised(view: LogView, said: LogFinding) -> LogCause | None:
    """A broker that answered, and told the client to come to an address of which the client's settings know nothing."""
    host = said.named.get("host", "")
    own = place_of(view.snapshot, view.container, host)
    called = database_called(
        view.snapshot, list(_settings_of(view.snapshot, view.container.pod)), view.container.pod.namespace, _KAFKA
    )
    if own is not None or called is None or called.workload is None:
        return None
    place = _setting_of(view, called, f"{host}:{said.named.get('port', '')}", host)
    found = place or BoundSetting(called.workload, "process", host)
    return LogCause(
        "AddressMisconfigured",
        found,
        0.9 if place else 0.75,
        f"{found.ref.display} {found.field} tells clients to come to {host}, where {view.owner} finds nobody",
        facts={"host": host, "caller": view.ref.display, **held(place)},
        refuted_by=(f"A broker answers on {host} from inside this pod.",),
        actions=("PatchConfiguration",),
    )


_KAFKA: Final = ("kafka", "cp-kafka", "redpanda")
_CLOUD: Final = re.compile(
    r"eks\.amazonaws\.com/role-arn|iam\.gke\.io/gcp-service-account|azure\.workload\.identity/client-id"
)
_OF_CLOUD: Final = (
    (re.compile(r"assumed-role|arn:aws|botocore|amazonaws", re.IGNORECASE), "eks.amazonaws.com/role-arn"),
    (re.compile(r"gserviceaccount|does not have \w+\.", re.IGNORECASE), "iam.gke.io/gcp-service-account"),
    (re.compile(r"azure|AuthorizationPermissionMismatch", re.IGNORECASE), "azure.workload.identity/client-id"),
)
"""Words of a cloud → the annotation by which an account of the cluster gets one of the cloud."""


_OWN_KEYS: Final = frozenset(
    {
        *("AWS_ACCESS_KEY_ID", "AWS_ROLE_ARN", "AWS_CONTAINER_CREDENTIALS_FULL_URI"),
        *("GOOGLE_APPLICATION_CREDENTIALS", "AZURE_CLIENT_ID"),
    }
)
"""Variables by which a pod is somebody of its own in the cloud without its account's annotation."""


def cloud_denied(view: LogView, said: LogFinding) -> LogCause | None:
    """A cloud refuses a pod whose account is tied to none of the cloud, so that the pod acts as its node."""
    pod = view.container.pod
    name = str(pod.spec.get("serviceAccountName") or "default")
    account = view.snapshot.find(TargetRef(kind="ServiceAccount", name=name, namespace=pod.namespace or None))
    key = next((key for words, key in _OF_CLOUD if words.search(said.line)), "")
    given = {str(each.get("name")) for each in view.container.spec.get("env") or ()}
    if account is None or not key or given & _OWN_KEYS or ":user/" in said.line:
        return None
    if any(_CLOUD.search(each) for each in account.annotations):
        return None
    ref = account.ref
    return LogCause(
        "CredentialsInvalid",
        BoundSetting(ref, f"metadata.annotations[{key}]", ""),
        0.85,
        f"{ref.display} has no annotation {key}, so that {view.owner} acts as its node, which is refused",
        citations=cited(view.snapshot, account.evidence, f'"name":"{name}"'),
        facts={"serviceAccount": name},
        refuted_by=("The account is tied to one of the cloud in another way.",),
        actions=("PatchConfiguration",),
    )


_READERS: Final = re.compile(
    r"(?:^|-)(?:r|ro|read|reads|reader|readers|readonly|read-only|replicas?|secondary|secondaries|standby|followers?"
    r"|slaves?)(?:-|$)"
)
"""How the Services are called behind which the copies of a database stand."""


def _sent_to_readers(view: LogView, said: LogFinding) -> LogCause | None:
    """The one address in its settings whose Service is called like one for readers; the line may name it itself."""
    caller = view.snapshot.find(view.ref)
    known = addresses_of(view.snapshot, caller) if caller else []
    places = [(each, service) for each in known if (service := called_service(view.snapshot, each)) is not None]
    host = said.named.get("host", "").partition(".")[0]
    named = [(each, service) for each, service in places if _READERS.search(service.name)]
    mine = [pair for pair in named if pair[1].name == host] or named
    if len({service.name for _, service in mine}) != 1:
        return None
    address, service = mine[0]
    writers = _siblings(view, service)
    ref = address.holder.ref
    meant = f"; Service/{writers[0].name} leads to the same workload" if writers else ""
    return LogCause(
        "AddressMisconfigured",
        BoundSetting(ref, address.field, address.text),
        0.9 if writers else 0.8,
        f"{ref.display} {address.field} sends the writes of {view.owner} to Service/{service.name}, where they are "
        f"refused{meant}",
        citations=(
            *cited(view.snapshot, address.holder.evidence, address.text),
            *cite(view.snapshot, service),
        ),
        facts={"host": address.host, "meant": writers[0].name if writers else "", "setting": address.field},
        refuted_by=(f"The pods behind Service {service.name} accept writes.",),
        actions=("PatchConfiguration", "RollbackDeployment"),
    )


def _siblings(view: LogView, service: ObservedObject) -> list[ObservedObject]:
    """Other Services before the same workload that are not for readers."""
    own = callee(view.snapshot, service.name, service.namespace).workload
    others = [each for each in view.snapshot.of_kind("Service") if each.namespace == service.namespace]
    return [
        each
        for each in others
        if each.name != service.name
        and not _READERS.search(each.name)
        and own is not None
        and callee(view.snapshot, each.name, each.namespace).workload == own
    ]


def auth(view: LogView, said: LogFinding) -> LogCause | None:
    """The caller's credentials and the callee's do not agree; what the caller is given is what can be seen."""
    user = next((said.named[key] for key in ("user", "mysqluser", "mssql", "role") if key in said.named), "")
    host = said.named.get("host", "")
    if is_database(view.container.pod) and not user:
        return None
    place = secret_variable(view.snapshot, view.container, host.partition(".")[0].replace("-", "_"), user)
    by_user = place_of(view.snapshot, view.container, user) if user and "role" in said.named else None
    found = by_user or place or BoundSetting(view.ref, "log", said.line)
    secret, key = secret_of(view.container, found.name)
    where = view.container.pod.namespace or None
    ref = TargetRef(api_version="v1", kind="Secret", name=secret, namespace=where) if secret else found.ref
    field = (key_field(key) if key else "data") if secret else found.field
    to_whom = f" to {host}" if host else ""
    source = f" (Secret {secret}, {found.field})" if secret and found.name else ""
    return LogCause(
        "CredentialsInvalid",
        BoundSetting(ref, field, user or host),
        0.6 if is_database(view.container.pod) else 0.85,
        f"{ref.display}: the credentials of container {view.container.name} of {view.ref.display}{to_whom} are refused"
        f"{source}",
        citations=(*found.citations, *cited(view.snapshot, view.container.pod.evidence, f'"name":"{secret}"')),
        facts={"user": user, "host": host, "secret": secret},
        refuted_by=("The same user and password are accepted from another pod.",),
        actions=("PatchConfiguration",),
    )


def certificate(view: LogView, said: LogFinding) -> LogCause:
    """A certificate that is out of date or not accepted."""
    host = said.named.get("host", "")
    called = callee(view.snapshot, host, view.container.pod.namespace) if host else None
    outside = called is not None and not called.in_cluster and not called.local
    ref = (
        external(called.host)
        if outside and called
        else _database_ref(view, called)
        if called and called.service
        else view.ref
    )
    expired = "expired" in said.line.lower()
    return LogCause(
        "CertificateExpired",
        BoundSetting(ref, "log" if ref == view.ref else "process", said.line),
        0.8 if expired else 0.6,
        f"{ref.display}: a certificate that {view.owner} is shown is {'out of date' if expired else 'not accepted'}",
        facts={"host": host},
        refuted_by=("The certificate is in date, of the right name and of a trusted issuer.",),
        actions=("FixCertificate",),
    )


def protocol(view: LogView, said: LogFinding) -> LogCause | None:
    """Two sides that speak different protocols: the setting that names the address holds the scheme too."""
    host = said.named.get("host", "")
    called = callee(view.snapshot, host, view.container.pod.namespace) if host else None
    place = holder(view, called) if called else None
    found = place or (BoundSetting(called.service.ref, "spec.ports", host) if called and called.service else None)
    if found is None:
        found = BoundSetting(view.ref, "log", said.line)
    return LogCause(
        "ProtocolMismatch",
        found,
        0.8 if place else 0.6,
        f"{found.ref.display} {found.field}: the two sides do not speak the same protocol",
        facts={"host": host, **held(place)},
        refuted_by=("Both sides are set to the same protocol on this port.",),
        actions=("PatchConfiguration", "RollbackDeployment"),
    )


def database_broken(view: LogView, said: LogFinding) -> LogCause | None:
    """A database that is not in order itself."""
    called = _database(view, said)
    if called is None:
        return None
    ref = _database_ref(view, called)
    return LogCause(
        "DatabaseFailing",
        BoundSetting(ref, "log" if ref == view.ref else "process", said.line),
        0.8,
        f"{ref.display} is not in order",
        facts={"caller": view.ref.display},
        refuted_by=(f"{ref.display} starts and answers queries.",),
    )


def overload(view: LogView, said: LogFinding) -> LogCause:
    """More work than it can do, in its own words."""
    return LogCause(
        "Overloaded",
        BoundSetting(view.ref, "spec.replicas", said.line),
        0.75,
        "it is given more work than it can do",
        refuted_by=("The load is as always, and it has room for more.",),
        actions=("ScaleReplicas", "PatchHPA"),
    )


def database_object(view: LogView, said: LogFinding) -> LogCause | None:
    """A database of a name that its server does not have."""
    name = next(iter(said.named.values()), "")
    called = _database(view, said, SQL)
    if called is None and not is_database(view.container.pod, SQL):
        return None
    place = place_of(view.snapshot, view.container, name)
    ref = _database_ref(view, called)
    found = place or BoundSetting(ref, "process", name)
    return LogCause(
        "DatabaseFailing" if place is None else "AddressMisconfigured",
        found,
        0.75,
        f"{found.ref.display} {found.field}: database {name} does not exist in {ref.display}",
        facts={"database": name, **held(place)},
        refuted_by=(f"Database {name} exists.",),
        actions=("PatchConfiguration",),
    )


def rbac(view: LogView, said: LogFinding) -> LogCause:
    """A right that the API server refuses to the account of the pod."""
    named = said.named
    ref = TargetRef(api_version="v1", kind="ServiceAccount", name=named["account"], namespace=named["namespace"])
    right = f"{named['verb']} {named['resource']}"
    return LogCause(
        "RBACDenied",
        BoundSetting(ref, "rules", right),
        0.8,
        f"{ref.display} of {view.ref.display} may not {right}",
        facts={"verb": named["verb"], "resource": named["resource"]},
        refuted_by=(f"A role that is bound to the account allows it to {right}.",),
        actions=("RestoreRoleBinding",),
    )


TOKEN_PLACE: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
_AUTOMOUNT: Final = "automountServiceAccountToken"


def without_token(view: LogView) -> LogCause | None:
    """A client of the API server whose pod is given no token: by its own spec, else by its account."""
    pod, container = view.container.pod, view.container.spec
    spec = pod.spec
    if any(str(each.get("mountPath")).rstrip("/") == TOKEN_PLACE for each in container.get("volumeMounts") or ()):
        return None
    name = str(spec.get("serviceAccountName") or "default")
    account = view.snapshot.find(TargetRef(kind="ServiceAccount", name=name, namespace=pod.namespace or None))
    holder = pod if _AUTOMOUNT in spec else account
    given = spec.get(_AUTOMOUNT) if _AUTOMOUNT in spec else (account.object.get(_AUTOMOUNT) if account else None)
    if holder is None or given is not False:
        return None
    ref = view.ref if holder is pod else holder.ref
    field = pod_field(ref, _AUTOMOUNT) if holder is pod else _AUTOMOUNT
    return LogCause(
        "CredentialsInvalid",
        BoundSetting(ref, field, "false"),
        0.9,
        f"{ref.display} {field} = false gives {view.owner} no token of ServiceAccount {name}, and it asks the API "
        f"server",
        citations=cited(view.snapshot, holder.evidence, f'"{_AUTOMOUNT}":false'),
        facts={"serviceAccount": name},
        refuted_by=(f"A token stands under {TOKEN_PLACE} in the container, or it has a kubeconfig of its own.",),
        actions=("PatchConfiguration",),
    )
