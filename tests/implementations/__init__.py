"""The device suite on many OpenCL implementations: `python3 -m tests.implementations --help`."""
