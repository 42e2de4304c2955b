# Inquest: every target explains itself with `make help`.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
export CLUSTER ?= local
MODEL ?= none
APPROVE ?= no
RUN ?= helm
# Where it is set, every process compiles what it loads of the product anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## Show the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F':.*## ' '{printf "  %-14s %s\n", $$1, $$2}'

.venv/.installed: requirements/dev.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

.PHONY: install
install: .venv/.installed ## Make .venv with the locked dependencies

.PHONY: tools
tools: install ## Build Kubernetes and the other Go tools into the cache
	$(BIN)/python -m hack.tools

# --- checks ---------------------------------------------------------------------------------------

.PHONY: check
check: install lint types layers generated ranges policy-test ## Format, lint, types, layers, generated files, ranges, spelling, policy tests

.PHONY: fmt
fmt: install ## Format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.PHONY: lint
lint: install ## Format and lint rules, spelling
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/codespell src tests hack benchmarks docs policies catalogue charts examples README.md CONTRIBUTING.md CHANGELOG.md Makefile

.PHONY: types
types: install ## mypy, strict
	$(BIN)/mypy src hack tests benchmarks

.PHONY: layers
layers: install ## Who may import whom
	$(BIN)/lint-imports

.PHONY: generated
generated: install ## CRDs, policies, RBAC, the chart's parts and reference pages equal what the code gives
	$(BIN)/python -m hack.gen.crds --check
	$(BIN)/python -m hack.gen.chart --check
	$(BIN)/python -m hack.gen.docs --check
	$(BIN)/python -m hack.gen.readme --check
	$(BIN)/python -m hack.gen.scenarios --check
	$(BIN)/python -m hack.golden --check --tenth

.PHONY: golden
golden: install ## Everything that comes out of every recorded case is what came out before (WRITE=yes: take it for right)
	$(BIN)/python -m hack.golden $(if $(filter yes,$(WRITE)),,--check)

.PHONY: ranges
ranges: install ## What a model reads of each tool, and what a case asks of the API server, stay within benchmarks/ranges.yaml
	$(BIN)/python -m benchmarks.tokens --check
	$(BIN)/python -m benchmarks.requests --check

.PHONY: count
count: install ## Requests of a case to the API server, by verb and kind and by the line of code that asks (half a minute)
	$(BIN)/python -m benchmarks.requests

.PHONY: opa
opa: install ## Build OPA for `inquest policy test`, which finds it
	$(BIN)/python -m hack.tools opa

.PHONY: policy-test
policy-test: install ## The tests of the approval policy, of its variants, and its rulings on documents, on a real OPA
	$(BIN)/python -m hack.tools opa
	opa="$$($(BIN)/python -m hack.tools --print-bin)/opa" && \
	"$$opa" test --v1-compatible policies/approval.rego policies/approval_test.rego && \
	"$$opa" test --v1-compatible policies/approval.rego policies/examples && \
	INQUEST_OPA_BINARY="$$opa" $(BIN)/inquest policy test policies/cases

.PHONY: crds
crds: install ## Generate CRDs, admission policies and RBAC from the code
	$(BIN)/python -m hack.gen.crds

.PHONY: chart
chart: install ## Generate the chart's CRDs, roles, policies, catalogue and schema from the code, then lint it
	$(BIN)/python -m hack.gen.chart
	$(BIN)/python -m hack.tools helm
	"$$($(BIN)/python -m hack.tools --print-bin)/helm" lint charts/inquest --values charts/inquest/ci/full-values.yaml

.PHONY: docs
docs: install ## Generate the reference pages, and what the README shows, from the code
	$(BIN)/python -m hack.gen.docs
	$(BIN)/python -m hack.gen.readme
	$(BIN)/python -m hack.gen.scenarios

# --- tests ----------------------------------------------------------------------------------------

.PHONY: test
test: install ## Set up what the tests need, run them, count each tier
	$(BIN)/python -m hack.tools
	timeout --kill-after=30 4200 $(BIN)/python -m hack.test

.PHONY: quick
quick: install ## What tells soonest that a change is wrong: lint, types, the nearest tests, ten whole cases, a tenth of the scenarios (a minute)
	@$(BIN)/python -m hack.quick

.PHONY: unit
unit: install ## Every test of the product that needs no program and no server (two minutes)
	timeout 600 $(BIN)/pytest -n2 -q -m "not long" tests/unit

.PHONY: scenarios
scenarios: install ## Every scenario with a live recipe on real clusters (SCENARIOS='probes images/never-pulled')
	$(BIN)/python -m hack.tools
	timeout --kill-after=60 7200 $(BIN)/python -m hack.scenarios $(SCENARIOS)

.PHONY: matrix
matrix: install ## Every recorded case asked in other ways, with something else beside it (two minutes), and its page
	$(BIN)/python -m hack.scenarios.matrix
	$(BIN)/python -m hack.gen.scenarios

.PHONY: crash-all
crash-all: install ## kill -9 of the operator before and after every call of a case, on the API server in memory (long)
	$(BIN)/python -m hack.tools
	timeout --kill-after=30 5400 $(BIN)/pytest tests/integration/faults/crash -m long

.PHONY: outages
outages: install ## The API server or DataStorage away for minutes, lying watches, replicas that sleep or are cut off (long)
	$(BIN)/python -m hack.tools
	timeout --kill-after=30 1800 $(BIN)/pytest -n0 tests/integration/faults/api -m long

.PHONY: real-server
real-server: install ## What is played on the API server in memory, played on a control plane (long)
	$(BIN)/python -m hack.tools
	timeout --kill-after=30 3600 $(BIN)/pytest -n2 --dist loadgroup --server=real tests/integration/cases tests/integration/story

.PHONY: attacks
attacks: install ## Every order of the corpus in every place of a case, with a model that obeys (long)
	$(BIN)/python -m hack.tools opa
	timeout --kill-after=30 1800 $(BIN)/pytest -n0 tests/scenarios/injection/test_orders.py -m long

.PHONY: storm
storm: install ## Ten thousand different Signals at once, played to the last on a clock of its own (long)
	timeout --kill-after=30 3600 $(BIN)/pytest -n0 -s tests/unit/controllers/signal/test_storm.py -m long

.PHONY: real-model
real-model: install ## The protocol against a real engine with a real, very small model (long, 350 MB)
	timeout --kill-after=30 3600 $(BIN)/python -m hack.real_model

.PHONY: loki
loki: install ## The contract of the logs on a real Loki, built from source (long, 2.3 GB; RECORD=yes keeps its answers)
	$(BIN)/python -m hack.tools loki
	INQUEST_RECORD_LOKI=$(filter yes,$(RECORD)) timeout --kill-after=30 900 $(BIN)/pytest -n0 tests/integration/adapters/monitoring/test_loki.py -m long

.PHONY: same-image
same-image: install ## Build the operator's image once more and compare the digests (long)
	$(BIN)/python -m hack.images operator
	timeout --kill-after=30 1800 $(BIN)/pytest -n0 tests/e2e/chart/test_image.py -m long

.PHONY: release-image
release-image: install ## The operator's image for others, on a base that is named by its digest (BASE=…@sha256:… NAME=…)
	$(BIN)/python -m hack.release --base '$(BASE)' '$(NAME)'

.PHONY: bench
bench: install ## What cases cost, alone, 20 and 50 at once, beside goals and baselines (BENCH='--json FILE')
	timeout --kill-after=60 3600 $(BIN)/python -m benchmarks $(BENCH)

# --- the local cluster and the demo ---------------------------------------------------------------

.PHONY: cluster-up
cluster-up: install ## Bring up the local Kubernetes with a real node (CLUSTER=kind: kind's; CLUSTER=current: check the given one)
	$(BIN)/python -m hack.cluster up --size real

.PHONY: cluster-down
cluster-down: install ## Stop it and leave nothing behind
	$(BIN)/python -m hack.cluster down

.PHONY: kubeconfig
kubeconfig: install ## Print the path of the cluster's kubeconfig (use make -s)
	@$(BIN)/python -m hack.cluster kubeconfig

.PHONY: demo
demo: install ## The whole story on a real cluster, installed by Helm (MODEL=none|scripted|real, APPROVE=yes, RUN=helm|host)
	@$(BIN)/python -m hack.demo --model $(MODEL) --approve $(APPROVE) --run $(RUN)

.PHONY: demo-down
demo-down: install ## Stop the demo and its cluster, leave nothing behind
	@$(BIN)/python -m hack.demo --down

.PHONY: run
run: install ## Run the operator against KUBECONFIG, in the foreground
	$(if $(KUBECONFIG),INQUEST_KUBERNETES__KUBECONFIG='$(or $(INQUEST_KUBERNETES__KUBECONFIG),$(KUBECONFIG))') $(BIN)/inquest run
