"""The benchmark counts right and tells what a system did wrong; how fast anything is, no test says."""
