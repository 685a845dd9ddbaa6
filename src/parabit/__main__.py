"""`python -m parabit` is the command `parabit`."""

from parabit.cli import main

if __name__ == "__main__":
    main()
