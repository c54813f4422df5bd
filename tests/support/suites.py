"""All suites of `tests/run`, in the order in which they run."""

from cargo_suites import CARGO
from engine_suites import ENGINES

SUITES = CARGO + ENGINES
