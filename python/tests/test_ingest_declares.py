"""What a file says of its variables is asked of the catalog: attributes, units, where and when it lies."""

import json
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from conftest import REAL_DATA, real_data

import fieldstone as fst

netCDF4 = pytest.importorskip("netCDF4")
