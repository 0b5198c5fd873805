"""The host's cores: a thread pool and vector tests for compiled code."""
