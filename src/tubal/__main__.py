"""`python -m tubal`: the command line."""

import sys

from tubal.cli import main

if __name__ == "__main__":
    sys.exit(main())
