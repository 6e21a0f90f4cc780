"""Muster on a cluster that stands: how it starts, and what it does while nothing happens.

    python -m bench.standing start [--nodes 5000] [--pods 50000] [--components scheduler] [--runs 1]
    python -m bench.standing rest [--nodes 1000] [--pods 10000] [--gangs 300] [--seconds 3600]

Both have a control plane of their own (etcd, kube-apiserver) and fake nodes. Pods that are not Muster's are those of
Deployments, bound and running, with labels, probes, volumes and a status as kubelets write it. Muster shows the token
of a service account that may do everything; where it judges at admission, the API server asks it at its own port.

`start`: all nodes and pods are there, and one gang of 3, gated, waits. Then `muster run` is started, with no Lease to
wait for. `first s` is from the start of the process to the first binding that a watch shows, `gang s` to that of the
whole gang; `CPU s` and `peak MiB` are processor time and largest resident memory of the process until the first
binding, and `waited s` is for how long its threads were ready till then and had no processor: with much of that the
machine was too busy for the figures to count. The columns with a `+` are processor time and memory `--after` seconds
later, with what is resident then. Runs share one control plane, each with a gang of its own; `--components` may be
given several times, and they take turns.

`rest`: gangs are RayClusters of a head and two workers, made while Muster runs, as leader, and bound by it; kwok plays
the kubelets, which renew their Leases and report their nodes as usual. When all clusters are ready, and nothing but
Leases has been written for `--settle` seconds, the time begins. A row for each interval: `CPU %` of one processor,
`MiB` resident in its end and `peak MiB` so far, how often Muster has written `leases`, and its other `writes`, of which
there should be none. The first row is the beginning, the last one all of the time. Writes are those of Muster's
account, by the API server's audit log: refused ones and dry runs too.

A process that ends, nothing bound for `--patience` seconds, a wrong number of pods, nodes or running PodGroups in the
end, a write in `rest` that is no Lease's, or no Lease written at all: a row says so, and the exit status is 1.
"""
