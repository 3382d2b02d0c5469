"""`python -m bergline`: the command line where its script is not on the path."""

from bergline.cli.entry import main

main()
