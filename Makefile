# Every command of the project. `make run` and `make test` need nothing typed before them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

TARGET := $(or $(CARGO_TARGET_DIR),target)
# The programs of a running stack.
BINS := --bin gateway-proxy --bin gateway-admin --bin gateway-dev --bin mock-provider --bin portcullis
# As it is shipped and measured.
DIST := --profile dist --features proxy/jemalloc
# More arguments for the test runner: make test ARGS='-E "test(snapshot)"'
ARGS ?=

# What `make prove` runs, one after the other; each is also a target: make prove-upload.
PROOFS := upload streams mcp-streams disconnect disconnect-tokens outage propagation handover rotation catalogue prompts scim brownout crash journal ingest bodies logs analytics exports storm groups tail hostile upgrade patterns webhooks batches bill

.PHONY: help run build console console-watch dist docs-cli test test-repeat test-changed test-clients test-mcp-conformance test-openapi test-deploy test-agents test-console console-shots prove prove-agents prove-openapi prove-docs prove-differential prove-terraform prove-credentials prove-limits-simulation prove-analytics-truth $(PROOFS:%=prove-%) build-proofs bench-faults lint fmt fuzz bench setup setup-test setup-browser setup-deny setup-bench setup-upgrade setup-embedder setup-agents

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 22

run: setup console build ## start Postgres, admin, proxy and a mock provider; Ctrl-C stops them
	@exec $(TARGET)/desk/gateway-dev run

build:
	@[ -x $(TARGET)/desk/gateway-proxy ] || echo "The first build takes some minutes; cargo shows how far it is." >&2
	@cargo build --locked --profile desk -p proxy -p admin -p bench -p portcullis $(BINS)

console: ## bundle the console into admin/console/dist, where the program takes it from; nothing to do when it is new enough
	@admin/console/build

console-watch: ## the same again at each change of its sources
	@admin/console/build --watch

dist: setup console ## the three programs as people install them, in target/dist
	@cargo build --locked $(DIST) -p proxy -p admin -p portcullis --bin gateway-proxy --bin gateway-admin --bin portcullis

test: setup-test setup-browser console ## every suite of tests to its end, against a Postgres of its own, with a summary of what passed, failed and took how long
	@.ci/suites $(ARGS)

test-repeat: setup-test ## tests again and again beside busy cores and a busy disk, to find races: N=10 TESTS='test(limits::)'
	@.ci/repeat "$(or $(N),3)" "$(TESTS)"

test-changed: setup-test ## what the files that differ from BASE (default: the last commit) can break
	@.ci/changed "$(or $(BASE),HEAD)"

# MCP's conformance suite minds origins: that of one port is let in.
CLIENTS_STACK = port=$$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'); \
	exec env HEADER_PREFIX_ALIASES=x-portkey- MCP_CONFORMANCE_PORT=$$port MCP_ALLOWED_ORIGINS=http://127.0.0.1:$$port \
	    $(TARGET)/debug/gateway-dev stack --

test-clients: setup-test ## only the Python and Node SDKs, against a stack of their own
	@cargo build --locked --workspace $(BINS)
	@$(CLIENTS_STACK) tests/clients/run

test-mcp-conformance: setup-test ## only MCP's own conformance suite: what passes at a server directly passes through the gateway
	@cargo build --locked --workspace $(BINS)
	@$(CLIENTS_STACK) tests/clients/mcp_conformance/run

test-openapi: setup-test ## only the interface against its own OpenAPI document
	@cargo build --locked --workspace $(BINS)
	@exec $(TARGET)/debug/gateway-dev stack -- tests/openapi/run

test-console: setup-test setup-browser console ## only the console, in a headless Chromium against a stack of its own
	@cargo build --locked --workspace $(BINS)
	@exec $(TARGET)/debug/gateway-dev stack -- tests/console/run

console-shots: setup-test setup-browser console ## the pictures of docs/console.md, of a stack of its own
	@cargo build --locked --workspace $(BINS)
	@exec $(TARGET)/debug/gateway-dev stack -- tests/console/run shots

test-deploy: setup-test ## only what conf/deploy holds: the chart rendered, its objects by their schemas, compose, units
	@exec tests/deploy/run

lint: setup ## formatting, clippy without warnings, who may depend on whom, and on what
	@cargo fmt --all --check
	@cargo clippy --locked --workspace --all-targets -- -D warnings
	@.ci/directions
	@.ci/dependencies

docs-cli: setup-test ## write docs/cli.md anew from what --help says
	@cargo build --locked --workspace $(BINS)
	@PAGES=write $(TARGET)/debug/gateway-dev test -- cargo test --locked --workspace --test cli docs::the_page

fmt: ## format everything
	@cargo fmt --all
	@cargo fmt --manifest-path tests/fuzz/Cargo.toml

fuzz: setup ## arbitrary bytes into every reader of foreign ones, each for a minute (FUZZ_SECONDS=600, FUZZ_TARGETS="json jwt")
	@FUZZ_SECONDS=$(or $(FUZZ_SECONDS),60) FUZZ_TARGETS="$(FUZZ_TARGETS)" tests/fuzz/run

setup: ## install what building and running need, or say what to type
	@.ci/setup run

setup-test: setup-embedder
	@.ci/setup run test

setup-browser:
	@.ci/setup docs

setup-deny: ## build cargo-deny, which judges dependencies in `make lint` and `make test` where it is there
	@.ci/setup run deny

setup-embedder: ## fetch static embeddings for the semantic cache, into .run/embedder
	@.ci/embedder .run/embedder

setup-bench:
	@.ci/setup run bench

setup-agents: setup-test ## install the coding agents that `make test-agents` runs (1.4 GB)
	@tests/agents/run install

test-agents: setup-agents ## real coding agents against a stack of their own: make test-agents AGENTS="claude codex/openai"
	@cargo build --locked --workspace $(BINS)
	@exec $(TARGET)/debug/gateway-dev stack -- tests/agents/run $(AGENTS)

prove-agents: test-agents ## the same, and frameworks: AI SDK, LangChain, LlamaIndex, Pydantic AI, CrewAI, DSPy, Instructor, OpenAI Agents, Claude Agent SDK
	@exec $(TARGET)/debug/gateway-dev stack -- tests/agents/frameworks/run

bench: setup-bench ## compare direct, nginx, bare Pingora and Portcullis in one interleaved run
	@bench/run

prove: build-proofs ## what must hold under weight and in trouble, on the programs that are shipped (some minutes)
	@failed=0; for proof in $(PROOFS); do $(TARGET)/dist/prove $$proof || failed=1; done; exit $$failed

# How long, where a proof has a length, and calls a second: make prove-tail SECONDS=600 RATE=1200; how many, where it has a number:
# make prove-analytics ROWS=10000000, make prove-bodies CALLS=1000000, make prove-bill CALLS=2000 KILLS=2
PROOF_ARGS = $(if $(SECONDS),--seconds $(SECONDS)) $(if $(RATE),--rate $(RATE)) $(if $(ROWS),--rows $(ROWS)) $(if $(CALLS),--calls $(CALLS)) $(if $(KILLS),--kills $(KILLS))

prove prove-upgrade: setup-upgrade
$(PROOFS:%=prove-%): prove-%: build-proofs
	@exec $(TARGET)/dist/prove $* $(PROOF_ARGS)

bench-faults: prove-brownout ## what users notice of a provider in a brown-out, and what it is asked on top

prove-openapi: setup-test ## the interface against its document at length, with sequences of requests (EXAMPLES=200)
	@cargo build --locked --workspace $(BINS)
	@exec $(TARGET)/debug/gateway-dev stack -- tests/openapi/run thorough

prove-docs: setup-test ## the docs page in a headless Chromium: search, try-it, accessibility
	@.ci/setup docs
	@cargo build --locked --workspace $(BINS)
	@exec $(TARGET)/debug/gateway-dev stack -- tests/docs/run

prove-differential: setup-test ## the same requests to ours and to a public gateway, before the same provider
	@cargo build --locked --workspace $(BINS)
	@exec $(TARGET)/debug/gateway-dev stack -- tests/differential/run

prove-terraform: setup-test ## the published Terraform provider: one of everything applied, changed and destroyed, no plan after it (needs terraform)
	@cargo build --locked --workspace $(BINS)
	@HEADER_PREFIX_ALIASES=x-portkey- exec $(TARGET)/debug/gateway-dev stack -- tests/terraform/run

prove-credentials: setup-test ## that no stored credential reaches another origin, in 100,000 cases (CASES=100000)
	@CREDENTIAL_CASES=$(or $(CASES),100000) cargo test --locked -p proxy --lib a_stored_credential_never_reaches_another_origin

prove-limits-simulation: setup-test ## that limits hold whatever happens to ten replicas, in 100,000 runs of each kind (RUNS=100000)
	@LIMITS_RUNS=$(or $(RUNS),100000) cargo test --locked -p proxy --lib limits::simulation

prove-analytics-truth: setup-test ## that every figure is what a slow reference makes of 200,000 calls (CALLS=200000)
	@cargo build --locked --workspace $(BINS)
	@ANALYTICS_CALLS=$(or $(CALLS),200000) $(TARGET)/debug/gateway-dev test -- cargo test --locked -p tests --test admin analytics::truth

setup-upgrade: setup ## the programs of earlier releases, built once, for make prove-upgrade (some minutes)
	@bench/setup-upgrade

build-proofs: setup
	@cargo build --locked $(DIST) -p proxy -p admin -p bench --bin gateway-proxy --bin gateway-admin --bin prove
