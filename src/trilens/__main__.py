"""`python -m trilens` is `trilens`, for tools that start modules, such as torchrun."""

from trilens.cli.main import main

if __name__ == "__main__":
    main()
