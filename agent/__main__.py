"""`python -m agent` is `wayout`."""

from agent.cli.main import main

main()
