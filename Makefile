# Each target sets up what it needs in .venv. Needed on the machine: Python 3.11+ and Java 17+; with Go also the S3 tests run,
# with Maven and a Java compiler those with Iceberg's reference REST server.
BIN := .venv/bin
INSTALLED := .venv/.installed
DEMO_INSTALLED := .venv/.demo-installed
S3_SERVER := .venv/tools/versitygw
S3_SERVER_MODULE := github.com/versity/versitygw/cmd/versitygw@v1.8.0
REST_SERVER := .venv/tools/rck
TPCDS := .venv/tools/tpcds
SPARK_CLASSES := .venv/tools/spark.jsa
NESSIE := .venv/tools/nessie
TRINO := .venv/tools/trino
FLINK := .venv/flink
FLINK_VERSION := 2.1.3
DBT := .venv/dbt
DBT_VERSIONS := dbt-core==1.11.16 dbt-spark==1.11.0
SPARK_NEWEST := 4.3.0
SPARK_OLDEST := 4.0.5
MAVEN_DEPENDENCIES := org.apache.maven.plugins:maven-dependency-plugin:3.8.1

# where it is set, every process that tests and benchmarks start would compile our modules anew
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup java chromium demo test tests-engine tests-others check thorough torture soak mutants rck nessie trino flink dbt spark-versions lint bench docs pictures clean

help:
	@echo "make demo    a pipeline on PySpark: write, audit, publish two tables; everything stays in ./lake"
	@echo "make test    lint, types, layers and all tests"
	@echo "make check   the quick part of it, about a minute"
	@echo "make thorough  more kinds of tables and statements beside the official runtime than make test has time for"
	@echo "make mutants change the modules that decide who gets in, one condition at a time: each change must fail a test"
	@echo "make torture many writers in every kind of trouble, for MINUTES=30, or one round of EXAMPLES=1000"
	@echo "make soak    replicas of the server on PostgreSQL under load for MINUTES=10 while all of them are killed again and again"
	@echo "make rck     Iceberg's REST compatibility kit against a fresh bergline serve, or the server at URI=http://..."
	@echo "make spark-versions  the smoke set on the oldest and the newest PySpark that are supported"
	@echo "make nessie  the REST client on Nessie (gets 240 MB; with Java 21 or newer beside the usual one, or in JAVA_HOME)"
	@echo "make trino   Trino on bergline serve (gets 820 MB; with Java 24 or newer beside the usual one, or in JAVA_HOME)"
	@echo "make flink   Flink on bergline serve (gets 600 MB)"
	@echo "make dbt     a dbt project on a lake (gets dbt, into an environment of its own)"
	@echo "make bench   bergline next to its peers: a report in bench/report.md and its plot; QUICK=1 runs the short ones"
	@echo "make docs    the documentation as a site, in ./site"
	@echo "make pictures  the pictures of the console in the documentation (with chromium)"

setup: $(INSTALLED)

$(DEMO_INSTALLED): requirements-demo.lock pyproject.toml
	@tools/setup.sh demo

$(INSTALLED): requirements-dev.lock pyproject.toml
	@tools/setup.sh dev

$(S3_SERVER): | $(INSTALLED)
	@if ! command -v go > /dev/null; then echo "no Go on this machine: the S3 tests will be skipped" >&2; exit 0; fi; \
	echo "building the S3 server for tests ..." >&2; \
	GOBIN=$(CURDIR)/$(dir $@) CGO_ENABLED=0 go install -trimpath -ldflags=-s $(S3_SERVER_MODULE) > .venv/go.txt 2>&1 || \
	echo "the S3 server could not be built, the S3 tests will be skipped: .venv/go.txt says why" >&2

$(REST_SERVER): tools/rck/pom.xml tools/rck/ReferenceServer.java | $(INSTALLED)
	@for tool in mvn javac; do if ! command -v $$tool > /dev/null; then \
	echo "no $$tool on this machine: the tests with Iceberg's REST server will be skipped" >&2; exit 0; fi; done; \
	echo "getting Iceberg's REST server for tests ..." >&2; rm -rf $@ $@.new; \
	{ mvn -q -B -f $< $(MAVEN_DEPENDENCIES):copy-dependencies -DoutputDirectory=$(CURDIR)/$@.new && \
	javac -cp "$@.new/*" -d $@.new tools/rck/ReferenceServer.java && mv $@.new $@; } > .venv/rck.txt 2>&1 || \
	echo "Iceberg's REST server could not be had, tests with it will be skipped: .venv/rck.txt says why" >&2

$(TPCDS): tools/tpcds/pom.xml | $(INSTALLED)
	@if ! command -v mvn > /dev/null; then echo "no mvn on this machine: the tests with TPC-DS will be skipped" >&2; exit 0; fi; \
	echo "getting the queries of TPC-DS for tests ..." >&2; rm -rf $@ $@.new; \
	{ mvn -q -B -f $< $(MAVEN_DEPENDENCIES):copy-dependencies -DoutputDirectory=$(CURDIR)/$@.new && mv $@.new $@; } > .venv/tpcds.txt 2>&1 || \
	echo "the queries of TPC-DS could not be had, tests with them will be skipped: .venv/tpcds.txt says why" >&2

$(SPARK_CLASSES): tools/spark_classes.py requirements-dev.lock | java $(INSTALLED)
	@echo "archiving the classes that Spark starts with ..." >&2; $(BIN)/python $< $@ > .venv/spark-classes.txt 2>&1 || \
	echo "sessions of tests will start more slowly: .venv/spark-classes.txt says why" >&2

# only PySpark itself: everything else comes from .venv
.venv/spark-%/.installed: | $(INSTALLED)
	@echo "installing PySpark $* for tests ..." >&2; rm -rf $(@D) $(@D).new
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-compile --target $(@D).new pyspark==$* && \
	mv $(@D).new $(@D) && touch $@

$(NESSIE): tools/nessie/pom.xml | $(INSTALLED)
	@echo "getting Nessie for tests ..." >&2; rm -rf $@ $@.new; \
	mvn -q -B -f $< $(MAVEN_DEPENDENCIES):copy-dependencies -DoutputDirectory=$(CURDIR)/$@.new && mv $@.new $@

# its plugins are hard links to each other, so all are unpacked; only the one for Iceberg stays
$(TRINO): tools/trino/pom.xml | $(INSTALLED)
	@echo "getting Trino for tests ..." >&2; rm -rf $@ $@.new; \
	mvn -q -B -f $< $(MAVEN_DEPENDENCIES):copy-dependencies -DoutputDirectory=$(CURDIR)/$@.new && \
	mkdir $@.new/all $@.new/plugin && tar -xzf $@.new/*.tar.gz -C $@.new/all --strip-components=1 && \
	mv $@.new/all/lib $@.new && mv $@.new/all/plugin/iceberg $@.new/plugin && \
	rm -rf $@.new/all $@.new/*.tar.gz && mv $@.new $@ && touch $@

# a virtual environment cannot be moved: the mark is what says that it is whole
$(FLINK)/.installed: tools/flink/pom.xml | $(INSTALLED)
	@echo "setting up Flink for tests ..." >&2; \
	$(BIN)/python -m venv --clear $(FLINK) && \
	$(FLINK)/bin/python -m pip install --quiet --disable-pip-version-check apache-flink==$(FLINK_VERSION) && \
	jars=$$($(FLINK)/bin/python -c "import os, pyflink; print(os.path.dirname(pyflink.__file__))")/lib && \
	mvn -q -B -f $< $(MAVEN_DEPENDENCIES):copy-dependencies -DoutputDirectory="$$jars" && touch $@

# its own environment: dbt pins packages that .venv has in other versions; PySpark and the rest come from .venv, after its own
$(DBT)/.installed: | $(INSTALLED)
	@echo "setting up dbt for tests ..." >&2; \
	$(BIN)/python -m venv --clear $(DBT) && \
	$(DBT)/bin/python -m pip install --quiet --disable-pip-version-check $(DBT_VERSIONS) && \
	$(BIN)/python -c "import pyspark, pathlib; print(pathlib.Path(pyspark.__file__).parent.parent)" > \
	"$$($(DBT)/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")/bergline_tests.pth" && touch $@

java:
	@tools/machine.sh java

# a system package: made only where that needs no password, as in a container
chromium:
	@if ! command -v chromium > /dev/null; then \
	if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
	echo "installing chromium for tests ..." >&2; \
	{ apt-get install -y --no-install-recommends chromium || \
	{ apt-get update && apt-get install -y --no-install-recommends chromium; }; } > .venv/chromium.txt 2>&1 || \
	echo "chromium could not be installed, the tests of pages will be skipped: .venv/chromium.txt says why" >&2; \
	else echo "no chromium on this machine: the tests of pages will be skipped" >&2; fi; fi

demo: java $(DEMO_INSTALLED)
	@$(BIN)/python demo/pipeline.py

# five runs, two at a time: the long ones first, and what starts a Spark of its own in whichever half is done first. Folders
# without tests on an engine are not even imported by the run of those; types and layers are checked beside the first tests,
# when one core would be idle. Files are in memory, where no commit waits for a disk.
WITHOUT_ENGINE := browser cli cluster connect unit versions
OWN_SPARK := cluster connect versions
TESTS := engine others $(OWN_SPARK)
# not in the recipe itself: `make -n` would run its line
TWO_AT_A_TIME = $(MAKE) --no-print-directory --keep-going --jobs=2
test: java $(INSTALLED) chromium $(S3_SERVER) $(REST_SERVER) $(TPCDS) $(SPARK_CLASSES) .venv/spark-$(SPARK_NEWEST)/.installed
	@$(BIN)/ruff format --check --quiet . && $(BIN)/ruff check --quiet .
	@files=$$(tools/machine.sh files 4000) && trap 'rm -rf $$files' EXIT && trap 'exit 1' INT TERM; \
	rm -rf .venv/tests && mkdir .venv/tests; { $(BIN)/mypy && $(BIN)/lint-imports --no-logo; } > .venv/lint.txt 2>&1 & lint=$$!; \
	$(TWO_AT_A_TIME) FILES=$$files $(TESTS:%=tests-%); tests=$$?; wait $$lint; lint=$$?; \
	for run in $(TESTS:%=.venv/tests/%.txt); do if [ -e $$run ]; then cat $$run; fi; done; cat .venv/lint.txt; \
	exit $$((tests || lint))

# what is on an engine is shown as it runs, everything else at the end
tests-engine:
	@$(BIN)/python -m pytest --basetemp=$(FILES)/engine -m "engine and not thorough" $(WITHOUT_ENGINE:%=--ignore=tests/%)

tests-others:
	@$(BIN)/python -m pytest --basetemp=$(FILES)/others -m "not engine and not thorough" $(OWN_SPARK:%=--ignore=tests/%) \
	> .venv/tests/others.txt 2>&1

$(OWN_SPARK:%=tests-%): tests-%:
	@$(BIN)/python -m pytest --basetemp=$(FILES)/$* -m "not thorough" tests/$* > .venv/tests/$*.txt 2>&1

# the two halves take about the same time; what is new in tests/unit is in the second by itself
CHECK_FIRST := catalog console lake reports server
check: $(INSTALLED) lint
	@files=$$(tools/machine.sh files 500); \
	run="$(BIN)/python -m pytest -q -m 'not server and not long'"; \
	eval $$run --basetemp=$$files/first $(CHECK_FIRST:%=tests/unit/%) > $$files/first.txt 2>&1 & first=$$!; \
	eval $$run --basetemp=$$files/second tests/unit $(CHECK_FIRST:%=--ignore=tests/unit/%); second=$$?; \
	wait $$first; first=$$?; cat $$files/first.txt; \
	rm -rf $$files; exit $$((first || second))

thorough: java $(INSTALLED) $(S3_SERVER) $(TPCDS)
	@$(BIN)/python -m pytest -m thorough

torture: java $(INSTALLED) $(S3_SERVER)
	@$(BIN)/python tools/torture.py $(if $(EXAMPLES),--examples $(EXAMPLES),--minutes $(or $(MINUTES),30)) $(if $(SEED),--seed $(SEED))

soak: $(INSTALLED)
	@$(BIN)/python tools/soak.py --minutes $(or $(MINUTES),10) $(if $(SEED),--seed $(SEED))

mutants: $(INSTALLED)
	@PYTHONPATH=$(CURDIR)/src $(BIN)/python tools/mutants.py $(MODULES)

rck: java $(INSTALLED) $(REST_SERVER)
	@$(BIN)/python tools/rck/run.py $(URI)

spark-versions: java $(INSTALLED) .venv/spark-$(SPARK_NEWEST)/.installed .venv/spark-$(SPARK_OLDEST)/.installed
	@$(BIN)/python -m pytest tests/versions -q

nessie: java $(INSTALLED) $(S3_SERVER) $(NESSIE)
	@home=$$(tools/machine.sh java-home 21) && \
	BERGLINE_NESSIE_JAVA=$$home $(BIN)/python -m pytest tests/conformance/test_rest_nessie.py -q

trino: java $(INSTALLED) $(S3_SERVER) $(TRINO)
	@home=$$(tools/machine.sh java-home 24) && \
	BERGLINE_TRINO_JAVA=$$home $(BIN)/python -m pytest tests/engines/test_trino.py -q

flink: java $(INSTALLED) $(FLINK)/.installed
	@BERGLINE_FLINK_PYTHON=$(CURDIR)/$(FLINK)/bin/python $(BIN)/python -m pytest tests/engines/test_flink.py -q

dbt: java $(INSTALLED) $(DBT)/.installed
	@PYTHONPATH=$(CURDIR)/src BERGLINE_DBT_PYTHON=$(CURDIR)/$(DBT)/bin/python $(BIN)/python -m pytest tests/engines/test_dbt.py -q

lint: $(INSTALLED)
	@$(BIN)/ruff format --check --quiet . && $(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo > .venv/lint-imports.txt || { cat .venv/lint-imports.txt; exit 1; }

bench: java $(INSTALLED) $(REST_SERVER) $(TPCDS)
	@$(BIN)/python bench/report.py $(if $(QUICK),--quick)

docs: $(INSTALLED)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict && echo "the pages are in site/index.html" >&2

pictures: $(INSTALLED) chromium
	@$(BIN)/python tools/pictures.py

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis lake site
