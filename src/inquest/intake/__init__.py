"""The door for senders: webhooks over HTTP that become Signals (resources, section 11).

    login      who may send: an account with the right, or the holder of a mounted secret
    bounds     how much, how fast, how many at once
    reception  what each notice does to a Signal: makes it, counts it, resolves it
    app        routes, and what each end is as an answer
    watch      the same for Warning events of the cluster, which nobody has to send

What a payload means is read in `story/intake.py`; whether a Signal deserves a case is triage's to say.
"""

from inquest.intake.app import create_app
from inquest.intake.login import MountedToken
from inquest.intake.watch import EventWatch

__all__ = ["EventWatch", "MountedToken", "create_app"]
