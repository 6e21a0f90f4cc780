"""The controllers at scale, on a real API server with fake nodes: Muster beside KubeRay.

    python -m bench.controllers [clusters] [jobs] [--count 1000] [--runs 3] [--systems ceiling,muster,kuberay]

`clusters`: RayClusters of a head and two workers, from their creation to `ready`. `jobs`: RayJobs in HTTPMode with such
a cluster each, from their creation to Complete; each runs for `--job-seconds` on the fake dashboard of its head. One
more of the kind is made first and waited for, so that starting up is not measured.

**Systems.** `muster` is controllers and scheduler in one process. `kuberay` is KubeRay's operator (10 workers, 2,000
requests a second) and kube-scheduler (as many), which binds its pods: two processes, and no gangs. `ceiling` is a plain
client that makes the very objects that Muster makes, gates, bindings and last statuses too, and decides nothing; there
is none for jobs. `--system NAME=COMMAND` adds any other; given twice with one name, it adds a process to that system,
so that KubeRay with Volcano is one system. A process counts with all that it starts.

**Runs.** Each on a fresh control plane (etcd, kube-apiserver, kwok), one after the other, in alternating order; the
table ends with medians. A system has the CRDs that its project ships: they come with it, and are a part of what the API
server has to do. `--crds kuberay` gives KubeRay's to all. Each shows the token of a service account that may do
everything.

**Dashboards.** Fake nodes run no Ray. One HTTP server speaks the Ray Jobs API for all heads and tells them apart by the
Host header. It listens on every loopback address, of which kwok gives each pod its own, so Muster goes where it goes in
a cluster: to the address of the head pod. KubeRay goes to the DNS name of the head service, and nobody serves those
names here; like any Go program it can be told of an HTTP proxy, and that server is one (`HTTP_PROXY`). That spares
KubeRay all DNS queries and most of its connections, where Muster opens one to each head each time: what differs from a
real cluster is in KubeRay's favour.

**Figures.** `per s`: number by time from the first creation to the last that is there. `ms`: milliseconds of processor
for each, of the system, of kube-apiserver and of etcd, until some seconds after the last one. `peak MiB`: the largest
resident memory, start-up included. `writes`: requests that write, refused ones too, for each, without the creation of
the object itself, Leases, and what kwok writes. `after`: those in `--quiet` seconds after all had settled. `p50` and
`p99`: seconds from the creation of one to its end, for jobs the seconds that they run included.

A system that ends, that brings nothing about for `--patience` seconds, or that leaves a wrong number of pods or jobs
has a row that says so, and the next one has its turn; the exit status is then 1.
"""
