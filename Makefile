# Everything here is a short name for a command that also works without make.
GO ?= go
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
SEEDS ?= 10000
SHARD ?= 1/1

.PHONY: build test race lint fuzz prove prove-explore prove-kill prove-tally prove-sim prove-bubble prove-cluster prove-powercut prove-mutate bench docs ci

build: ## the program, ./berth
	$(GO) build -trimpath -o berth ./cmd/berth

test: ## what CI runs first: a seeded sample of every proof
	$(GO) test ./...

race: ## the same under the race detector
	$(GO) test -race ./...

lint: ## vet, staticcheck, and golangci-lint where it is installed
	$(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...
	@if command -v golangci-lint >/dev/null; then golangci-lint run ./...; else echo "golangci-lint is not installed; skipped"; fi

fuzz: ## every fuzz target, for longer than CI does; a finding fails
	BERTH_FUZZ_EXECS=200000 BERTH_FUZZ_TARGET_S=600 BERTH_FUZZ_BUDGET_S=3600 BERTH_FUZZ_STRICT=1 bash .ci/run fuzz

prove: ## all of the proofs: every seed, every crash point, every mutant (hours); SHARD=2/3 is a share of the packages
	@mine=$$($(GO) list ./... | awk -v shard=$(SHARD) 'BEGIN { split(shard, s, "/") } NR % s[2] == s[1] % s[2]'); \
	out=prove-$(subst /,-of-,$(SHARD)).out; begun=$$(date +%s); rc=0; \
	[ -n "$$mine" ] || exit 1; \
	BERTH_PROVE=1 BERTH_SEEDS=$(SEEDS) $(GO) test -timeout 6h -count=1 -v $$mine >$$out 2>&1 || rc=$$?; \
	$(GO) run ./internal/prove/tally $$out || rc=1; \
	echo "shard $(SHARD), $$(( $$(date +%s) - begun )) s; all of it is in $$out"; \
	exit $$rc

prove-tally: ## what all shards covered together; put their prove-*.out files here first
	$(GO) run ./internal/prove/tally prove-*.out

prove-kill: ## the real program, killed at every point
	BERTH_PROVE=1 $(GO) test -timeout 1h -count=1 -v -run . ./internal/prove/kill

prove-explore: ## every state of the pure core, to the large budgets (minutes)
	BERTH_PROVE=1 $(GO) test -timeout 1h -count=1 -v ./sagas/explore

prove-sim: ## seeded histories of the sagas, each twice, with a report
	$(GO) run ./cmd/berth sim --seeds $(SEEDS) --report sim.json

prove-bubble: ## JetStream in virtual time, many times over and under the race detector
	$(GO) test -timeout 20m -count=50 ./internal/prove/bubble
	$(GO) test -timeout 20m -count=10 -race ./internal/prove/bubble

prove-cluster: ## three servers: leader killed, cut off, all restarted in turn (minutes)
	BERTH_PROVE=1 $(GO) test -timeout 30m -count=1 -v ./internal/prove/cluster

prove-powercut: ## dozens of power cuts under the whole manager (root, loop devices)
	BERTH_PROVE=1 $(GO) test -timeout 30m -count=1 -v ./internal/prove/powercut ./events/eventlog/barrier -run 'Power'

prove-mutate: ## the program broken on purpose in dozens of places: a test must notice each (minutes)
	BERTH_PROVE=1 $(GO) test -timeout 2h -count=1 -v -run 'Mutants' ./internal/prove/mutate

bench: ## figures beside the raw limit of the same run
	$(GO) run ./cmd/berth bench

docs: ## regenerate what is generated: diagrams, command reference, schemas
	$(GO) test ./... -run 'Generated' -update

ci: ## exactly what CI runs
	bash .ci/run
