"""Where a search runs: the engine, the platform of devices, and migration between them."""
