// Command natsserver runs a NATS server for tests from a configuration file, in a process of its own:
// the race detector of a test does not watch it, and it can be killed and frozen. It ends on SIGTERM.
package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// ready begins the line that is printed when clients can connect. Package natstest waits for it.
const ready = "natsserver: ready"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "natsserver:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("the one argument is a configuration file")
	}
	options, err := server.ProcessConfigFile(args[0])
	if err != nil {
		return err
	}
	s, err := server.NewServer(options)
	if err != nil {
		return err
	}
	s.ConfigureLogger()
	s.Start()
	if !s.ReadyForConnections(time.Minute) {
		return errors.New("it does not start to listen")
	}
	fmt.Println(ready)
	s.WaitForShutdown()
	return nil
}
