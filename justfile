# The recipes of everyday work; `just` lists them.

_default:
    @just --list --unsorted

# A catalog on SQLite and local files below ./frazil-data; nothing else is needed
run *ARGS:
    cargo run --release -- {{ARGS}}

# What can be judged without running anything: format, lints, dependencies, checked SQL, OpenAPI document
check:
    tests/run --only fmt,clippy,deny,sqlx,openapi

# Everything that fits in 35 minutes on two cores; see tests/run --list
test *ARGS:
    tests/run {{ARGS}}

# The Rust tests, against a PostgreSQL server made for them
test-postgres:
    tests/run --only unit

# The stock clients: Iceberg's compatibility kit, PyIceberg, Spark, schemathesis, the README's snippets
engines:
    tests/run --only rck,pyiceberg,spark,schemathesis,readme

# Known vulnerabilities, unmaintained and yanked crates; fetches the database of advisories
advisories:
    cargo deny --locked check advisories

# One fuzz target until it is stopped: `just fuzz document -max_total_time=600`; libFuzzer's options may follow
fuzz TARGET *ARGS:
    mkdir -p target/fuzz/found/{{TARGET}}
    RUSTC_BOOTSTRAP=1 cargo fuzz run --sanitizer none --target-dir target/fuzz {{TARGET}} \
        target/fuzz/found/{{TARGET}} fuzz/corpus/{{TARGET}} -- -rss_limit_mb=1024 {{ARGS}}

# The long proofs under faults, at most 90 minutes on two cores
faults:
    tests/run --faults

# Write the tables of engines anew, from what the suites told of their last runs
engines-table:
    python3 tests/support/engines_table.py --write

# Write the stores' .sqlx folders anew, from freshly migrated databases
prepare:
    python3 tests/support/sqlx_prepare.py --write

# At a release: keep its statements, which the next release's schema must still serve
keep-statements:
    python3 tests/support/last_release.py --write

# Build the image with Docker
image TAG="frazil":
    docker build --tag {{TAG}} --build-arg REVISION="$(git rev-parse HEAD)" .

# What the binary is made of, in target/sbom: a CycloneDX bill of materials, and all licences
sbom:
    python3 deploy/image/materials.py "$(rustc -vV | sed -n 's/^host: //p')" target/sbom

# The image and the chart: built, run, rendered, checked
deploy:
    tests/run --only image,chart

# Write charts/frazil/README.md anew, from the comments of its values; `tests/run --only chart` makes the environment
chart-readme:
    cd tests/deploy && PYTHONPATH=../support ../../target/venvs/deploy/bin/python chart_readme.py --write

# Write openapi/frazil.yaml anew, from the code
openapi:
    cargo run --quiet -- openapi > target/frazil.yaml
    mv target/frazil.yaml openapi/frazil.yaml

# Begin a migration of both stores; each file says why in a comment
migration NAME:
    #!/usr/bin/env bash
    set -euo pipefail
    for engine in postgres sqlite; do
        last=$(ls migrations/$engine | sort | tail -n 1)
        file=migrations/$engine/$(printf '%04d' $((10#${last%%_*} + 1)))_{{NAME}}.sql
        echo "-- Why: " > "$file"
        echo "$file"
    done

# Frazil beside its peers under load, in under 30 minutes on two cores; see docs/benchmarks.md
bench *ARGS:
    tests/bench/run {{ARGS}}

# The same with all points and servers, in at most 3 hours
bench-full *ARGS:
    tests/bench/run --preset full {{ARGS}}

# Criterion benches of the rules: no server, no network
bench-rules *ARGS:
    cargo bench -p catalog --features testing {{ARGS}}
