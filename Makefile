# Every target builds bin/lab, or bin/classroom, and calls it. `make help` lists them.

SHELL := /bin/bash
.DEFAULT_GOAL := help
export CGO_ENABLED := 0

# Settings become flags; a flag beats the default, and there is no configuration file.
CLUSTER ?= auto
WORKSPACE ?= workspace
FLAGS = --cluster '$(CLUSTER)'
ifneq ($(NODE_IMAGE),)
FLAGS += --node-image '$(NODE_IMAGE)'
endif
ifeq ($(YES),1)
FLAGS += --yes
endif
# Who comes to a room, where it answers, and what it lends.
ROOM = $(if $(N),--learners '$(N)') $(if $(ROSTER),--roster '$(ROSTER)') $(if $(ADDRESS),--address '$(ADDRESS)') \
  $(if $(LEND),--lend '$(LEND)') $(if $(READY),--ready '$(READY)') $(if $(filter 0,$(PLAYGROUND)),--playground=false)
WANTED := $(LAB)# of `make mutants LAB=n`; ours is the command
override LAB = @bin/lab $(FLAGS) --workspace '$(WORKSPACE)'
override CLASSROOM = @bin/classroom $(FLAGS)

##@ Learn

lab-%: bin/lab ## judge step N of your operator on a fresh cluster
	$(LAB) check $* $(if $(filter 1,$(KEEP)),--keep) $(if $(SEED),--seed '$(SEED)') $(if $(STORM),--storm '$(STORM)')

.PHONY: labs
labs: bin/lab ## judge every step up to where you are
	$(LAB) check all $(if $(filter 1,$(KEEP)),--keep)

.PHONY: watch
watch: bin/lab ## judge again on every save, from the first step that you have not passed (POOL=n)
	$(LAB) watch $(if $(POOL),--pool '$(POOL)')

watch-%: bin/lab ## the same for step N
	$(LAB) watch $* $(if $(POOL),--pool '$(POOL)')

hint-%: bin/lab ## the next hint for what failed last in step N
	$(LAB) hint $*

.PHONY: trace
trace: bin/lab ## who did what when, in the last run (CHECK=id for another check)
	$(LAB) trace $(if $(CHECK),--check '$(CHECK)')

trace-%: bin/lab ## the same for the last run of step N
	$(LAB) trace $* $(if $(CHECK),--check '$(CHECK)')

diff-%: bin/lab ## after step N passed: where our solution does it differently (FORCE=1: before, too)
	$(LAB) diff $* $(if $(filter 1,$(FORCE)),--force)

solve-%: bin/lab ## save your work, then write the solution of step N into the workspace
	$(LAB) solve $*

reset-%: bin/lab ## save your work, then write the starting point of step N into the workspace
	$(LAB) reset $*

.PHONY: undo
undo: bin/lab ## bring back what the last solve or reset saved (LIST=1: all saves, SAVE=one of them)
	$(LAB) undo $(SAVE) $(if $(filter 1,$(LIST)),--list)

.PHONY: progress
progress: bin/lab ## which steps pass, when, how long they took
	$(LAB) progress

##@ Look around

.PHONY: demo
demo: bin/lab ## the finished operator at work, in two minutes
	$(LAB) demo $(if $(filter 1,$(KEEP)),--keep)

.PHONY: up
up: bin/lab ## a cluster to play with, and your CRD in it
	$(LAB) up

.PHONY: shell
shell: bin/lab ## a shell whose kubectl talks to that cluster
	$(LAB) shell

.PHONY: status
status: bin/lab ## what is still running
	$(LAB) status

.PHONY: down
down: bin/lab ## remove everything that is still running (ALL=1: what other commands use, and the classroom, too)
	$(LAB) down $(if $(filter 1,$(ALL)),--all)

##@ Teach

.PHONY: board
board: bin/classroom ## who is where, and who is stuck: a page for the instructor (ADDRESS=ip PORT=n)
	$(CLASSROOM) board $(if $(ADDRESS),--address '$(ADDRESS)') $(if $(PORT),--listen '127.0.0.1:$(PORT)')

.PHONY: classroom
classroom: bin/classroom ## a cluster for every learner in the room, made or fixed (N=12 or ROSTER=file, ADDRESS=ip LEND=n READY=n PLAYGROUND=0 FORCE=1)
	$(CLASSROOM) up $(ROOM) $(if $(filter 1,$(FORCE)),--force)

.PHONY: classroom-status
classroom-status: bin/classroom ## who is in the room, and how their clusters are
	$(CLASSROOM) status

.PHONY: classroom-down
classroom-down: bin/classroom ## remove the clusters of the room, and all that is in them
	$(CLASSROOM) down

.PHONY: classroom-modules
classroom-modules: bin/classroom ## download the Go modules that a room needs, where the internet is good (CHECK=1: only say what is missing)
	$(CLASSROOM) modules $(if $(filter 1,$(CHECK)),--check)

.PHONY: classroom-image
classroom-image: bin/classroom ## pack the node image for learners who have a container engine of their own
	$(CLASSROOM) image

.PHONY: classroom-serve
classroom-serve: bin/classroom ## the room's server: board, Go modules, course, node image, and clusters for verdicts (ADDRESS=ip PORT=n)
	$(CLASSROOM) serve $(if $(ADDRESS),--address '$(ADDRESS)') $(if $(PORT),--listen '127.0.0.1:$(PORT)')

.PHONY: classroom-handouts
classroom-handouts: bin/classroom ## what each learner of the room is given (SERVER=address of classroom-serve, EXPIRES=48h)
	$(CLASSROOM) handouts $(if $(SERVER),--server '$(SERVER)') $(if $(EXPIRES),--expires '$(EXPIRES)')

.PHONY: grade
grade: bin/classroom ## judge what many learners handed in, and trust none of it (DIR=folder LABS=1-7; SANDBOX_RUNTIME=runsc has gVisor run it)
	$(CLASSROOM) grade '$(DIR)' $(if $(LABS),--labs '$(LABS)') $(if $(SANDBOX_RUNTIME),--runtime '$(SANDBOX_RUNTIME)')

##@ Prepare the machine

.PHONY: doctor
doctor: bin/$(if $(N)$(ROSTER),classroom,lab) ## what on this machine would stop a lab, or a room, and the command that fixes it (for a room: N=12 or ROSTER=file, ADDRESS=ip PORT=n LEND=n READY=n PLAYGROUND=0)
	$(if $(N)$(ROSTER),$(CLASSROOM) doctor $(ROOM) $(if $(PORT),--listen '127.0.0.1:$(PORT)'),$(LAB) doctor)

.PHONY: setup
setup: bin/lab ## container engine, kernel settings, node image: what the doctor found missing
	$(LAB) setup

.PHONY: node-image
node-image: bin/lab ## build the node image from Debian packages and Go modules (or load the room's: FILE=path SHA256=digest)
	$(LAB) node-image $(if $(FILE),--file '$(FILE)') $(if $(SHA256),--sha256 '$(SHA256)')

##@ Work on the project

.PHONY: test
test: bin/lab ## what every change is asked, in ten minutes: unit tests, then the course on real clusters
	$(LAB) test

.PHONY: proof
proof: bin/lab ## everything that can be asked, in 100 minutes (Linux, root; YES=1 installs what it lacks); ends with a table for docs/testing.md
	$(LAB) proof

.PHONY: mutants
mutants: bin/lab ## judge wrong answers: each has to be caught by the check that is there for it (ALL=1, LAB=n, ONLY=id, REPEAT=n; ONLY=solution judges the right answers)
	$(LAB) mutants $(if $(filter 1,$(ALL)),--all) $(if $(WANTED),--lab '$(WANTED)') $(if $(SEED),--seed '$(SEED)') \
	  $(if $(ONLY),--only '$(ONLY)') $(if $(REPEAT),--repeat '$(REPEAT)') $(if $(STORM),--storm '$(STORM)')

.PHONY: bench
bench: ## how long a cluster and a verdict take, for benchstat (ONLY=Cluster or Verdict/lab=4, N=5)
	@go test ./labs/internal/proof/benchmark -run none -bench '$(or $(ONLY),.)' -benchtime 1x -count '$(or $(N),5)' -timeout 3h

.PHONY: verify
verify: bin/lab ## generated code, lessons, stages, go.mod files, formatting, platforms, and all that bin/lab lint finds
	$(LAB) verify

.PHONY: generate
generate: bin/lab ## regenerate what verify compares
	$(LAB) verify --fix

.PHONY: lint
lint: bin/lab ## static analysis of Go, shell and the course itself
	$(LAB) lint
	@cd scripts/tools && go build -o ../../bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@command -v shellcheck >/dev/null || { echo "shellcheck is missing: apt-get install shellcheck" >&2; exit 3; }
	@shellcheck scripts/*.sh .ci/run
	@bin/golangci-lint run ./...
	@cd operator && ../bin/golangci-lint run ./...
	@cd operator/test/e2e && ../../../bin/golangci-lint run ./...
	@cd clusters/e2e/example && ../../../bin/golangci-lint run ./...

.PHONY: bin/lab bin/classroom
bin/lab bin/classroom: # the Go build cache decides whether there is anything to do
	@command -v go >/dev/null || { echo "Go is missing: install the version that go.mod names from your distribution or https://go.dev/dl" >&2; exit 3; }
	@go build -o $@ ./labs/$(if $(filter bin/lab,$@),cmd/lab,classroom/cmd/classroom)

.PHONY: help
help: ## this list
	@awk 'BEGIN {FS = ":.*## "} \
	  /^##@/ {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z%-]+:.*## / {sub(/%/, "N", $$1); printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@printf '\nSettings: CLUSTER=kind|embedded|auto|room  WORKSPACE=dir  NODE_IMAGE=ref  KEEP=1  SEED=n  STORM=long  POOL=n  YES=1\n'
