"""The CPU's cores: a thread pool and vector code for compiled functions."""
