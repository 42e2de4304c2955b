// Command pause holds a pod's namespaces open: it reaps what is left to it and ends when it is told to.
//
// It is also the first process of the local node's own process namespace, where a container's shim may be orphaned.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGCHLD, syscall.SIGINT, syscall.SIGTERM)
	for received := range signals {
		if received != syscall.SIGCHLD {
			return
		}
		reap()
	}
}

// reap collects every child that has ended; several may share one signal.
func reap() {
	for {
		child, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if err != nil || child <= 0 {
			return
		}
	}
}
