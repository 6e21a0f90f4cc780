"""The API server seen from here: client, informers, events, leases."""
