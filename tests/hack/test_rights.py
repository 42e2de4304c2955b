"""What an audit log says of rights: read, matched and judged, without a cluster."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack import HackError
from hack.cluster.audit import FILES
from hack.rights.audit import Asked, Entry, entries
from hack.rights.grants import Right, rights
from hack.rights.judging import Excuse, Known, Refusal, Run, judge, owed
from hack.rights.known import KNOWN
from hack.rights.standing import written
from inquest.api.manifests.rbac import INVESTIGATOR, render_datastorage, render_rbac
from tests.support.tables import each_row

ROOT = Path(__file__).resolve().parents[2]
ME = "inquest-system:inquest"
AT = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)


def line(**changes: Any) -> str:
    found = {
        "kind": "Event",
        "stage": "ResponseComplete",
        "requestURI": "/apis/apps/v1/namespaces/shop/deployments/cart/scale?x=1",
        "verb": "get",
        "user": {"username": f"system:serviceaccount:{ME}"},
        "objectRef": {
            "resource": "deployments",
            "subresource": "scale",
            "apiGroup": "apps",
            "namespace": "shop",
            "name": "cart",
        },
        "responseStatus": {"code": 200},
        "requestReceivedTimestamp": "2026-05-04T03:02:01.000000Z",
        "annotations": {
            "authorization.k8s.io/decision": "allow",
            "authorization.k8s.io/reason": 'RBAC: allowed by ClusterRoleBinding "a" of ClusterRole "a" to '
            'ServiceAccount "inquest/inquest-system"',
        },
        **changes,
    }
    return json.dumps(found) + "\n"


def entry(verb: str = "get", resource: str = "pods", group: str = "", namespace: str = "shop", **changes: Any) -> Entry:
    account, name = changes.pop("account", ME), changes.pop("name", "")
    by = 'RBAC: allowed by ClusterRoleBinding "x" of ClusterRole "x" to ServiceAccount "inquest/inquest-system"'
    found = Entry(Asked(account, verb, group, resource, namespace, name), AT, 200, "allow", by, "")
    return replace(found, **changes)


FORBIDDEN: dict[str, Any] = {"code": 403, "decision": "forbid", "by": "", "message": "pods is forbidden"}


def right(verb: str = "get", resource: str = "pods", **changes: Any) -> Right:
    return replace(Right(ME, "role", "", "", resource, verb), **changes)


# --- the log --------------------------------------------------------------------------------------------------------


def test_a_line_of_the_log_says_who_asked_for_what_and_by_which_binding() -> None:
    (found,) = entries([line()])

    assert found.asked == Asked(ME, "get", "apps", "deployments/scale", "shop", "cart")
    assert (found.at, found.code, found.is_allowed, found.is_refused) == (AT, 200, True, False)
    assert found.is_everybodys is False


def test_a_request_for_no_resource_is_told_by_its_path() -> None:
    (found,) = entries([line(objectRef=None, requestURI="/apis?timeout=5s")])

    assert (found.asked.resource, found.asked.group) == ("/apis", "")


def test_only_service_accounts_are_told_of() -> None:
    assert not list(entries([line(user={"username": "jane"})]))


@pytest.mark.parametrize(
    ("answer", "notes", "refused", "allowed"),
    [
        pytest.param({"code": 403}, {"authorization.k8s.io/decision": "forbid"}, True, False, id="by RBAC"),
        pytest.param({"code": 403}, {"authorization.k8s.io/decision": "allow"}, True, True, id="by admission"),
        pytest.param({"code": 404}, {"authorization.k8s.io/decision": "allow"}, False, True, id="not found"),
        pytest.param({"code": 429}, {}, False, False, id="too many at once"),
    ],
)
def test_forbidden_is_what_was_answered_so(
    answer: dict[str, int], notes: dict[str, str], refused: bool, allowed: bool
) -> None:
    (found,) = entries([line(responseStatus=answer, annotations=notes)])

    assert (found.is_refused, found.is_allowed) == (refused, allowed)


def test_a_last_line_that_is_being_written_is_left_out() -> None:
    assert len(list(entries([line(), line()[:40]]))) == 1


@pytest.mark.parametrize("broken", [pytest.param("{\n", id="whole"), pytest.param("{", id="without its end")])
def test_a_line_that_cannot_be_read_may_hide_a_refusal(broken: str) -> None:
    with pytest.raises(HackError, match="line 1"):
        list(entries([broken, line()]))


def test_full_files_are_read_before_the_one_that_grows(tmp_path: Path) -> None:
    log = tmp_path / "requests.log"
    log.write_text(line(verb="list"))
    (tmp_path / "requests-2026-05-04T03-02-01.000.log").write_text(line())

    assert [found.asked.verb for found in written(log)] == ["get", "list"]


def test_a_log_whose_oldest_files_may_be_gone_proves_nothing(tmp_path: Path) -> None:
    log = tmp_path / "requests.log"
    log.write_text(line())
    for number in range(FILES):
        (tmp_path / f"requests-{number}.log").write_text(line())

    with pytest.raises(HackError, match="may have been deleted"):
        list(written(log))


def test_a_log_that_is_not_there_is_no_empty_one(tmp_path: Path) -> None:
    with pytest.raises(HackError, match="is not there"):
        list(written(tmp_path / "requests.log"))


# --- rights ---------------------------------------------------------------------------------------------------------

HOMES = ("inquest-system", "inquest-workflows")


def test_each_verb_on_each_resource_of_the_products_roles_is_a_right_of_its_own() -> None:
    found = rights(render_rbac(), HOMES)

    assert {one.account for one in found} == {ME}
    given = {(rule.group, kind, verb) for rule in INVESTIGATOR for kind in rule.resources for verb in rule.verbs}
    read = {(one.group, one.resource, one.verb) for one in found if one.role == "inquest-investigator"}
    assert read == given
    assert right("list", role="inquest-execution", namespace="inquest-workflows") in found
    assert {one.namespace for one in found if one.role == "inquest-execution"} == {"inquest-workflows"}


def test_a_right_to_a_named_object_is_another_one_than_to_all() -> None:
    found = rights(render_datastorage(), HOMES)

    (named,) = [one for one in found if one.name]
    assert named.permits(Asked(ME, "create", "", "services", "inquest-system", "data-storage-service"))
    assert not named.permits(Asked(ME, "create", "", "services", "inquest-system", "other"))


def test_accounts_of_other_namespaces_are_not_ours() -> None:
    assert not rights(render_rbac(), ["shop"])


def bound(role: str, *subjects: dict[str, str], kind: str = "ClusterRole", namespace: str = "") -> dict[str, Any]:
    of = {"namespace": namespace} if namespace else {}
    form = "RoleBinding" if namespace else "ClusterRoleBinding"
    return {
        "kind": form,
        "metadata": {"name": role, **of},
        "roleRef": {"kind": kind, "name": role},
        "subjects": list(subjects),
    }


def role(name: str, rule: dict[str, list[str]], kind: str = "ClusterRole", namespace: str = "") -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": name, "namespace": namespace}, "rules": [rule]}


PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
ACCOUNT = {"kind": "ServiceAccount", "name": "inquest", "namespace": "inquest-system"}


def test_a_cluster_role_that_is_bound_in_a_namespace_holds_there_alone() -> None:
    (found,) = rights([role("r", PODS), bound("r", ACCOUNT, namespace="shop")], HOMES)

    assert found.permits(Asked(ME, "get", "", "pods", "shop"))
    assert not found.permits(Asked(ME, "get", "", "pods", "pay"))
    assert not found.permits(Asked(ME, "get", "", "pods"))


def test_an_account_can_be_bound_as_a_user_and_without_its_namespace() -> None:
    as_user = {"kind": "User", "name": f"system:serviceaccount:{ME}"}
    near = {"kind": "ServiceAccount", "name": "inquest"}

    assert rights([role("r", PODS), bound("r", as_user)], HOMES) == {right(role="r")}
    (found,) = rights([role("r", PODS), bound("r", near, namespace="inquest-system")], HOMES)
    assert found.account == ME


def test_a_role_of_another_namespace_and_one_that_is_gone_give_nothing() -> None:
    elsewhere = role("r", PODS, "Role", "pay")

    assert not rights([elsewhere, bound("r", ACCOUNT, kind="Role", namespace="shop")], HOMES)
    assert not rights([bound("gone", ACCOUNT)], HOMES)


def test_a_path_is_a_right_everywhere_only() -> None:
    paths = {"nonResourceURLs": ["/healthz", "/api/*"], "verbs": ["get"]}
    found = rights([role("r", paths), bound("r", ACCOUNT)], HOMES)

    assert {one.resource for one in found} == {"/healthz", "/api/*"}
    assert any(one.permits(Asked(ME, "get", "", "/api/v1")) for one in found)
    assert not rights([role("r", paths), bound("r", ACCOUNT, namespace="shop")], HOMES)


@each_row(
    ("given", "permitted"),
    [
        pytest.param(right(resource="pods/log"), True, id="the subresource"),
        pytest.param(right(resource="pods"), False, id="the resource alone"),
        pytest.param(right(resource="*/log"), True, id="that subresource of any"),
        pytest.param(right(resource="*"), True, id="any resource"),
        pytest.param(right(resource="pods/log", verb="*"), True, id="any verb"),
        pytest.param(right(resource="pods/log", verb="list"), False, id="another verb"),
        pytest.param(right(resource="pods/log", group="apps"), False, id="another group"),
        pytest.param(right(resource="pods/log", account="inquest-workflows:drain"), False, id="another account"),
    ],
)
def test_a_right_permits_what_kubernetes_says_it_does(given: Right, permitted: bool) -> None:
    assert given.permits(Asked(ME, "get", "", "pods/log", "shop", "cart-1")) is permitted


# --- the verdict ----------------------------------------------------------------------------------------------------


NONE = Known()


def judged(given: set[Right], *found: Entry, known: Known = NONE) -> dict[str, tuple[str, ...]]:
    verdict = judge(Run(frozenset(given), found), known)
    return {name: getattr(verdict, name) for name in ("refused", "strange", "unused", "stale", "apart")}


NOTHING: dict[str, tuple[str, ...]] = dict.fromkeys(("refused", "strange", "unused", "stale", "apart"), ())


def test_rights_that_were_all_used_are_no_news() -> None:
    verdict = judge(Run(frozenset({right()}), (entry(),)), Known())

    assert verdict.faults() == []
    assert verdict.lines() == ["rights: 1 of 1 in use, 0 excused"]


def test_a_right_that_nobody_used_is_told_with_its_role() -> None:
    found = judged({right(), right("watch")}, entry())

    assert found == {**NOTHING, "unused": (f"{ME}: watch pods everywhere (role role)",)}


def test_a_request_that_was_refused_uses_no_right() -> None:
    found = judged({right()}, entry(**FORBIDDEN))

    assert found["unused"]


def test_a_request_that_admission_refused_did_use_its_right_and_was_refused() -> None:
    found = judged({right()}, entry(code=403, message="denied"))

    assert (found["unused"], len(found["refused"])) == ((), 1)


def test_equal_refusals_are_told_once_with_their_number() -> None:
    found = judged(set(), entry("list", **FORBIDDEN), entry("list", **FORBIDDEN), entry("watch", **FORBIDDEN))

    assert found["refused"] == (
        f"{ME} may not list pods in shop (2 times, first at 03:02:01): pods is forbidden",
        f"{ME} may not watch pods in shop (1 times, first at 03:02:01): pods is forbidden",
    )


def test_a_refusal_is_expected_only_in_the_words_that_are_known() -> None:
    row = Refusal("*", ("create",), "", ("events",), "being terminated", "the namespace goes")
    going = entry("create", "events", **{**FORBIDDEN, "message": "because it is being terminated"})

    assert judged(set(), going, known=Known((row,)))["refused"] == ()
    assert judged(set(), replace(going, message="no right"), known=Known((row,)))["refused"]


def test_what_was_allowed_by_no_right_that_was_read_is_told() -> None:
    assert len(judged(set(), entry())["strange"]) == 1


def test_what_kubernetes_gives_to_everybody_needs_no_right_of_ours() -> None:
    everybody = entry(resource="/api", by='RBAC: allowed by … to Group "system:authenticated"')

    assert judged(set(), everybody) == NOTHING


def test_a_right_wider_than_any_request_is_never_shown_in_use() -> None:
    assert judged({right("*")}, entry())["unused"]
    assert judged({right(resource="*")}, entry())["unused"]


def test_two_rights_that_allow_the_same_are_both_in_use() -> None:
    assert judged({right(), right(role="other")}, entry()) == NOTHING


def test_a_wide_right_is_not_in_use_where_a_narrow_one_is_enough() -> None:
    given = {right(), right(namespace="shop", role="home")}

    assert judged(given, entry())["unused"] == (right().text,)
    assert judged(given, entry(), entry(namespace="pay")) == NOTHING


OPTIONAL = Known(optional={"argoproj.io": "Argo CD's"})


def test_optional_groups_are_told_apart_once_each() -> None:
    given = {right(verb, "rollouts", group="argoproj.io") for verb in ("get", "list")}

    assert judged(given, known=OPTIONAL) == {**NOTHING, "apart": ("argoproj.io: Argo CD's",)}


def test_an_optional_group_in_which_nobody_has_a_right_is_stale() -> None:
    assert judged({right()}, entry(), known=OPTIONAL)["stale"] == ("no account has a right in argoproj.io",)


WATCH = Excuse("*:inquest", "", ("pods",), ("watch",), "nothing changes here")


def test_a_right_that_cannot_be_used_is_excused_with_its_reason() -> None:
    found = judged({right("watch")}, known=Known(unusable=(WATCH,)))

    assert found == {**NOTHING, "apart": (f"{ME}: watch pods everywhere (role role): nothing changes here",)}


def test_an_excuse_for_what_was_used_is_stale() -> None:
    (told,) = judged({right("watch")}, entry("watch"), known=Known(unusable=(WATCH,)))["stale"]

    assert told.startswith(f"in use after all: {ME}: watch pods")


def test_an_excuse_for_a_right_that_no_account_has_is_stale() -> None:
    (told,) = judged({right()}, entry(), known=Known(unusable=(WATCH,)))["stale"]

    assert told.startswith("no account has such a right: *:inquest: watch pods")


def test_an_excuse_for_an_account_that_is_not_installed_is_not_looked_at() -> None:
    assert judged({right()}, entry(), known=Known(unusable=(replace(WATCH, account="*:other"),))) == NOTHING


THERE = Known(elsewhere=(replace(WATCH, tier="make scenarios"),))


def test_what_another_tier_shows_in_use_is_owed_by_that_tier_alone() -> None:
    given = frozenset({right(), right("watch")})

    assert judged({right("watch")}, known=THERE)["unused"] == ()
    assert owed(Run(given, (entry(),)), THERE, "make scenarios") == [f"{ME}: watch pods everywhere (role role)"]
    assert owed(Run(given, (entry("watch"),)), THERE, "make scenarios") == []
    assert owed(Run(given, ()), THERE, "make test") == []


def test_what_another_tier_shows_in_use_may_be_used_here_too() -> None:
    assert judged({right("watch")}, entry("watch"), known=THERE) == NOTHING


def test_no_excuse_is_about_a_right_wider_than_any_request() -> None:
    anything = replace(WATCH, resources=("*",), verbs=("*",))

    assert anything.holds(right("watch"))
    assert not anything.holds(right("*"))


def test_every_excuse_of_ours_is_about_a_right_that_is_given() -> None:
    catalogue = yaml.safe_load_all((ROOT / "catalogue" / "rbac.yaml").read_text())
    given = rights([*render_rbac(), *render_datastorage(), *catalogue], HOMES)
    rows = (*KNOWN.unusable, *KNOWN.elsewhere)

    assert set(KNOWN.optional) <= {one.group for one in given}
    assert [row.text for row in rows if not any(row.holds(one) for one in given)] == []
