"""How fast it is, how much it costs, and how that compares with the goals: `make bench`. Nothing here is a test.

`__main__` is the command, `report` the goals and the table. `steps` and `redaction` measure single steps in memory;
`load` plays whole cases on a control plane of its own. For that `ground` brings up the cluster and breaks workloads,
`model` is the scripted model as a process that notes when it was asked, `probe` is the operator with its requests
noted, `watching` sees from outside what happens when, `bare` is the baseline and `prompts` looks at what was sent.
"""
