#!/bin/sh
# The Python of the tests, with the helper of these sources instead of the one that is installed.
checkout=$(dirname "$0")/../../../../..
PYTHONPATH=$checkout/python exec "${FIELDSTONE_PYTHON:-$checkout/.venv/bin/python}" "$@"
