"""`ports.DataStorage` over HTTP: the bundled service in process or elsewhere, or Kubernaut's own.

What is not understood is "unavailable", never "empty". Read `convert`, `profiles`, `requests`, `kubernaut` (a workflow
in its form), `responses` (what comes back), `http_client`, `verify` (do records hold), `client`.
"""
