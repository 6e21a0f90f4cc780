#!/bin/sh
# Connects the pods of this node with the pods of all others, for a cluster whose nodes share one link.
#
# Each node has a range of pod addresses (spec.podCIDR). Our own range goes into the CNI configuration, whose appearance
# makes the node Ready; every other range gets a route by way of its node. Traffic from a pod to anything but pods leaves
# under the node's address.
set -eu

configuration=/etc/cni/net.d/10-kindnet.conflist
columns='N:.metadata.name,R:.spec.podCIDR,A:.status.addresses[?(@.type=="InternalIP")].address'

masquerade() {
    iptables -w -t nat -N NODE-NET 2>/dev/null || iptables -w -t nat -F NODE-NET
    iptables -w -t nat -A NODE-NET -d "$POD_SUBNET" -j RETURN
    iptables -w -t nat -A NODE-NET -m addrtype --dst-type LOCAL -j RETURN
    iptables -w -t nat -A NODE-NET -j MASQUERADE
    iptables -w -t nat -C POSTROUTING -s "$POD_SUBNET" -j NODE-NET 2>/dev/null ||
        iptables -w -t nat -A POSTROUTING -s "$POD_SUBNET" -j NODE-NET
}

configure() {
    cat >"$configuration.new" <<JSON
{
  "cniVersion": "0.3.1",
  "name": "kindnet",
  "plugins": [
    {
      "type": "ptp",
      "ipMasq": false,
      "ipam": {
        "type": "host-local",
        "dataDir": "/run/cni-ipam-state",
        "routes": [{"dst": "0.0.0.0/0"}],
        "ranges": [[{"subnet": "$1"}]]
      }
    },
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
JSON
    mv "$configuration.new" "$configuration"
}

masquerade
while true; do
    # The watch ends now and then, and fails until the API server's service address is served on this node.
    kubectl get nodes --watch --no-headers --output "custom-columns=$columns" | while read -r node range address; do
        case $range in *.*) ;; *) continue ;; esac
        if [ "$node" = "$NODE_NAME" ]; then
            configure "$range"
        elif [ "$address" != "<none>" ]; then
            ip route replace "$range" via "$address"
        fi
    done || true
    sleep 1
done
