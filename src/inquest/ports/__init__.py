"""What the product needs from outside, as protocols; one adapter each, fakes of a few lines.

Whatever leaves the process passes the redactor first: sinks take `Redacted` values, and only a `Redactor` makes them.
"""
