"""Speed models measured on known machines, one JSON per pair: <cpu>__<device>.json."""
