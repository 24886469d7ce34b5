"""The extra that installs the packages of optional formats."""

INSTALL = "run `pip install 'trilens[formats]'`"
