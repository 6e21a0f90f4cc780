"""`make demo`: from nothing to a RayJob that ran as a gang, shown while it happens."""
