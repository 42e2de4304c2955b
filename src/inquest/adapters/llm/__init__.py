"""Any endpoint that speaks the OpenAI chat protocol, Azure's too, behind `ports.Model`.

    request ──► model (fail-over list, in order)
                  └─ one endpoint  ──► limiter (a place, a held-back start)
                                   ──► request ──► client ──► response
                                   ──► errors (what an error means, whether it is tried again)

What is tried again, how often and after what wait is decided here and nowhere else (the SDK's own retries are
off). What is raised begins with the class of the fault (`ModelTimeout: …`), for log and message.
"""
