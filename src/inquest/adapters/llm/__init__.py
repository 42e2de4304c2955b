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
