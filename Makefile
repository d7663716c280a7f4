# The only entry point: every target sets up what it needs in .venv.
.DEFAULT_GOAL := help
.PHONY: help no-older-library run install install-pipeline tui pipeline test test-cluster test-fleet test-homeassistant compile test-compiled check check-types check-cython check-tests check-style check-docs format reference docs coverage fuzz mutants crashtest hostile bench bench-full screenshot package package-compiled package-emulated package-deb package-image test-packages clean

# PYTHON=python3.13 VENV=.venv-3.13 make test: the same with another interpreter.
export PYTHON ?= python3
export VENV ?= .venv
# Tests start hundreds of gateways: with it each would compile every module to bytecode once more.
unexport PYTHONDONTWRITEBYTECODE
BIN := $(VENV)/bin
# The environment is made anew when what it is made from has changed.
RECIPE := pyproject.toml setup.py tools/setup.sh
GATEWAY := $(VENV)/.gateway
INSTALLED := $(VENV)/.installed
PIPELINE := $(VENV)/.pipeline
# What the compiled library is made from: after a change, as by git pull, it is made anew.
DECLARED := $(shell find gateway -name '*.pxd')
COMPILED := $(DECLARED) $(DECLARED:.pxd=.py)
DEVELOP := $(VENV)/.develop
# Much of what tests do is to wait. A test that ran out of time would have no limit the second time.
WORKERS := $(shell expr 3 \* $$(nproc))
SIDE_BY_SIDE := pytest -q -p no:cacheprovider -n $(WORKERS) --reruns 1 --rerun-except Timeout --timeout 300
# What tests reach of it whole; of the rest, nine tenths.
CORE := gateway/mqtt/*,gateway/session/*,gateway/routing/*,gateway/broker/*
# A link, an anchor or a page of the navigation that is not there is an error.
SITE := NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
# For each of the three fuzz targets.
FUZZ_SECONDS := 300
CRASH_ROUNDS := 200
# Changes to try, in the modules that differ from a commit.
MUTANTS := 100
MUTANTS_SINCE := HEAD~30
BENCH_CONNECTS := 20000
BENCH_ROUNDS := 3
BENCH_MQTT_5 := qos0,qos0_fanout,qos1,qos1_durable,qos2,connect,retained

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 20

run: $(GATEWAY) no-older-library ## start the gateway with the demonstration, examples/demo.toml
	@exec $(BIN)/tidegate run --config examples/demo.toml --data ./var

install: $(INSTALLED) ## make .venv with the command tidegate, compiled if possible (TIDEGATE_CYTHON=off: not)

install-pipeline: $(PIPELINE) ## add the fleet's pipeline (PySpark) to .venv

tui: $(GATEWAY) no-older-library ## watch a running gateway
	@exec $(BIN)/tidegate tui

pipeline: $(PIPELINE) ## bring what `make run` wrote into tables
	@exec $(BIN)/tidegate-pipeline once

test: $(DEVELOP) ## run every test; as root install what tests need
	@find gateway -name '*.so' -delete
	@tools/setup.sh system
	@tests/support/get_micropython.sh || true
	@tests/support/get_micropython.sh .tools/micropython-32 i386 || true
	@PYTHON=$(BIN)/python tests/support/get_umqtt.sh || true
	@PYTHON=$(BIN)/python tests/support/get_clients.sh || true
	@tests/support/get_promtool.sh || true
	@tests/support/get_azurite.sh || true
	@$(BIN)/coverage erase
	@echo "8,000 tests, which take about $$((20 / $$(nproc) + 1)) minutes; a line ends with the percentage that is done"
	@$(BIN)/coverage run --parallel-mode -m $(SIDE_BY_SIDE)
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report --fail-under=100 --include='$(CORE)'
	@$(BIN)/coverage report --fail-under=90 --omit='$(CORE)'

compile: $(DEVELOP) ## compile the modules that have a .pxd, in place; `make clean` undoes it
	@tools/setup.sh system
	TIDEGATE_CYTHON=require $(BIN)/python setup.py --quiet build_ext --inplace

test-compiled: compile ## run every test on the compiled modules, which are removed at the end
	@tests/support/get_micropython.sh || true
	@tests/support/get_micropython.sh .tools/micropython-32 i386 || true
	@PYTHON=$(BIN)/python tests/support/get_umqtt.sh || true
	@PYTHON=$(BIN)/python tests/support/get_clients.sh || true
	@tests/support/get_promtool.sh || true
	@tests/support/get_azurite.sh || true
	@status=0; TIDEGATE_CYTHON=require $(BIN)/python -m $(SIDE_BY_SIDE) || status=$$?; \
	find gateway -name '*.so' -delete; exit $$status

test-cluster: $(DEVELOP) ## run the pipeline on a standalone Spark cluster, one of whose workers is killed
	@TIDEGATE_CLUSTER=1 $(BIN)/pytest -q -p no:cacheprovider tests/pipeline/test_cluster.py

test-fleet: $(DEVELOP) ## compare the pipeline's tables with the truth of a made-up fleet of $(or $(TIDEGATE_FLEET),700) gateways, a million rows
	@TIDEGATE_FLEET=$${TIDEGATE_FLEET:-700} $(BIN)/pytest -q -p no:cacheprovider tests/pipeline/simulate/test_fleet.py

test-homeassistant: $(DEVELOP) ## install a real Home Assistant core into .tools, and let it judge what it is told
	@PYTHON=$(BIN)/python tests/support/get_home_assistant.sh
	@TIDEGATE_HOMEASSISTANT=1 $(BIN)/pytest -q -p no:cacheprovider tests/bridges/discovery/test_real_home_assistant.py

check: $(DEVELOP) ## lint, types, layers, the site of docs/, whether Cython takes every module that has a .pxd, and pytest every test
	@$(MAKE) --no-print-directory --output-sync --jobs=$$(nproc) check-types check-cython check-tests check-style check-docs

check-types:
	$(BIN)/mypy
	PYTHONPATH=. $(BIN)/python tools/check_compiled.py

check-cython:
	TIDEGATE_CYTHON=require $(BIN)/python setup.py --quiet translate

# It also compiles them, which each worker of `make test` would do else.
check-tests:
	@found=$$($(BIN)/pytest -qq -p no:cacheprovider --collect-only) || { echo "$$found" | tail -40; exit 1; }

check-style:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tools/check_firmware.py
	$(BIN)/lint-imports

check-docs:
	@$(SITE) --site-dir $(VENV)/site

format: $(DEVELOP) ## format and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(DEVELOP) ## build the pages of docs/ as a site with search into site/, without a network
	@$(SITE)
	@echo "$(BIN)/python -m http.server --directory site"

reference: $(DEVELOP) ## write what docs/use/configuration.md and the JSON Schema say of each key
	@PYTHONPATH=. $(BIN)/python tools/reference.py

coverage: test ## run every test and show the lines that none reached
	$(BIN)/coverage report

fuzz: $(DEVELOP) ## random bytes for FUZZ_SECONDS, then the property tests with many more examples
	@TIDEGATE_CYTHON=off tools/setup.sh install serial,regex,modbus,ble,tui,flash,websocket,pipeline "dev fuzz"
	$(BIN)/python fuzz/run.py $(FUZZ_SECONDS)
	HYPOTHESIS_PROFILE=fuzz $(BIN)/pytest tests/fuzz tests/mqtt tests/routing tests/session tests/bridges --timeout 3600
	HYPOTHESIS_PROFILE=deep $(BIN)/pytest tests -m hypothesis -n $(WORKERS) --timeout 3600

mutants: $(DEVELOP) ## change modules that changed lately, MUTANTS times; show what no test notices
	@TIDEGATE_CYTHON=off tools/setup.sh install serial,tui,websocket,pipeline "dev mutants"
	$(BIN)/python tools/mutants.py --since $(MUTANTS_SINCE) --mutants $(MUTANTS)

crashtest: $(DEVELOP) ## kill gateways CRASH_ROUNDS times, by signal and at their system calls, and compare
	@exec $(BIN)/tidegate crashtest --data ./var --rounds $(CRASH_ROUNDS)
	@tools/setup.sh system
	TIDEGATE_CRASH_ROUNDS=$(CRASH_ROUNDS) $(BIN)/pytest tests/crash tests/storage/engine/test_failing_calls.py \
		tests/uplink/landing/test_failing_calls.py --timeout 7200
	TIDEGATE_PAGE_STRIDE=1 TIDEGATE_SCHEMA_STRIDE=7 TIDEGATE_LIVES=5000 TIDEGATE_JUDGE=2000 $(BIN)/pytest -n $(WORKERS) tests/judge \
		tests/storage/engine/test_any_damage.py tests/storage/sessions/test_session_journal_model.py tests/salvage --timeout 7200

hostile: $(DEVELOP) ## attack gateways as large as tests/hostile says; writes bench/attacks.md
	@tools/setup.sh system
	TIDEGATE_HOSTILE=1 TIDEGATE_HOSTILE_WRITE=yes $(BIN)/pytest tests/hostile --timeout 1800

bench: $(DEVELOP) ## measure beside Mosquitto in 10 minutes, and write the tables into bench/README.md
	@tools/setup.sh system
	$(BIN)/python -m bench.side_by_side --rounds 1 --seconds 1 --mqtt 4 --write
	$(BIN)/python -m bench.side_by_side --rounds 1 --seconds 1 --mqtt 5 --scenarios $(BENCH_MQTT_5) --add --write
	$(BIN)/python -m bench.growth --short --write
	$(BIN)/python -m bench.soak $(BENCH_CONNECTS) --write
	$(BIN)/python -m bench.topic_matching --short --write

bench-full: $(DEVELOP) ## the same and real traffic in two hours: BENCH_ROUNDS rounds, a million connects
	@tools/setup.sh system
	$(BIN)/python -m bench.side_by_side --rounds $(BENCH_ROUNDS) --write
	$(BIN)/python -m bench.side_by_side --rounds 1 --mqtt 4 --scenarios subs_1m --add --write
	$(BIN)/python -m bench.real_traffic --rounds $(BENCH_ROUNDS) --write
	$(BIN)/python -m bench.growth --write
	$(BIN)/python -m bench.soak --write
	$(BIN)/python -m bench.topic_matching --write

screenshot: $(DEVELOP) ## take the pictures of the terminal UI in README and docs, and the film of an outage
	PYTHONPATH=. $(BIN)/python tools/screenshot.py
	PYTHONPATH=. $(BIN)/python tools/film.py

package: $(DEVELOP) ## build the wheel of plain Python and the source distribution into dist/, from the last commit
	@PYTHON=$(CURDIR)/$(BIN)/python packaging/build.sh wheel

package-compiled: $(DEVELOP) ## build the wheel with the compiled modules for this machine
	@PYTHON=$(CURDIR)/$(BIN)/python packaging/build.sh compiled

package-emulated: $(DEVELOP) ## build the compiled wheel for ARCH (arm64 or armhf) on this machine, and try it by qemu-user
	@PYTHON=$(CURDIR)/$(BIN)/python packaging/emulated.sh $(ARCH)

package-deb: package ## build the Debian package for ARCH (amd64, arm64 or armhf)
	@PYTHON=$(CURDIR)/$(BIN)/python packaging/build.sh deb $(ARCH)

package-image: package ## build the container image
	@PYTHON=$(CURDIR)/$(BIN)/python packaging/build.sh image

test-packages: package-deb ## build the files of a release twice and compare; install, upgrade, downgrade, remove
	@TIDEGATE_PACKAGES=$(CURDIR)/dist $(BIN)/pytest -q -p no:cacheprovider tests/packaging

clean: ## remove what the targets made, but never var/
	rm -rf .venv .venv-* build dist site *.egg-info .coverage* htmlcov .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find gateway -name '*.so' -delete

# Plain Python: what is to be seen at once need not wait for a compiler.
$(GATEWAY): $(RECIPE)
	@TIDEGATE_CYTHON=off tools/setup.sh install serial,tui,websocket
	@touch $@

# Python would load it instead of the sources.
no-older-library:
	@for each in $(wildcard gateway/_compiled.*.so); do \
	[ -z "$$(find $(COMPILED) -newer $$each)" ] || rm $$each; done

$(INSTALLED): $(RECIPE) $(COMPILED)
	@tools/setup.sh install serial,tui,websocket
	@$(BIN)/tidegate --version
	@touch $(GATEWAY) $@

# What is installed stays as it is, compiled or not.
$(PIPELINE): $(RECIPE) | $(GATEWAY)
	@tools/setup.sh extras pipeline
	@touch $@

$(DEVELOP): $(RECIPE)
	@echo "installing what tests and checks need into $(VENV), which takes a minute or two"
	@TIDEGATE_CYTHON=off tools/setup.sh install serial,regex,modbus,ble,tui,tui-serve,flash,websocket,proxy,pipeline "dev"
	@touch $(GATEWAY) $(PIPELINE) $@
