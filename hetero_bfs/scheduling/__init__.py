"""Which strategy computes the next level: strategies, speed model, selectors and policy."""
