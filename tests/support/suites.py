"""All suites of `tests/run`, in the order in which they run."""

from cargo_suites import CARGO
from deploy_suites import DEPLOYED
from engine_suites import ENGINES
from fault_suites import FAULTS
from login_suites import LOGINS

SUITES = CARGO + DEPLOYED + ENGINES + FAULTS
SUITES = CARGO + ENGINES + LOGINS + FAULTS
