// coscheduling is kube-scheduler with one plugin more: gangs, by their PodGroup in scheduling.x-k8s.io.
//
// The module that the plugin comes from has a scheduler with all its plugins. Gangs need this one, and the others
// would take minutes to compile.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"

	"sigs.k8s.io/scheduler-plugins/pkg/coscheduling"

	// The plugin's arguments in a KubeSchedulerConfiguration are known by what this registers.
	_ "sigs.k8s.io/scheduler-plugins/apis/config/scheme"
)

func main() {
	os.Exit(cli.Run(app.NewSchedulerCommand(app.WithPlugin(coscheduling.Name, coscheduling.New))))
}
