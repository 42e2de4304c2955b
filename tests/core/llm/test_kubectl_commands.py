"""What a line of kubectl would do (behaviours, 15.4 and 19.6)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquest.core.llm.kubectl_commands import Command, CommandEffect, judged, label_commands

READ, WRITE, REFUSED = CommandEffect.READ, CommandEffect.WRITE, CommandEffect.REFUSED


@pytest.mark.parametrize(
    ("line", "effect"),
    [
        pytest.param("kubectl delete pod x --dry-run=none", WRITE, id="A03+T13"),
        pytest.param("kubectl delete pod x --dry-run=none --dry-run=server", READ, id="A03+T14 the last counts"),
        pytest.param("kubectl delete pod x --dry-run=client --dry-run=none", WRITE, id="A03+T14 the last is none"),
        pytest.param("kubectl delete --dry-run=server pod x --wait --dry-run=none", WRITE, id="T14 far apart"),
        pytest.param("kubectl delete pod x --dry-run", WRITE, id="T13 without a value"),
        pytest.param("kubectl delete pod x --dry-run=NONE", WRITE, id="T13 another word"),
        pytest.param("kubectl auth reconcile -f x", REFUSED, id="A05+T15"),
        pytest.param("kubectl config set users.x.token y", REFUSED, id="T15 set"),
        pytest.param("kubectl config use-context x", REFUSED, id="T15 use"),
        pytest.param("kubectl config current-context", READ, id="T15 what does read"),
        pytest.param("kubectl rollout history deploy/x", READ, id="A06 history"),
        pytest.param("kubectl rollout undo deploy/x", WRITE, id="A06+T19 undo"),
        pytest.param("kubectl -n kube-system get secret db", REFUSED, id="A13"),
        pytest.param("kubectl get --raw /api/v1/namespaces/x/secrets", REFUSED, id="A14 raw"),
        pytest.param("kubectl proxy --port=0", REFUSED, id="A14+T16 proxy"),
        pytest.param("kubectl port-forward web-1 8080", REFUSED, id="T16 port-forward"),
        pytest.param("kubectl create token default", REFUSED, id="A14 token"),
        pytest.param("kubectl get pods --as=x", REFUSED, id="A14 as"),
        pytest.param("kubectl rollout restart deploy/x", WRITE, id="A15 restart"),
        pytest.param("kubectl set image deploy/x app=a:2", WRITE, id="A15+T19 image"),
        pytest.param("kubectl label pod x a=b", WRITE, id="T19 label"),
        pytest.param("kubectl cp web-1:/etc/passwd .", REFUSED, id="T19 cp"),
        pytest.param("kubectl rollout frobnicate deploy/x", REFUSED, id="T19 unlisted below a listed one"),
        pytest.param("kubectl set frobnicate deploy/x", WRITE, id="T19 unlisted below a write"),
        pytest.param("kubectl get pods -A", READ, id="A16 get"),
        pytest.param("kubectl logs web-1 --previous", READ, id="A16 logs"),
        pytest.param("kubectl diff -f x.yaml", READ, id="A16 diff"),
        pytest.param("kubectl get pods $(cat x)", WRITE, id="A17"),
        ("kubectl get pods | xargs kubectl delete", WRITE),
        ("kubectl get pods; kubectl delete ns shop", WRITE),
        ("kubectl get pods > /etc/passwd", WRITE),
        ("kubectl get secret,pods", REFUSED),
        ("kubectl describe secrets.v1. db", REFUSED),
        ("kubectl get secrets/db", REFUSED),
        ("kubectl get pods $KIND", WRITE),
        ("kubectl get pods ${KIND}", WRITE),
        ("kubectl get pods -o jsonpath={$.items[0]}", READ),
        ("kubectl get pod/a pod/b pod/c secret/db", REFUSED),
        pytest.param("kubectl logs -f web-1", REFUSED, id="T20 follow"),
        pytest.param("kubectl logs web-1 -pf", REFUSED, id="T20 follow in a bundle"),
        pytest.param("kubectl logs web-1 --follow=true", REFUSED, id="T20 follow spelt out"),
        pytest.param("kubectl get pods -w", REFUSED, id="T20 watch"),
        pytest.param("kubectl get pods -Aw", REFUSED, id="T20 watch in a bundle"),
        pytest.param("kubectl get pods --watch", REFUSED, id="T20 watch spelt out"),
        pytest.param("kubectl get pods --watch-only", REFUSED, id="T20 watch only"),
        pytest.param("kubectl rollout status deploy/x", REFUSED, id="T20 status"),
        pytest.param("kubectl wait pod/x --for=delete", REFUSED, id="T20 wait"),
        pytest.param("kubectl attach web-1", REFUSED, id="T20 attach"),
        ("kubectl exec -it web-1 -- sh", REFUSED),
        ("kubectl cluster-info dump", REFUSED),
        ("kubectl auth can-i get pods", READ),
        ("kubectl config view", REFUSED),
        ("kubectl myplugin list", REFUSED),
        ("kubectl get pods --frobnicate", WRITE),
        ("kubectl top pods", READ),
        ("kubectl get pods 'unclosed", WRITE),
        ("kubectl", REFUSED),
        ("", REFUSED),
    ],
)
def test_what_a_line_does(line: str, effect: CommandEffect) -> None:
    assert judged(line).effect is effect


@pytest.mark.parametrize(
    ("line", "namespace"),
    [
        pytest.param("kubectl -n shop get pods -ojson", "shop", id="A04+T04+T18"),
        pytest.param("kubectl get pods -Rn kube-system", "kube-system", id="A18+T18 bundled"),
        pytest.param("kubectl get pods -nkube-system", "kube-system", id="A18 without a space"),
        pytest.param("kubectl get pods -oname", "", id="A18+T18 none"),
        pytest.param("kubectl logs -pn kube-system web-1", "kube-system", id="T18 behind the run before"),
        pytest.param("kubectl -n delete get pods", "delete", id="T04 a namespace that looks like a verb"),
        ("kubectl get pods --namespace=shop", "shop"),
        ("kubectl get pods --namespace shop", "shop"),
        ("kubectl get pods -n a -n b", "b"),
    ],
)
def test_the_namespace_is_found_among_the_flags(line: str, namespace: str) -> None:
    assert judged(line) == Command(READ, namespace)


@pytest.mark.parametrize((), [()], ids=["T18"])
def test_the_namespace_of_an_interactive_line_is_found_too() -> None:
    assert judged("kubectl exec -itn kube-system web-1 -- sh") == Command(REFUSED, "kube-system")


FLAGS = st.lists(
    st.sampled_from(
        [["-n", "shop"], ["-nshop"], ["--namespace", "shop"], ["--namespace=shop"], ["-o", "json"], ["-ojson"], ["-A"]]
    ),
    max_size=4,
)


@pytest.mark.parametrize((), [()], ids=["T04"])
@given(before=FLAGS, between=FLAGS, after=FLAGS)
def test_a_verb_is_found_wherever_the_flags_stand(
    before: list[list[str]], between: list[list[str]], after: list[list[str]]
) -> None:
    def line(verb: str, kind: str) -> str:
        parts = [["kubectl"], *before, [verb], *between, [kind, "x"], *after]
        return " ".join(word for part in parts for word in part)

    named = any("shop" in word for group in (*before, *between, *after) for word in group)
    assert judged(line("get", "secret")).effect is REFUSED
    assert judged(line("delete", "pod")).effect is WRITE
    assert judged(line("get", "pod")) == Command(READ, "shop" if named else "")


@pytest.mark.parametrize(
    "binary",
    [
        "mykubectl",
        "kubectl2",
        "kubectl.sh",
        "kubectl-evil",
        "./kubectl",
        "/tmp/kubectl",
        "KUBECTL",
        "sudo kubectl",
        "oc",
    ],
    ids=lambda name: f"T17 {name}",
)
def test_only_kubectl_itself_is_kubectl(binary: str) -> None:
    assert judged("kubectl get pods").effect is READ
    assert judged(f"{binary} get pods").effect is REFUSED


@pytest.mark.parametrize(
    "line",
    [
        "kubectl delete ns shop",
        "kubectl delete pvc/data -n shop",
        "kubectl delete crd widgets.example.com",
        "kubectl drain worker-1",
        "kubectl taint node worker-1 a=b:NoExecute",
        "kubectl delete pods --all",
        "kubectl label pods -A x=y",
        "kubectl delete pod x --force",
        "kubectl delete pod x --grace-period=0",
    ],
)
def test_high_risk_is_said(line: str) -> None:
    assert judged(line).high_risk
    assert "changes, high risk" in label_commands(f"run `{line}` now")


def test_commands_of_a_text_are_labelled_and_nothing_else_is_touched() -> None:
    text = "Look with `kubectl get pods`, then `kubectl rollout undo deploy/x`; never `rm -rf`."

    assert label_commands(text) == (
        "Look with `kubectl get pods` (reads), then `kubectl rollout undo deploy/x` (changes); never `rm -rf`."
    )


@given(st.text(max_size=80))
def test_no_text_breaks_it(text: str) -> None:
    assert judged(f"kubectl {text}").effect in CommandEffect
    assert not (judged(f"kubectl delete pod x {text}").effect is READ and "dry-run" not in text)
