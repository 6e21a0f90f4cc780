"""Level-triggered reconcilers for the custom resources."""
