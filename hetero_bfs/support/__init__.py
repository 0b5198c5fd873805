"""What every other package may use: checks, files, memory, progress, compiling."""
