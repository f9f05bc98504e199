// Package machine names the make targets of this checkout that fix a machine.
package machine

import "github.com/example/operator-lab/clusters/doctor"

// Commands are those that the doctor names.
func Commands() doctor.Commands {
	return doctor.Commands{Setup: "make setup", NodeImage: "make node-image", Down: "make down", Instead: "set CLUSTER=embedded"}
}
