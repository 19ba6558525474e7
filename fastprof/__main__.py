import sys

from fastprof.cli import main

sys.exit(main())
