"""``python -m fourwalls.cli``."""

import sys

from fourwalls.cli import main

sys.exit(main())
