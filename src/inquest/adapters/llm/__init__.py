"""Any endpoint that speaks the OpenAI chat protocol, Azure's too, behind `ports.Model`.

    request ──► model (fail-over list, in order)
                  └─ line: one endpoint  ──► limiter (a place, a held-back start)
                                         ──► body ──► transport ──► answer
                                         ──► faults (what an error means, whether it is tried again)

Read in that order: `endpoint` what is configured, `limiter` who may call when, `body` and `text_tools` what is sent,
`transport` over which wire, `answer` what comes back, `faults` what went wrong, `model` the order of it all. What is
tried again, how often and after what wait is decided here and nowhere else (resources, section 14.2; the SDK's own
retries are off). What is raised begins with the class of behaviours 12.4 (`ModelTimeout: …`), for log and message.
"""

from inquest.adapters.llm.endpoint import (
    FORBID_VARIABLE,
    Endpoint,
    Patience,
    forbid_real_models,
    real_models_forbidden,
)
from inquest.adapters.llm.faults import Fault, fault_class
from inquest.adapters.llm.model import OpenAIModel
from inquest.adapters.llm.price import Price

__all__ = [
    "FORBID_VARIABLE",
    "Endpoint",
    "Fault",
    "OpenAIModel",
    "Patience",
    "Price",
    "fault_class",
    "forbid_real_models",
    "real_models_forbidden",
]
