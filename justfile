# `just` lists the recipes; each is a line or two that you can also type.

_default:
    @just --list --unsorted

# everything that must hold before a merge
ci:
    bash .ci/run

# format the code
fmt:
    cargo fmt --all

# lints, licences, sources
lint:
    cargo clippy --workspace --all-targets --locked -- -D warnings
    cargo deny --locked check --hide-inclusion-graph bans licenses sources

# unit, integration and documentation tests; arguments go to nextest
test *ARGS:
    cargo nextest run --workspace --locked {{ ARGS }}
    cargo test --doc --workspace --locked

# the libraries' documentation, warnings are errors
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --lib --no-deps --locked

# compile for the browser
wasm *CRATES:
    bash .ci/check-wasm {{ CRATES }}

# the map page, then the program, which takes the page in
build:
    bash web/build
    cargo build --release --locked --workspace --bin locdiff

# the Python package as a wheel: the page, then program, model and package; 20 minutes
wheel:
    bindings/python/wheel

# the tests of the Python package, with the dev profile
python *ARGS:
    bindings/python/check {{ ARGS }}

# types of the CUDA build: minutes, but no GPU. With the variable, a build script of a dependency downloads no compiler
cuda:
    DOCS_RS=1 cargo check --locked -p locdiff-train --features cuda

# install the `locdiff` program
install:
    cargo install --locked --path crates/locdiff-cli

# run an experiment: `just experiment sphere-speed --quick`
experiment NAME *ARGS:
    experiments/run {{ NAME }} {{ ARGS }}

# the book of docs/, into target/book; needs mdBook (cargo install mdbook)
book:
    docs/outside-links --check
    cd docs && mdbook build

# the reference pages of the book, from a program that is built already
reference PROGRAM="target/release/locdiff":
    docs/reference {{ PROGRAM }}
