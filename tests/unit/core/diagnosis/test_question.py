"""What a Signal's words ask about."""

from __future__ import annotations

from inquest.api.refs import TargetRef
from inquest.api.signal import SignalContent, Source
from inquest.core.diagnosis.question import names_in
from tests.support.tables import each_row


@each_row(
    ("message", "names", "no_names"),
    [
        ("Deployment shop/checkout has 0 of 2 replicas", {"checkout"}, {"Deployment"}),
        ("pod checkout-5d9c7b6f4-q2w8r of shop restarts", {"checkout-5d9c7b6f4-q2w8r"}, {"checkout"}),
        ("https://www.example.org/search answers 503", {"www.example.org"}, {"example"}),
        ("all is lost in shop.", set(), {"shop", "shop."}),
        ("Deployment shop/shop has 0 of 2 replicas", {"shop"}, set()),
        ("work-shop/shop-api and /shop/shop fail", {"shop-api"}, {"shop"}),
    ],
    ids=["a workload", "a pod", "a host", "the namespace itself", "a workload of its name", "parts of other names"],
)
def test_names_are_whole_words_and_not_the_namespace(message: str, names: set[str], no_names: set[str]) -> None:
    found = names_in(
        SignalContent(
            name="KubePodNotReady",
            severity="high",
            source=Source(type="Alertmanager"),
            target=TargetRef(kind="Namespace", name="shop"),
            message=message,
        )
    )

    assert names <= found
    assert not no_names & found
