"""What a Ray cluster is made of. Pure: a spec goes in, pods and services come out. Plus the Ray Jobs API client."""
