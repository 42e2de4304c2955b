"""Admission policies: who may create, decide and write status, asked by the API server itself.

No webhook, so nothing can be away. A policy cannot guard policies, therefore the operator looks for
them (`not_in_force`) at start and every minute, and acts on no approval while one is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from inquest.api.approval import (
    MAX_ENTRIES,
    MAX_EXTRA,
    MAX_EXTRA_KEY,
    MAX_EXTRA_VALUE,
    MAX_EXTRA_VALUES,
    MAX_GROUP,
    MAX_GROUPS,
    MAX_UID,
)
from inquest.api.base import GROUP
from inquest.api.installation import EXECUTION_NAMESPACE, INVESTIGATOR_ACCOUNT, NAMESPACE, SERVICE_ACCOUNT
from inquest.api.names import JOURNAL_LABEL, REQUESTER_ANNOTATION

Manifest = dict[str, Any]
_API: Final = "admissionregistration.k8s.io/v1"
_REQUESTS: Final = "remediationapprovalrequests"


def render_policies(
    namespace: str = NAMESPACE,
    service_account: str = SERVICE_ACCOUNT,
    execution_namespace: str = EXECUTION_NAMESPACE,
    investigator: str = INVESTIGATOR_ACCOUNT,
) -> list[Manifest]:
    """The seven validating policies, each with its binding."""
    operator = _account(namespace, service_account)
    own = [operator, _account(namespace, investigator)]
    return [
        *_bound("inquest-approval-decision", _decision(own, execution_namespace)),
        *_bound("inquest-approval-create", _creation(operator)),
        *_bound("inquest-status", _status(operator)),
        *_bound("inquest-feedback", _feedback()),
        *_bound("inquest-requester", _requester(operator)),
        *_bound("inquest-journal", _journal(operator)),
        *_bound("inquest-workflow-account", _workflow_account(execution_namespace)),
    ]


def render_mutating(namespace: str = NAMESPACE, service_account: str = SERVICE_ACCOUNT) -> list[Manifest]:
    """The policies that write a user's name down; for servers that serve them (1.36 and later)."""
    return [
        *_mutating("inquest-approval-signature", _signature()),
        *_mutating("inquest-requester-signature", _requester_signature(_account(namespace, service_account))),
    ]


def _mutating(name: str, spec: Manifest) -> list[Manifest]:
    policy = {"apiVersion": _API, "kind": "MutatingAdmissionPolicy", "metadata": {"name": name}, "spec": spec}
    binding = {"apiVersion": _API, "kind": "MutatingAdmissionPolicyBinding", "metadata": {"name": name}}
    return [policy, binding | {"spec": {"policyName": name}}]


_USER: Final = "request.userInfo.username"
_DECIDES: Final = "has(object.spec.decision) && !has(oldObject.spec.decision)"
_ENTERED_BEFORE: Final = "has(oldObject.spec.approvals) && oldObject.spec.approvals.exists(b, b.user == a.user)"
_UNSIGNED: Final = f"a.user == {_USER} && !has(a.identity) && !({_ENTERED_BEFORE})"
_ENTRIES: Final = "(has(object.spec.approvals) ? object.spec.approvals : [])"
_OF_USER: Final = (
    {"name": "uid", "expression": "has(request.userInfo.uid) ? request.userInfo.uid : ''"},
    {"name": "groups", "expression": "has(request.userInfo.groups) ? request.userInfo.groups : []"},
    {"name": "extra", "expression": "has(request.userInfo.extra) ? request.userInfo.extra : {}"},
    {
        "name": "fits",
        "expression": f"size(variables.uid) <= {MAX_UID} && size(variables.groups) <= {MAX_GROUPS}"
        f" && variables.groups.all(g, size(g) <= {MAX_GROUP}) && size(variables.extra) <= {MAX_EXTRA}"
        f" && variables.extra.all(k, size(k) <= {MAX_EXTRA_KEY} && size(variables.extra[k]) <= {MAX_EXTRA_VALUES}"
        f" && variables.extra[k].all(v, size(v) <= {MAX_EXTRA_VALUE}))",
    },
)
"""What is known of whoever asks; what they do not have is empty. And whether a request can hold all of it."""
_IDENTITY: Final = (
    "{?'uid': has(request.userInfo.uid) ? optional.of(dyn(request.userInfo.uid)) : optional.none(),"
    " 'groups': dyn(variables.groups),"
    " ?'extra': has(request.userInfo.extra) ? optional.of(dyn(request.userInfo.extra)) : optional.none()}"
)


def _signature() -> Manifest:
    """A decision, or an entry among several, that does not say whose it is gets name, uid, groups and extra."""
    # Whatever is forged must stay, so that it is refused.
    own = f"(!has(object.spec.decidedBy) || object.spec.decidedBy == {_USER})"
    named = f"variables.decides && !has(object.spec.decidedBy) ? [{_added('decidedBy', _USER)}] : []"
    identity = _added("deciderIdentity", "variables.identity")
    known = f"variables.decides && {own} && !has(object.spec.deciderIdentity) ? [{identity}] : []"
    entry = "JSONPatch{op: 'add', path: '/spec/approvals/' + string(i) + '/identity', value: variables.identity}"
    entries = f"variables.unsigned.map(i, {entry})"
    numbers = ", ".join(map(str, range(MAX_ENTRIES)))
    unsigned = f"[{numbers}].filter(i, i < size({_ENTRIES}) && [{_ENTRIES}[i]].exists(a, {_UNSIGNED}))"
    return _matching("UPDATE", _REQUESTS) | {
        "reinvocationPolicy": "Never",
        "matchConditions": [{"name": "acts", "expression": f"({_DECIDES}) || {_ENTRIES}.exists(a, {_UNSIGNED})"}],
        "variables": [
            *_OF_USER,
            {"name": "decides", "expression": _DECIDES},
            {"name": "identity", "expression": _IDENTITY},
            {"name": "unsigned", "expression": unsigned},
        ],
        "mutations": [
            {
                "patchType": "JSONPatch",
                "jsonPatch": {"expression": f"variables.fits ? ({named}) + ({known}) + {entries} : []"},
            },
        ],
    }


def _added(field: str, value: str) -> str:
    return f"JSONPatch{{op: 'add', path: '/spec/{field}', value: {value}}}"


def _requester_signature(operator: str) -> Manifest:
    """Who creates a Signal or an Investigation is written down; the operator carries on what a Signal says."""
    key, user = f"'{REQUESTER_ANNOTATION}'", "request.userInfo.username"
    path = f"'/metadata/annotations/' + jsonpatch.escapeKey({key})"
    one, whole = f"JSONPatch{{op: 'add', path: {path}, value: {user}}}", f"{{{key}: {user}}}"
    there = "has(object.metadata.annotations) && size(object.metadata.annotations) > 0"
    first = f"JSONPatch{{op: 'add', path: '/metadata/annotations', value: {whole}}}"
    return _for_both("CREATE") | {
        "reinvocationPolicy": "Never",
        "matchConditions": [
            {"name": "unsigned", "expression": f"!({_NAMED.format('object')})"},
            {"name": "not-carried", "expression": f"request.resource.resource == 'signals' || !({_is(operator)})"},
        ],
        "mutations": [
            {
                "patchType": "JSONPatch",
                "jsonPatch": {"expression": f"{there} ? [{one}] : [{first}]"},
            }
        ],
    }


def not_in_force(found: Iterable[Mapping[str, Any]], wanted: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """`Kind/name` of every wanted policy or binding that is missing or says something else."""
    there = {_identity(one): one.get("spec") for one in found}
    return tuple(_identity(one) for one in wanted if not _says_the_same(there.get(_identity(one)), one["spec"]))


def _identity(found: Mapping[str, Any]) -> str:
    return f"{found['kind']}/{found['metadata']['name']}"


_FILLED_IN: Final[Mapping[str, Any]] = {
    "matchPolicy": "Equivalent",
    "namespaceSelector": {},
    "objectSelector": {},
    "scope": "*",
}
"""What the API server adds to a policy by itself; any other addition is somebody's exception."""


def _says_the_same(found: object, wanted: object) -> bool:
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        added = {key: value for key, value in found.items() if key not in wanted}
        same = all(key in found and _says_the_same(found[key], wanted[key]) for key in wanted)
        return same and all(key in _FILLED_IN and value == _FILLED_IN[key] for key, value in added.items())
    if isinstance(wanted, list) and isinstance(found, list):
        return len(found) == len(wanted) and all(map(_says_the_same, found, wanted))
    return found == wanted


# --- the four ---------------------------------------------------------------------------------------------


def _same(path: str) -> str:
    """Whether a list of both objects is as it was; an absent one is empty."""
    now, before = (f"(has({one}.{path}) ? {one}.{path} : [])" for one in ("object", "oldObject"))
    return f"{now} == {before}"


def _decision(own: list[str], execution_namespace: str) -> Manifest:
    """A person decides: as themselves, with the right to, while the request is open, and does not remove it."""
    names = ", ".join(f"'{name}'" for name in own)
    runners = _account(execution_namespace, "")
    variables = {
        "ours": f"{_USER} in [{names}] || {_USER}.startsWith('{runners}')",
        "decides": _DECIDES,
        "entered": f"{_ENTRIES}.filter(a, !({_ENTERED_BEFORE}))",
        "acts": "variables.decides || size(variables.entered) > 0",
        "approves": "size(variables.entered) > 0 || (variables.decides && object.spec.decision == 'Approved')",
        "separate": "has(object.spec.separateRequester) && object.spec.separateRequester",
        "requester": "has(object.spec.requestedBy) ? object.spec.requestedBy : ''",
        "tied": f"{_same('metadata.finalizers')} && {_same('metadata.ownerReferences')}",
        "may": _asked("approve"),
        "mayRemove": _asked("delete"),
    }
    return _matching("UPDATE", _REQUESTS) | {
        "variables": [*_OF_USER, *({"name": name, "expression": text} for name, text in variables.items())],
        "validations": [*_rights(), *_signed(), *_separation()],
        "auditAnnotations": [
            {
                "key": "decision",
                "valueExpression": "variables.decides && has(object.spec.decidedBy)"
                " ? object.spec.decision + ' by ' + object.spec.decidedBy : ''",
            }
        ],
    }


def _rights() -> list[Manifest]:
    """Who may act at all, and while what."""
    lacks = (
        f"{_USER} + ' may not approve {_REQUESTS}.{GROUP} \"' + object.metadata.name + '\" in namespace '"
        " + object.metadata.namespace + ': the verb approve is missing there, which the role inquest-approver gives."
        " Nothing was decided, and somebody else can decide'"
    )
    return [
        _refuse("!variables.acts || !variables.ours", "spec.decision: Inquest's own accounts do not decide"),
        _refuse(
            "!variables.acts || variables.may", "spec.decision: deciding needs the verb approve on this request", lacks
        ),
        _refuse(
            "!variables.acts || (has(oldObject.status) && has(oldObject.status.phase)"
            " && oldObject.status.phase == 'Pending')",
            "spec.decision: only a request with status.phase Pending is decided: this one is closed, or so new that it"
            " has no status yet: then try again",
        ),
        _refuse(
            "variables.tied || variables.ours || variables.mayRemove",
            "metadata.finalizers, metadata.ownerReferences: changing them needs the verb delete on this request",
        ),
    ]


def _signed() -> list[Manifest]:
    """Name, uid, groups and extra are those of whoever asks, in the decision and in every new entry."""
    whose = "must be your own uid, groups and extra, all of them: `kubectl inquest approve` fills them in"
    return [
        _refuse(
            f"!variables.decides || (has(object.spec.decidedBy) && object.spec.decidedBy == {_USER})",
            "spec.decidedBy must be your own user name",
            f"'spec.decidedBy must be ' + {_USER}",
        ),
        _refuse(f"variables.entered.all(a, a.user == {_USER})", "spec.approvals: enter only yourself"),
        _refuse(
            "!variables.acts || variables.fits",
            f"spec.decision: more is known of you than a request can hold ({MAX_GROUPS} groups of {MAX_GROUP}"
            f" characters, {MAX_EXTRA} extra fields of {MAX_EXTRA_VALUES} values): decide with a login that has less",
        ),
        _refuse(
            f"!variables.decides || ({_is_own('object.spec', 'deciderIdentity')})", f"spec.deciderIdentity {whose}"
        ),
        _refuse(f"variables.entered.all(a, {_is_own('a', 'identity')})", f"spec.approvals: identity {whose}"),
    ]


def _is_own(parent: str, field: str) -> str:
    """Whether that identity is there and is the one of whoever asks; the order of groups does not count."""

    def said(name: str, empty: str) -> str:
        return f"(has({parent}.{field}.{name}) ? {parent}.{field}.{name} : {empty})"

    return (
        f"has({parent}.{field}) && {said('uid', chr(39) * 2)} == variables.uid"
        f" && sets.equivalent({said('groups', '[]')}, variables.groups)"
        f" && {said('extra', '{}')} == variables.extra"
    )


def _separation() -> list[Manifest]:
    """Who asked does not approve, where the request says so; nobody does where that is not on record."""
    return [
        _refuse(
            "!variables.approves || !variables.separate || variables.requester != ''",
            "spec.decision: who asked for this is not on record, and who asked may not approve"
            " (approval.separate_requester): nobody can approve it, anybody who may can reject it",
        ),
        _refuse(
            f"!variables.approves || !variables.separate || variables.requester != {_USER}",
            "spec.decision: you asked for this, and who asked may not approve",
            f"{_USER} + ' asked for this, and who asked may not approve (approval.separate_requester):"
            " somebody else has to'",
        ),
    ]


def _asked(verb: str) -> str:
    """Whether whoever asks has this verb on the request."""
    return (
        f"authorizer.group('{GROUP}').resource('{_REQUESTS}').namespace(object.metadata.namespace)"
        f".name(object.metadata.name).check('{verb}').allowed()"
    )


def _creation(operator: str) -> Manifest:
    """The operator proposes, and proposes undecided."""
    fields = ("decision", "decisionReason", "decidedBy", "deciderIdentity", "approvals")
    return _matching("CREATE", _REQUESTS) | {
        "validations": [
            _refuse(_is(operator), "approval requests are created by the operator alone"),
            _refuse(
                " && ".join(f"!has(object.spec.{field})" for field in fields),
                "spec.decision, spec.decisionReason, spec.decidedBy, spec.deciderIdentity and spec.approvals"
                " are absent at creation",
            ),
        ]
    }


def _status(operator: str) -> Manifest:
    """Status is observed by the operator."""
    return _matching("UPDATE", "*/status") | {
        "validations": [_refuse(_is(operator), "status is written by the operator alone")]
    }


def _feedback() -> Manifest:
    """Feedback carries the name of who gave it."""
    new = "has(object.spec.feedback) && !has(oldObject.spec.feedback)"
    return _matching("UPDATE", "investigations") | {
        "validations": [
            {
                "expression": f"!({new}) || object.spec.feedback.by == request.userInfo.username",
                "messageExpression": "'spec.feedback.by must be ' + request.userInfo.username",
                "message": "spec.feedback.by must be your own user name",
                "reason": "Forbidden",
            }
        ]
    }


_NAMED: Final = f"has({{0}}.metadata.annotations) && '{REQUESTER_ANNOTATION}' in {{0}}.metadata.annotations"
_NAME: Final = f"({_NAMED} ? {{0}}.metadata.annotations['{REQUESTER_ANNOTATION}'] : '')"


def _requester(operator: str) -> Manifest:
    """Nobody says that another asked, and nobody changes afterwards who did."""
    named = _NAME.format("object")
    text = f"metadata.annotations: {REQUESTER_ANNOTATION}"
    return _for_both("CREATE", "UPDATE") | {
        "validations": [
            _refuse(
                f"request.operation != 'CREATE' || {named} in ['', request.userInfo.username] || {_is(operator)}",
                f"{text} must be your own user name",
            ),
            _refuse(
                f"request.operation != 'UPDATE' || {named} == {_NAME.format('oldObject')}",
                f"{text} stays as it was at creation",
            ),
        ]
    }


def _for_both(*operations: str) -> Manifest:
    rule = {
        "apiGroups": [GROUP],
        "apiVersions": ["*"],
        "operations": list(operations),
        "resources": ["signals", "investigations"],
    }
    return {"failurePolicy": "Fail", "matchConstraints": {"resourceRules": [rule]}}


def _journal(operator: str) -> Manifest:
    """A slot is written once, by the operator: whoever could write one ahead could forge what a case decided."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]}
    labelled = {"matchExpressions": [{"key": JOURNAL_LABEL, "operator": "Exists"}]}
    return {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule], "objectSelector": labelled},
        "validations": [
            _refuse(
                f"request.operation == 'CREATE' && {_is(operator)}",
                "slots of the journal are written once, by the operator alone",
            )
        ],
    }


def _workflow_account(execution_namespace: str) -> Manifest:
    """A workflow lends its author what its Job holds: an account, Secrets, with a pod template a whole pod."""
    account, needed = "object.spec.execution.serviceAccountName", "object.spec.dependencies"
    there = f"in namespace {execution_namespace}: an administrator applies this workflow, or gives that right"

    def may(verb: str, resource: str, name: str = "") -> str:
        what = f"authorizer.group('').resource('{resource}').namespace('{execution_namespace}')"
        return f"{what}{f'.name({name})' if name else ''}.check('{verb}').allowed()"

    def lacks(field: str, what: str) -> str:
        return f"'{field}: ' + {_USER} + ' may not {what} {there}'"

    return _matching("CREATE", "remediationworkflows", "UPDATE") | {
        "variables": [
            {"name": "account", "expression": f"has({account}) ? {account} : ''"},
            {"name": "secrets", "expression": f"has({needed}) && has({needed}.secrets) ? {needed}.secrets : []"},
            {"name": "kept", "expression": "request.operation == 'UPDATE' && object.spec == oldObject.spec"},
        ],
        "validations": [
            _refuse(
                "variables.kept || variables.account == '' || "
                + may("impersonate", "serviceaccounts", "variables.account"),
                "spec.execution.serviceAccountName: writing a workflow takes the right to impersonate its account",
                lacks(
                    "spec.execution.serviceAccountName",
                    "impersonate serviceaccounts \"' + variables.account + '\"",
                ),
            ),
            _refuse(
                f"variables.kept || variables.secrets.all(s, {may('get', 'secrets', 's')})",
                "spec.dependencies.secrets: writing a workflow takes the right to get its Secrets",
                lacks("spec.dependencies.secrets", "get all of these secrets"),
            ),
            _refuse(
                f"variables.kept || !has(object.spec.execution.podTemplate) || {may('create', 'pods')}",
                "spec.execution.podTemplate: writing a workflow with one takes the right to create pods",
                lacks("spec.execution.podTemplate", "create pods"),
            ),
        ],
    }


def _bound(name: str, spec: Manifest) -> list[Manifest]:
    policy = {"apiVersion": _API, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}, "spec": spec}
    binding = {"apiVersion": _API, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name}}
    return [policy, binding | {"spec": {"policyName": name, "validationActions": ["Deny", "Audit"]}}]


def _matching(operation: str, resource: str, *more: str) -> Manifest:
    rule = {"apiGroups": [GROUP], "apiVersions": ["*"], "operations": [operation, *more], "resources": [resource]}
    return {"failurePolicy": "Fail", "matchConstraints": {"resourceRules": [rule]}}


def _refuse(unless: str, message: str, words: str = "") -> Manifest:
    """`words` is the CEL that says it better; the message stands in for it."""
    said = {"messageExpression": words} if words else {}
    return {"expression": unless, **said, "message": message, "reason": "Forbidden"}


def _is(user: str) -> str:
    return f"request.userInfo.username == '{user}'"


def _account(namespace: str, name: str) -> str:
    return f"system:serviceaccount:{namespace}:{name}"
